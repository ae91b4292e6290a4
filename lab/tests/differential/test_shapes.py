"""Which expression of a query an error of Spark's is about."""

from __future__ import annotations

import pytest

from wallaby.errors import DivideByZeroError
from wallaby_lab.differential.generated.shapes import AGGREGATES, BLOCKS, ROWS, Shape
from wallaby_lab.differential.outcome import outcome

EXPRESSIONS = ["a + b", "upper('😀, x')", "1 div c"]


@pytest.mark.parametrize("shape", [*ROWS, *AGGREGATES, *BLOCKS[:1]])
def test_a_position_lies_in_one_expression(shape: Shape) -> None:
    query = shape.sql(EXPRESSIONS, "wild")
    for number, sql in enumerate(EXPRESSIONS):
        begin = query.index(sql)
        for position in (begin, begin + len(sql) - 1):
            assert shape.place(EXPRESSIONS, "wild", position) == number


def test_a_position_outside_of_the_expressions_lies_in_none() -> None:
    shape = AGGREGATES[2]
    query = shape.sql(EXPRESSIONS, "wild")
    for position in (-1, 0, query.index("pair"), query.index("group by"), len(query)):
        assert shape.place(EXPRESSIONS, "wild", position) is None


@pytest.mark.parametrize(
    ("message", "position"),
    [
        ("[DIVIDE_BY_ZERO] No.\n== SQL (line 1, position 12) ==\nselect id, 1 div c\n", 11),
        ("[DIVIDE_BY_ZERO] No.\n== SQL (line 2, position 12) ==\n", -1),
        ("[DIVIDE_BY_ZERO] No.", -1),
    ],
)
def test_spark_says_where_an_error_is(message: str, position: int) -> None:
    def fail() -> None:
        raise DivideByZeroError(message)

    found = outcome(fail)
    assert found.position == position
    assert found == outcome(_fail_elsewhere)


def _fail_elsewhere() -> None:
    raise DivideByZeroError("No.")
