"""Formats other than Parquet: whether Wallaby reads a file as Spark does, in which pieces, and the rows.

Each format has a module with two functions: `pieces` checks a file when the query is planned, and raises `DoubtError`
if Spark may read it differently; `read` yields the rows of a piece, part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

import pyarrow as pa

from wallaby.errors import CorruptFileError, DoubtfulValueError, SourceChangedError
from wallaby.relations.formats import Binary, Csv, Format, Json, Orc, Text
from wallaby.relations.relation import Constant, DataFile, Scan
from wallaby.sql.types import arrow_schema
from wallaby.tables.footer import check_unchanged, reading
from wallaby.tables.formats import lines, orc, whole_files
from wallaby.tables.formats.content import Asked, ContentPart, DoubtError, Pieces, Room

#: Tables with more text are not checked when a query is planned, because it would take too long.
TABLE_BYTES_MAX: Final = 64 << 20


class FormatReader(NamedTuple):
    """The functions of a format's module."""

    #: The pieces of a file in which the requested columns can be read; `DoubtError` if Spark may read it differently.
    pieces: Callable[[Format, DataFile, Asked], Pieces]
    #: The rows of a piece by its number, part by part; at least one part.
    read: Callable[[Format, DataFile, Asked, int, Room], Iterator[ContentPart]]


_LINES: Final = FormatReader(lines.pieces, lines.read)
_READERS: Final[Mapping[type[Format], FormatReader]] = {
    Orc: FormatReader(orc.pieces, orc.read),
    Csv: _LINES,
    Json: _LINES,
    Text: _LINES,
    Binary: FormatReader(whole_files.pieces, whole_files.read),
}


def file_reason(scan: Scan, file: DataFile) -> str | None:
    """Why Wallaby cannot read a file as Spark does; None if it can."""
    size = sum(each.size_bytes for each in scan.files)
    if scan.format.has_lines and size > TABLE_BYTES_MAX:
        return f"its files have {size} bytes, too many to check line by line"
    try:
        pieces_of(scan.format, _asked(scan, file), file)
    except DoubtError as doubt:
        return f"{file.path}: {doubt}"
    except (CorruptFileError, SourceChangedError) as error:
        return error.what  # Spark may be able to read it, or raises its own error
    return None


def pieces(scan: Scan, file: DataFile) -> Pieces:
    """The pieces of a file that can be read."""
    return pieces_of(scan.format, _asked(scan, file), file)


def pieces_of(format_: Format, asked: Asked, file: DataFile) -> Pieces:
    """The pieces of a file in which these columns can be read.

    Raises:
        DoubtError: Spark may read the file differently.
    """
    found = _checked(format_, asked, file)
    if isinstance(found, str):
        raise DoubtError(found)
    return found


@lru_cache(maxsize=1024)
def _checked(format_: Format, asked: Asked, file: DataFile) -> Pieces | str:
    """The pieces, or the doubt. Both are remembered: a table is checked once, not in every plan that reads it."""
    check_unchanged(file)
    with reading(file):
        try:
            return _READERS[type(format_)].pieces(format_, file, asked)
        except DoubtError as doubt:
            return str(doubt)


def read_piece(scan: Scan, file: DataFile, number: int, room: Room) -> Iterator[ContentPart]:
    """Read a piece of a file part by part, with the scan's columns, including constants; at least one part."""
    with reading(file), _no_doubts(scan, file):
        parts = _READERS[type(scan.format)].read(scan.format, file, _asked(scan, file), number, room)
        for part in parts:
            yield replace(part, rows=_completed(part.rows, scan, file))


@contextmanager
def _no_doubts(scan: Scan, file: DataFile) -> Iterator[None]:
    try:
        yield
    except DoubtError as doubt:
        if isinstance(scan.format, Orc):
            raise DoubtfulValueError(f"{file.path}: {doubt}") from doubt
        raise CorruptFileError(
            f"{file.path} changed after the query was planned: {doubt}", path=file.path
        ) from doubt


def _constant(file: DataFile, name: str) -> Constant | None:
    return next((each for each in file.constants if each.name.lower() == name.lower()), None)


def _asked(scan: Scan, file: DataFile) -> Asked:
    """The columns that are read from a file, by the table's names for them."""
    pairs = zip(scan.names, scan.columns, strict=True)
    return tuple((name, column.type) for name, column in pairs if _constant(file, name) is None)


def _completed(table: pa.Table, scan: Scan, file: DataFile) -> pa.Table:
    """Arrange rows in the order, types and names of the scan."""
    schema = arrow_schema(scan.columns)
    if not scan.columns:
        return pa.table([pa.nulls(table.num_rows, pa.int8())], schema=schema)
    columns: list[pa.Array | pa.ChunkedArray] = []
    for name, field in zip(scan.names, schema, strict=True):
        constant = _constant(file, name)
        if constant is None:
            column = table.column(name)
            columns.append(column if column.type == field.type else column.cast(field.type))
        else:
            columns.append(pa.repeat(pa.scalar(constant.value, field.type), table.num_rows))
    return pa.table(columns, schema=schema).combine_chunks()
