"""Errors of ours that come through Spark, as the errors of ours that they are.

A sub-plan fails in Python, in the driver or in a task. What reaches the caller of an action is an exception of Java's
around it, or around its text. PySpark turns exceptions of Java's into its own in one function, `convert_exception`.
Once an engine looks at Spark's plans, that function looks for errors of ours first. So `df.write` raises
`MemoryLimitError`, as `collect` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors.exceptions import captured

from wallaby.errors import QueryError, WallabyError, query_errors
from wallaby.errors.text import read_error

_OURS: Final = "wallaby.KeptPlans$WallabyException"
#: How Python ends the trace of an error that a task raised.
_RAISED: Final = re.compile(
    r"^wallaby\.errors\.\w+\.(?P<name>\w+): (?P<what>.+?)(?:\n\s*\n|\n\s+at |\Z)", re.M | re.S
)
#: So many exceptions around ours are looked through.
_DEEP: Final = 12

_sparks: Callable[[Any], Any] | None = None


def raise_ours() -> None:
    """From now on errors of ours that Spark passes on are raised as such.

    That stays so after an engine is closed: whoever reads its rows then gets an error of ours too.
    """
    global _sparks  # noqa: PLW0603 - PySpark has one such function per process
    if _sparks is None:
        _sparks = captured.convert_exception
        captured.convert_exception = _convert  # type: ignore[assignment]


def _convert(exception: Any) -> Any:
    assert _sparks is not None
    try:
        ours = find_ours(exception)
    except (Py4JError, OSError):
        ours = None
    return _sparks(exception) if ours is None else ours


def find_ours(exception: Any) -> WallabyError | None:
    """The error of ours that an exception of Java's stands for or is caused by, if there is one."""
    for _ in range(_DEEP):
        if exception is None:
            return None
        name = exception.getClass().getName()
        if name == _OURS:
            written = exception.written()
            if written is not None:
                return read_error(written)
            return query_errors()[exception.getCondition()](exception.what())
        if name.startswith("org.apache.spark.") and (found := in_trace(exception.getMessage() or "")):
            return found
        exception = exception.getCause()
    return None


def in_trace(text: str) -> WallabyError | None:
    """The error of ours with which a trace of Python's ends."""
    found = _RAISED.search(text)
    if found is None:
        return None
    kinds = {kind.__name__: kind for kind in query_errors().values()}
    return kinds.get(found["name"], QueryError)(found["what"].strip())
