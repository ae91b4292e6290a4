"""Aggregating by counting gives the rows that DuckDB gives, or leaves them to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from tests.trees import BYTE, SETTINGS, SHORT, column, literal, rows_of, run, test, tuples

from wallaby.operators.counted_groups import counted_groups
from wallaby.operators.program import Program
from wallaby.operators.steps import Counting, LoweredTree, Statement
from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Column, Expression, Named, SortKey
from wallaby.relations.relation import Aggregate, Filter, Input, Project, Relation, Sort
from wallaby.relations.tree import kept
from wallaby.relations.types import DATE, DOUBLE, INTEGER, LONG, STRING, DataType, decimal
from wallaby.statements.connection import DuckDbSession
from wallaby.statements.counting import is_counted

PRICE, SUM_OF_PRICES, WIDE = decimal(15, 2), decimal(25, 2), decimal(38, 2)
K, V, P, W, T = (
    column(1, LONG, "k"),
    column(2, INTEGER, "v"),
    column(3, PRICE, "p"),
    column(4, WIDE, "w"),
    column(5, STRING, "t"),
)
ALL = (K, V, P, W, T)


def aggregation(
    function: str, type_: DataType, *arguments: Expression, distinct: bool = False
) -> Aggregation:
    return Aggregation(function, arguments, type_, nullable=True, distinct=distinct)


COUNTS = (
    aggregation(functions.COUNT, LONG),
    aggregation(functions.COUNT, LONG, literal(1, LONG)),
    aggregation(functions.COUNT, LONG, T),
    aggregation(functions.SUM, LONG, V),
    aggregation(functions.SUM, SUM_OF_PRICES, P),
    aggregation(functions.SUM, WIDE, W),
)


def by(key: Column, *made: Aggregation, child: Relation | None = None) -> Aggregate:
    named = tuple(Named(column(20 + at, each.type, f"a{at}"), each) for at, each in enumerate(made))
    return Aggregate(child or Input(0, ALL), (Named(key, key),), named)


def rows(keys: Sequence[int | None], *, nulls: bool = False) -> list[pa.RecordBatch]:
    made = [
        (
            key,
            None if nulls and at % 3 else -at,
            None if nulls and at % 2 else Decimal(at * 7 - 50).scaleb(-2),
            None if nulls and at % 5 else Decimal(-at).scaleb(-2),
            None if nulls and at % 4 else "t",
        )
        for at, key in enumerate(keys)
    ]
    half = len(made) // 2
    return [*rows_of(ALL, made[:half]), *rows_of(ALL, made[half:])]


def counted(
    tree: Aggregate, batches: Sequence[pa.RecordBatch], limit: int = 1 << 30
) -> list[tuple[object, ...]] | None:
    """The groups that are counted; None if they are left to SQL."""
    (step,) = LoweredTree(tree, frozenset(), in_pieces=True).steps
    assert isinstance(step, Counting)
    made = counted_groups(step, batches, limit)
    return None if made is None else tuples([made])


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(
    "keys",
    [
        [3, 1, 2, 3, 3, 1, -5, 0, 3],
        [7],
        [*range(0, 4000, 2), *range(0, 4000, 4)],
        [n * 300 for n in range(500)] * 2,
        [n * 97 - (1 << 40) for n in range(70_000)],
        [-(1 << 63), -(1 << 63) + 5],
    ],
    ids=["few", "one row", "dense", "sparse", "sparse and many", "least"],
)
def test_groups_are_those_of_sql(session: DuckDbSession, keys: list[int], *, nulls: bool) -> None:
    tree = by(K, *COUNTS)
    assert is_counted(tree)
    batches = rows(keys, nulls=nulls)
    found = counted(tree, batches)
    assert found is not None
    assert [row[0] for row in found] == sorted(set(keys)), "in the order of the keys"
    assert found == sorted(run(tree, session, i0=batches))
    assert counted(tree, [batch.slice(1) for batch in batches if len(keys) > 2]) == (
        sorted(run(tree, session, i0=[batch.slice(1) for batch in batches])) if len(keys) > 2 else None
    )


@pytest.mark.parametrize("type_", [BYTE, SHORT, INTEGER, LONG, DATE])
def test_keys_keep_their_type(session: DuckDbSession, type_: DataType) -> None:
    key = column(1, type_, "k")
    tree = by(key, COUNTS[0], child=Input(0, (key,)))
    days = pa.array([3, 100, -7, 3], pa.int32() if type_ == DATE else pa.int8())
    batches = rows_of(
        (key,), [(each,) for each in (days.view(pa.date32()) if type_ == DATE else days).to_pylist()]
    )
    found = counted(tree, batches)
    assert found is not None
    assert found == sorted(run(tree, session, i0=batches))


def test_what_cannot_be_counted_exactly_is_left_to_sql() -> None:
    tree = by(K, *COUNTS)
    assert counted(tree, rows([1, None, 2])) is None, "NULL is a group of its own"
    assert counted(tree, []) is None
    assert counted(tree, rows([0, 1 << 62])) is None, "too sparse"
    assert counted(tree, rows([0, 1, 2]), limit=100) is None, "too little memory"
    summed = by(
        K, aggregation(functions.SUM, LONG, column(2, LONG, "v")), child=Input(0, (K, column(2, LONG, "v")))
    )
    most = 1 << 52
    columns = (K, column(2, LONG, "v"))
    assert counted(summed, rows_of(columns, [(1, most), (1, most), (2, 1)])) == [(1, 2 * most), (2, 1)]
    assert counted(summed, rows_of(columns, [(1, most), (1, most + 1), (2, 1)])) is None, "no double is exact"
    assert counted(summed, rows_of(columns, [(1, -(1 << 63))])) is None
    wide = by(K, COUNTS[5])
    large = [(1, 1, None, Decimal(1 << 80).scaleb(-2), "t")]
    assert counted(wide, rows_of(ALL, large)) is None, "more than 64 bits"
    assert counted(wide, rows_of(ALL, [(1, 1, None, None, "t")])) == [(1, None)]


def test_only_sums_and_counts_by_one_whole_number_are_counted() -> None:
    assert not is_counted(by(T, COUNTS[0]))
    assert not is_counted(by(K, COUNTS[0], aggregation(functions.MIN, INTEGER, V)))
    assert not is_counted(by(K, aggregation(functions.SUM, DOUBLE, column(6, DOUBLE, "d"))))
    assert not is_counted(by(K, aggregation(functions.COUNT, LONG, V, distinct=True)))
    assert not is_counted(by(K, replace(COUNTS[0], filter=test("is_not_null", V))))
    assert not is_counted(by(K, aggregation(functions.COUNT, LONG, V, T)))
    two = by(K, COUNTS[0])
    assert not is_counted(replace(two, keys=(*two.keys, Named(V, V))))
    assert not is_counted(replace(two, keys=()))
    twice = by(K, COUNTS[0], child=Input(0, (K, V, K)))
    (step,) = LoweredTree(twice, frozenset(), in_pieces=True).steps
    assert isinstance(step, Statement), "a column that is there twice has no name of its own"


def test_a_program_counts_and_goes_on_with_sql(session: DuckDbSession) -> None:
    groups = by(K, *COUNTS)
    many = Filter(groups, test("gt", groups.columns[1], literal(1, LONG)))
    tree = Project(many, kept(groups.columns[:2]))
    steps = LoweredTree(tree, frozenset(), in_pieces=False).steps
    assert [type(step).__name__ for step in steps] == ["Counting", "Statement"]
    for keys in ([5, 1, 5, 2, 1], [0, 1 << 62, 0], [None, None, 3], []):
        batches = rows(keys)
        made = tuples(Program(tree, frozenset()).run(session, {0: batches}))
        assert sorted(made, key=str) == sorted(run(tree, session, i0=batches), key=str)


def test_what_needs_all_groups_at_once_stays_in_one_statement() -> None:
    tree = Sort(by(K, COUNTS[0]), (SortKey(K, ascending=True, nulls_first=True),))
    assert [type(s).__name__ for s in LoweredTree(tree, frozenset(), in_pieces=False).steps] == ["Statement"]


def test_many_groups_come_in_several_batches(session: DuckDbSession) -> None:
    settings = replace(SETTINGS, portion_bytes=1 << 16)
    small = DuckDbSession(settings)
    k = pa.array(np.arange(20_000))
    tree = by(K, COUNTS[0], child=Input(0, (K,)))
    batch = pa.RecordBatch.from_arrays([k], names=["c1"])
    made = Program(tree, frozenset()).run(small, {0: [batch]})
    assert len(made) > 1
    assert pa.Table.from_batches(made).column(0).to_pylist() == k.to_pylist()
    small.close()
