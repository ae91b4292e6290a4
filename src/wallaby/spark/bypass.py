"""Bypass the engine: let Spark run what a thread collects, even if the session is enabled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import SparkContext

#: A local property of Spark's: what this thread plans runs on Spark as a whole. `SparkAbove.java` reads it.
ALONE: Final = "spark.wallaby.bypass"
_thread = threading.local()


@contextmanager
def on_spark() -> Iterator[None]:
    """Let Spark run whatever this thread collects inside, even if the session is enabled."""
    before = is_on_spark()
    _thread.on_spark = True
    try:
        yield
    finally:
        _thread.on_spark = before


def is_on_spark() -> bool:
    """Is this thread inside `on_spark`?"""
    return bool(getattr(_thread, "on_spark", False))


@contextmanager
def spark_alone(context: SparkContext) -> Iterator[None]:
    """Whatever this thread plans in here runs on Spark as a whole, even where parts of it could run in TaskManagers."""
    before = context.getLocalProperty(ALONE)
    context.setLocalProperty(ALONE, "true")
    try:
        yield
    finally:
        context.setLocalProperty(ALONE, before)  # type: ignore[arg-type]  # None takes it away
