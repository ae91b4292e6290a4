"""How many different values footers let one guess, for columns of every kind of order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wallaby.kernels.tables import known_tables
from wallaby.plan.expression import Column
from wallaby.plan.relation import ParquetFile, Scan
from wallaby.plan.types import LONG

ROWS, GROUP = 100_000, 10_000
RANDOM = np.random.default_rng(7)
COLUMNS = {
    "unique": (np.arange(ROWS), ROWS),
    "clustered": (np.arange(ROWS) // 4 * 8, ROWS / 4),
    "few": (RANDOM.integers(0, 50, ROWS), 50),
    "many": (RANDOM.integers(0, 20_000, ROWS), 20_000),
    "sparse": (RANDOM.integers(0, 5_000, ROWS) * 1_000_003, 5_000),
}


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    table = pa.table({name: pa.array(values, pa.int64()) for name, (values, _) in COLUMNS.items()})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=GROUP)
    status = path.stat()
    file = ParquetFile(str(path), status.st_size, status.st_mtime_ns // 1_000_000)
    columns = tuple(Column(at, name, LONG, nullable=True) for at, name in enumerate(COLUMNS))
    return Scan((file,), columns, tuple(COLUMNS), "t")


def test_guesses_are_near_the_truth(scan: Scan) -> None:
    (table,) = known_tables([scan], 1 << 20).tables
    for name, (_, expected) in COLUMNS.items():
        found = table.column(name).distinct
        assert found is not None
        assert expected / 1.5 <= found <= expected * 1.5, name


def test_of_a_table_that_is_read_twice_the_columns_of_both_scans_are_known(scan: Scan) -> None:
    first = Scan(scan.files, scan.columns[:1], scan.names[:1], "t")
    second = Scan(scan.files, scan.columns[2:4], scan.names[2:4], "t")
    statistics = known_tables([first, second], 1 << 20)
    assert len(statistics.tables) == 1
    table = statistics.of(second)
    assert table is statistics.of(first)
    assert table is not None
    assert {column.name for column in table.columns} == {"unique", "few", "many"}
