"""Run one TaskManager after the other in the same slot of Spark's, each in a process of its own.

A TaskManager occupies a slot, or a small part of one on clusters. If it gave that up when it is killed, a task that
reads kept rows could take it, and wait for rows that only the successor can make again, which waits for a slot. So
Spark's task is a keeper that does nothing but wait, and the TaskManager is its child. When the child is killed, the
keeper starts the next one at once, and Spark notices nothing. On clusters, one that ends by itself, perhaps because its
executor is to go, ends with its keeper, and Spark finds a place for the next one.

The two end together: a signal for the keeper goes to the child, and the kernel kills the child of a killed keeper.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

#: The pause before the next TaskManager, doubled each time one lives only briefly.
RESTART_SECONDS: Final = 0.05
#: A TaskManager that lives longer than this has started successfully.
LIVED_SECONDS: Final = 10.0
#: After so many in a row that lived only briefly, Spark's task fails, and whoever submitted it decides.
BRIEF_MAX: Final = 3
#: The wait before asking if another is needed, because an engine that closes dismisses its TaskManagers first.
CLOSING_SECONDS: Final = 0.2
#: The exit codes of a child that ends by itself: nobody needs another, or somebody may.
_OVER: Final = 0
_MISSED: Final = 3
_PASSED_ON: Final = (signal.SIGHUP, signal.SIGTERM)
_SET_PARENT_DEATH_SIGNAL: Final = 1  # of prctl


def serve_in_turn(
    serve: Callable[[], bool], is_wanted: Callable[[], bool], *, only_killed: bool = False
) -> None:
    """Run `serve` in a child process, and in a new one whenever that is killed.

    Returns when `serve` has returned False, which means that nobody needs another, or True and no other `is_wanted`; or
    after a signal that asked for the end. With `only_killed`, returns whenever `serve` has returned.

    Raises:
        ChildProcessError: `serve` raised an error, whose text is in this one; or it was killed soon, again and again.
    """
    brief = 0
    while True:
        began = time.monotonic()
        with _child(serve) as child:
            failed = child.wait()
        if child.asked_to_end or child.code == _OVER:
            return
        if child.code == _MISSED and only_killed:
            return
        if child.code == _MISSED:
            time.sleep(CLOSING_SECONDS)
            if not is_wanted():
                return
        if failed:
            raise ChildProcessError(f"The TaskManager ended with an error:\n{failed}")
        brief = 0 if time.monotonic() - began > LIVED_SECONDS else brief + 1
        if brief >= BRIEF_MAX:
            raise ChildProcessError(
                f"The TaskManager's process was ended {brief} times soon after its start."
            )
        time.sleep(RESTART_SECONDS * 2**brief)


class _Child:
    """The child process, and the error with which it failed."""

    def __init__(self, pid: int, said: int) -> None:
        self._pid = pid
        self._said = said
        self.asked_to_end = False
        self.code = 1

    def pass_on(self, number: int, _frame: FrameType | None) -> None:
        self.asked_to_end = True
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def wait(self) -> str:
        """Wait for its end, without a time limit: a TaskManager ends by itself when its driver or parent is gone."""
        with os.fdopen(self._said, encoding="utf-8") as said:
            failed = said.read()
        _, status = os.waitpid(self._pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        return failed.strip()


@contextmanager
def _child(serve: Callable[[], bool]) -> Iterator[_Child]:
    keeper = os.getpid()
    said, saying = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(said)
        _run(serve, keeper, saying)
    os.close(saying)
    child = _Child(pid, said)
    before = {number: signal.signal(number, child.pass_on) for number in _PASSED_ON}
    try:
        yield child
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(serve: Callable[[], bool], keeper: int, saying: int) -> NoReturn:
    """In the child: serve, report an error, and exit without the clean-up that belongs to the keeper."""
    code = 1
    try:
        _end_with(keeper)
        code = _MISSED if serve() else _OVER
    except BaseException as error:  # noqa: BLE001 - the keeper raises it
        text = "".join(traceback.format_exception_only(error)).strip()
        os.write(saying, text.encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _end_with(keeper: int) -> None:
    """Have the kernel kill this process when its parent is gone, as Spark would kill it without a keeper."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL))
    if os.getppid() != keeper:
        os._exit(1)
