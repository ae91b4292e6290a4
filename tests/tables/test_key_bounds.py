"""Row groups outside the bounds of a side input's keys are not read; no row with a partner is ever lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from tests.trees import SETTINGS, column, parquet, rows_of, scan_of, tuples

from wallaby.operators import scan_kernel as kernels
from wallaby.operators.kernel import EMPTY, make_kernel
from wallaby.plan.physical import ScanFragment, Split
from wallaby.relations.expression import Expression, Named
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Input, Join, Limit, Project, Relation, Scan
from wallaby.relations.types import LONG
from wallaby.tables.reading import Reading
from wallaby.tables.scan import read_split
from wallaby.tables.tables import list_splits

K, V, S = column(10, LONG, "k"), column(11, LONG, "v"), column(20, LONG, "s")
ROWS = Input(0, (K, V))
KEYS = Input(1, (S,))


def semi(left: Relation, kind: JoinKind = JoinKind.SEMI) -> Join:
    columns = left.columns if kind is not JoinKind.INNER else (*left.columns, S)
    return Join(left, KEYS, kind, (K,), (S,), None, columns)


def keys(*values: int | None) -> list[pa.RecordBatch]:
    return [batch for value in values for batch in rows_of((S,), [(value,)])]


def table_scan(directory: Path) -> tuple[Scan, tuple[Split, ...]]:
    """A hundred rows in ten row groups, each a split."""
    numbers = list(range(100))
    table = pa.table({"k": pa.array(numbers, pa.int64()), "v": pa.array(numbers, pa.int64())})
    scan = scan_of(parquet(directory / "t.parquet", table, 10), ("k", LONG), ("v", LONG))
    return scan, list_splits(scan, 1)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each read gave."""
    found: list[int] = []

    def counting(
        scan: Scan, split: Split, conditions: Sequence[Expression], wanted: Reading, limit_bytes: int
    ) -> pa.Table:
        rows = read_split(scan, split, conditions, wanted, limit_bytes)
        found.append(rows.num_rows)
        return rows

    monkeypatch.setattr(kernels, "read_split", counting)
    return found


@pytest.mark.parametrize(
    ("tree", "sides", "rows_read", "rows"),
    [
        (semi(ROWS), keys(25, 31), 20, 2),
        (semi(ROWS), keys(None, 99), 10, 1),
        (semi(ROWS), keys(), 0, 0),
        (semi(ROWS), keys(None), 0, 0),
        (semi(ROWS), keys(1000), 0, 0),
        (semi(ROWS, JoinKind.INNER), keys(5, 6), 10, 2),
        (semi(ROWS, JoinKind.ANTI), keys(5), 100, 99),
        (semi(Limit(ROWS, 10)), keys(95), 100, 1),
        (semi(Project(ROWS, (Named(V, V), Named(K, V)))), keys(5), 100, 1),
    ],
)
def test_only_row_groups_that_can_matter_are_read(
    tmp_path: Path, read: list[int], tree: Relation, sides: list[pa.RecordBatch], rows_read: int, rows: int
) -> None:
    scan, splits = table_scan(tmp_path)
    kernel = make_kernel(ScanFragment(scan, splits, (), tree), SETTINGS)
    given = 0
    for split in splits:
        _, result = kernel.step(EMPTY, split=split, sides={1: sides})
        given += sum(batch.num_rows for batch in result.batches)
    assert (sum(read), given) == (rows_read, rows)


def test_other_keys_have_other_bounds(tmp_path: Path) -> None:
    scan, _ = table_scan(tmp_path)
    (split,) = list_splits(scan, 1 << 30)
    kernel = make_kernel(ScanFragment(scan, (split,), (), semi(ROWS)), SETTINGS)
    for value in (5, 55, 95):
        _, result = kernel.step(EMPTY, split=split, sides={1: keys(value)})
        assert [row[0] for row in tuples(result.batches)] == [value]
