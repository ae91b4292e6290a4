"""Rows out of arrays: which, in which order, beside what, and the same bytes every time."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.trees import SETTINGS, column

from wallaby.batches.checksum import checksum
from wallaby.operators.program import Program
from wallaby.relations.relation import Input, Unnest
from wallaby.relations.types import INTEGER, LONG, STRING, DataType, array, struct
from wallaby.sql.types import arrow_schema
from wallaby.statements.connection import DuckDbSession

K, A = column(1, LONG), column(2, array(struct(x=INTEGER, y=STRING)))
P, X, Y = column(3, INTEGER), column(4, INTEGER), column(5, STRING)
ROWS = Input(0, (K, A))
VALUES: list[tuple[int, list[tuple[int | None, str] | None] | None]] = [
    (1, [(1, "a"), None, (None, "c")]),
    (2, None),
    (3, []),
    (4, [(4, "d")]),
]


def batches(times: int = 1) -> list[pa.RecordBatch]:
    schema = arrow_schema(ROWS.columns)
    columns = zip(*VALUES, strict=True)
    batch = pa.record_batch(
        [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
    return [batch] * times


def unnested(unnest: Unnest, given: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    session = DuckDbSession(SETTINGS)
    try:
        return Program(unnest, frozenset()).run(session, {0: given})
    finally:
        session.close()


def rows_of(made: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for batch in made for row in batch.to_pylist()]


def test_a_row_without_elements_gives_none() -> None:
    made = unnested(Unnest(ROWS, A, (K,), P, (X, Y), fields=True, outer=False), batches())
    assert rows_of(made) == [(1, 0, 1, "a"), (1, 1, None, None), (1, 2, None, "c"), (4, 0, 4, "d")]


def test_with_outer_it_gives_one_of_nulls() -> None:
    made = unnested(Unnest(ROWS, A, (K,), P, (X, Y), fields=True, outer=True), batches())
    assert [row for row in rows_of(made) if row[0] in (2, 3)] == [
        (2, None, None, None),
        (3, None, None, None),
    ]
    assert len(rows_of(made)) == 6


@pytest.mark.parametrize("outer", [False, True])
def test_elements_alone_are_as_they_were(outer: bool) -> None:
    element = column(6, DataType(A.type.element.kind, children=A.type.element.children, names=("x", "y")))
    made = unnested(Unnest(ROWS, A, (), None, (element,), fields=False, outer=outer), batches())
    expected = [{"f0": 1, "f1": "a"}, None, {"f0": None, "f1": "c"}, {"f0": 4, "f1": "d"}]
    found = [row[0] for row in rows_of(made)]
    assert [row for row in found if row is not None] == [row for row in expected if row is not None]
    assert len(found) == len(expected) + (2 if outer else 0)


def test_the_same_rows_give_the_same_bytes() -> None:
    unnest = Unnest(ROWS, A, (K, A), P, (X, Y), fields=True, outer=True)
    first, second = (unnested(unnest, batches(5000)) for _ in range(2))
    assert sum(batch.num_rows for batch in first) == 30_000
    assert checksum([first]) == checksum([second])
