"""A pytest plugin: the processes of one run share its test files, and each takes the next one when it is free.

Folders of `tests` that take longest go first, and in a folder its longest files, by the seconds in
`test_seconds.json`. So the processes end at about the same time, also on a loaded machine, and a session or an engine
serves the whole folder.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

#: The seconds that files took when they were measured last; one that is not listed counts as none.
SECONDS = Path(__file__).with_name("test_seconds.json")


def in_order(files: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """Test files in the order in which they are to be taken."""
    listed = sorted(set(files))
    rooms: defaultdict[str, float] = defaultdict(float)
    for file in listed:
        rooms[_room(file)] += seconds.get(file, 0)
    return sorted(listed, key=lambda file: (-rooms[_room(file)], _room(file), -seconds.get(file, 0)))


def _room(file: str) -> str:
    """The folder right below `tests`, whose files share what is costly; for others their own folder."""
    parts = Path(file).parent.parts
    below = parts.index("tests") + 2 if "tests" in parts else len(parts)
    return "/".join(parts[:below])


def take(queue: Path, files: Sequence[str]) -> Iterator[str]:
    """The files that no other process has taken, each when it is asked for."""
    for number, file in enumerate(files):
        try:
            (queue / f"taken-{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        yield file


class SharedTests:
    """Runs the files that it takes from a queue, and tells what each took."""

    def __init__(self, queue: Path, process: str) -> None:
        self._queue = queue
        self._told = queue / f"ran-{process}.json"
        self._tests: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Pytest's own loop, over files that nobody else has taken."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None  # pytest's own says so
        tests: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            tests.setdefault(item.nodeid.partition("::")[0], []).append(item)
        seconds = json.loads(SECONDS.read_text(encoding="utf-8"))
        taken = (tests[file] for file in take(self._queue, in_order(tests, seconds)))
        self._run(session, (item for items in taken for item in items))
        summary = {"collected": {file: len(items) for file, items in tests.items()}, "ran": self._tests}
        self._told.write_text(json.dumps({**summary, "seconds": self._seconds}), encoding="utf-8")
        return True

    def _run(self, session: pytest.Session, items: Iterator[pytest.Item]) -> None:
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            file = item.nodeid.partition("::")[0]
            began = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._tests[file] += 1
            self._seconds[file] += time.monotonic() - began
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following


def pytest_addoption(parser: pytest.Parser) -> None:
    """How a process is told what it shares."""
    parser.addoption(
        "--shared-queue", type=Path, help="the folder of the queue that test files are taken from"
    )
    parser.addoption("--shared-process", help="the name of this process in that folder")


def pytest_configure(config: pytest.Config) -> None:
    """Run shared tests if there is a queue."""
    queue = config.getoption("--shared-queue")
    if queue is not None:
        config.pluginmanager.register(SharedTests(queue, config.getoption("--shared-process")))
