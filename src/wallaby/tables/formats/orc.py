"""ORC: stripes of columns, found by name without regard to case; a column that a file lacks is NULL.

Files do not say in which calendar their early dates are: a date before today's calendar leaves the query to Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import orc

from wallaby.errors import MemoryLimitError
from wallaby.relations.formats import Format
from wallaby.relations.relation import DataFile
from wallaby.relations.types import DataType, Kind
from wallaby.sql.types import arrow_type
from wallaby.tables.cutting import cut, on_disk, side_by_side
from wallaby.tables.file_systems import is_local, local_path, open_remote
from wallaby.tables.formats.content import Asked, ContentPart, DoubtError, Pieces, Room
from wallaby.tables.formats.orc_stripe import ColumnSizes, StripedFile
from wallaby.tables.formats.values import date_in_range

_KINDS: Final = frozenset(
    {
        *(Kind.BOOLEAN, Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG, Kind.FLOAT, Kind.DOUBLE),
        *(Kind.DECIMAL, Kind.STRING, Kind.BINARY, Kind.DATE),
    }
)
#: In files that Hive has written, columns are found by position.
_BY_PLACE: Final = "_col"
#: Arrow reads this many batches ahead, and a portion is divided among them.
_BATCHES: Final = 16
_BATCH_ROWS_MAX: Final = 1 << 16
#: The part of a column that is decompressed at once may take this many times what a kernel may hold.
_HELD_PARTS: Final = 2


def _source(file: DataFile) -> pa.NativeFile:
    return pa.OSFile(str(local_path(file))) if is_local(file) else open_remote(file)


@contextmanager
def _opened(file: DataFile) -> Iterator[orc.ORCFile]:
    with closing(_source(file)) as source:
        yield orc.ORCFile(source)


def pieces(_: Format, file: DataFile, asked: Asked) -> Pieces:
    """The stripes and rows of a file in which these columns can be read."""
    with _opened(file) as source:
        if source.compression == "LZO":
            raise DoubtError("it is compressed with LZO, so Wallaby cannot compute the size of its stripes")
        if source.nrows:
            _places(source, asked)
        return Pieces(source.nstripes, source.nrows)


def read(_: Format, file: DataFile, asked: Asked, number: int, room: Room) -> Iterator[ContentPart]:
    """Read a stripe, as a whole or batch by batch; without columns, a placeholder column, so that rows can be counted.

    Raises:
        MemoryLimitError: There is no room for a dictionary of the stripe.
    """
    with _opened(file) as source, closing(_source(file)) as plain:
        places = _places(source, asked)
        names = list(dict.fromkeys(place for place in places if place is not None)) or source.schema.names[:1]
        kinds = [source.schema.field(name).type for name in names]
        striped = StripedFile(plain, file.size_bytes)
        sizes = striped.sizes(number, names, kinds)
        if sum(size.decoded_bytes for size in sizes) <= room.whole_bytes or room.directory is None:
            rows = pa.Table.from_batches([source.read_stripe(number, columns=names)])
            yield ContentPart(_renamed(rows, asked, places), last=True)
            return
        _check_held(file, names, sizes, room)
        groups = _grouped(names, sizes, room.memory_bytes)
        copies = _copies(striped, number, len(groups), room.directory)
        left = striped.rows(number)
    row_bytes = sum(size.row_bytes for size in sizes)
    rows = min(max(int(room.portion_bytes / _BATCHES / max(row_bytes, 1)), 1), _BATCH_ROWS_MAX)
    with ExitStack() as stack:
        readers = [
            _batches(stack.enter_context(closing(copy)), group, rows)
            for copy, group in zip(copies, groups, strict=True)
        ]
        for table in _portions(readers, room):
            left -= table.num_rows
            yield ContentPart(_renamed(table, asked, places), last=not left)


def _copies(striped: StripedFile, number: int, count: int, directory: Path) -> list[pa.NativeFile]:
    """Copy a stripe to an unlinked file, opened this many times."""
    path = directory / f"stripe-{uuid.uuid4().hex}.orc"
    try:
        striped.copy_stripe(number, path)
        return [pa.OSFile(str(path)) for _ in range(count)]
    finally:
        path.unlink(missing_ok=True)


def _check_held(file: DataFile, names: list[str], sizes: list[ColumnSizes], room: Room) -> None:
    """Check that there is room for a column's dictionaries and compressed blocks, which are decompressed at once."""
    for name, size in zip(names, sizes, strict=True):
        if size.held_bytes > _HELD_PARTS * room.memory_bytes:
            raise MemoryLimitError(
                f"The column {name} in a stripe of {file.path} has {size.held_bytes >> 20} MiB that must be "
                "decompressed at once.",
                fix="Raise spark.wallaby.memory, or write the file with smaller stripes.",
                memory_bytes=room.memory_bytes,
            )


def _portions(readers: list[Iterator[pa.RecordBatch]], room: Room) -> Iterator[pa.Table]:
    """Combine the columns of all readers, about a portion at a time."""
    if len(readers) == 1:
        yield from cut(readers[0], room.portion_bytes)
        return
    assert room.directory is not None, "stripes are read by batches where there is room on disk"
    parts = [on_disk(_merged(reader), room.directory) for reader in readers]
    for table in cut(side_by_side(parts), room.portion_bytes):
        yield table
        for part in parts:
            part.release()


def _batches(source: pa.NativeFile, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    from pyarrow import dataset  # noqa: PLC0415 - it loads pandas, for which a program that starts need not wait

    fragment = dataset.OrcFileFormat().make_fragment(source)
    yield from fragment.to_batches(columns=names, batch_size=rows, use_threads=False)


def _merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge batches: each array of a batch takes some hundred bytes, however few values it has."""
    while group := list(islice(batches, _BATCHES)):
        yield pa.concat_batches(group)


def _grouped(names: list[str], sizes: list[ColumnSizes], limit_bytes: int) -> list[list[str]]:
    """Group columns so that reading a group does not hold more than a limit."""
    groups: list[list[str]] = []
    held = 0
    for name, size in zip(names, sizes, strict=True):
        if not groups or held + size.held_bytes > limit_bytes:
            groups.append([])
            held = 0
        groups[-1].append(name)
        held += size.held_bytes
    return groups


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
    """The names of the columns in the file; None for a column that it lacks."""
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
