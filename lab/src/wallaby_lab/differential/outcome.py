"""The outcome of a query in a comparable form: a table, or the condition of an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from wallaby.engine import Engine
from wallaby.results.result import Result
from wallaby_lab.compare import DifferentError, require_same

#: Instead of a condition: a failure without a condition.
CRASH: Final = "WALLABY_CRASH"
#: Java's own error, which Spark does not always convert to a condition.
_OVERFLOW: Final = re.compile(r"java\.lang\.ArithmeticException: (?:long|integer) overflow")
_PLACE: Final = re.compile(r"== SQL \(line 1, position (\d+)\) ==")
_CONDITION: Final = re.compile(r"\[([A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """A table, or the condition of an error; with the message, if the error is not Spark's."""

    table: pa.Table | None
    condition: str = ""
    #: The position of the error in the query's text, according to Spark; -1 if unknown.
    position: int = field(default=-1, compare=False)
    #: The engine had a doubt about a value and left the whole query to Spark: there is nothing to compare.
    in_doubt: bool = field(default=False, compare=False)

    @property
    def is_sparks_error(self) -> bool:
        """An error that Spark has a name for?"""
        return self.table is None and not self.condition.startswith("WALLABY")

    @property
    def own_error(self) -> str:
        """The error, if Spark has no name for it."""
        return "" if self.table is not None or self.is_sparks_error else self.condition

    def __str__(self) -> str:
        return self.condition if self.table is None else f"{self.table.num_rows} rows"


def condition_of(error: Exception) -> str:
    """The condition of an error; PySpark has no class for some of Spark's errors and lets Py4J's through."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition is None:
        found = _CONDITION.search(str(error))
        condition = found[1] if found else str(error)
        if not found and _OVERFLOW.search(str(error)):
            condition = "ARITHMETIC_OVERFLOW"
    return condition


def _position(error: Exception) -> int:
    found = _PLACE.search(str(error))
    return int(found[1]) - 1 if found else -1


def outcome(run: Callable[[], pa.Table]) -> QueryOutcome:
    """The outcome of a query."""
    try:
        return QueryOutcome(run())
    except (PySparkException, Py4JJavaError) as error:
        condition = condition_of(error)
        named = f"{condition}: {error}" if condition.startswith("WALLABY") else condition
        return QueryOutcome(None, named, _position(error))
    except Exception as error:  # noqa: BLE001 - a crash, of whatever kind, is what is looked for
        return QueryOutcome(None, f"{CRASH}: {type(error).__name__}: {error}")


def engines_outcome(engine: Engine, df: DataFrame) -> tuple[QueryOutcome, Result | None]:
    """The outcome of a query on the engine, and how it ran, if it began."""
    ran: list[Result] = []

    def answer() -> pa.Table:
        ran.append(engine.run(df))
        return ran[0].arrow()

    found = outcome(answer)
    if not ran:
        return found, None
    return replace(found, in_doubt=ran[0].is_wholly_native and not ran[0].native), ran[0]


def difference(
    actual: QueryOutcome,
    expected: QueryOutcome,
    *,
    order: Sequence[str] = (),
    exact: bool = False,
    noise: float = 0.0,
) -> str:
    """The difference in one line; empty if there is none. Doubles below the noise count as zero."""
    if actual.table is None or expected.table is None:
        return "" if actual == expected else f"{actual} instead of {expected}"
    tables = (_without_noise(table, noise) for table in (actual.table, expected.table))
    try:
        require_same(*tables, order=order, exact=exact)
    except DifferentError as error:
        return str(error)
    return ""


def _without_noise(table: pa.Table, noise: float) -> pa.Table:
    if noise:
        for place, field in enumerate(table.schema):
            if pa.types.is_float64(field.type):
                column = table.column(place)
                heard = pc.if_else(pc.less_equal(pc.abs(column), noise), 0.0, column)
                table = table.set_column(place, field, heard)
    return table
