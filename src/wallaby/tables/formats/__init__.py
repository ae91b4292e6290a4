"""Files in other formats than Parquet: are they read here exactly as by Spark, in which pieces, and their rows.

A file with lines of text is looked at as a whole, by whoever plans the query, before it is read by anybody: Spark's
parsers have rules for everything that can stand in a line, and ours know only the plain cases. One line in doubt leaves
the table to Spark. So only files up to some size are read here, each of them as one piece; workers parse it again, by
the same code, and get the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import pyarrow as pa

from wallaby.errors import CorruptFileError, DoubtfulValueError, SourceChangedError
from wallaby.relations.formats import Csv, Format, Json, Orc, Text
from wallaby.relations.relation import Constant, DataFile, Scan
from wallaby.sql.types import arrow_schema
from wallaby.tables.footer import check_unchanged, reading
from wallaby.tables.formats import csv_lines, json_lines, orc, plain_lines
from wallaby.tables.formats.content import Asked, ContentPart, DoubtError, Room, blocks_of, content

#: Larger files of text, and tables with more of it, are not looked at when a query is planned: it would take too long.
TEXT_BYTES_MAX: Final = 16 << 20
TABLE_BYTES_MAX: Final = 64 << 20
#: Lines are parsed so many bytes at a time; the parser of JSON makes objects of Python's, which are large.
_BLOCK_BYTES: Final = 1 << 20
_JSON_BLOCK_BYTES: Final = 1 << 18
_EMPTY_LINES: Final = re.compile(rb"(?:\r?\n)*")


@dataclass(frozen=True, slots=True)
class Pieces:
    """In how many pieces a file is read, and how many rows they have."""

    count: int
    rows: int


def file_reason(scan: Scan, file: DataFile) -> str | None:
    """Why a file cannot be read here exactly as Spark would; None if it can."""
    size = sum(each.size_bytes for each in scan.files)
    if not isinstance(scan.format, Orc) and size > TABLE_BYTES_MAX:
        return f"its files have {size} bytes, too many to check line by line"
    try:
        pieces_of(scan.format, _asked(scan, file), file)
    except DoubtError as doubt:
        return f"{file.path}: {doubt}"
    except (CorruptFileError, SourceChangedError) as error:
        return error.what  # Spark may be able to read it, and else has an error for it
    return None


def pieces(scan: Scan, file: DataFile) -> Pieces:
    """The pieces of a file that can be read."""
    return pieces_of(scan.format, _asked(scan, file), file)


@lru_cache(maxsize=1024)
def pieces_of(format_: Format, asked: Asked, file: DataFile) -> Pieces:
    """The pieces of a file in which these columns can be read.

    Raises:
        DoubtError: Spark may read something else in it than we do.
    """
    check_unchanged(file)
    with reading(file):
        if isinstance(format_, Orc):
            return Pieces(*orc.stripes(file, asked))
        if file.size_bytes > TEXT_BYTES_MAX:
            raise DoubtError(f"it has more than {TEXT_BYTES_MAX >> 20} MiB, too many to check line by line")
        return Pieces(1, sum(part.rows.num_rows for part in _parsed(format_, asked, file)))


def read_piece(scan: Scan, file: DataFile, number: int, room: Room) -> Iterator[ContentPart]:
    """A piece of a file part by part, with the columns of the scan, constants included; at least one part."""
    asked = _asked(scan, file)
    with reading(file), _no_doubts(scan, file):
        if isinstance(scan.format, Orc):
            parts = orc.read_stripe(file, asked, number, room)
        else:
            parts = _together(_parsed(scan.format, asked, file), room.portion_bytes)
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


def _parsed(format_: Format, asked: Asked, file: DataFile) -> Iterator[ContentPart]:
    """The asked columns of a file of lines; without any, a column that is only there to be counted."""
    data = content(file)
    if isinstance(format_, Csv):
        # The first line of a file may be its header.
        data = data[_EMPTY_LINES.match(data).end() :]  # type: ignore[union-attr]  # it matches nothing, too
    for block, last in blocks_of(data, _JSON_BLOCK_BYTES if isinstance(format_, Json) else _BLOCK_BYTES):
        match format_:
            case Csv():
                rows = csv_lines.parse(block, format_, asked)
                format_ = replace(format_, header=False)
            case Json():
                rows = json_lines.parse(block, asked)
            case Text():
                rows = plain_lines.parse(block, asked)
            case _:
                raise AssertionError("not a format of lines")
        yield ContentPart(rows, last)


def _together(parts: Iterator[ContentPart], size_bytes: int) -> Iterator[ContentPart]:
    """Neighbouring parts as one, up to about this size."""
    group: list[pa.Table] = []
    size = 0
    for part in parts:
        group.append(part.rows)
        size += part.rows.nbytes
        if part.last or size >= size_bytes:
            yield ContentPart(pa.concat_tables(group), part.last)
            group, size = [], 0


def _constant(file: DataFile, name: str) -> Constant | None:
    return next((each for each in file.constants if each.name.lower() == name.lower()), None)


def _asked(scan: Scan, file: DataFile) -> Asked:
    """The columns that are read from a file, by the table's names for them."""
    pairs = zip(scan.names, scan.columns, strict=True)
    return tuple((name, column.type) for name, column in pairs if _constant(file, name) is None)


def _completed(table: pa.Table, scan: Scan, file: DataFile) -> pa.Table:
    """In the order, and with the types and names of the scan."""
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
