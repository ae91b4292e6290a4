"""Prepare a table for planning: whether its files can be read here, its splits, and its statistics from footers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import pyarrow.parquet as pq

from wallaby.errors import CorruptFileError, SourceChangedError
from wallaby.plan.estimates.statistics import ColumnStatistics, Statistics, TableStatistics
from wallaby.plan.physical import Split
from wallaby.relations.formats import Format, Parquet
from wallaby.relations.relation import Constant, DataFile, Scan
from wallaby.relations.types import DataType
from wallaby.tables.distinct import GroupValues, distinct_values, values_of_group
from wallaby.tables.file_columns import column_reason, file_column, read_places
from wallaby.tables.file_schema import id_reason
from wallaby.tables.file_systems import is_local
from wallaby.tables.footer import bounds_of, footer
from wallaby.tables.formats import file_reason, pieces
from wallaby.tables.nested_columns import leaf_columns

#: Spark 2 and Hive wrote early dates in another calendar, and Spark 3.0 wrote INT96 timestamps in it.
_LEGACY_CALENDAR: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_WRITTEN_BY: Final = b"org.apache.spark.version"
_TODAYS_CALENDAR_SINCE: Final = b"3.1.0"
#: The assumed size of a row without columns, so that counting rows is divided into splits too.
_ROW_BYTES_WITHOUT_COLUMNS: Final = 1
#: With fewer rows a table is not divided for the sake of its readers: a task takes 5 to 8 ms of CPU time besides.
_SPLIT_ROWS_MIN: Final = 1 << 20
#: With more rows, a task needs so much memory at once that fresh pages take as long as its work.
_SPLIT_ROWS_MAX: Final = 1 << 22
#: Statistics are cached for this many columns and files: a large table has thousands of row groups, and sessions query
#: the same tables repeatedly. A changed file counts as another file.
_KEPT: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class FileReason:
    """A file that Wallaby cannot read, and why."""

    file: DataFile
    why: str


def scan_reason(scan: Scan) -> FileReason | None:
    """Why Wallaby cannot read the files of a scan as Spark does, for the first such file; None if it can."""
    found = ((file, _file_reason(scan, file)) for file in scan.files)
    return next((FileReason(file, why) for file, why in found if why is not None), None)


def _file_reason(scan: Scan, file: DataFile) -> str | None:
    try:
        if not isinstance(scan.format, Parquet):
            return file_reason(scan, file)
        metadata = footer(file)
    except CorruptFileError as error:
        return error.what  # Spark may be able to read it, or raises its own error
    except (SourceChangedError, OSError) as error:
        if is_local(file):
            raise
        # Spark may reach a storage in ways that we do not know.
        return (
            error.what if isinstance(error, SourceChangedError) else f"{file.path} cannot be reached: {error}"
        )
    if _has_legacy_calendar(metadata.metadata or {}):
        return f"{file.path} has dates or times in a legacy calendar"
    reasons = (
        column_reason(file, column, name) for column, name in zip(scan.columns, scan.names, strict=True)
    )
    renamed = next((name for name in scan.format.renamed if name in scan.names), None)
    if renamed is not None:
        return f"fields of the struct {renamed} have other names in {file.path} than in the table"
    ids = id_reason(file, scan.format, scan.names) if scan.format.ids else None
    return ids or next((why for why in reasons if why is not None), None)


def _has_legacy_calendar(said: Mapping[bytes, bytes]) -> bool:
    """Does a file's metadata imply a legacy calendar? For unknown writers, the session's settings decide."""
    older = said.get(_WRITTEN_BY, _TODAYS_CALENDAR_SINCE) < _TODAYS_CALENDAR_SINCE
    return older or any(key in said for key in _LEGACY_CALENDAR)


def list_splits(scan: Scan, target_bytes: int, readers: int = 1) -> tuple[Split, ...]:
    """Combine adjacent row groups of a file into splits of up to `target_bytes` of encoded, needed columns.

    So many channels read them at once. A table that is large enough for all of them has splits for all of them, and
    those of a file are about equally large: the last one would otherwise keep one thread busy while the others wait.
    """
    if not isinstance(scan.format, Parquet):
        return tuple(split for file in scan.files for split in _pieces(scan, file))
    files = [(file, tuple(sorted(read_places(scan, file)))) for file in scan.files]
    sizes = [sum(size for _, size in _row_groups(*file)) for file in files]
    rows = sum(footer(file).num_rows for file in scan.files)
    by_rows = -(-rows // _SPLIT_ROWS_MAX) if scan.columns else 0
    fewest = max(min(rows // _SPLIT_ROWS_MIN, readers), by_rows, -(-sum(sizes) // target_bytes), 1)
    count = -(-fewest // readers) * readers if fewest > readers else fewest
    share_bytes = min(target_bytes, -(-sum(sizes) // count))
    return tuple(
        split
        for (file, places), size in zip(files, sizes, strict=True)
        for split in _splits_of(file, places, max(-(-size // max(share_bytes, 1)), 1), target_bytes)
    )


@lru_cache(maxsize=_KEPT)
def _row_groups(file: DataFile, places: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The rows of each row group, and the encoded size of some columns."""
    metadata = footer(file)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    sizes = [sum(group.column(place).total_uncompressed_size for place in places) for group in groups]
    return tuple(
        (group.num_rows, size or group.num_rows * _ROW_BYTES_WITHOUT_COLUMNS)
        for group, size in zip(groups, sizes, strict=True)
    )


@lru_cache(maxsize=_KEPT)
def _splits_of(file: DataFile, places: tuple[int, ...], count: int, target_bytes: int) -> tuple[Split, ...]:
    """Cut a file at the row groups that are nearest to equal shares; more often if a split would be too large."""
    groups = _row_groups(file, places)
    total = sum(size for _, size in groups)
    ends: list[int] = []
    before = own = 0
    for number, (_, size) in enumerate(groups):
        share_ends = (2 * before + size) * count >= 2 * total * (len(ends) + 1)
        if own and (share_ends or own + size > target_bytes):
            ends.append(number)
            own = 0
        before += size
        own += size
    bounds = [0, *ends, len(groups)]
    return tuple(
        Split(file, tuple(range(begin, end)), *map(sum, zip(*groups[begin:end], strict=True)))
        for begin, end in itertools.pairwise(bounds)
        if begin < end
    )


def _pieces(scan: Scan, file: DataFile) -> list[Split]:
    found = pieces(scan, file)
    shares = max(1, found.count)
    return [
        Split(file, (number,), found.rows // shares, file.size_bytes // shares)
        for number in range(found.count)
    ]


def known_tables(scans: Sequence[Scan], target_bytes: int, readers: int = 1) -> Statistics:
    """The statistics of all tables of a query; for a table that is read twice, of the columns of both scans.

    See `list_splits`.
    """
    by_files: dict[tuple[tuple[DataFile, ...], Format], Scan] = {}
    for scan in scans:
        before = by_files.get((scan.files, scan.format), scan)
        columns = {
            name: column for s in (before, scan) for name, column in zip(s.names, s.columns, strict=True)
        }
        by_files[scan.files, scan.format] = replace(
            scan, columns=tuple(columns.values()), names=tuple(columns)
        )
    return Statistics(tuple(table_statistics(scan, target_bytes, readers) for scan in by_files.values()))


def table_statistics(scan: Scan, target_bytes: int, readers: int = 1) -> TableStatistics:
    """The statistics of a scan's table: splits, rows, and bounds of the needed columns."""
    if not isinstance(scan.format, Parquet):
        rows = sum(pieces(scan, file).rows for file in scan.files)
        return TableStatistics(scan.files, rows, (), list_splits(scan, target_bytes), scan.format)
    rows = sum(footer(file).num_rows for file in scan.files)
    splits = list_splits(scan, target_bytes, readers)
    return TableStatistics(scan.files, rows, _column_statistics(scan), splits, scan.format)


@dataclass(slots=True)
class _Sum:
    """The totals of a column so far. If a row group lacks the figure, `nulls` is None and `bounded` false."""

    ends: list[object] = field(default_factory=list)
    bounded: bool = True
    nulls: int | None = 0
    size_bytes: int = 0
    #: The values of each row group, if they can be estimated.
    groups: list[GroupValues | None] = field(default_factory=list)
    constants: set[object] = field(default_factory=set)

    def add_constant(self, value: object, rows: int) -> None:
        if value is not None:
            self.ends.append(value)
            self.constants.add(value)
        elif self.nulls is not None:
            self.nulls += rows

    def add_chunk(self, chunk: pq.ColumnChunkMetaData, rows: int) -> None:
        self.size_bytes += chunk.total_uncompressed_size
        known = chunk.statistics
        counted = known is not None and known.has_null_count
        self.nulls = self.nulls + known.null_count if counted and self.nulls is not None else None
        ends = bounds_of(chunk)
        self.groups.append(values_of_group(chunk, rows, ends))
        if ends is not None:
            self.ends += ends
        elif not (counted and known.null_count == chunk.num_values):
            self.bounded = False

    def statistics(self, name: str) -> ColumnStatistics:
        if not self.bounded or not self.ends:
            return ColumnStatistics(name, nulls=self.nulls, encoded_bytes=self.size_bytes)
        low, high = min(self.ends), max(self.ends)  # type: ignore[type-var]  # numbers, or one type
        return ColumnStatistics(name, low, high, self.nulls, self.size_bytes, self._distinct())

    def _distinct(self) -> int | None:
        known = [group for group in self.groups if group is not None]
        if len(known) < len(self.groups):
            return None
        return max(len(self.constants), round(distinct_values(known)) if known else 0)


def _column_statistics(scan: Scan) -> tuple[ColumnStatistics, ...]:
    return tuple(
        _statistics_of(scan.files, name, column.type)
        for name, column in zip(scan.names, scan.columns, strict=True)
    )


@lru_cache(maxsize=_KEPT)
def _statistics_of(files: tuple[DataFile, ...], name: str, type_: DataType) -> ColumnStatistics:
    found = _Sum()
    for file in files:
        metadata = footer(file)
        source = file_column(file, name)
        if isinstance(source, Constant):
            found.add_constant(source.value, metadata.num_rows)
            continue
        if type_.is_nested:
            found.bounded, found.nulls = False, None  # the footer describes only its parts
            continue
        for place in leaf_columns(metadata, source, type_):
            for number in range(metadata.num_row_groups):
                group = metadata.row_group(number)
                found.add_chunk(group.column(place), group.num_rows)
    return found.statistics(name)
