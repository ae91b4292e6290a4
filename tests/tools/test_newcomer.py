"""What `make newcomer` types is what the pages say, and a step that does not end as it should is noticed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tools.measure.newcomer import Step, commands, own_files, steps, take, tutorial, typed


def test_the_commands_are_those_of_the_pages() -> None:
    lines = list(commands())
    assert lines[:4] == ["make demo", "make pipeline", "make setup", ".venv/bin/wallaby doctor"]
    assert not [line for line in lines if line.startswith("make test")]
    assert "os.kill(victim.pid, signal.SIGKILL)" in tutorial()


def test_what_the_tutorial_leaves_behind_is_asked_about_after_it(tmp_path: Path) -> None:
    names = [step.name for step in steps(tmp_path)]
    at = names.index("the tutorial")
    assert [name for name in names if "data/orders" in name] == names[at + 1 : at + 3]
    assert names[at + 3 :] == [step.name for step in own_files()]


@pytest.mark.parametrize(
    ("step", "good"),
    [
        (typed("true"), True),
        (typed("false"), False),
        (typed("echo 'What is wrong.' >&2; exit 2", 2), True),
        (typed("exit 2", 2), False),
        (typed("echo 'a trace' >&2; echo 'of lines' >&2; exit 2", 2), False),
        (typed("true", 1), False),
        (Step("a command that does not end", ("sleep", "60")), False),
    ],
)
def test_a_step_has_to_end_as_it_should(step: Step, good: bool, tmp_path: Path) -> None:
    assert take(step, tmp_path, time.monotonic(), []) is good
