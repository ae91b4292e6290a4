"""TPC-DS query 72 as Catalyst optimizes it, and the footers of its tables at scale factor 1, kept as files.

`python -m tests.plan.tpcds_fixtures TABLES QUERY` writes them: a directory of Parquet files for each table, and SQL.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from tests.plan.tpch_fixtures import SHARED, numbered, write

from wallaby.plan.estimates.statistics import Statistics
from wallaby.reading.reader import read_plan
from wallaby.relations.codec import Codec
from wallaby.relations.relation import DataFile, Relation, Scan, children_of
from wallaby.relations.tree import with_children
from wallaby.tables.tables import known_tables

FOLDER = Path(__file__).parent / "fixtures" / "tpcds"
_SPLIT_BYTES = 64 << 20


def load(name: str, annotation: object) -> object:
    """A relation or statistics from its file."""
    data = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    codec = Codec(SHARED)
    codec.read_table(data["table"])
    return codec.read(data["value"], annotation)


def save(name: str, relation: Relation) -> None:
    """Write a relation, and what the footers of its tables say."""
    statistics = known_tables(list(_scans(relation)), _SPLIT_BYTES)
    labels = {scan.files: _file(scan) for scan in _scans(relation)}
    tables = tuple(
        replace(
            table,
            files=(labels[table.files],),
            splits=tuple(replace(split, file=labels[table.files]) for split in table.splits),
        )
        for table in statistics.tables
    )
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.relation.json").write_text(
        write(numbered(_renamed(relation)), Relation), encoding="utf-8"
    )
    (FOLDER / f"{name}.statistics.json").write_text(write(Statistics(tables), Statistics), encoding="utf-8")


def _scans(relation: Relation) -> Iterator[Scan]:
    if isinstance(relation, Scan):
        yield relation
    for child in children_of(relation):
        yield from _scans(child)


def _file(scan: Scan) -> DataFile:
    return DataFile(f"{scan.label}.parquet", 0, 0)


def _renamed(relation: Relation) -> Relation:
    if isinstance(relation, Scan):
        return replace(relation, files=(_file(relation),))
    return with_children(relation, tuple(map(_renamed, children_of(relation))))


def main(tables: Path, query: Path) -> None:
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    for table in sorted(tables.iterdir()):
        spark.read.parquet(str(table)).createOrReplaceTempView(table.name)
    relation = read_plan(spark.sql(query.read_text(encoding="utf-8").strip().rstrip(";"))).relation
    assert relation is not None
    save(f"q{query.stem}", relation)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
