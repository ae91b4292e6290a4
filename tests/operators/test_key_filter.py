"""The reader drops rows whose key a side does not have, where that leaves few; the join's rows stay the same."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.trees import SETTINGS, column, parquet, rows_of, scan_of, tuples

from wallaby.operators.joins.key_set import KeySet
from wallaby.operators.kernel import EMPTY, make_kernel
from wallaby.operators.key_filter import HashedKeys, KeyFilter, _keys_of
from wallaby.operators.shared import SharedInputs
from wallaby.plan.physical import ScanFragment
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Input, Join, Scan
from wallaby.relations.types import DATE, LONG
from wallaby.sql.types import column_name
from wallaby.statements.connection import KernelSettings
from wallaby.tables import scan as reading_scan
from wallaby.tables.key_bounds import KeyBounds
from wallaby.tables.reading import Reading, planned_reading
from wallaby.tables.scan import read_split
from wallaby.tables.tables import list_splits

K, V = column(10, LONG, "k"), column(11, LONG, "v")
S, T = column(12, LONG, "s"), column(13, LONG, "t")
ROWS = 100_000


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    keys = pa.array([None if n % 1000 == 7 else n for n in range(ROWS)], pa.int64())
    table = pa.table({"k": keys, "v": pa.array(range(ROWS), pa.int64())})
    return scan_of(parquet(tmp_path / "t.parquet", table, ROWS // 4), ("k", LONG), ("v", LONG))


def join(kind: JoinKind = JoinKind.INNER) -> Join:
    shown = (K, V, T) if kind in (JoinKind.INNER, JoinKind.LEFT) else (K, V)
    return Join(Input(0, (K, V)), Input(1, (S, T)), kind, (K,), (S,), None, shown)


def side(keys: Sequence[int | None]) -> list[pa.RecordBatch]:
    return rows_of((S, T), [(key, 1) for key in keys])


def filtered(scan: Scan, tree: Join, keys: Sequence[int | None], rows: int = ROWS) -> bool:
    reading = planned_reading(scan, tree)
    keys_of = KeyFilter(scan, tree, KeyBounds(scan.columns, tree), SharedInputs(), SETTINGS.memory_bytes)
    return keys_of.reading(reading, rows, {1: side(keys)}) is not reading


def test_only_few_keys_of_a_join_that_needs_partners_filter_a_large_split(scan: Scan) -> None:
    few, many = list(range(0, ROWS, 100)), list(range(0, ROWS, 2))
    assert filtered(scan, join(), few)
    assert filtered(scan, join(JoinKind.SEMI), few)
    assert not filtered(scan, join(JoinKind.LEFT), few)
    assert not filtered(scan, join(JoinKind.ANTI), few)
    assert not filtered(scan, join(), many)
    assert not filtered(scan, join(), few, rows=1000)


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SEMI])
def test_the_join_gives_the_same_rows_and_fewer_are_read(
    scan: Scan, kind: JoinKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    collected = reading_scan._collected

    def counted(*arguments: Any) -> Any:
        frame = collected(*arguments)
        read.append(frame.height)
        return frame

    monkeypatch.setattr(reading_scan, "_collected", counted)
    (split,) = list_splits(scan, 1 << 30)
    kernel = make_kernel(ScanFragment(scan, (split,), (), join(kind)), SETTINGS)
    keys = [0, 5, 7, 1007, 50_000, ROWS - 1, ROWS + 5, None]
    _, result = kernel.step(EMPTY, split=split, sides={1: side(keys)})
    expected = [0, 5, 50_000, ROWS - 1]  # the rows at 7 and at 1007 have no key
    assert [row[:2] for row in tuples(result.batches)] == [(n, n) for n in expected]
    assert sum(read) == len(expected)


def test_the_set_is_hashed_where_its_bits_would_take_too_much_memory(scan: Scan) -> None:
    keys = side(list(range(0, ROWS, 100)))
    name = column_name(S.id)
    assert isinstance(_keys_of(name, keys, ROWS), KeySet)
    hashed = _keys_of(name, keys, 1)
    assert isinstance(hashed, HashedKeys)
    found = np.flatnonzero(hashed.contains(np.arange(ROWS), None)).tolist()
    assert set(range(0, ROWS, 100)) <= set(found)
    assert len(found) < 2 * ROWS // 100
    assert _keys_of(name, side(list(range(0, ROWS, 2))), 1) is None


def test_keys_that_are_too_sparse_for_a_set_are_hashed(tmp_path: Path) -> None:
    wide = [n * 1_000_003 for n in range(-ROWS // 2, ROWS // 2)]
    table = pa.table({"k": pa.array(wide, pa.int64()), "v": pa.array(range(ROWS), pa.int64())})
    scan = scan_of(parquet(tmp_path / "w.parquet", table, ROWS // 4), ("k", LONG), ("v", LONG))
    (split,) = list_splits(scan, 1 << 30)
    keys = [wide[n] for n in range(0, ROWS, 5000)]
    reading = planned_reading(scan, join())
    keys_of = KeyFilter(scan, join(), KeyBounds(scan.columns, join()), SharedInputs(), SETTINGS.memory_bytes)
    chosen = keys_of.reading(reading, ROWS, {1: side(keys)})
    passed = read_split(scan, split, (), chosen).column(0).to_pylist()
    assert set(keys) <= set(passed)
    assert len(passed) < 2 * len(keys)
    kernel = make_kernel(ScanFragment(scan, (split,), (), join()), SETTINGS)
    _, result = kernel.step(EMPTY, split=split, sides={1: side(keys)})
    assert [row[0] for row in tuples(result.batches)] == keys


def test_a_split_with_much_output_is_continued_where_it_was_left(scan: Scan) -> None:
    settings = KernelSettings(
        memory_bytes=SETTINGS.memory_bytes, temp_directory=SETTINGS.temp_directory, portion_bytes=1 << 12
    )
    (split,) = list_splits(scan, 1 << 30)
    keys = side([n for n in range(0, ROWS, 100) for _ in range(4)])
    kernel = make_kernel(ScanFragment(scan, (split,), (), join()), settings)
    found: list[tuple[Any, ...]] = []
    begin: int | None = 0
    steps = 0
    while begin is not None:
        _, result = kernel.step(EMPTY, split=split, begin=begin, sides={1: keys})
        found += tuples(result.batches)
        begin, steps = result.begin, steps + 1
    assert steps > 1
    assert [row[1] for row in found] == [n for n in range(0, ROWS, 100) if n % 1000 != 7 for _ in range(4)]


def test_dates_filter_too(tmp_path: Path) -> None:
    day, first = column(10, DATE, "day"), datetime.date(2000, 1, 1)
    days = [first + datetime.timedelta(n % 5000) for n in range(ROWS)]
    table = pa.table({"day": pa.array(days, pa.date32()), "v": pa.array(range(ROWS), pa.int64())})
    scan = scan_of(parquet(tmp_path / "d.parquet", table, ROWS), ("day", DATE), ("v", LONG))
    wanted = column(12, DATE, "s")
    tree = Join(Input(0, (day, V)), Input(1, (wanted,)), JoinKind.SEMI, (day,), (wanted,), None, (V,))
    (split,) = list_splits(scan, 1 << 30)
    reading: Reading = planned_reading(scan, tree)
    keys = rows_of((wanted,), [(days[3],), (days[4999],)])
    chosen = KeyFilter(
        scan, tree, KeyBounds(scan.columns, tree), SharedInputs(), SETTINGS.memory_bytes
    ).reading(reading, ROWS, {1: keys})
    assert chosen.kept_by == ("day",)
    kernel = make_kernel(ScanFragment(scan, (split,), (), tree), SETTINGS)
    _, result = kernel.step(EMPTY, split=split, sides={1: keys})
    assert [v for (v,) in tuples(result.batches)] == [n for n in range(ROWS) if n % 5000 in (3, 4999)]
