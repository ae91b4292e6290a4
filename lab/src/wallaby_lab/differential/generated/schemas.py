"""Random tables: few rows of few different values, so that joins meet and groups have company.

Floating-point numbers are quarters, NaN and the infinities: their sums are the same in every order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from wallaby_lab.differential.generated.tables import flat_columns
from wallaby_lab.differential.generated.values import COLUMNS

#: What columns of random tables are of.
KINDS: Final = (
    *(
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "int",
        "bigint",
        "bigint",
        "float",
        "double",
        "small",
        "small",
    ),
    *("decimal_5_2", "decimal_18_6", "decimal_38_18", "decimal_38_0", "string", "string", "digits", "binary"),
    *("date", "date", "timestamp", "timestamp_ntz"),
    *("array_int", "array_string", "array_double", "array_date", "map_int", "map_string", "struct", "struct"),
)
_NULLS: Final = 0.15
_POOL: Final = 7
_ROW_COUNTS: Final = (0, 1, 4, 12, 30, 60)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table and its kind."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class RandomTable:
    """A table with its rows."""

    name: str
    fields: tuple[Field, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def ddl(self) -> str:
        """Its schema, in Spark's words."""
        return ", ".join(f"{field.name} {COLUMNS[field.kind].sql}" for field in self.fields)

    def arrow(self) -> pa.Table:
        """As Arrow data."""
        schema = pa.schema([(field.name, COLUMNS[field.kind].arrow) for field in self.fields])
        columns = [[row[place] for row in self.rows] for place in range(len(self.fields))]
        return pa.table(
            [pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)], schema
        )

    def write(self, directory: Path, files: int = 1) -> None:
        """As Parquet files, of some row groups each."""
        directory.mkdir(parents=True)
        table = self.arrow()
        for number in range(files):
            begin, end = (len(self.rows) * (number + step) // files for step in (0, 1))
            pq.write_table(
                table.slice(begin, end - begin),
                directory / f"{number}.parquet",
                row_group_size=8,
                use_dictionary=flat_columns(table),
                write_statistics=_bounded_columns(table),
            )


def _bounded_columns(table: pa.Table) -> list[str]:
    """The columns with bounds in the footers: those of floating-point numbers do not count NaN.

    By such bounds Spark skips row groups with NaN that it would find greater than what it looks for.
    """
    return [field.name for field in table.schema if not pa.types.is_floating(field.type)]


def random_tables(random: Random, kinds: Sequence[str] = KINDS) -> tuple[RandomTable, ...]:
    """Three tables that share their values."""
    pools = {kind: [_value(random, kind) for _ in range(_POOL)] for kind in dict.fromkeys(kinds)}
    return tuple(_table(random, f"t{number}", kinds, pools) for number in range(3))


def _table(random: Random, name: str, kinds: Sequence[str], pools: dict[str, list[Any]]) -> RandomTable:
    chosen = ["int", "string", *random.sample(list(kinds), random.randint(3, 6))]
    fields = tuple(Field(f"{name}_{place}", kind) for place, kind in enumerate(chosen))
    full = random.random() < 0.3
    nulls = [0.0 if full or random.random() < 0.2 else _NULLS for _ in fields]
    rows = tuple(
        tuple(
            None if random.random() < share else random.choice(pools[field.kind])
            for field, share in zip(fields, nulls, strict=True)
        )
        for _ in range(random.choice(_ROW_COUNTS))
    )
    return RandomTable(name, fields, rows)


def _value(random: Random, kind: str) -> Any:
    column = COLUMNS[kind]
    if kind in ("float", "double"):
        return random.choice((math.nan, math.inf, -math.inf, *(column.tame(random) for _ in range(9))))
    return column.wild(random) if random.random() < 0.3 else column.tame(random)
