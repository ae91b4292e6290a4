"""Read a split: the needed columns of some row groups of one file, as Arrow data, named by column ids.

Columns with one value in the whole file, such as partition columns, are generated instead of read. `formats` reads
formats other than Parquet.

Polars decodes: 63 million rows a second of seven columns of lineitem with two threads, against 35 for Arrow and
26 for DuckDB, with the same values, decimals and dates included. There is one chunk for each row group that is
read, or one for all rows if they were filtered, whatever Polars' threads do, since batch boundaries are part of what
later steps see. Arrow decodes nested columns, of whose structs it reads only the needed fields; INT96 timestamps, which
Polars reads in nanoseconds; and remote files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.batches.sizes import value_bytes
from wallaby.errors import CorruptFileError
from wallaby.plan.physical import Split
from wallaby.relations.expression import Expression, Literal
from wallaby.relations.formats import Parquet
from wallaby.relations.relation import Constant, DataFile, Input, Scan
from wallaby.sql.types import arrow_schema
from wallaby.tables.decoded import decoded_bytes_max
from wallaby.tables.file_columns import file_column, is_as_in_the_table, read_names, read_paths, read_places
from wallaby.tables.file_schema import INT96_UNIT, has_int96
from wallaby.tables.file_systems import is_local, local_path, open_remote
from wallaby.tables.footer import check_unchanged, first_rows_of_groups, footer, reading
from wallaby.tables.formats import read_piece
from wallaby.tables.formats.content import Room
from wallaby.tables.nested_columns import conformed
from wallaby.tables.pruning import constants_match, groups_that_match, simple_conditions
from wallaby.tables.reading import Reading
from wallaby.tables.text_checks import no_text, require_text

#: Up to this many rows, a read is mostly overhead.
_FEW_ROWS: Final = 1 << 12
_NO_COLUMNS: Final = pa.table({})


#: No limits: for callers that read all rows of a split at once.
_UNBOUNDED: Final = Room(1 << 62, 1 << 62, 1 << 62, None)


@dataclass(frozen=True, slots=True)
class PiecePart:
    """Rows of a split that a filter has kept, their number before the filter, and whether they are the last."""

    rows: pa.Table
    count: int
    last: bool


class LargeSplitError(Exception):
    """The decoded rows of a split are too large to be read at once."""


def read_split(
    scan: Scan,
    split: Split,
    conditions: Sequence[Expression] = (),
    wanted: Reading | None = None,
    limit_bytes: int | None = None,
) -> pa.Table:
    """Read the rows of a split that may meet the conditions, and perhaps others; never fewer.

    With `wanted`, return its columns and exactly the rows that pass its filter.

    Raises:
        LargeSplitError: The texts of all these rows exceed the limit when decoded; this depends on their values alone.
    """
    check_unchanged(split.file)
    if wanted is None:
        wanted = _everything(scan)
    if not isinstance(scan.format, Parquet):
        return _read_pieces(scan, split, conditions, wanted)
    schema = arrow_schema(wanted.scan.columns)
    groups = groups_to_read(scan, split, conditions)
    if not groups:
        return schema.empty_table()
    metadata = footer(split.file)
    if not wanted.scan.columns:
        firsts = first_rows_of_groups(split.file)
        rows = sum(firsts[number + 1] - firsts[number] for number in groups)
        return pa.table([pa.nulls(rows, pa.int8())], schema=schema)
    read = _read if _filters_in_the_file(scan, split.file, wanted) else _read_then_filter
    parts: list[pa.Table] = []
    left_bytes = limit_bytes
    for run in _runs(groups):
        found = read(scan, wanted, split, metadata, run, left_bytes)
        if left_bytes is not None:
            left_bytes = max(left_bytes - sum(value_bytes(part.to_batches()) for part in found), 0)
        parts += found
    # A file that was replaced while it was read must not be half old and half new.
    check_unchanged(split.file)
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _read_pieces(scan: Scan, split: Split, conditions: Sequence[Expression], wanted: Reading) -> pa.Table:
    """Read all rows of a split in another format, however many."""
    parts = [part.rows for part in piece_parts(scan, split, conditions, wanted, _UNBOUNDED)]
    return pa.concat_tables(parts) if parts else arrow_schema(wanted.scan.columns).empty_table()


def piece_parts(
    scan: Scan, split: Split, conditions: Sequence[Expression], wanted: Reading, room: Room
) -> Iterator[PiecePart]:
    """Read a split of a format without statistics, part by part; only its constants can exclude it."""
    schema = arrow_schema(wanted.scan.columns)
    check_unchanged(split.file)
    if _excluded(scan, split, conditions):
        return
    needed = dict.fromkeys((*wanted.scan.names, *wanted.kept_by))
    columns = dict(zip(scan.names, scan.columns, strict=True))
    narrow = replace(scan, columns=tuple(columns[name] for name in needed), names=tuple(needed))
    for number in split.pieces:
        for part in read_piece(narrow, split.file, number, room):
            with reading(split.file):
                require_text([part.rows], split.file)
            # A file that was replaced while it was read must not be half old and half new.
            check_unchanged(split.file)
            count, table = part.rows.num_rows, part.rows
            last = part.last and number == split.pieces[-1]
            if not needed:
                yield PiecePart(pa.table([pa.nulls(count, pa.int8())], schema=schema), count, last)
                continue
            table = table.rename_columns(list(needed))
            if wanted.keep is not None:
                table = table.filter(kept_rows(table, wanted)).combine_chunks()
            chosen = pa.table([table.column(name) for name in wanted.scan.names], schema=schema)
            yield PiecePart(chosen, count, last)


def _excluded(scan: Scan, split: Split, conditions: Sequence[Expression]) -> bool:
    none = any(isinstance(condition, Literal) and condition.value is False for condition in conditions)
    return none or not constants_match(split.file, simple_conditions(scan, conditions))


def groups_to_read(scan: Scan, split: Split, conditions: Sequence[Expression]) -> list[int]:
    """The row groups of a split that may contain rows that meet the conditions."""
    if _excluded(scan, split, conditions):
        return []
    return groups_that_match(split.file, split.pieces, simple_conditions(scan, conditions))


def _everything(scan: Scan) -> Reading:
    return Reading(scan, None, (), Input(0, scan.columns))


def _filters_in_the_file(scan: Scan, file: DataFile, wanted: Reading) -> bool:
    """Does the file have the filter's columns in the form that the filter expects?"""
    columns = dict(zip(scan.names, scan.columns, strict=True))
    return all(is_as_in_the_table(file, columns[name], name) for name in wanted.kept_by)


def _runs(groups: Sequence[int]) -> list[list[int]]:
    """Combine consecutive row groups, which are read at once."""
    runs: list[list[int]] = []
    for number in groups:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _read_then_filter(
    whole: Scan,
    wanted: Reading,
    split: Split,
    metadata: pq.FileMetaData,
    run: Sequence[int],
    limit_bytes: int | None,
) -> list[pa.Table]:
    """Read rows, then filter them by the table's names and types, which differ from the file's."""
    needed = dict.fromkeys((*wanted.scan.names, *wanted.kept_by))
    columns = dict(zip(whole.names, whole.columns, strict=True))
    scan = replace(whole, columns=tuple(columns[name] for name in needed), names=tuple(needed))
    table = pa.concat_tables(_read(whole, _everything(scan), split, metadata, run, limit_bytes))
    table = table.rename_columns(list(needed))
    kept = table.filter(kept_rows(table, wanted)).combine_chunks()
    schema = arrow_schema(wanted.scan.columns)
    return [pa.table([kept.column(name) for name in wanted.scan.names], names=schema.names).cast(schema)]


def kept_rows(table: pa.Table, wanted: Reading) -> pa.Array:
    """A mask of the rows that the filter keeps."""
    assert wanted.keep is not None
    frame = cast("pl.DataFrame", pl.from_arrow(table.select(list(wanted.kept_by))))
    return frame.select(wanted.keep).to_series().to_arrow()


def _read(
    _whole: Scan,
    wanted: Reading,
    split: Split,
    metadata: pq.FileMetaData,
    run: Sequence[int],
    limit_bytes: int | None,
) -> list[pa.Table]:
    scan, file = wanted.scan, split.file
    firsts = first_rows_of_groups(file)
    lengths = [firsts[number + 1] - firsts[number] for number in run]
    names = read_names(scan, file) or list(wanted.kept_by[:1])
    if not names:
        return [named_columns(_NO_COLUMNS, length, scan, file) for length in lengths]
    if sum(lengths) <= _FEW_ROWS or only_arrow(scan, file):
        _check_footer(wanted, file, run, limit_bytes)
        return _read_by_arrow(wanted, split, metadata, run)
    source = pl.scan_parquet(local_path(file), glob=False, hive_partitioning=False)
    source = source.slice(firsts[run[0]], sum(lengths))
    if wanted.keep is not None:
        # Before selecting columns, because a filter may need others.
        frame = _collected(source.filter(wanted.keep).select(_chosen(names)), split)
        _check_size(frame, limit_bytes)
        return [named_columns(frame.rechunk().to_arrow(), frame.height, scan, file)]
    frame = _collected(source.select(_chosen(names)), split)
    if frame.height != sum(lengths):
        raise CorruptFileError(f"{file.path} has fewer rows than its footer says.", path=file.path)
    _check_size(frame, limit_bytes)
    table = frame.to_arrow()
    if all([len(chunk) for chunk in column.chunks] == lengths for column in table.columns):
        batches = table.to_batches()
        return [
            named_columns(pa.Table.from_batches([batch]), batch.num_rows, scan, file) for batch in batches
        ]
    ends = list(itertools.accumulate(lengths))
    return [
        named_columns(frame.slice(end - length, length).rechunk().to_arrow(), length, scan, file)
        for end, length in zip(ends, lengths, strict=True)
    ]


def only_arrow(scan: Scan, file: DataFile) -> bool:
    """Must Arrow read the file, because Polars cannot read the wanted columns?"""
    nested = any(column.type.is_nested for column in scan.columns)
    return nested or not is_local(file) or has_int96(file, read_places(scan, file))


def _check_footer(wanted: Reading, file: DataFile, run: Sequence[int], limit_bytes: int | None) -> None:
    """Check the size before reading with Arrow, which copies each text."""
    if limit_bytes is None:
        return
    schema = footer(file).schema
    beside = [place for place in range(len(schema)) if schema.column(place).path in wanted.kept_by]
    places = tuple(dict.fromkeys((*read_places(wanted.scan, file), *beside)))
    if decoded_bytes_max(file, tuple(run), places, limit_bytes) > limit_bytes:
        raise LargeSplitError


def _check_size(frame: pl.DataFrame, limit_bytes: int | None) -> None:
    """Check the size of texts, which still share a dictionary here, but which Arrow data would copy."""
    texts = [column for column in frame if column.dtype == pl.String]
    binary = [column for column in frame if column.dtype == pl.Binary]
    size = sum(int(column.str.len_bytes().sum()) for column in texts)
    size += sum(int(column.bin.size().sum()) for column in binary)
    if limit_bytes is not None and size > limit_bytes:
        raise LargeSplitError


def _chosen(names: Sequence[str]) -> pl.Expr:
    return pl.selectors.by_name(*names).as_expr()


def _collected(frame: pl.LazyFrame, split: Split) -> pl.DataFrame:
    with reading(split.file):
        try:
            return frame.collect()
        except pl.exceptions.ComputeError as error:
            if "UTF-8" not in str(error):
                raise
            raise no_text(split.file) from error


def _read_by_arrow(
    wanted: Reading, split: Split, metadata: pq.FileMetaData, run: Sequence[int]
) -> list[pa.Table]:
    """Read with Arrow on this thread. Polars reads the footer each time and uses threads that may be busy."""
    scan, file = wanted.scan, split.file
    names = list(dict.fromkeys((*read_paths(scan, file), *wanted.kept_by)))
    with reading(split.file):
        if is_local(file):
            tables = _read_groups(local_path(file), metadata, run, names, ahead=False)
        else:
            with closing(open_remote(file)) as opened:
                tables = _read_groups(opened, metadata, run, names, ahead=True)
        require_text(tables, file)
    if wanted.keep is not None:
        # Filtered in the scan's types, because Arrow cannot filter string views, as which a file's text may be read.
        table = pa.concat_tables(tables).combine_chunks()
        kept = named_columns(table, table.num_rows, scan, file).filter(kept_rows(table, wanted))
        return [kept.combine_chunks()]
    return [named_columns(table.combine_chunks(), table.num_rows, scan, file) for table in tables]


def _read_groups(
    file: Path | pa.NativeFile,
    metadata: pq.FileMetaData,
    run: Sequence[int],
    names: list[str],
    *,
    ahead: bool,
) -> list[pa.Table]:
    """Read row groups, one table each. Remote data is prefetched, adjacent columns together."""
    source = pq.ParquetFile(file, metadata=metadata, pre_buffer=ahead, coerce_int96_timestamp_unit=INT96_UNIT)
    try:
        return [source.read_row_group(number, columns=names, use_threads=False) for number in run]
    finally:
        source.close()


def named_columns(table: pa.Table, rows: int, scan: Scan, file: DataFile) -> pa.Table:
    """Arrange columns in the scan's order, types and names, and add the columns that are constant in the file."""
    schema = arrow_schema(scan.columns)
    columns: list[pa.ChunkedArray | pa.Array] = []
    for name, wanted, field in zip(scan.names, scan.columns, schema, strict=True):
        source = file_column(file, name)
        if isinstance(source, Constant):
            columns.append(pa.repeat(pa.scalar(source.value, field.type), rows))
        elif wanted.type.is_nested:
            chunks = [conformed(chunk, wanted.type) for chunk in table.column(source).chunks]
            columns.append(pa.chunked_array(chunks, field.type))
        else:
            column = table.column(source)
            columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema)
