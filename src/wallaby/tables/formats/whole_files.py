"""Binary files: one row per file, with its path, modification time, length and content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from wallaby.relations.formats import Binary, Format
from wallaby.relations.relation import DataFile
from wallaby.relations.types import Kind
from wallaby.tables.formats.content import Asked, ContentPart, DoubtError, Pieces, Room, content

#: A row is never divided, so larger contents are left to Spark.
CONTENT_BYTES_MAX: Final = 16 << 20
_CONTENT: Final = "content"
_KINDS: Final = {
    "path": Kind.STRING,
    "modificationtime": Kind.TIMESTAMP,
    "length": Kind.LONG,
    _CONTENT: Kind.BINARY,
}


def pieces(format_: Format, file: DataFile, asked: Asked) -> Pieces:
    """One piece with one row, if Spark would read the file and its content fits in memory. Spark skips empty files."""
    assert isinstance(format_, Binary)
    if any(_KINDS.get(name.lower()) is not type_.kind for name, type_ in asked):
        raise DoubtError("one of its columns does not have the name or type that Spark gives it")
    if _asks_for_content(asked) and file.size_bytes > min(format_.length_max, CONTENT_BYTES_MAX):
        raise DoubtError(f"it has {file.size_bytes} bytes, too many for one row")
    return Pieces(1, 1)


def read(_format: Format, file: DataFile, asked: Asked, _number: int, _room: Room) -> Iterator[ContentPart]:
    """Read the row; if no column is requested, a placeholder column, so that the row can be counted."""
    values: dict[str, object] = {
        "path": file.path if file.storage else f"file:{file.path}",
        "modificationtime": file.modified_ms * 1000,
        "length": file.size_bytes,
        _CONTENT: content(file) if _asks_for_content(asked) else None,
    }
    types = {
        Kind.STRING: pa.string(),
        Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
        Kind.LONG: pa.int64(),
        Kind.BINARY: pa.binary(),
    }
    columns = {name: pa.array([values[name.lower()]], types[_KINDS[name.lower()]]) for name, _ in asked}
    yield ContentPart(pa.table(columns or {"row": pa.array([0])}), last=True)


def _asks_for_content(asked: Asked) -> bool:
    return any(name.lower() == _CONTENT for name, _ in asked)
