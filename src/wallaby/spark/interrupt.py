"""Ctrl-C: it cancels what the user runs, and spares the TaskManagers.

PySpark's own handler cancels every job of the application, and a TaskManager is one: each Ctrl-C would cost
the engine all its workers. This one cancels the other jobs only.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)


def spare_on_interrupt(context: SparkContext, tag: str) -> Callable[[], None]:
    """Put a handler in the place of PySpark's that spares jobs with a tag. How to undo that.

    A handler that is not PySpark's, a notebook's for example, stays.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    is_pysparks = getattr(before, "__qualname__", "").startswith("SparkContext.")
    if not is_pysparks or threading.current_thread() is not threading.main_thread():
        return lambda: None

    def interrupted(_number: int, _frame: object) -> NoReturn:
        try:
            _cancel_others(context, tag)
        finally:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)

    def undo() -> None:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is interrupted
        ):
            signal.signal(signal.SIGINT, before)

    return undo


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
