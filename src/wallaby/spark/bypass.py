"""Bypass the engine: let Spark run what a thread collects, even if the session is enabled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import SparkContext

#: The local property of Spark that says whether this thread's plans bypass the engine. `SparkAbove.java` reads it.
ALONE: Final = "spark.wallaby.bypass"
_ALWAYS: Final = "true"
_NEVER: Final = "never"
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
    """In this block, Spark runs all plans of this thread, even parts that TaskManagers could run."""
    with local_property(context, ALONE, _ALWAYS):
        yield


@contextmanager
def engine_first(context: SparkContext) -> Iterator[None]:
    """In this block, TaskManagers run all they can of this thread's plans, whether or not it is enabled or pays."""
    with local_property(context, ALONE, _NEVER):
        yield


@contextmanager
def local_property(context: SparkContext, key: str, value: str) -> Iterator[None]:
    """Set a local property of this thread in a block."""
    before = context.getLocalProperty(key)
    context.setLocalProperty(key, value)
    try:
        yield
    finally:
        context.setLocalProperty(key, before)  # type: ignore[arg-type]  # None takes it away
