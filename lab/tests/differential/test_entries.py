"""Expressions that share a query: what Spark says of one of them must hold where it is alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from wallaby.errors import DivideByZeroError
from wallaby_lab.differential.entries import EntrySuite, EntryTally
from wallaby_lab.differential.generated.expand import Expression
from wallaby_lab.differential.generated.shapes import ROWS

FIRST, SECOND = Expression("Upper", "upper(a)"), Expression("Lower", "lower(a)")


class Query:
    """Fails on Spark where both expressions are in it, as it says at the first of them; one alone has an answer."""

    is_wholly_native = native = True

    def __init__(self, sql: str) -> None:
        self._sql = sql

    def toArrow(self) -> pa.Table:  # noqa: N802 - the name is PySpark's
        if FIRST.sql in self._sql and SECOND.sql in self._sql:
            place = self._sql.index(FIRST.sql) + 1
            raise DivideByZeroError(f"== SQL (line 1, position {place}) ==")
        return self.arrow()

    def arrow(self) -> pa.Table:
        return pa.table({"id": [1]})


class Both:
    """A session and an engine."""

    def sql(self, query: str) -> Query:
        return Query(query)

    def run(self, query: Query) -> Query:
        return query


def test_an_error_that_spark_raises_for_several_expressions_is_not_expected_of_one() -> None:
    both: Any = Both()
    said: list[str] = []
    suite = EntrySuite(both, both, 0, said.append)
    suite.tallies = {"Upper": EntryTally(), "Lower": EntryTally()}
    suite._compare_all(ROWS[0], [FIRST, SECOND], "tame")
    assert said == []
    assert {name: (tally.compared, tally.raised) for name, tally in suite.tallies.items()} == {
        "Upper": (1, 0),
        "Lower": (1, 0),
    }
