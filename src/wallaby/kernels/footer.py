"""Parquet footers: what a file says of itself, checked against what the query was planned with.

A file that has another size or time than at planning is an error, never another answer. Footers are kept for
the files read last; they are small beside the data and every split of a file needs the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.errors import CorruptFileError, SourceChangedError
from wallaby.kernels.distinct import GroupValues, distinct_values, values_of_group
from wallaby.kernels.types import arrow_type
from wallaby.plan.physical import Split
from wallaby.plan.relation import ParquetFile, Scan
from wallaby.plan.statistics import ColumnStatistics, Statistics, TableStatistics
from wallaby.plan.types import DataType, Kind

#: Files written by Spark 2 or Hive count early dates in another calendar.
_LEGACY_CALENDAR: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
#: What a split without columns counts for, so that counting rows is cut into splits too.
_ROW_BYTES_WITHOUT_COLUMNS: Final = 1


def local_path(file: ParquetFile) -> Path:
    """Where a file lies: its path, or its `file:` address."""
    if file.path.startswith("file:"):
        return Path(unquote(urlsplit(file.path).path))
    return Path(file.path)


def check_unchanged(file: ParquetFile) -> None:
    """Is it still the file that the query was planned with?"""
    try:
        found = local_path(file).stat()
    except OSError as error:
        raise SourceChangedError(
            f"{file.path} cannot be opened any more: {error.strerror}.",
            fix="Run the query again; in Spark, REFRESH TABLE first.",
            path=file.path,
        ) from error
    if (found.st_size, found.st_mtime_ns // 1_000_000) != (file.size_bytes, file.modified_ms):
        raise SourceChangedError(
            f"{file.path} was changed after the query was planned.",
            fix="Run the query again; in Spark, REFRESH TABLE first.",
            path=file.path,
        )


@contextmanager
def reading(file: ParquetFile) -> Iterator[None]:
    """Errors of the Parquet readers become ours."""
    try:
        yield
    except FileNotFoundError as error:
        check_unchanged(file)
        raise CorruptFileError(f"{file.path} cannot be opened.", path=file.path) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, OSError) as error:
        check_unchanged(file)
        raise CorruptFileError(
            f"{file.path} cannot be read as Parquet: {str(error).partition(chr(10))[0]}",
            fix="Check the file with another reader; write it again if it is damaged.",
            path=file.path,
        ) from error


@lru_cache(maxsize=256)
def footer(file: ParquetFile) -> pq.FileMetaData:
    """The footer of an unchanged file."""
    check_unchanged(file)
    with reading(file):
        return pq.read_metadata(local_path(file))


def scan_reason(scan: Scan) -> str | None:
    """Why the files of a scan cannot be read here exactly as Spark would; None if they can."""
    for file in scan.files:
        if urlsplit(file.path).scheme not in ("", "file"):
            return f"{file.path} is not on a local disk"
        try:
            metadata = footer(file)
        except CorruptFileError as error:
            return error.what  # Spark may be able to read it, and else has an error for it
        keys = metadata.metadata or {}
        if any(key in keys for key in _LEGACY_CALENDAR):
            return f"{file.path} has dates or times in a legacy calendar"
        schema = metadata.schema.to_arrow_schema()
        for column, name in zip(scan.columns, scan.names, strict=True):
            # Spark compares names without regard to case, unless told otherwise.
            if [found for found in schema.names if found.lower() == name.lower()] != [name]:
                return f"{file.path} does not have exactly one column {name}"
            found = schema.field(name).type
            if not readable_as(found, column.type):
                return f"the column {name} of {file.path} is {found}, not {column.type}"
    return None


def readable_as(found: pa.DataType, wanted: DataType) -> bool:
    """Can a file's column be read as a type without a change of any value?"""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if wanted.kind is Kind.STRING:
        return found in (pa.string(), pa.large_string(), pa.string_view())
    if wanted.kind is Kind.BINARY:
        return found in (pa.binary(), pa.large_binary(), pa.binary_view())
    if wanted.kind is Kind.TIMESTAMP:
        return pa.types.is_timestamp(found) and found.tz is not None and found.unit in ("ms", "us")
    if wanted.kind is Kind.TIMESTAMP_NTZ:
        return pa.types.is_timestamp(found) and found.tz is None and found.unit in ("ms", "us")
    return bool(found == arrow_type(wanted))


def list_splits(scan: Scan, target_bytes: int) -> tuple[Split, ...]:
    """Neighbouring row groups of one file together, up to `target_bytes` of encoded data in needed columns."""
    splits: list[Split] = []
    for file in scan.files:
        metadata = footer(file)
        wanted = _positions(metadata, scan.names)
        groups: list[int] = []
        rows = size = 0
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            group_size = sum(group.column(position).total_uncompressed_size for position in wanted)
            group_size = group_size or group.num_rows * _ROW_BYTES_WITHOUT_COLUMNS
            if groups and size + group_size > target_bytes:
                splits.append(Split(file, tuple(groups), rows, size))
                groups, rows, size = [], 0, 0
            groups.append(number)
            rows += group.num_rows
            size += group_size
        if groups:
            splits.append(Split(file, tuple(groups), rows, size))
    return tuple(splits)


def known_tables(scans: Sequence[Scan], target_bytes: int) -> Statistics:
    """What planning may know of all tables of a query; of one that is read twice, the columns of both scans."""
    by_files: dict[tuple[ParquetFile, ...], Scan] = {}
    for scan in scans:
        before = by_files.get(scan.files, scan)
        columns = {
            name: column for s in (before, scan) for name, column in zip(s.names, s.columns, strict=True)
        }
        by_files[scan.files] = replace(scan, columns=tuple(columns.values()), names=tuple(columns))
    return Statistics(tuple(table_statistics(scan, target_bytes) for scan in by_files.values()))


def table_statistics(scan: Scan, target_bytes: int) -> TableStatistics:
    """What planning may know of a scan's table: splits, rows, and bounds of the needed columns."""
    rows = sum(footer(file).num_rows for file in scan.files)
    columns = tuple(_column_statistics(scan, name) for name in scan.names)
    return TableStatistics(scan.files, rows, columns, list_splits(scan, target_bytes))


def _column_statistics(scan: Scan, name: str) -> ColumnStatistics:
    lows: list[object] = []
    highs: list[object] = []
    nulls: int | None = 0
    size = 0
    bounded = True
    groups: list[GroupValues | None] = []
    for file in scan.files:
        metadata = footer(file)
        (position,) = _positions(metadata, (name,)) or (None,)
        if position is None:
            return ColumnStatistics(name)
        for number in range(metadata.num_row_groups):
            chunk = metadata.row_group(number).column(position)
            size += chunk.total_uncompressed_size
            bounds = chunk.statistics
            counted = bounds is not None and bounds.has_null_count
            nulls = nulls + bounds.null_count if counted and nulls is not None else None
            ends = bounds_of(chunk)
            groups.append(values_of_group(chunk, metadata.row_group(number).num_rows, ends))
            if ends is not None:
                lows.append(ends[0])
                highs.append(ends[1])
            elif not (counted and bounds.null_count == chunk.num_values):
                bounded = False
    if not bounded or not lows:
        return ColumnStatistics(name, nulls=nulls, encoded_bytes=size)
    known = [group for group in groups if group is not None]
    distinct = round(distinct_values(known)) if len(known) == len(groups) else None
    return ColumnStatistics(name, min(lows), max(highs), nulls, size, distinct)  # type: ignore[type-var]  # one type each


def bounds_of(chunk: pq.ColumnChunkMetaData) -> tuple[object, object] | None:
    """The least and the greatest value of a column in a row group; None if nobody says, or Python has no such value."""
    found = chunk.statistics
    if found is None or not found.has_min_max:
        return None
    try:
        return found.min, found.max
    except (OverflowError, ValueError):
        return None  # dates before the year 1 or after 9999, text that is not UTF-8


def _positions(metadata: pq.FileMetaData, names: tuple[str, ...]) -> list[int]:
    """Where flat columns stand in the footer."""
    by_name = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    return [by_name[name] for name in names if name in by_name]
