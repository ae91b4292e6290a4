"""What readers of all formats share: requests, results, and the content of text files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from wallaby.relations.relation import DataFile
from wallaby.relations.types import DataType
from wallaby.tables.file_systems import is_local, local_path, open_remote

#: Columns to read, by their names in the table and with the types that they have there.
Asked = tuple[tuple[str, DataType], ...]
_BYTE_ORDER_MARKS: Final = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")


class DoubtError(Exception):
    """Spark may read a file differently; the message says why."""


@dataclass(frozen=True, slots=True)
class Room:
    """Limits of a read: rows read at once, rows handed on, the memory of a kernel, and a directory for files."""

    whole_bytes: int
    portion_bytes: int
    memory_bytes: int
    directory: Path | None


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces in which a file is read, and their numbers of rows."""

    count: int
    rows: int


@dataclass(frozen=True, slots=True)
class ContentPart:
    """Some rows of a piece of a file, and whether they are its last."""

    rows: pa.Table
    last: bool


def content(file: DataFile) -> bytes:
    """All bytes of a file."""
    if is_local(file):
        return local_path(file).read_bytes()
    with closing(open_remote(file)) as opened:
        return bytes(opened.read())


def blocks_of(data: bytes, size_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """Yield blocks of whole lines of about this many bytes, each with whether it is the last; at least one block."""
    begin = 0
    while True:
        end = data.find(b"\n", begin + size_bytes - 1) + 1 or len(data)
        yield data[begin:end], end == len(data)
        if end == len(data):
            return
        begin = end


def lines_of(data: bytes) -> bytes:
    """The content with a line feed after every line; `DoubtError` if it is not certain where lines end."""
    if data.startswith(_BYTE_ORDER_MARKS):
        raise DoubtError("it begins with a byte order mark")
    if b"\0" in data:
        raise DoubtError("it contains a NUL character")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
        if b"\r" in data:
            raise DoubtError("there is a carriage return within a line")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DoubtError("it is not UTF-8") from error
    return data if not data or data.endswith(b"\n") else data + b"\n"
