"""Past the engine: what a thread collects in here is run by Spark, even where `enable` holds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_thread = threading.local()


@contextmanager
def on_spark() -> Iterator[None]:
    """Whatever this thread collects in here is run by Spark, even where `enable` holds."""
    before = is_on_spark()
    _thread.on_spark = True
    try:
        yield
    finally:
        _thread.on_spark = before


def is_on_spark() -> bool:
    """Is this thread inside `on_spark`?"""
    return bool(getattr(_thread, "on_spark", False))
