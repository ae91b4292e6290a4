"""A newcomer's path, timed on a fresh clone: the commands of README and tutorial as they are printed, in their order.

    make newcomer    # the last commit, in a temporary folder; some minutes

It takes the shell blocks of README's "Try it" and "Your own files" and of the tutorial's "Install", and the tutorial's
Python blocks as one program. Then it asks files of its own, a CSV and a Parquet file, and makes the mistakes that
newcomers make, whose errors have to be one line. `make test` is left out: it checks the engine, and shows nothing.
A command that does not end as it should ends it, and so does the time limit.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.pages import ROOT, blocks

#: The pages and headings whose shell blocks are typed.
TYPED = (("README.md", "Try it"), ("docs/tutorial.md", "Install"), ("README.md", "Your own files"))
LEFT_OUT = ("make test",)
#: The newcomer's own files, and the tutorial as a program, in the clone.
OWN = "build/own"
PROGRAM = "build/tutorial.py"
QUESTIONS = (
    '.venv/bin/wallaby sql "select town, avg(age) from p group by town" --table p=build/own/people.csv',
    'cd build/own; ../../.venv/bin/wallaby sql "select * from p join v using (name)" -t p=people.csv -t v=v.parquet',
    '.venv/bin/wallaby explain "select town, count(*) from p group by town" --table p=build/own/people.csv',
)
#: And the code that each has to end with.
MISTAKES = {
    '.venv/bin/wallaby sql "select 1 from p" --table p=build/own/peple.csv': 2,
    '.venv/bin/wallaby sql "select nam from p" --table p=build/own/people.csv': 1,
    '.venv/bin/wallaby sql "select 1" --conf spark.wallaby.memry=1g': 2,
    '.venv/bin/wallaby sql "select * from t" --table t=build/own/broken.parquet': 1,
    'JAVA_HOME=/nowhere .venv/bin/wallaby sql "select 1"': 1,
}


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


@dataclass(frozen=True, slots=True)
class Step:
    """What a newcomer does: its name, the command, and how it has to end. A mistake is told in one line."""

    name: str
    command: Sequence[str]
    code: int = 0


def typed(line: str, code: int = 0) -> Step:
    """A line of shell."""
    return Step(line, ("bash", "-euc", line), code)


def own_files() -> Iterator[Step]:
    """Questions about files that no page has, and mistakes."""
    yield from (typed(line) for line in QUESTIONS)
    yield from (typed(line, code) for line, code in MISTAKES.items())


def write_own_files(folder: Path) -> None:
    """The files that `own_files` asks about."""
    folder.mkdir(parents=True)
    (folder / "people.csv").write_text(
        'name,town,age\nAnn,"Ghent, BE",34\nBob,Lyon,28\nCy,Lyon,\n', encoding="utf-8"
    )
    (folder / "broken.parquet").write_text("no table", encoding="utf-8")
    pq.write_table(pa.table({"name": ["Ann", "Bob"], "visits": [3, 5]}), folder / "v.parquet")


def steps(clone: Path) -> Iterator[Step]:
    """All steps in a clone, in their order; the tutorial leaves behind what README's last commands ask about."""
    lines = list(commands())
    later = [line for line in lines if "wallaby sql" in line or "wallaby explain" in line]
    yield from (typed(line) for line in lines if line not in later)
    yield Step("the tutorial", (f"{clone}/.venv/bin/python", str(clone / PROGRAM)))
    yield from map(typed, later)
    yield from own_files()


def main() -> int:
    """Clone, type, and print what each step took."""
    parser = argparse.ArgumentParser(description="Time a newcomer's path on a fresh clone.")
    parser.add_argument("--folder", type=Path, help="where to clone to; a temporary folder if left out")
    parser.add_argument("--minutes", type=float, default=30, help="the time limit for all of it")
    given = parser.parse_args()
    deadline = time.monotonic() + 60 * given.minutes
    if given.folder is not None:
        return walk(given.folder.absolute(), deadline)
    with tempfile.TemporaryDirectory(prefix="wallaby-newcomer-") as folder:
        return walk(Path(folder) / "wallaby", deadline)


def walk(clone: Path, deadline: float) -> int:
    """Take every step; 1 if one does not end as it should."""
    taken: list[tuple[str, float, float]] = []
    good = take(Step("git clone", ("git", "clone", "--quiet", str(ROOT), str(clone))), ROOT, deadline, taken)
    if good:
        (clone / PROGRAM).parent.mkdir(exist_ok=True)
        (clone / PROGRAM).write_text(tutorial(), encoding="utf-8")
        write_own_files(clone / OWN)
        good = all(take(step, clone, deadline, taken) for step in steps(clone))
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, seconds, used in taken:
        print(f"{seconds:8.1f} s  {used:8.1f} s CPU  {name}")
    print(f"{sum(seconds for _, seconds, _ in taken):8.1f} s in all")
    return 0 if good else 1


def take(step: Step, where: Path, deadline: float, taken: list[tuple[str, float, float]]) -> bool:
    """Take one step and note what it took. Does it end as it should?"""
    print(f"$ {step.name}", flush=True)
    began, before = time.monotonic(), os.times()
    with subprocess.Popen(  # noqa: S603 - what the pages say
        step.command,
        cwd=where,
        stderr=subprocess.PIPE if step.code else None,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            _, said = process.communicate(timeout=max(deadline - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # Spark's processes, too
            print(f"{step.name} did not end within the time limit")
            return False
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    taken.append((step.name, time.monotonic() - began, used))
    if process.returncode != step.code:
        print(f"{step.name} exited with {process.returncode}, not {step.code}", said or "")
        return False
    if step.code:
        print(said, end="")
    if step.code and said.count("\n") != 1:
        print(f"{step.name} does not say in one line what is wrong")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
