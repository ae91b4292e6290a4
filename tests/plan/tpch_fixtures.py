"""The 22 TPC-H queries as Catalyst optimizes them and the footers of their tables, kept as files.

So their stage graphs can be planned and reviewed without Spark and without data. Columns are numbered in the order in
which they appear, and files have neither size nor time, since both differ from one session and machine to the next.
`tests/reading/test_tpch.py` checks that Spark still gives these relations; `python -m tests.plan.tpch_fixtures
DIRECTORY` writes the statistics of a directory of tables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from wallaby.plan.estimates.statistics import Statistics, TableStatistics
from wallaby.plan.physical import Split
from wallaby.relations.codec import Codec
from wallaby.relations.expression import Column
from wallaby.relations.relation import DataFile, Relation, Scan, children_of
from wallaby.relations.types import LONG, DataType
from wallaby.tables.tables import table_statistics
from wallaby_lab.tpch import TABLES

FOLDER = Path(__file__).parent / "fixtures" / "tpch"
STATISTICS = FOLDER / "statistics.json"
SHARED = (DataType, Column, DataFile)
_SPLIT_BYTES = 64 << 20


def relation_path(number: int) -> Path:
    return FOLDER / f"q{number:02d}.relation.json"


def load_relation(number: int) -> Relation:
    relation = _load(relation_path(number), Relation)
    assert not isinstance(relation, Statistics)
    return relation  # type: ignore[return-value]  # what `Relation` names is checked by the codec


def load_statistics() -> Statistics:
    statistics = _load(STATISTICS, Statistics)
    assert isinstance(statistics, Statistics)
    return statistics


def write(value: object, annotation: object) -> str:
    """A relation or statistics as text, the same wherever it was made."""
    codec = Codec(SHARED)
    written = codec.write(value, annotation)
    return json.dumps({"table": codec.table, "value": written}, indent=None, separators=(",", ":")) + "\n"


def _load(path: Path, annotation: object) -> object:
    data = json.loads(path.read_text(encoding="utf-8"))
    codec = Codec(SHARED)
    codec.read_table(data["table"])
    return codec.read(data["value"], annotation)


def without_session(relation: Relation) -> Relation:
    """The relation as any session would have read it: columns numbered from 1, files without size and time."""
    return numbered(relation, files=True)


def numbered(relation: Relation, *, files: bool = False) -> Relation:
    """The relation with columns numbered from 1; files named for their stems, if asked."""
    numbers: dict[int, int] = {}
    _number(relation, numbers)
    return _replaced(relation, numbers, files=files)  # type: ignore[return-value]  # a relation comes out as one


def _number(relation: Relation, numbers: dict[int, int]) -> None:
    for child in children_of(relation):
        _number(child, numbers)
    _number_columns(relation, numbers)


def _number_columns(value: object, numbers: dict[int, int]) -> None:
    if isinstance(value, Column):
        numbers.setdefault(value.id, len(numbers) + 1)
    elif isinstance(value, tuple):
        for each in value:
            _number_columns(each, numbers)
    elif is_dataclass(value):
        for field in fields(value):
            _number_columns(getattr(value, field.name), numbers)


def _replaced(value: object, numbers: Mapping[int, int], *, files: bool) -> object:
    if isinstance(value, Column):
        return replace(value, id=numbers[value.id])
    if isinstance(value, DataFile) and files:
        return _file(Path(value.path).stem)
    if isinstance(value, tuple):
        return tuple(_replaced(each, numbers, files=files) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            f.name: _replaced(getattr(value, f.name), numbers, files=files) for f in fields(value) if f.init
        }
        return type(value)(**changed)
    return value


def _file(table: str) -> DataFile:
    return DataFile(f"{table}.parquet", 0, 0)


def statistics_of(directory: Path) -> Statistics:
    """What the footers of the eight tables say, with all their columns."""
    return Statistics(tuple(_table(directory, table) for table in TABLES))


def _table(directory: Path, table: str) -> TableStatistics:
    path = directory / f"{table}.parquet"
    names = tuple(pq.read_schema(path).names)
    status = path.stat()
    file = DataFile(str(path), status.st_size, status.st_mtime_ns // 1_000_000)
    # Types do not matter here: footers have their own.
    columns = tuple(Column(at, name, LONG, nullable=True) for at, name in enumerate(names))
    found = table_statistics(Scan((file,), columns, names, table), _SPLIT_BYTES)
    kept = _file(table)
    splits = tuple(Split(kept, split.pieces, split.rows, split.size_bytes) for split in found.splits)
    return replace(found, files=(kept,), splits=splits)


if __name__ == "__main__":
    STATISTICS.write_text(write(statistics_of(Path(sys.argv[1])), Statistics), encoding="utf-8")
