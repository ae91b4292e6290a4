"""The code of documentation pages: blocks have languages, commands exist; tests/engine/api/test_pages.py runs it."""

from __future__ import annotations

import re
import shlex
import subprocess
from itertools import dropwhile
from typing import Any

import pytest
import typer
from tests.pages import OTHERS as OTHER_PAGES
from tests.pages import PAGES, ROOT, CodeBlock, blocks

from wallaby.cli import app

#: Programs of the shell blocks that are not ours: what they do is not checked here.
OTHERS = {"apt-get", "cd", "git", "pip", "python", "spark-submit", "export", "jupyter", "source", "kubectl"}
#: Languages of blocks that show something and are not run.
NO_CODE = {"text", "mermaid", "markdown"}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
COMMAND: Any = typer.main.get_command(app)
SHELL = [block for page in PAGES for block in blocks(page) if block.language == "bash"]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page: str) -> None:
    for block in blocks(page):
        assert block.language in {"python", "bash", "text", "sql"}, f"{block}: say what language it is"
        assert not block.not_run or len(block.not_run.split()) > 2, f"{block}: say why it is not run"


def test_other_pages_have_no_code() -> None:
    """What is code is on a page whose code is run."""
    code = [block for page in OTHER_PAGES for block in blocks(page) if block.language not in NO_CODE]
    assert code == [], "list the page in tests/pages.py, or say that the block is text"


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_shell_blocks_name_commands_that_exist(block: CodeBlock) -> None:
    subprocess.run(["bash", "-n", "-c", block.text], check=True, timeout=10)
    for typed in block.commands:
        words = list(dropwhile(re.compile(r"\w+=.*").fullmatch, typed))  # without variables for the command
        if words[0] == "make":
            assert [word for word in words[1:] if "=" not in word and word not in TARGETS] == [], block
        elif words[0].split("/")[-1] == "wallaby":
            _require_known(words, block)
        else:
            assert words[0].split("/")[-1] in OTHERS, f"{block}: {words[0]}"


EXAMPLES = [
    typed
    for line in (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("wallaby ")
    for typed in re.split(r"&&|\|", re.split(r" {2,}", line)[0])
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_in_help_texts_name_options_that_exist(example: str) -> None:
    _require_known(shlex.split(example), example)


def _require_known(words: list[str], block: CodeBlock | str) -> None:
    """Fail if a command of ours, or one of its options, does not exist."""
    command = COMMAND
    rest = words[1:]
    while rest and rest[0] in getattr(command, "commands", {}):
        command, rest = command.commands[rest[0]], rest[1:]
    assert not getattr(command, "commands", {}) or rest in (["--version"], ["--help"]), (
        f"{block}: {' '.join(words)}"
    )
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in rest if re.match(r"-{1,2}[a-z]", word)} <= known | {"--help", "--version"}, block


def test_a_block_that_is_not_run_is_rare() -> None:
    left_out = [block for page in PAGES for block in blocks(page) if block.not_run]
    assert len(left_out) <= 6, [f"{block}: {block.not_run}" for block in left_out]
