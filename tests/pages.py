"""Read the code blocks of documentation pages, so that tests can run them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The pages whose code blocks are run, in the order in which a reader meets them.
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/using.md",
    *sorted(f"docs/guides/{path.name}" for path in (ROOT / "docs/guides").glob("*.md")),
    "docs/benchmarks.md",
    *sorted(f"docs/howto/{path.name}" for path in (ROOT / "docs/howto").glob("*.md")),
)
#: All other pages, which have texts in blocks, and no code.
OTHERS = tuple(
    sorted(
        {str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]}
        - set(PAGES)
    )
)
_OPENING = re.compile(r"^( *)```(\w*)$")
_NOT_RUN = re.compile(r"^ *<!-- not run: (.+) -->$")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One block: its language, where it begins, the heading above it, and why it is not run, if it is not."""

    page: str
    line: int
    heading: str
    language: str
    text: str
    not_run: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command of a shell block."""
        text = self.text.replace("\\\n", " ")
        parts = (part for line in text.splitlines() for part in line.split("&&"))
        return [words for part in parts if (words := shlex.split(part, comments=True))]


def blocks(page: str) -> Iterator[CodeBlock]:
    """The code blocks of a page, in order."""
    heading, reason, begin, language, indent = "", "", 0, "", ""
    lines: list[str] = []
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), start=1):
        if begin:
            if line.strip() == "```":
                yield CodeBlock(page, begin, heading, language, "\n".join(lines), reason)
                begin, reason, lines = 0, "", []
            else:
                lines.append(line.removeprefix(indent))
        elif opened := _OPENING.match(line):
            begin, indent, language = number, opened[1], opened[2]
        elif noted := _NOT_RUN.match(line):
            reason = noted[1]
        elif line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.strip():
            reason = ""
    assert not begin, f"{page}:{begin}: the code block does not end"
