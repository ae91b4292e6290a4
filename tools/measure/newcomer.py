"""A newcomer's path, timed on a fresh clone: the commands of README and tutorial as they are printed, in their order.

    .venv/bin/python -m tools.measure.newcomer    # the last commit, in a temporary folder; some minutes

It takes the shell blocks of README's "Try it" and of the tutorial's "Install", and the tutorial's Python blocks as one
program. `make test` is left out: it checks the engine, and shows nothing. A command that fails ends it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.pages import ROOT, blocks

#: The pages and headings whose shell blocks are typed.
TYPED = (("README.md", "Try it"), ("docs/tutorial.md", "Install"), ("README.md", "Your own files"))
LEFT_OUT = ("make test",)
SECONDS_MAX = 1800


def commands() -> Iterator[str]:
    """What a newcomer types, line by line."""
    for page, heading in TYPED:
        for block in blocks(page):
            if block.heading == heading and block.language == "bash":
                lines = (
                    line.partition("#")[0].strip() for line in block.text.replace("\\\n", "").splitlines()
                )
                yield from (line for line in lines if line and not line.startswith(LEFT_OUT))


def tutorial() -> str:
    """The tutorial's Python blocks, as one program."""
    return "\n".join(block.text for block in blocks("docs/tutorial.md") if block.language == "python")


def main() -> int:
    """Clone, type, and print what each step took."""
    parser = argparse.ArgumentParser(description="Time a newcomer's path on a fresh clone.")
    parser.add_argument("--folder", type=Path, help="where to clone to; a temporary folder if left out")
    given = parser.parse_args()
    if given.folder is not None:
        return walk(given.folder.absolute())
    with tempfile.TemporaryDirectory(prefix="wallaby-newcomer-") as folder:
        return walk(Path(folder) / "wallaby")


def walk(clone: Path) -> int:
    """Take every step; 1 if one fails."""
    steps = [("git clone", ["git", "clone", "--quiet", str(ROOT), str(clone)], ROOT)]
    typed = list(commands())
    program = clone / "build" / "tutorial.py"
    first = len(typed) - len([line for line in typed if "wallaby sql" in line or "wallaby explain" in line])
    shell = [(line, ["bash", "-euc", line], clone) for line in typed]
    steps += shell[:first]
    steps.append(("the tutorial", [str(clone / ".venv/bin/python"), str(program)], clone))
    steps += shell[first:]
    taken: list[tuple[str, float, float]] = []
    for name, command, where in steps:
        print(f"$ {name}", flush=True)
        if name == "the tutorial":
            program.parent.mkdir(exist_ok=True)
            program.write_text(tutorial(), encoding="utf-8")
        began, before = time.monotonic(), os.times()
        ended = subprocess.run(command, cwd=where, check=False, timeout=SECONDS_MAX)  # noqa: S603 - what the pages say
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        taken.append((name, time.monotonic() - began, used))
        if ended.returncode:
            print(f"{name} exited with {ended.returncode}")
            return 1
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, seconds, used in taken:
        print(f"{seconds:8.1f} s  {used:8.1f} s CPU  {name}")
    print(f"{sum(seconds for _, seconds, _ in taken):8.1f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
