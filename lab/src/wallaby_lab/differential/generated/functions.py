"""What random expressions are made of: the examples of the registry, with the types that Spark gives them.

A function that raises an error over the wild rows in ANSI mode is risky. Queries in that mode hold few of those: most
would only fail, and of two errors in one query either may come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from wallaby.engine import Engine
from wallaby_lab.differential.generated.examples import AGGREGATED, CLOSE, EXAMPLES
from wallaby_lab.differential.generated.expand import Expression, arguments_of, expand
from wallaby_lab.differential.generated.values import COLUMNS
from wallaby_lab.differential.halves import BATCH, bad_ones
from wallaby_lab.differential.outcome import outcome

#: As many expressions of each example.
_EACH: Final = 2
_KIND_OF: Final = {
    column.sql: name
    for name, column in reversed(COLUMNS.items())
    if name not in ("digits", "moment", "small")
}


@dataclass(frozen=True, slots=True)
class ExampleFunction:
    """A template with a place for each argument, the kinds of these, and the type of the result."""

    template: str
    arguments: tuple[str, ...]
    result: str
    native: bool
    risky: bool
    #: Is a floating-point result the same to the last digit?
    exact: bool


def kind_of(sql: str) -> str:
    """The kind of column that a type is; the type itself if there is none."""
    return _KIND_OF.get(sql, sql)


def scalar_functions(
    spark: SparkSession, engine: Engine, entries: Sequence[str] = tuple(EXAMPLES)
) -> list[ExampleFunction]:
    """Some expressions for every example that applies to rows; the tables of `tables.py` are registered."""
    examples = {found[0].sql: found for found in _examples(entries)}
    invalid = set(bad_ones(tuple(examples), lambda some: _is_valid(spark, some)))
    valid = [sql for sql in examples if sql not in invalid]
    foreign = set(bad_ones(valid, lambda some: not engine.fallback_reasons(spark.sql(_select(some)))))
    risky = set(bad_ones(valid, lambda some: outcome(spark.sql(_select(some)).toArrow).table is not None))
    found = []
    for begin in range(0, len(valid), BATCH):
        some = valid[begin : begin + BATCH]
        for sql, column in zip(some, spark.sql(_select(some)).schema.fields[1:], strict=True):
            expression, template, arguments = examples[sql]
            result = kind_of(column.dataType.simpleString())
            exact = expression.entry not in CLOSE
            found.append(
                ExampleFunction(template, arguments, result, sql not in foreign, sql in risky, exact)
            )
    return found


def _examples(entries: Sequence[str]) -> Iterator[tuple[Expression, str, tuple[str, ...]]]:
    for entry in entries:
        for example in EXAMPLES[entry] if entry not in AGGREGATED else ():
            expressions = expand(entry, example, 0)
            for expression in Random(example).sample(expressions, min(_EACH, len(expressions))):
                found = arguments_of(expression.sql)
                if found is not None and not expression.is_query:
                    yield expression, *found


def _select(expressions: Sequence[str]) -> str:
    columns = ", ".join(f"{sql} as c{number}" for number, sql in enumerate(expressions))
    return f"select id, {columns} from wild"


def _is_valid(spark: SparkSession, expressions: Sequence[str]) -> bool:
    try:
        spark.sql(_select(expressions))
    except AnalysisException:
        return False
    return True
