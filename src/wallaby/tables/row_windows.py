"""Read the rows of a split window by window, each about a portion when decoded.

Most splits are small and are read at once by the fastest reader, as one window. In larger splits, as many row groups as
are small enough together are read that way. A row group that is too large by itself, or whose dictionary-encoded texts
are much larger when decoded, is decoded by Arrow, page by page. Texts stay encoded until it is known which rows make a
window, so a window is never much larger than it should be. Rows are numbered by their position in the split; a window
begins with the number of its first row, whether a filter drops that row or not. Windows depend only on the file, the
query and the settings, so a reader that continues at some row finds the same windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.plan.physical import Split
from wallaby.relations.expression import Expression
from wallaby.relations.relation import Scan
from wallaby.sql.types import arrow_schema
from wallaby.statements.connection import OVER_PORTIONS, KernelSettings
from wallaby.tables.cutting import cut, on_disk, side_by_side
from wallaby.tables.decoded import PAGE_BUFFER_BYTES, Decoding, planned_decoding, undecoded_bytes_max
from wallaby.tables.file_columns import read_places
from wallaby.tables.file_schema import INT96_UNIT
from wallaby.tables.file_systems import is_local, local_path, open_remote
from wallaby.tables.footer import check_unchanged, footer, reading
from wallaby.tables.formats.content import Room
from wallaby.tables.reading import Reading
from wallaby.tables.scan import (
    LargeSplitError,
    groups_to_read,
    kept_rows,
    named_columns,
    piece_parts,
    read_split,
)
from wallaby.tables.text_checks import require_text

#: The size of one read of a column of a remote file.
_BUFFER_BYTES_REMOTE: Final = 4 << 20
#: A window of several row groups takes this fraction of what may be read at once, because the next is read soon.
_WINDOW_PARTS: Final = 4
#: The fraction of a window that is decoded at a time.
_BATCH_PARTS: Final = 4


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The rows from `begin` to `end` that a filter has kept; the last window of a split has no end."""

    begin: int
    end: int | None
    rows: Sequence[pa.RecordBatch]


def is_read_in_windows(
    scan: Scan, split: Split, conditions: Sequence[Expression], wanted: Reading, settings: KernelSettings
) -> bool:
    """Is a split too large to be read at once, whatever its texts? Depends on the file's metadata and the settings.

    Dictionary-encoded texts may still be too large: the reader finds that out, and raises `LargeSplitError`.
    """
    file, needed = split.file, _needed(scan, wanted)
    places = tuple(read_places(needed, file))
    groups = tuple(groups_to_read(scan, split, conditions)) if places else ()
    if not groups:
        return False
    return undecoded_bytes_max(file, groups, places) > whole_bytes_max(settings)


def whole_bytes_max(settings: KernelSettings) -> int:
    """The largest size of a split that is read at once."""
    return settings.read_bytes or OVER_PORTIONS * settings.portion_bytes


def windows(
    scan: Scan,
    split: Split,
    conditions: Sequence[Expression],
    more: Sequence[Expression],
    wanted: Reading,
    settings: KernelSettings,
    row: int = 0,
) -> Iterator[RowWindow]:
    """Yield the windows of a split, starting with the one that contains a row.

    Row groups that may be read at once make a window together. The windows do not depend on the further conditions,
    which come from other inputs, perhaps between two windows: these only drop whole windows.
    """
    check_unchanged(split.file)
    metadata = footer(split.file)
    needed = _needed(scan, wanted)
    kept = groups_to_read(scan, split, conditions)
    chosen = set(groups_to_read(scan, split, (*conditions, *more)))
    runs = [run for run in _runs(needed, split, kept, settings) if not chosen.isdisjoint(run.groups)]
    counts = [metadata.row_group(number).num_rows for number in split.pieces]
    begins = list(accumulate(counts, initial=0))
    whole = False
    begin = 0
    for run in runs:
        begin, end = begins[run.first], begins[run.first + len(run.groups)]
        last = run is runs[-1]
        if row >= end:
            begin = end
            continue
        if run.fits and (read := _read_at_once(scan, split, run, wanted, settings)) is not None:
            whole = last
            yield RowWindow(begin, None if last else end, read)
            begin = end
            continue
        for number in run.groups:
            left = metadata.row_group(number).num_rows
            if row >= begin + left:
                begin += left
                continue
            for table in _decoded(needed, split, metadata, number, settings):
                end = begin + table.num_rows
                left -= table.num_rows
                if row < end:
                    # A file that was replaced while it was read must not be half old and half new.
                    check_unchanged(split.file)
                    require_text([table], split.file)
                    made = _finished(table, needed, wanted, split)
                    whole = last and number == run.groups[-1] and not left
                    yield RowWindow(begin, None if whole else end, made)
                begin = end
    if not whole:  # no row group remains to be read from that row on
        yield RowWindow(begin, None, ())


def piece_windows(
    scan: Scan,
    split: Split,
    conditions: Sequence[Expression],
    wanted: Reading,
    settings: KernelSettings,
    row: int = 0,
) -> Iterator[RowWindow]:
    """Yield the windows of a split in another format, starting with the one that contains a row."""
    room = Room(
        whole_bytes_max(settings), settings.portion_bytes, settings.memory_bytes, settings.temp_directory
    )
    begin, last = 0, False
    for part in piece_parts(scan, split, conditions, wanted, room):
        end, last = begin + part.count, part.last
        if row < end or last:
            yield RowWindow(begin, None if last else end, part.rows.to_batches())
        begin = end
    if not last:
        yield RowWindow(begin, None, ())


def _read_at_once(
    scan: Scan, split: Split, run: _Run, wanted: Reading, settings: KernelSettings
) -> list[pa.RecordBatch] | None:
    """Read row groups with the fastest reader; None if their texts turn out to be too large for that."""
    piece = replace(split, pieces=run.groups)
    with suppress(LargeSplitError):
        return list(read_split(scan, piece, (), wanted, whole_bytes_max(settings)).to_batches())
    return None


@dataclass(frozen=True, slots=True)
class _Run:
    """Adjacent row groups of a split, the position of the first, and whether they may be read at once."""

    first: int
    groups: tuple[int, ...]
    fits: bool


def _runs(needed: Scan, split: Split, kept: Sequence[int], settings: KernelSettings) -> list[_Run]:
    """The row groups to read, combined with their neighbours as far as they may be read at once."""
    limit, chosen = whole_bytes_max(settings) // _WINDOW_PARTS, set(kept)
    places = tuple(read_places(needed, split.file))
    runs: list[_Run] = []
    size = 0.0
    for at, number in enumerate(split.pieces):
        if number not in chosen:
            continue
        own = undecoded_bytes_max(split.file, (number,), places) if places else 0.0
        before = runs[-1] if runs else None
        if before is not None and before.first + len(before.groups) == at and size + own <= limit:
            runs[-1] = replace(before, groups=(*before.groups, number))
            size += own
        else:
            runs.append(_Run(at, (number,), own <= limit))
            size = own
    return runs


def _needed(scan: Scan, wanted: Reading) -> Scan:
    """The columns to read: those that are wanted, and those of the filter."""
    columns = dict(zip(scan.names, scan.columns, strict=True))
    needed = dict.fromkeys((*wanted.scan.names, *wanted.kept_by))
    return replace(scan, columns=tuple(columns[name] for name in needed), names=tuple(needed))


def _finished(table: pa.Table, needed: Scan, wanted: Reading, split: Split) -> list[pa.RecordBatch]:
    """Filter rows, and give them the names and types of the table."""
    rows = named_columns(table, table.num_rows, needed, split.file).rename_columns(list(needed.names))
    if wanted.keep is not None:
        rows = rows.filter(kept_rows(rows, wanted))
    schema = arrow_schema(wanted.scan.columns)
    if not wanted.scan.columns:
        return list(pa.table([pa.nulls(rows.num_rows, pa.int8())], schema=schema).to_batches())
    chosen = pa.table([rows.column(name) for name in wanted.scan.names], names=schema.names)
    return [batch for batch in chosen.cast(schema).combine_chunks().to_batches() if batch.num_rows]


def _decoded(
    needed: Scan, split: Split, metadata: pq.FileMetaData, number: int, settings: KernelSettings
) -> Iterator[pa.Table]:
    """The rows of a row group in tables of about a portion."""
    file = split.file
    places = tuple(read_places(needed, file))
    limit = settings.portion_bytes
    how = planned_decoding(file, number, places, limit // _BATCH_PARTS, settings)
    if len(how.groups) == 1:
        yield from cut(_batches(split, metadata, number, how, places), limit)
        return
    assert settings.temp_directory is not None, (
        "columns are decoded in groups only where there is room on disk"
    )
    parts = [
        on_disk(_batches(split, metadata, number, how, group), settings.temp_directory)
        for group in how.groups
    ]
    for table in cut(side_by_side(parts), limit):
        yield table
        for part in parts:
            part.release()


def _batches(
    split: Split, metadata: pq.FileMetaData, number: int, how: Decoding, places: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Some columns of a row group, batch by batch."""
    file = split.file
    paths = {place: metadata.schema.column(place).path for place in places}
    with (
        reading(file),
        closing(local_path(file).open("rb") if is_local(file) else open_remote(file)) as opened,
    ):
        source = pq.ParquetFile(
            opened,
            metadata=metadata,
            read_dictionary=[paths[place] for place in places if place in how.as_numbers],
            buffer_size=PAGE_BUFFER_BYTES if is_local(file) else _BUFFER_BYTES_REMOTE,
            pre_buffer=False,
            coerce_int96_timestamp_unit=INT96_UNIT,
        )
        yield from source.iter_batches(how.rows, [number], list(paths.values()), use_threads=False)
