"""Columns that a file has otherwise than its table: constants, missing, narrower; nothing is opened in vain."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.trees import SETTINGS, column, parquet, rows_of, scan_of, tuples

from wallaby.frontend.partitions import without_excluded_files
from wallaby.operators.kernel import EMPTY, make_kernel
from wallaby.plan.physical import ScanFragment
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Constant, DataFile, Filter, Input, Join, Scan
from wallaby.relations.types import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, STRING, DataType, decimal
from wallaby.tables import scan as scans
from wallaby.tables.footer import footer
from wallaby.tables.scan import read_split
from wallaby.tables.tables import list_splits, table_statistics

ROWS = 5000  # more than are read by Arrow


@pytest.fixture
def file(tmp_path: Path) -> DataFile:
    return parquet(tmp_path / "t.parquet", pa.table({"V": pa.array(range(ROWS), pa.int32())}), 2500)


def with_constants(file: DataFile, **values: tuple[object, DataType]) -> DataFile:
    return replace(file, constants=tuple(Constant(name, *value) for name, value in values.items()))


def test_each_column_comes_from_where_the_file_has_it(file: DataFile) -> None:
    day = date(2024, 2, 29)
    constants = {"K": (7, INTEGER), "day": (day, DATE), "price": (Decimal("1.50"), decimal(5, 2))}
    scan = scan_of(
        with_constants(file, **constants, none=(None, STRING)),
        ("k", INTEGER),
        ("v", LONG),
        ("day", DATE),
        ("price", decimal(5, 2)),
        ("none", STRING),
        ("absent", DOUBLE),
    )
    for target_bytes in (1, 1 << 30):
        rows = [
            row
            for split in list_splits(scan, target_bytes)
            for row in tuples(read_split(scan, split).to_batches())
        ]
        assert rows == [(7, v, day, Decimal("1.50"), None, None) for v in range(ROWS)]


def test_a_file_of_which_nothing_is_read_still_has_its_rows(file: DataFile) -> None:
    scan = scan_of(with_constants(file, k=("x", STRING)), ("k", STRING))
    splits = list_splits(scan, 1)
    assert [read_split(scan, split).num_rows for split in splits] == [2500, 2500]


def test_statistics_know_constants_and_missing_columns(file: DataFile, tmp_path: Path) -> None:
    other = parquet(tmp_path / "u.parquet", pa.table({"v": [10**10], "w": [1]}))
    files = (with_constants(file, k=(1, LONG)), with_constants(other, k=(None, LONG)))
    scan = replace(scan_of(file, ("k", LONG), ("v", LONG), ("w", LONG)), files=files)
    known = table_statistics(scan, 1 << 30)
    assert (known.column("k").minimum, known.column("k").nulls, known.column("k").distinct) == (1, 1, 1)
    assert (known.column("v").minimum, known.column("v").maximum, known.column("v").nulls) == (0, 10**10, 0)
    assert known.column("w").nulls == ROWS


def test_equal_numbers_of_other_types_are_other_constants(file: DataFile) -> None:
    for type_, value in ((INTEGER, 1), (DOUBLE, 1.0), (BOOLEAN, True), (decimal(5, 0), Decimal(1))):
        scan = scan_of(with_constants(file, k=(value, type_)), ("k", type_))
        (found,) = set(read_split(scan, list_splits(scan, 1)[0]).column(0).to_pylist())
        assert (found, type(found)) == (value, type(value))


def test_a_partition_that_is_none_of_the_keys_is_not_opened(
    file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys beside the read are the filter: by numbers, by texts, and with NULL, which equals nothing."""
    opened: list[DataFile] = []

    def opening(each: DataFile) -> pq.FileMetaData:
        opened.append(each)
        return footer(each)

    monkeypatch.setattr(scans, "footer", opening)
    for type_, values, sides, left in (
        (LONG, (1, 2, 3, None), (2, 5, None), [2]),
        (STRING, ("a", "b", "é", None), ("é", "a"), ["a", "é"]),
        (decimal(9, 2), (Decimal("1.10"), Decimal("1.20")), (Decimal("1.20"),), [Decimal("1.20")]),
    ):
        key, side = column(10, type_, "k"), column(20, type_)
        rows = Input(0, (key,))
        tree = Join(rows, Input(1, (side,)), JoinKind.SEMI, (key,), (side,), None, rows.columns)
        files = tuple(with_constants(file, k=(value, type_)) for value in values)
        scan = replace(scan_of(file, ("k", type_)), files=files)
        splits = list_splits(scan, 1 << 30)
        kernel = make_kernel(ScanFragment(scan, splits, (), tree), SETTINGS)
        opened.clear()
        found: set[object] = set()
        for split in splits:
            _, result = kernel.step(
                EMPTY, split=split, sides={1: rows_of((side,), [(each,) for each in sides])}
            )
            found.update(row[0] for row in tuples(result.batches))
        assert list(dict.fromkeys(each.constants[0].value for each in opened)) == left
        assert found == set(left)


def condition(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, BOOLEAN, nullable=True)


def test_files_that_a_condition_on_constants_excludes_are_left_out(file: DataFile) -> None:
    files = tuple(with_constants(file, k=(value, LONG)) for value in (1, 2, None))
    scan: Scan = replace(scan_of(file, ("k", LONG), ("v", LONG)), files=files)
    k, v = scan.columns
    on_k = condition("greater", k, Literal(1, LONG))
    on_v = condition("greater", v, Literal(1, LONG))
    assert without_excluded_files(Filter(scan, on_k)) == replace(scan, files=files[1:2])
    assert without_excluded_files(Filter(scan, condition("and", on_k, on_v))) == Filter(
        replace(scan, files=files[1:2]), on_v
    )
    assert without_excluded_files(Filter(scan, condition("is_null", k))) == replace(scan, files=files[2:])
    either = Filter(scan, condition("or", on_k, on_v))
    assert without_excluded_files(either) == either


def test_a_condition_that_fails_excludes_nothing(file: DataFile) -> None:
    """A row may raise the error, if there is one."""
    scan = replace(scan_of(file, ("k", DOUBLE)), files=(with_constants(file, k=(0.0, DOUBLE)),))
    divided = Call("divide", (Literal(1.0, DOUBLE), scan.columns[0]), DOUBLE, nullable=True)
    failing = Filter(scan, condition("greater", divided, Literal(0.0, DOUBLE)))
    assert without_excluded_files(failing) == failing


def test_conditions_of_the_reader_hold_for_files_that_are_otherwise(file: DataFile, tmp_path: Path) -> None:
    """What the reader filters by itself may be a constant, missing, narrower or written otherwise in a file."""
    small = parquet(
        tmp_path / "u.parquet", pa.table({"v": pa.array([10, 20, 30], pa.int64()), "w": ["a", "b", "c"]})
    )
    files = (with_constants(file, k=(1, LONG)), with_constants(small, k=(2, LONG)))
    scan = replace(scan_of(file, ("k", LONG), ("v", LONG), ("w", STRING)), files=files)
    k, v, w = scan.columns
    rows = Input(0, scan.columns)
    cases: list[tuple[Expression, int]] = [
        (condition("less", v, Literal(25, LONG)), 25 + 2),
        (
            condition("or", condition("equal", k, Literal(2, LONG)), condition("equal", v, Literal(7, LONG))),
            1 + 3,
        ),
        (condition("is_null", w), ROWS),
        (condition("in", w, Literal("b", STRING), Literal("x", STRING)), 1),
        (
            condition("and", condition("is_not_null", k), condition("greater", v, Literal(10, LONG))),
            ROWS - 11 + 2,
        ),
        (condition("less", k, v), ROWS - 2 + 3),
    ]
    for each, count in cases:
        kernel = make_kernel(ScanFragment(scan, (), (), Filter(rows, each)), SETTINGS)
        found = [
            row
            for split in list_splits(scan, 1 << 30)
            for row in tuples(kernel.step(EMPTY, split=split)[1].batches)
        ]
        assert len(found) == count, each
        assert all(len(row) == 3 for row in found)
