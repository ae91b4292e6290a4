"""Reading splits: the right rows, columns and types; row groups skipped; changed and damaged files refused."""

from __future__ import annotations

import datetime
import errno
import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.trees import BINARY, BYTE, FLOAT, SHORT, file_of, literal, parquet, scan_of, test

from wallaby.errors import CorruptFileError, SourceChangedError
from wallaby.plan.physical import Split
from wallaby.relations.expression import Call, Expression
from wallaby.relations.relation import DataFile, Scan
from wallaby.relations.types import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, STRING, DataType, Kind, decimal
from wallaby.tables import pruning, tables
from wallaby.tables.footer import bounds_of, reading
from wallaby.tables.scan import read_split
from wallaby.tables.tables import list_splits, scan_reason, table_statistics

ROWS = 5000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    numbers = range(ROWS)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "price": pa.array(
                [Decimal(n).scaleb(-2) if n % 9 else None for n in numbers], pa.decimal128(15, 2)
            ),
            "wide": pa.array([Decimal(10**30 + n) for n in numbers], pa.decimal128(38, 4)),
            "day": pa.array([datetime.date(1, 1, 1) + datetime.timedelta(n * 700) for n in numbers]),
            "text": pa.array([f"ä{n % 100:03}" if n % 7 else None for n in numbers]),
            "flag": pa.array([n % 2 == 0 for n in numbers]),
            "ratio": pa.array([n / 3 if n % 1000 else float("nan") for n in numbers]),
            "single": pa.array([float(n) for n in numbers], pa.float32()),
            "tiny": pa.array([n % 100 for n in numbers], pa.int8()),
            "small": pa.array(numbers, pa.int16()),
            "whole": pa.array(numbers, pa.int32()),
            "raw": pa.array([bytes([n % 256]) for n in numbers], pa.binary()),
            "at": pa.array(
                [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)] * ROWS, pa.timestamp("us", "UTC")
            ),
            "local": pa.array([datetime.datetime(2020, 1, 1)] * ROWS, pa.timestamp("us")),  # noqa: DTZ001 - local time
            "^n$": pa.array(numbers, pa.int64()),
            "a b*?[]'\"": pa.array(numbers, pa.int64()),
        }
    )


TYPES: dict[str, DataType] = {
    "n": LONG,
    "price": decimal(15, 2),
    "wide": decimal(38, 4),
    "day": DATE,
    "text": STRING,
    "flag": BOOLEAN,
    "ratio": DOUBLE,
    "single": FLOAT,
    "tiny": BYTE,
    "small": SHORT,
    "whole": INTEGER,
    "raw": BINARY,
    "at": DataType(Kind.TIMESTAMP),
    "local": DataType(Kind.TIMESTAMP_NTZ),
    "^n$": LONG,
    "a b*?[]'\"": LONG,
}


@pytest.fixture(scope="module")
def file(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> DataFile:
    return parquet(tmp_path_factory.mktemp("files") / "odd [*] name?.parquet", table)


def scan(file: DataFile, *names: str) -> Scan:
    return scan_of(file, *((name, TYPES[name]) for name in names))


def test_every_type_comes_back_exactly(file: DataFile, table: pa.Table) -> None:
    wanted = scan(file, *TYPES)
    assert scan_reason(wanted) is None
    (split,) = list_splits(wanted, 1 << 30)
    found = read_split(wanted, split)
    assert found.column_names == [f"c{10 + i}" for i in range(len(TYPES))]
    assert [str(column.type) for column in found.columns] == [str(column.type) for column in table.columns]
    for mine, theirs in zip(found.columns, table.columns, strict=True):
        assert str(mine.to_pylist()) == str(theirs.to_pylist())


def test_splits_hold_every_row_group_once(file: DataFile) -> None:
    wanted = scan(file, "n", "text")
    splits = list_splits(wanted, 10_000)
    assert [number for split in splits for number in split.pieces] == list(range(5))
    assert len(splits) > 1
    assert sum(split.rows for split in splits) == ROWS
    numbers = [n for split in splits for n in read_split(wanted, split).column(0).to_pylist()]
    assert numbers == list(range(ROWS))


def scan_with(folder: Path, groups: int, rows: int = 1000) -> Scan:
    """A file with so many row groups."""
    path = folder / f"{groups} x {rows}.parquet"
    if not path.exists():
        pq.write_table(pa.table({"n": np.arange(groups * rows)}), path, row_group_size=rows)
    return scan_of(file_of(path), ("n", LONG))


def rows_by_split(scan: Scan, target_bytes: int, readers: int) -> list[int]:
    """The rows of each split; together they have every row group once."""
    splits = list_splits(scan, target_bytes, readers)
    pieces = [number for split in splits for number in split.pieces]
    assert pieces == list(range(len(pieces)))
    assert all(len(split.pieces) == 1 or split.size_bytes <= target_bytes for split in splits)
    return [split.rows for split in splits]


def test_a_large_table_has_equal_splits_for_all_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one split, all but one thread would wait."""
    monkeypatch.setattr(tables, "_SPLIT_ROWS_MIN", 4000)
    wanted = scan_with(tmp_path, groups=16)
    assert rows_by_split(wanted, 1 << 30, 1) == [16_000]
    assert rows_by_split(wanted, 1 << 30, 2) == [8000] * 2
    assert rows_by_split(wanted, 1 << 30, 4) == [4000] * 4
    assert rows_by_split(wanted, 1 << 30, 8) == [4000] * 4, "smaller ones cost more than they save"
    assert rows_by_split(wanted, 1, 2) == [1000] * 16


def test_a_small_table_has_one_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows_by_split(scan_with(tmp_path, groups=16), 1 << 30, 8) == [16_000]
    monkeypatch.setattr(tables, "_SPLIT_ROWS_MIN", 100)
    assert rows_by_split(scan_with(tmp_path, groups=1), 1 << 30, 8) == [1000], "a row group is not divided"


def test_splits_are_as_many_as_readers_or_a_multiple(tmp_path: Path) -> None:
    """Five splits for four readers would take as long as eight."""
    wanted = scan_with(tmp_path, groups=40)
    (whole,) = list_splits(wanted, 1 << 40)
    for readers in (1, 2, 3, 4):
        splits = rows_by_split(wanted, whole.size_bytes // 9 * 2, readers)
        assert len(splits) == -(-5 // readers) * readers
        assert max(splits) - min(splits) <= 2000


def test_there_is_one_chunk_for_each_row_group(file: DataFile) -> None:
    (split,) = list_splits(scan(file, "n", "text"), 1 << 30)
    found = read_split(scan(file, "n", "text"), split)
    assert [len(batch) for batch in found.to_batches()] == [1000] * 5


def test_columns_may_be_few_repeated_in_another_order_or_none(file: DataFile) -> None:
    wanted = scan(file, "text", "n", "text")
    (split,) = list_splits(wanted, 1 << 30)
    found = read_split(wanted, split)
    assert found.column(0).to_pylist() == found.column(2).to_pylist()
    assert found.column(1).to_pylist() == list(range(ROWS))
    nothing = scan(file)
    assert sum(read_split(nothing, s).num_rows for s in list_splits(nothing, 1500)) == ROWS


def condition(wanted: Scan, function: str, *values: object) -> tuple[Expression, ...]:
    source = wanted.columns[0]
    return (test(function, source, *(literal(value, source.type) for value in values)),)


@pytest.mark.parametrize(
    ("name", "function", "values", "groups"),
    [
        ("n", "eq", [2500], [2]),
        ("n", "eq_null_safe", [2500], [2]),
        ("n", "lt", [1000], [0]),
        ("n", "le", [1000], [0, 1]),
        ("n", "gt", [3999], [4]),
        ("n", "ge", [3999], [3, 4]),
        ("n", "in", [1, 4999], [0, 4]),
        ("n", "eq", [-1], []),
        ("price", "gt", [Decimal("39.99")], [4]),
        ("day", "lt", [datetime.date(1900, 1, 1)], [0]),
        ("text", "gt", ["zzz"], [0, 1, 2, 3, 4]),
        ("text", "lt", ["a"], []),
        ("ratio", "gt", [1e9], [0, 1, 2, 3, 4]),
        ("n", "ne", [5], [0, 1, 2, 3, 4]),
    ],
)
def test_row_groups_that_cannot_match_are_not_read(
    name: str, function: str, values: list[object], groups: list[int], file: DataFile
) -> None:
    wanted = scan(file, name, "n")
    (split,) = list_splits(wanted, 1 << 30)
    found = read_split(wanted, split, condition(wanted, function, *values))
    assert sorted({n // 1000 for n in found.column(1).to_pylist()}) == groups


@pytest.mark.parametrize(("function", "rows"), [("eq", 0), ("eq_null_safe", 0), ("lt", 0), ("ne", 3)])
def test_nothing_is_read_of_a_column_without_values(function: str, rows: int, tmp_path: Path) -> None:
    file = parquet(tmp_path / "t.parquet", pa.table({"n": pa.nulls(3, pa.int64())}))
    wanted = scan(file, "n")
    (split,) = list_splits(wanted, 1 << 30)
    assert read_split(wanted, split, condition(wanted, function, 0)).num_rows == rows


def test_bounds_are_looked_up_once_and_again_in_a_changed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []

    def looking(chunk: pq.ColumnChunkMetaData) -> tuple[object, object] | None:
        looked.append(chunk)
        return bounds_of(chunk)

    monkeypatch.setattr(pruning, "bounds_of", looking)
    for first in (0, 100):
        file = parquet(
            tmp_path / "t.parquet", pa.table({"n": np.arange(first, 3 * first + 4)}), row_group_size=2
        )
        wanted = scan(file, "n")
        (split,) = list_splits(wanted, 1 << 30)
        for value in (first + 2, first + 3):
            found = read_split(wanted, split, condition(wanted, "eq", value))
            assert found.column(0).to_pylist() == [first + 2, first + 3]
        assert len(looked) == len(split.pieces)
        looked.clear()


def test_a_constant_on_the_left_is_turned_round(file: DataFile) -> None:
    wanted = scan(file, "n")
    (split,) = list_splits(wanted, 1 << 30)
    mirrored: Call = test("gt", literal(1000, LONG), wanted.columns[0])
    assert read_split(wanted, split, (mirrored,)).num_rows == 1000


def test_statistics_for_planning(file: DataFile) -> None:
    found = table_statistics(scan(file, "n", "price", "text", "ratio"), 1 << 20)
    assert found.rows == ROWS
    assert (found.column("n").minimum, found.column("n").maximum, found.column("n").nulls) == (0, 4999, 0)
    assert found.column("price").maximum == Decimal("49.99")
    assert found.column("text").nulls == sum(1 for n in range(ROWS) if n % 7 == 0)
    assert sum(split.rows for split in found.splits) == ROWS


def test_what_a_footer_sums_up_to_is_kept_for_the_next_query(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.parquet"
    wanted = scan(parquet(path, table), "n", "text")
    first = table_statistics(wanted, 10_000)
    looked: list[int] = []
    monkeypatch.setattr(tables, "values_of_group", lambda *_: looked.append(1))
    again = scan_of(wanted.files[0], ("text", STRING), ("n", LONG))
    second = table_statistics(again, 10_000)
    assert not looked
    assert second.column("n") == first.column("n")
    assert second.splits == first.splits
    changed = scan(parquet(path, table.slice(0, 10)), "n", "text")
    assert table_statistics(changed, 10_000).rows == 10
    assert looked


def test_a_file_address_is_a_path(file: DataFile) -> None:
    address = Path(file.path).as_uri()
    wanted = scan(DataFile(address, file.size_bytes, file.modified_ms), "n")
    assert sum(split.rows for split in list_splits(wanted, 1 << 20)) == ROWS


def test_a_file_that_changed_is_an_error(table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    wanted = scan(parquet(path, table), "n")
    (split,) = list_splits(wanted, 1 << 30)
    os.utime(path, ns=(0, 0))
    with pytest.raises(SourceChangedError) as caught:
        read_split(wanted, split)
    assert caught.value.fields["path"] == str(path)
    path.unlink()
    with pytest.raises(SourceChangedError):
        read_split(wanted, split)


def test_an_error_of_this_worker_does_not_call_a_file_damaged(table: pa.Table, tmp_path: Path) -> None:
    file = parquet(tmp_path / "t.parquet", table)
    with (
        pytest.raises(OSError, match="No space left") as full,
        reading(file),
        Path("/dev/full").open("wb") as disk,
    ):
        disk.write(bytes(1 << 20))
    assert not isinstance(full.value, CorruptFileError)
    with pytest.raises(MemoryError), reading(file):
        pa.allocate_buffer(1 << 60)
    with pytest.raises(CorruptFileError, match="may not be read: permission denied"), reading(file):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_a_damaged_file_is_a_typed_error(table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet(path, table)
    content = bytearray(path.read_bytes())
    for i in range(4, 4000):
        content[i] ^= 0x5A
    path.write_bytes(content)
    wanted = scan(file_of(path), "n")
    (split,) = list_splits(wanted, 1 << 30)
    with pytest.raises(CorruptFileError):
        read_split(wanted, split)
    path.write_bytes(b"PAR1 is not enough PAR1")
    short = scan(file_of(path), "n")
    with pytest.raises(CorruptFileError):
        list_splits(short, 1 << 30)
    with pytest.raises(CorruptFileError):
        read_split(short, Split(short.files[0], (0,), 1, 1))


def test_bounds_that_python_has_no_value_for_are_no_bounds(tmp_path: Path) -> None:
    days = pa.array([-800_000, 3_000_000], pa.int32()).cast(pa.date32())  # the years -221 and 10183
    text = pa.array([b"\xff", b"a"], pa.binary()).view(pa.string())
    file = parquet(tmp_path / "t.parquet", pa.table({"day": days, "text": text}))
    wanted = scan_of(file, ("day", DATE))
    assert table_statistics(scan_of(file, ("day", DATE), ("text", STRING)), 1).rows == 2
    (split,) = list_splits(wanted, 1 << 30)
    early = Call("lt", (wanted.columns[0], literal(datetime.date(1970, 1, 1), DATE)), BOOLEAN, nullable=True)
    assert read_split(wanted, split, (early,)).column(0).cast(pa.int32()).to_pylist() == [-800_000, 3_000_000]


def test_a_file_whose_footer_is_damaged_is_left_to_spark(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 is not enough PAR1")
    reason = scan_reason(scan_of(file_of(path), ("n", LONG)))
    assert reason is not None
    assert reason.file == file_of(path)
    assert "cannot be read: it is damaged" in reason.why


def test_files_that_spark_would_read_otherwise_are_refused(table: pa.Table, tmp_path: Path) -> None:
    file = parquet(tmp_path / "t.parquet", table)
    assert scan_reason(scan_of(file, ("n", INTEGER)))
    cases = parquet(tmp_path / "cases.parquet", pa.table({"a": [1], "A": [2], "B": [3]}))
    assert scan_reason(scan_of(cases, ("a", LONG)))
    assert scan_reason(scan_of(cases, ("b", LONG))) is None
    absent = scan_of(cases, ("absent", LONG))
    never_null = replace(absent, columns=(replace(absent.columns[0], nullable=False),))
    assert scan_reason(replace(absent, columns=(replace(absent.columns[0], nullable=True),))) is None
    assert scan_reason(never_null)
    legacy = tmp_path / "legacy.parquet"
    pq.write_table(table.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}), legacy)
    assert scan_reason(scan(file_of(legacy), "n"))
    old = tmp_path / "old.parquet"
    pq.write_table(table.replace_schema_metadata({"org.apache.spark.version": "3.0.3"}), old)
    assert scan_reason(scan(file_of(old), "n"))
    pq.write_table(table.replace_schema_metadata({"org.apache.spark.version": "3.1.0"}), old)
    assert scan_reason(scan(file_of(old), "n")) is None
    nano = tmp_path / "nano.parquet"
    pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("ns", "UTC"))}), nano)
    assert scan_reason(scan(file_of(nano), "at"))
