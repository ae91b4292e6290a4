"""How many different values footers let one guess, for columns of every kind of order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wallaby.relations.expression import Column
from wallaby.relations.relation import DataFile, Scan
from wallaby.relations.types import LONG, STRING
from wallaby.tables.distinct import values_of_group
from wallaby.tables.tables import known_tables

ROWS, GROUP = 100_000, 10_000
RANDOM = np.random.default_rng(7)
COLUMNS = {
    "unique": (np.arange(ROWS), ROWS),
    "clustered": (np.arange(ROWS) // 4 * 8, ROWS / 4),
    "few": (RANDOM.integers(0, 50, ROWS), 50),
    "many": (RANDOM.integers(0, 20_000, ROWS), 20_000),
    "sparse": (RANDOM.integers(0, 5_000, ROWS) * 1_000_003, 5_000),
    "in long runs": (np.arange(ROWS) // 50 * 8, ROWS / 50),
    "by date": (np.arange(ROWS) // 200 + RANDOM.integers(0, 30, ROWS), ROWS / 200 + 30),
}
TEXTS = {
    "few words": ([f"word {value % 7}" for value in range(ROWS)], 7),
    "many words": ([f"word {value:05d}" for value in RANDOM.integers(0, 900, ROWS)], 900),
}


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    numbers = {name: pa.array(values, pa.int64()) for name, (values, _) in COLUMNS.items()}
    texts = {name: pa.array(values, pa.string()) for name, (values, _) in TEXTS.items()}
    table = pa.table(numbers | texts)
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=GROUP)
    status = path.stat()
    file = DataFile(str(path), status.st_size, status.st_mtime_ns // 1_000_000)
    types = dict.fromkeys(COLUMNS, LONG) | dict.fromkeys(TEXTS, STRING)
    columns = tuple(Column(at, name, type_, nullable=True) for at, (name, type_) in enumerate(types.items()))
    return Scan((file,), columns, tuple(types), "t")


def test_guesses_are_near_the_truth(scan: Scan) -> None:
    (table,) = known_tables([scan], 1 << 20).tables
    for name, (_, expected) in COLUMNS.items():
        found = table.column(name).distinct
        assert found is not None
        assert expected / 1.5 <= found <= expected * 1.5, name


def test_texts_are_counted_by_the_size_of_their_dictionary(scan: Scan) -> None:
    (table,) = known_tables([scan], 1 << 20).tables
    for name, (_, expected) in TEXTS.items():
        found = table.column(name).distinct
        assert found is not None
        assert expected / 3 <= found <= expected * 3, name


@dataclass
class Chunk:
    """A column chunk whose writer counted."""

    distinct_count: int
    has_distinct_count: bool = True
    has_dictionary_page: bool = False

    @property
    def statistics(self) -> Chunk:
        return self


def test_what_the_writer_counted_counts() -> None:
    group = values_of_group(Chunk(17), 1000, (1, 1_000_000))
    assert group is not None
    assert group.distinct == 17
    assert values_of_group(Chunk(0), 1000, (1, 1_000_000)) is None, "nothing is no count"


def test_of_a_table_that_is_read_twice_the_columns_of_both_scans_are_known(scan: Scan) -> None:
    first = Scan(scan.files, scan.columns[:1], scan.names[:1], "t")
    second = Scan(scan.files, scan.columns[2:4], scan.names[2:4], "t")
    statistics = known_tables([first, second], 1 << 20)
    assert len(statistics.tables) == 1
    table = statistics.of(second)
    assert table is statistics.of(first)
    assert table is not None
    assert {column.name for column in table.columns} == {"unique", "few", "many"}
