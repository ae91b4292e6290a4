"""What a table's files are written in, with all that decides how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final


@dataclass(frozen=True, slots=True)
class Parquet:
    """Columns in row groups, with statistics."""

    #: Whether the files are lines of text, which may be compressed or malformed.
    has_lines: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Orc:
    """Columns in stripes."""

    has_lines: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Csv:
    """A row a line, its fields between delimiters, in the order of the table's columns."""

    #: All columns of the files, also those that are not read.
    fields: tuple[str, ...]
    delimiter: str
    header: bool
    null_value: str
    has_lines: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Json:
    """A row a line: an object."""

    has_lines: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Text:
    """A row a line, with one column, whatever it is called."""

    has_lines: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Binary:
    """A row a file: its path, when it was changed, its length, and its content."""

    #: Spark refuses to read the content of longer files.
    length_max: int
    has_lines: ClassVar[bool] = False


#: What most tables are.
PARQUET: Final = Parquet()
Format = Parquet | Orc | Csv | Json | Text | Binary
