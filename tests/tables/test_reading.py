"""Filters done by the reader keep exactly the rows that the same filters in SQL keep; only needed columns are read."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.trees import (
    BYTE,
    SETTINGS,
    SHORT,
    call,
    column,
    literal,
    parquet,
    run,
    scan_of,
    test,
    tuples,
)

from wallaby.errors import RemainderByZeroError
from wallaby.operators.kernel import EMPTY, make_kernel
from wallaby.plan.physical import ScanFragment
from wallaby.relations.expression import Column, Expression, Named
from wallaby.relations.relation import Filter, Input, Project, Relation, Scan
from wallaby.relations.types import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, STRING, DataType, decimal
from wallaby.sql.types import arrow_schema
from wallaby.statements.connection import DuckDbSession
from wallaby.tables.reading import planned_reading
from wallaby.tables.row_filter import row_filter
from wallaby.tables.scan import read_split
from wallaby.tables.tables import list_splits

TYPES: dict[str, DataType] = {
    "n": LONG,
    "^m.*$": LONG,
    "*": INTEGER,
    "tiny": BYTE,
    "small": SHORT,
    "price": decimal(15, 2),
    "cost": decimal(15, 2),
    "wide": decimal(38, 4),
    "day": DATE,
    "text": STRING,
    "ratio": DOUBLE,
    "flag": BOOLEAN,
}
MANY, FEW = 10_000, 700


def some_rows(count: int) -> pa.Table:
    numbers = range(count)
    days = [datetime.date(1, 1, 1) + datetime.timedelta(n * 300) if n % 11 else None for n in numbers]
    return pa.table(
        {
            "n": pa.array([n if n % 13 else None for n in numbers], pa.int64()),
            "^m.*$": pa.array([n % 50 for n in numbers], pa.int64()),
            "*": pa.array([n - 100 for n in numbers], pa.int32()),
            "tiny": pa.array([n % 256 - 128 for n in numbers], pa.int8()),
            "small": pa.array([n % 300 for n in numbers], pa.int16()),
            "price": pa.array(
                [Decimal(n).scaleb(-2) if n % 9 else None for n in numbers], pa.decimal128(15, 2)
            ),
            "cost": pa.array([Decimal(n * 7 % 5000).scaleb(-2) for n in numbers], pa.decimal128(15, 2)),
            "wide": pa.array([Decimal(10**30 + n) for n in numbers], pa.decimal128(38, 4)),
            "day": pa.array(days, pa.date32()),
            "text": pa.array([f"ä{n % 100:03}{'x' * (n % 20)}" if n % 7 else None for n in numbers]),
            "ratio": pa.array([n / 3 if n % 1000 else float("nan") for n in numbers]),
            "flag": pa.array([n % 2 == 0 for n in numbers]),
        }
    )


@pytest.fixture(scope="module", params=[MANY, FEW])
def scan(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scan:
    """A file that is read by Polars, and one that is read by Arrow because it has few rows."""
    path = tmp_path_factory.mktemp("files") / "file.parquet"
    return scan_of(parquet(path, some_rows(request.param)), *TYPES.items())


def col(name: str) -> Column:
    return Column(10 + list(TYPES).index(name), name, TYPES[name], nullable=True)


def lit(name: str, value: object) -> Expression:
    return literal(value, TYPES[name])


def both(function: str, *arguments: Expression) -> Expression:
    return test(function, *arguments)


N, PRICE, COST, DAY, TEXT = col("n"), col("price"), col("cost"), col("day"), col("text")
READ_FILTERS = [
    test("eq", N, lit("n", 77)),
    test("lt", lit("n", 77), N),
    test("ge", N, lit("n", 9000)),
    test("le", col("^m.*$"), lit("^m.*$", 3)),
    test("gt", col("*"), lit("*", 500)),
    test("lt", col("tiny"), lit("tiny", -100)),
    test("eq", col("small"), lit("small", 299)),
    test("ge", PRICE, lit("price", Decimal("3.21"))),
    test("in", PRICE, lit("price", Decimal("0.01")), lit("price", Decimal("4.00"))),
    test("lt", PRICE, COST),
    test("gt", col("wide"), lit("wide", Decimal(10**30 + 650))),
    test("le", DAY, lit("day", datetime.date(9, 12, 31))),
    test("eq", TEXT, lit("text", "ä008xxxxxxxx")),
    test("ge", TEXT, lit("text", "ä09")),
    test("in", TEXT, lit("text", "ä001x"), lit("text", "nowhere"), lit("text", "ä")),
    test("is_null", TEXT),
    test("is_not_null", N),
    both("or", test("is_null", N), test("lt", N, lit("n", 20))),
    both("or", test("lt", PRICE, COST), test("eq", DAY, lit("day", datetime.date(1, 10, 28)))),
    both("and", test("gt", N, lit("n", 100)), test("lt", N, lit("n", 300))),
]
OTHERS = [
    test("gt", col("ratio"), literal(5.0, DOUBLE)),
    test("eq", col("flag"), literal(True, BOOLEAN)),
    test("eq", N, literal(None, LONG)),
    test("eq", literal(1, LONG), literal(1, LONG)),
    test("not", test("eq", N, lit("n", 1))),
    test("like", TEXT, literal("%x", STRING)),
    both("or", test("is_null", N), test("like", TEXT, literal("%x", STRING))),
    test("in", N, lit("n", 1), literal(None, LONG)),
]


def through_kernel(scan: Scan, tree: Relation) -> list[tuple[object, ...]]:
    (split,) = list_splits(scan, 1 << 30)
    kernel = make_kernel(ScanFragment(scan, (split,), (), tree), SETTINGS)
    _, result = kernel.step(EMPTY, split=split)
    return tuples(result.batches)


def by_sql(scan: Scan, tree: Relation) -> list[tuple[object, ...]]:
    (split,) = list_splits(scan, 1 << 30)
    session = DuckDbSession(SETTINGS)
    try:
        return run(tree, session, i0=read_split(scan, split).to_batches())
    finally:
        session.close()


@pytest.mark.parametrize("condition", [*READ_FILTERS, *OTHERS], ids=str)
def test_the_rows_are_those_of_the_same_filter_in_sql(scan: Scan, condition: Expression) -> None:
    outputs = tuple(Named(chosen, chosen) for chosen in (N, DAY, PRICE))
    tree = Project(Filter(Input(0, scan.columns), condition), outputs)
    assert through_kernel(scan, tree) == by_sql(scan, tree)


@pytest.mark.parametrize("condition", READ_FILTERS, ids=str)
def test_the_reader_does_these_itself_and_some_rows_stay_and_some_go(
    scan: Scan, condition: Expression
) -> None:
    reading = planned_reading(scan, Filter(Input(0, scan.columns), condition))
    assert reading.tree == Input(0, scan.columns)
    (split,) = list_splits(scan, 1 << 30)
    kept = read_split(scan, split, (), reading).num_rows
    if read_split(scan, split).num_rows == MANY:
        assert 0 < kept < MANY


@pytest.mark.parametrize("condition", OTHERS, ids=str)
def test_the_reader_leaves_these_to_sql(scan: Scan, condition: Expression) -> None:
    tree = Filter(Input(0, scan.columns), condition)
    reading = planned_reading(scan, tree)
    assert (reading.keep, reading.tree) == (None, tree)


def test_rows_are_not_kept_from_an_earlier_condition_that_fails(scan: Scan) -> None:
    zero, modulus = literal(0, LONG), col("^m.*$")
    fails = test("gt", call("remainder", LONG, N, modulus), zero)
    guard = test("gt", modulus, zero)
    here = Input(0, scan.columns)
    with pytest.raises(RemainderByZeroError):
        through_kernel(scan, Filter(here, test("and", fails, guard)))
    there = test("is_not_null", N)
    reading = planned_reading(scan, Filter(here, test("and", test("and", fails, guard), there)))
    assert reading.kept_by == ("n",)
    guarded = Filter(here, test("and", guard, fails))
    assert planned_reading(scan, guarded).kept_by == ("^m.*$",)
    assert through_kernel(scan, guarded)


def test_a_column_that_the_file_does_not_have_is_no_filter_of_its_rows() -> None:
    assert row_filter(test("eq", N, lit("n", 1)), {}) is None


def test_columns_that_only_the_filter_uses_are_not_handed_on(scan: Scan) -> None:
    rest = test("like", TEXT, literal("%x", STRING))
    condition = test("and", test("gt", N, lit("n", 5)), rest)
    tree = Project(Filter(Input(0, scan.columns), condition), (Named(PRICE, PRICE),))
    reading = planned_reading(scan, tree)
    assert reading.scan.columns == (PRICE, TEXT)
    assert reading.tree == Project(Filter(Input(0, (PRICE, TEXT)), rest), (Named(PRICE, PRICE),))


def test_rows_without_columns_are_filtered_too(scan: Scan) -> None:
    tree = Project(Filter(Input(0, scan.columns), test("lt", N, lit("n", 40))), ())
    reading = planned_reading(scan, tree)
    assert len(reading.scan.columns) == 1
    (split,) = list_splits(scan, 1 << 30)
    rows = sum(n % 13 != 0 for n in range(40))
    kernel = make_kernel(ScanFragment(scan, (split,), (), tree), SETTINGS)
    _, result = kernel.step(EMPTY, split=split)
    assert sum(batch.num_rows for batch in result.batches) == rows


def test_a_tree_that_computes_a_filtered_column_keeps_it(scan: Scan) -> None:
    doubled = Named(column(99, LONG), N)
    tree = Project(Filter(Input(0, scan.columns), test("eq", N, lit("n", 77))), (doubled,))
    assert through_kernel(scan, tree) == [(77,)]


def test_what_was_filtered_comes_in_one_chunk_and_other_rows_by_row_group(scan: Scan, tmp_path: Path) -> None:
    file = parquet(tmp_path / "groups.parquet", some_rows(MANY), row_group_size=3000)
    groups = scan_of(file, *TYPES.items())
    (split,) = list_splits(groups, 1 << 30)
    assert [batch.num_rows for batch in read_split(groups, split).to_batches()] == [3000, 3000, 3000, 1000]
    reading = planned_reading(groups, Filter(Input(0, groups.columns), test("ge", col("*"), lit("*", 0))))
    filtered = read_split(groups, split, (), reading)
    assert [batch.num_rows for batch in filtered.to_batches()] == [MANY - 100]
    assert filtered.schema == arrow_schema(scan.columns)
