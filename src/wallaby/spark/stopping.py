"""Let `spark.stop()` close the engine first: otherwise TaskManagers end with Java stack traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext


class Stopping:
    """Closes an engine before its context is stopped, until `undo`."""

    def __init__(self, context: SparkContext, close: Callable[[], None]) -> None:
        self._context = context
        self._close = close
        self._stop = context.stop
        #: Bound once, so that `undo` knows it again.
        self._ours = self._close_and_stop
        #: Is the context being stopped?
        self.is_under_way = False
        context.stop = self._ours  # type: ignore[method-assign]

    def _close_and_stop(self) -> None:
        self.is_under_way = True
        try:
            self._close()
        finally:
            self._stop()

    def undo(self) -> None:
        """Let the context stop as before."""
        if self._context.__dict__.get("stop") is self._ours:
            del self._context.stop

    def unless_stopped(self, call: Callable[[], None]) -> Callable[[], None]:
        """A function that calls this one, unless Spark is being stopped."""

        def only_if_it_stays() -> None:
            if not self.is_under_way:
                call()

        return only_if_it_stays
