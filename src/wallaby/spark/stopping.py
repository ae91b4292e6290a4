"""Let `spark.stop()` close the engine first: otherwise TaskManagers end with Java stack traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext


def close_before_stop(context: SparkContext, close: Callable[[], None]) -> Callable[[], None]:
    """Close an engine before this context is stopped. Returns how to undo that."""
    stop = context.stop

    def close_and_stop() -> None:
        try:
            close()
        finally:
            stop()

    context.stop = close_and_stop  # type: ignore[method-assign]

    def undo() -> None:
        if context.__dict__.get("stop") is close_and_stop:
            del context.stop

    return undo
