"""Run all tests in two concurrent processes: those of whole engines, and all others.

Both mostly wait, for leases, processes and Spark, so together they take little longer than the longer one alone. Each
has its own Spark session and folders. The output of the second one is printed when the first has ended.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

#: The tests of the engine and those of the lab.
TESTS = (Path("tests"), Path("lab/tests"))
#: The folder whose tests take longer than all others together.
ENGINES = TESTS[0] / "engine"
#: Tests of that folder which the other process runs, so that both take about as long.
LENT = frozenset({"test_losses.py", "test_memory.py", "test_policies.py", "test_store_losses.py"})
END_SECONDS = 60.0


def parts(tests: Sequence[Path] = TESTS, engines: Path = ENGINES) -> tuple[list[str], list[str]]:
    """What each process runs: every folder and file of tests is in one of them."""
    found = sorted(path for folder in tests for path in folder.iterdir() if _has_tests(path))
    own = sorted(engines.glob("test_*.py"))
    lent = [path for path in own if path.name in LENT]
    others = [path for path in found if path != engines]
    return [str(path) for path in own if path not in lent], [str(path) for path in (*others, *lent)]


def _has_tests(path: Path) -> bool:
    if path.is_dir():
        return any(path.rglob("test_*.py"))
    return path.name.startswith("test_") and path.suffix == ".py"


def run(commands: Sequence[Sequence[str]]) -> int:
    """Run commands concurrently, and print their outputs one after the other; 0 if all of them succeed."""
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as directory:
        kept = [Path(directory) / f"{number}" for number in range(len(commands))]
        try:
            for number, command in enumerate(commands):
                if number == 0:
                    processes.append(subprocess.Popen(command))  # noqa: S603 - the two of this file
                    continue
                with kept[number].open("wb") as output:
                    other = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)  # noqa: S603 - as above
                    processes.append(other)
            codes = []
            for process, path in zip(processes, kept, strict=True):
                codes.append(process.wait())
                if path.exists():
                    sys.stdout.write(path.read_text(encoding="utf-8", errors="replace"))
                sys.stdout.flush()
        except BaseException:
            _end(processes)
            raise
    return next((code if code > 0 else 1 for code in codes if code), 0)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes as Ctrl-C does, so that they clean up."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    for process in processes:
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def main(arguments: Sequence[str]) -> int:
    """Run one process with arguments, which may select tests; two without."""
    pytest = [sys.executable, "-m", "pytest"]
    if arguments:
        return run([[*pytest, *arguments]])
    first, second = parts()
    return run([[*pytest, *first], [*pytest, "-o", "cache_dir=.pytest_cache/second", *second]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
