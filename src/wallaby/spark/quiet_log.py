"""Keep Spark's stack traces about lost TaskManagers out of the driver's log: the engine reports a loss in one line.

Only messages about the tasks of TaskManagers are affected; `QuietLog.java` says how they are told apart. If Spark logs
through something other than Log4j 2, its log stays as it is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from wallaby.catalyst.janino import load_class, new_object

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
#: The filters that stayed when Spark was stopped, because its last threads may still log something.
_left: list[QuietLog] = []


class QuietLog:
    """Keeps messages about the tasks of jobs with a tag out of the log, until `undo`."""

    def __init__(self, context: SparkContext, tag: str) -> None:
        while _left:
            _left.pop().undo()
        gateway: Any = context._gateway
        jsc: Any = context._jsc
        self._filter: Any = None
        try:
            made = load_class(gateway.jvm, "wallaby.spark", "QuietLog")
            found = new_object(gateway, gateway.jvm, made, jsc.sc(), tag)
            found.install()
            self._filter = found
        except Py4JError as error:
            _log.debug("Spark's log stays as it is: %s", error)

    def stay(self) -> None:
        """Stay in effect although Spark is about to stop, until the next Spark begins."""
        self._call("remember")
        _left.append(self)

    def undo(self) -> None:
        """Leave the log as it was."""
        self._call("remove")

    def _call(self, name: str) -> None:
        try:
            if self._filter is not None:
                getattr(self._filter, name)()
        except (Py4JError, OSError) as error:
            _log.debug("Spark's log is gone: %s", type(error).__name__)
