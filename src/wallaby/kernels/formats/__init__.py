"""Files in other formats than Parquet: are they read here exactly as by Spark, in which pieces, and their rows.

A file with lines of text is looked at as a whole, by whoever plans the query, before it is read by anybody: Spark's
parsers have rules for everything that can stand in a line, and ours know only the plain cases. One line in doubt leaves
the table to Spark. So only files up to some size are read here, each of them as one piece; workers parse it again, by
the same code, and get the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa

from wallaby.errors import CorruptFileError, DoubtfulValueError, SourceChangedError
from wallaby.kernels.footer import check_unchanged, reading
from wallaby.kernels.formats import csv_lines, json_lines, orc, plain_lines
from wallaby.kernels.formats.content import Asked, DoubtError, content
from wallaby.kernels.types import arrow_schema
from wallaby.plan.formats import Csv, Format, Json, Orc, Text
from wallaby.plan.relation import Constant, ParquetFile, Scan

#: Larger files of text, and tables with more of it, are not looked at when a query is planned: it would take too long.
TEXT_BYTES_MAX: Final = 16 << 20
TABLE_BYTES_MAX: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Pieces:
    """In how many pieces a file is read, and how many rows they have."""

    count: int
    rows: int


def file_reason(scan: Scan, file: ParquetFile) -> str | None:
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


def pieces(scan: Scan, file: ParquetFile) -> Pieces:
    """The pieces of a file that can be read."""
    return pieces_of(scan.format, _asked(scan, file), file)


@lru_cache(maxsize=1024)
def pieces_of(format_: Format, asked: Asked, file: ParquetFile) -> Pieces:
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
        return Pieces(1, _parsed(format_, asked, file).num_rows)


def read_pieces(scan: Scan, file: ParquetFile, numbers: tuple[int, ...]) -> list[pa.Table]:
    """Some pieces of a file, each with the columns of the scan, constants included."""
    asked = _asked(scan, file)
    with reading(file):
        try:
            tables = (
                orc.read_stripes(file, asked, numbers)
                if isinstance(scan.format, Orc)
                else [_parsed(scan.format, asked, file)]
            )
        except DoubtError as doubt:
            if isinstance(scan.format, Orc):
                raise DoubtfulValueError(f"{file.path}: {doubt}") from doubt
            raise CorruptFileError(
                f"{file.path} changed after the query was planned: {doubt}", path=file.path
            ) from doubt
    return [_completed(table, scan, file) for table in tables]


def _parsed(format_: Format, asked: Asked, file: ParquetFile) -> pa.Table:
    """The asked columns of a file of lines; without any, a column that is only there to be counted."""
    data = content(file)
    match format_:
        case Csv():
            return csv_lines.parse(data, format_, asked)
        case Json():
            return json_lines.parse(data, asked)
        case Text():
            return plain_lines.parse(data, asked)
        case _:
            raise AssertionError("not a format of lines")


def _constant(file: ParquetFile, name: str) -> Constant | None:
    return next((each for each in file.constants if each.name.lower() == name.lower()), None)


def _asked(scan: Scan, file: ParquetFile) -> Asked:
    """The columns that are read from a file, by the table's names for them."""
    pairs = zip(scan.names, scan.columns, strict=True)
    return tuple((name, column.type) for name, column in pairs if _constant(file, name) is None)


def _completed(table: pa.Table, scan: Scan, file: ParquetFile) -> pa.Table:
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
