"""Ctrl-C: it cancels what the user runs, and spares the TaskManagers.

PySpark's own handler cancels every job of the application, and a TaskManager is one: each Ctrl-C would cost
the engine all its workers. This one cancels the other jobs only. It asks a thread of its own to do so, since
the interrupted thread may be in the middle of a call into the JVM, on a connection that takes one at a time.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
#: An interrupted program goes on after this time, even if Spark has not answered.
CANCEL_SECONDS = 2.0
_CANCEL, _END = b"c", b"e"


def spare_on_interrupt(context: SparkContext, tag: str) -> Callable[[], None]:
    """Put a handler in the place of PySpark's that spares jobs with a tag. How to undo that.

    A handler that is not PySpark's, a notebook's for example, stays.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    is_pysparks = getattr(before, "__qualname__", "").startswith("SparkContext.")
    if not is_pysparks or threading.current_thread() is not threading.main_thread():
        return lambda: None
    canceller = Canceller(lambda: _cancel_others(context, tag))

    def interrupted(_number: int, _frame: object) -> NoReturn:
        try:
            canceller.cancel()
        finally:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)

    def undo() -> None:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is interrupted
        ):
            signal.signal(signal.SIGINT, before)
            canceller.end()

    return undo


class Canceller:
    """A thread that cancels when a signal handler asks it to. The handler takes no lock: it uses pipes."""

    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do
        self._asked, self._ask = os.pipe()
        self._done, self._tell = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="wallaby-interrupt", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Have it done, and wait for that, but not for long."""
        os.write(self._ask, _CANCEL)
        ready, _, _ = select.select([self._done], [], [], CANCEL_SECONDS)
        if ready:
            os.read(self._done, 1)

    def end(self) -> None:
        """Cancel nothing any more."""
        os.write(self._ask, _END)
        self._thread.join(CANCEL_SECONDS)

    def _serve(self) -> None:
        try:
            while os.read(self._asked, 1) == _CANCEL:
                self._do()
                os.write(self._tell, _CANCEL)
        finally:
            for end in (self._asked, self._ask, self._done, self._tell):
                os.close(end)


def _cancel_others(context: SparkContext, tag: str) -> None:
    jsc: Any = context._jsc
    if jsc is None:
        return
    try:
        tracker = jsc.sc().statusTracker()
        ours = set(tracker.getJobIdsForTag(tag))
        for job in set(tracker.getActiveJobIds()) - ours:
            jsc.sc().cancelJob(job)
    except (Py4JError, OSError) as error:
        _log.debug("cancelling jobs failed: %s", type(error).__name__)
