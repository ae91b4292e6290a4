"""Raise Wallaby's errors as such when they arrive through Spark.

A sub-plan fails in Python, in the driver or in a task. The caller of an action gets a Java exception that wraps the
error or its text. PySpark converts Java exceptions in one function, `convert_exception`. Once an engine examines
Spark's plans, that function first looks for Wallaby's errors. So `df.write` raises `MemoryLimitError`, as `collect`
does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors.exceptions import captured

from wallaby.errors import ConfigurationError, QueryError, WallabyError, query_errors
from wallaby.errors.text import read_error

_OURS: Final = "wallaby.KeptPlans$WallabyException"
#: The last line of the Python traceback of an error that a task raised.
_RAISED: Final = re.compile(
    r"^wallaby\.errors\.\w+\.(?P<name>\w+): (?P<what>.+?)(?:\n\s*\n|\n\s+at |\Z)", re.M | re.S
)
#: How many wrapping exceptions are searched.
_DEEP: Final = 12

_sparks: Callable[[Any], Any] | None = None


def raise_ours() -> None:
    """From now on, raise Wallaby's errors as such when Spark passes them on.

    This stays in effect after an engine is closed, so that reading its rows also raises one of Wallaby's errors.
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
    """The Wallaby error that a Java exception stands for or is caused by, if there is one."""
    for _ in range(_DEEP):
        if exception is None:
            return None
        name = exception.getClass().getName()
        if name == _OURS:
            written = exception.written()
            if written is not None:
                return read_error(written)
            kinds: dict[str, type[WallabyError]] = {
                **query_errors(),
                ConfigurationError.condition: ConfigurationError,
            }
            return kinds[exception.getCondition()](exception.what())
        if name.startswith("org.apache.spark.") and (found := in_trace(exception.getMessage() or "")):
            return found
        exception = exception.getCause()
    return None


def in_trace(text: str) -> WallabyError | None:
    """The Wallaby error at the end of a Python traceback, if there is one."""
    found = _RAISED.search(text)
    if found is None:
        return None
    kinds = {kind.__name__: kind for kind in query_errors().values()}
    return kinds.get(found["name"], QueryError)(found["what"].strip())
