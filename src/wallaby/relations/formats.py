"""What a table's files are written in, with all that decides how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Parquet:
    """Columns in row groups, with statistics."""


@dataclass(frozen=True, slots=True)
class Orc:
    """Columns in stripes."""


@dataclass(frozen=True, slots=True)
class Csv:
    """A row a line, its fields between delimiters, in the order of the table's columns."""

    #: All columns of the files, also those that are not read.
    fields: tuple[str, ...]
    delimiter: str
    header: bool
    null_value: str


@dataclass(frozen=True, slots=True)
class Json:
    """A row a line: an object."""


@dataclass(frozen=True, slots=True)
class Text:
    """A row a line, with one column, whatever it is called."""


#: What most tables are.
PARQUET: Final = Parquet()
Format = Parquet | Orc | Csv | Json | Text
