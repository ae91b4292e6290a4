"""Tables of generated rows as Parquet files: many batches of tame rows, many of wild ones, one row, and none.

Each table has an `id`, a `key` of few values to group by, and three columns of every kind, named `int_a` to `int_c`.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from wallaby_lab.differential.generated.values import COLUMNS, ValueColumn

TABLES: Final = ("tame", "wild", "one", "none")
LETTERS: Final = "abc"
_ROWS: Final = 240
_FILES: Final = 2
_GROUP_ROWS: Final = 50
_NULLS: Final = 0.12


def write_tables(directory: Path, seed: int) -> None:
    """Write every table to a directory of its own."""
    random = Random(seed)
    for name, rows in (("tame", _ROWS), ("wild", _ROWS), ("one", 1), ("none", 0)):
        table = _table(random, rows, wild=name == "wild")
        target = directory / name
        target.mkdir(parents=True)
        count = _FILES if rows > _GROUP_ROWS else 1
        for number in range(count):
            part = table.slice(number * rows // count, rows // count)
            pq.write_table(
                part,
                target / f"{number}.parquet",
                row_group_size=_GROUP_ROWS,
                use_dictionary=flat_columns(table),
            )


def flat_columns(table: pa.Table) -> list[str]:
    """The columns with a dictionary: Spark fails on one in an array, where it looks up what is under a NULL element."""
    return [field.name for field in table.schema if not pa.types.is_nested(field.type)]


def register(spark: SparkSession, directory: Path) -> None:
    """Make each table a temporary view."""
    for name in TABLES:
        spark.read.parquet(str(directory / name)).createOrReplaceTempView(name)


def _table(random: Random, rows: int, *, wild: bool) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "id": pa.array(range(rows), pa.int64()),
        "key": pa.array([random.choice((None, 1, 2, 3, 3)) for _ in range(rows)], pa.int32()),
    }
    for name, column in COLUMNS.items():
        for letter in LETTERS:
            values = [_value(random, column, wild=wild) for _ in range(rows)]
            columns[f"{name}_{letter}"] = pa.array(values, column.arrow)
    return pa.table(columns)


def _value(random: Random, column: ValueColumn, *, wild: bool) -> Any:
    if random.random() < _NULLS:
        return None
    return column.wild(random) if wild else column.tame(random)
