"""What became of a query, in a form that Spark's and the engine's can be compared in: its rows, or a condition."""

from __future__ import annotations

import re
from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row

from wallaby.engine import Engine
from wallaby.results.result import Result

CONDITION = re.compile(r"\[([A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")


def outcome(collect: Callable[[], list[Row]]) -> list[str] | str:
    """The rows as text, in an order of their own; or the condition of the error, as far as it is one of Spark's.

    PySpark has no class for some of Spark's errors and lets Py4J's through. An error that only the engine has is
    raised: whoever expects one says so.
    """
    try:
        return sorted(map(repr, collect()))
    except (PySparkException, Py4JJavaError) as error:
        failure = error
    condition = failure.getCondition() if isinstance(failure, PySparkException) else None
    if condition is None:
        found = CONDITION.search(str(failure))
        condition = found[1] if found else str(failure)
    if condition.startswith("WALLABY"):
        raise failure
    return condition


def natively(engine: Engine, df: DataFrame) -> Result:
    """Start a query all of which the TaskManagers can run; otherwise fail with the reasons."""
    result = engine.run(df)
    assert result.is_wholly_native, engine.fallback_reasons(df)
    return result
