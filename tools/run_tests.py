"""Run the engine's tests, or with `--lab` the lab's, in two processes that share the test files (`shared_tests.py`).

Each has its own Spark session and folders. Bytecode is kept also where the environment says otherwise: tests start
hundreds of Python processes, and each would compile the engine anew. The output of the second process is printed when
the first has ended, then the files that took longest. `--save` keeps what they took, for the order of the next runs:
use it on a quiet machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.shared_tests import SECONDS

PROCESSES = 2
#: The tests of the engine.
TESTS = "tests"
#: The tests of the lab: simulation, chaos, differential, benchmarks.
LAB_TESTS = "lab/tests"
#: How many of the slowest files are printed.
SHOWN = 15
#: Files that took less are not kept: their order does not matter.
KEPT_SECONDS_MIN = 1.0
END_SECONDS = 60.0


def run(commands: Sequence[Sequence[str]]) -> int:
    """Run commands concurrently, and print their outputs one after the other; 0 if all of them succeed."""
    processes: list[subprocess.Popen[bytes]] = []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as directory:
        kept = [Path(directory) / f"{number}" for number in range(len(commands))]
        try:
            for number, command in enumerate(commands):
                with contextlib.ExitStack() as files:
                    output = files.enter_context(kept[number].open("wb")) if number else None
                    errors = subprocess.STDOUT if number else None
                    processes.append(subprocess.Popen(command, env=environment, stdout=output, stderr=errors))  # noqa: S603 - the two of this file
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


def run_shared(tests: Sequence[str], save: Path | None = None) -> int:
    """Run tests in processes that share them; 0 if all were run, by one process each, and passed."""
    with tempfile.TemporaryDirectory(prefix="wallaby-queue-") as queue:
        pytest = [sys.executable, "-m", "pytest", "-p", "tools.shared_tests", "--shared-queue", queue]
        code = run(
            [
                [
                    *(*pytest, "--shared-process", str(number), "-o", "console_output_style=classic"),
                    *("-o", f"cache_dir=.pytest_cache/process-{number}", *tests),
                ]
                for number in range(PROCESSES)
            ]
        )
        told = [
            json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(queue).glob("ran-*.json"))
        ]
    return _summarize(told, save) or code


def _summarize(told: Sequence[dict[str, dict[str, float]]], save: Path | None) -> int:
    """Print which files took longest; 0 if what the processes ran together is what each of them collected."""
    ran, seconds = Counter[str](), Counter[str]()
    for process in told:
        ran.update(process["ran"])
        seconds.update(process["seconds"])
    print(
        f"{ran.total()} tests in {len(ran)} files, {' + '.join(_length(process) for process in told)}. Slowest:"
    )
    for file, took in seconds.most_common(SHOWN):
        print(f"{took:8.1f} s  {file}")
    missed = [process for process in told if process["collected"] != ran]
    if missed or len(told) < PROCESSES:
        print("Not every test was run exactly once.")
        return 1
    if save is not None:
        others = json.loads(save.read_text(encoding="utf-8")) if save.exists() else {}
        kept = {file: took for file, took in others.items() if file not in ran and Path(file).is_file()}
        kept |= {file: round(took) for file, took in seconds.items() if took >= KEPT_SECONDS_MIN}
        save.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
    return 0


def _length(process: dict[str, dict[str, float]]) -> str:
    return f"{sum(process['seconds'].values()):.0f} s"


def main(arguments: Sequence[str]) -> int:
    """Run all tests of the engine, or of the lab, in two processes; in one with arguments, which may select tests."""
    tests = LAB_TESTS if "--lab" in arguments else TESTS
    others = [argument for argument in arguments if argument != "--lab"]
    if others in ([], ["--save"]):
        return run_shared([tests], SECONDS if others else None)
    return run([[sys.executable, "-m", "pytest", *others]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
