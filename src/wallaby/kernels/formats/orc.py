"""ORC: stripes of columns, found by their names without regard to case; one that a file does not have is NULL.

Files do not say in which calendar they count early dates: one that is not in today's leaves the query to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import pyarrow as pa
from pyarrow import orc

from wallaby.kernels.file_systems import is_local, local_path, open_remote
from wallaby.kernels.formats.content import Asked, DoubtError
from wallaby.kernels.formats.values import date_in_range
from wallaby.kernels.types import arrow_type
from wallaby.plan.relation import ParquetFile
from wallaby.plan.types import DataType, Kind

_KINDS: Final = frozenset(
    {
        *(Kind.BOOLEAN, Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG, Kind.FLOAT, Kind.DOUBLE),
        *(Kind.DECIMAL, Kind.STRING, Kind.BINARY, Kind.DATE),
    }
)
#: Columns of files that Hive has written are found by their places.
_BY_PLACE: Final = "_col"


@contextmanager
def _opened(file: ParquetFile) -> Iterator[orc.ORCFile]:
    source = pa.OSFile(str(local_path(file))) if is_local(file) else open_remote(file)
    with closing(source):
        yield orc.ORCFile(source)


def stripes(file: ParquetFile, asked: Asked) -> tuple[int, int]:
    """How many stripes and rows a file has in which these columns can be read."""
    with _opened(file) as source:
        if source.nrows:
            _places(source, asked)
        return source.nstripes, source.nrows


def read_stripes(file: ParquetFile, asked: Asked, numbers: tuple[int, ...]) -> list[pa.Table]:
    """Some stripes; without columns, one that is only there to be counted."""
    with _opened(file) as source:
        if not source.nrows:
            return []
        places = _places(source, asked)
        names = list(dict.fromkeys(place for place in places if place is not None)) or source.schema.names[:1]
        read = [pa.Table.from_batches([source.read_stripe(number, columns=names)]) for number in numbers]
    return [_renamed(table, asked, places) for table in read]


def _renamed(table: pa.Table, asked: Asked, places: list[str | None]) -> pa.Table:
    if not asked:
        return table.select(table.column_names[:1])
    columns = [
        pa.nulls(table.num_rows, arrow_type(type_)) if place is None else table.column(place)
        for (_, type_), place in zip(asked, places, strict=True)
    ]
    for column in columns:
        if pa.types.is_date(column.type):
            date_in_range(column)
    return pa.table(columns, names=[name for name, _ in asked])


def _places(source: orc.ORCFile, asked: Asked) -> list[str | None]:
    """What the columns are called in the file; None for one that it does not have."""
    schema = source.schema
    if all(name.startswith(_BY_PLACE) for name in schema.names):
        raise DoubtError("its columns have no names")
    return [_place(schema, name, type_) for name, type_ in asked]


def _place(schema: pa.Schema, name: str, type_: DataType) -> str | None:
    found: list[str] = [own for own in schema.names if own.lower() == name.lower()]
    if len(found) > 1 or "." in name:
        raise DoubtError(f"it may have more than one column {name}")
    if type_.kind not in _KINDS:
        raise DoubtError(f"the column {name} of type {type_} is not supported yet")
    if not found:
        return None
    if schema.field(found[0]).type != arrow_type(type_):
        raise DoubtError(f"the column {name} is {schema.field(found[0]).type}, not {type_}")
    return found[0]
