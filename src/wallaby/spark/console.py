"""Switch Spark's console progress bar off, which would show the TaskManagers' endless jobs all the time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark import SparkContext


def without_progress_bar(context: SparkContext) -> Callable[[], None]:
    """Stop Spark's progress bar, if it has one. Returns how to restore it."""
    jvm: Any = context._jvm
    jsc: Any = context._jsc
    bar = jsc.sc().progressBar()
    if bar.isEmpty():
        return lambda: None
    bar.get().stop()

    def restore() -> None:
        if context._jsc is None:
            return
        with suppress(Py4JError, OSError):  # Spark is gone, and its bar with it
            jvm.org.apache.spark.ui.ConsoleProgressBar(jsc.sc())

    return restore
