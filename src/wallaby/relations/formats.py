"""File formats, with all options that decide how files are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final


@dataclass(frozen=True, slots=True)
class FieldId:
    """A column of a table, or a field of a struct in one, that has an id beside its name."""

    #: Its name, after those of the columns and fields that it is in.
    path: tuple[str, ...]
    id: int
    #: Must every file have it? It may have a value that only the table knows if a file lacks it.
    in_every_file: bool


@dataclass(frozen=True, slots=True)
class Parquet:
    """Columns in row groups, with statistics."""

    #: Of a table whose columns are found by ids. Only files in which the names lead to the same columns are read.
    ids: tuple[FieldId, ...] = ()
    #: Names of structs whose fields have other names in the files than in the table. Files are not read for them.
    renamed: tuple[str, ...] = ()
    #: Whether the files are lines of text, which may be compressed or malformed.
    has_lines: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Orc:
    """Columns in stripes."""

    has_lines: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Csv:
    """One row per line, its fields between delimiters, in the order of the table's columns."""

    #: All columns of the files, including those that are not read.
    fields: tuple[str, ...]
    delimiter: str
    header: bool
    null_value: str
    has_lines: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Json:
    """One row per line, as an object."""

    has_lines: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Text:
    """One row per line, with one column of any name."""

    has_lines: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Binary:
    """One row per file: its path, modification time, length and content."""

    #: Spark refuses to read the content of longer files.
    length_max: int
    has_lines: ClassVar[bool] = False


#: The format of most tables.
PARQUET: Final = Parquet()
Format = Parquet | Orc | Csv | Json | Text | Binary
