"""Text: each line is a row."""

from __future__ import annotations

import pyarrow as pa

from wallaby.relations.types import Kind
from wallaby.tables.formats.content import Asked, DoubtError, lines_of


def parse(data: bytes, asked: Asked) -> pa.Table:
    """The lines, under the requested name."""
    if any(type_.kind is not Kind.STRING for _, type_ in asked):
        raise DoubtError("a line is read as another type than text")
    text = lines_of(data)
    lines = pa.array(text.decode("utf-8").split("\n")[:-1], pa.string())
    return pa.table([lines for _ in asked] or [lines], names=[name for name, _ in asked] or ["row"])
