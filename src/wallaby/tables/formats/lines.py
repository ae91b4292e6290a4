"""Files with lines of text, in any format: one piece each, checked as a whole when the query is planned.

Spark's parsers have rules for everything that a line can contain; ours know only the plain cases. One line in doubt
leaves the table to Spark. Because every line is checked at planning, only files up to a certain size are read here.
Workers parse them again with the same code, and get the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa

from wallaby.relations.formats import Csv, Format, Json, Text
from wallaby.relations.relation import DataFile
from wallaby.relations.types import Kind
from wallaby.tables.formats import csv_lines, json_lines
from wallaby.tables.formats.content import (
    Asked,
    ContentPart,
    DoubtError,
    Pieces,
    Room,
    blocks_of,
    content,
    lines_of,
)

#: Larger files are not checked when a query is planned, because it would take too long.
TEXT_BYTES_MAX: Final = 16 << 20
#: The bytes of lines that are parsed at a time; fewer for JSON, whose parser makes large Python objects.
_BLOCK_BYTES: Final = 1 << 20
_JSON_BLOCK_BYTES: Final = 1 << 18
_EMPTY_LINES: Final = re.compile(rb"(?:\r?\n)*")


def pieces(format_: Format, file: DataFile, asked: Asked) -> Pieces:
    """One piece, if every line is plain."""
    if file.size_bytes > TEXT_BYTES_MAX:
        raise DoubtError(f"it has more than {TEXT_BYTES_MAX >> 20} MiB, too many to check line by line")
    return Pieces(1, sum(part.rows.num_rows for part in _parsed(format_, file, asked)))


def read(format_: Format, file: DataFile, asked: Asked, _: int, room: Room) -> Iterator[ContentPart]:
    """Read the lines, about a portion at a time."""
    return _together(_parsed(format_, file, asked), room.portion_bytes)


def _parsed(format_: Format, file: DataFile, asked: Asked) -> Iterator[ContentPart]:
    """The requested columns of a file; a placeholder column if none is requested, so that rows can be counted."""
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
                rows = parse_text(block, asked)
            case _:
                raise AssertionError("not a format of lines")
        yield ContentPart(rows, last)


def _together(parts: Iterator[ContentPart], size_bytes: int) -> Iterator[ContentPart]:
    """Merge adjacent parts, up to about this size."""
    group: list[pa.Table] = []
    size = 0
    for part in parts:
        group.append(part.rows)
        size += part.rows.nbytes
        if part.last or size >= size_bytes:
            yield ContentPart(pa.concat_tables(group), part.last)
            group, size = [], 0


def parse_text(data: bytes, asked: Asked) -> pa.Table:
    """Parse text, each line of which is a row, under the requested name."""
    if any(type_.kind is not Kind.STRING for _, type_ in asked):
        raise DoubtError("a line is read as another type than text")
    text = lines_of(data)
    lines = pa.array(text.decode("utf-8").split("\n")[:-1], pa.string())
    return pa.table([lines for _ in asked] or [lines], names=[name for name, _ in asked] or ["row"])
