"""Bypass the engine: let Spark run what a thread collects, even if the session is enabled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
