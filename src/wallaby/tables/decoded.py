"""Upper bounds of the decoded size of rows of a Parquet file, from the file's own metadata.

Dictionary-encoded text may be thousands of times as large as Arrow data, so its size in the file says nothing. A value
is at most as long as its dictionary; where that bound is too loose, at most as long as the dictionary's longest value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wallaby.errors import MemoryLimitError
from wallaby.relations.relation import DataFile
from wallaby.statements.connection import KernelSettings
from wallaby.tables.file_systems import is_local, local_path, open_remote
from wallaby.tables.footer import footer, reading
from wallaby.tables.pages import Page, dictionary_of, pages_of

_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}
_DECIMAL_BYTES: Final = 16
#: The overhead of a text besides its bytes: its offset and its validity bit.
_TEXT_BYTES: Final = 8
_INDEX_BYTES: Final = 4
_TEXT: Final = "BYTE_ARRAY"
_DICTIONARIES: Final = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_PREFIXES: Final = "DELTA_BYTE_ARRAY"
#: The assumed expansion of values that are stored without the prefix that they share with the value before.
_PREFIXED: Final = 64
#: Lists may differ in length: adjacent rows may have this many times the average number of values.
_UNEVEN: Final = 8
BATCH_ROWS_MAX: Final = 1 << 16
#: A page is decompressed as a whole: it may take this many times what a kernel may hold.
_PAGE_PARTS: Final = 2
#: The size of one read of a column.
PAGE_BUFFER_BYTES: Final = 1 << 16
#: The usual size of a page.
_PAGE_BYTES: Final = 1 << 20


@lru_cache(maxsize=1 << 12)
def undecoded_bytes_max(file: DataFile, groups: tuple[int, ...], places: tuple[int, ...]) -> float:
    """The most that columns of row groups take if dictionary-encoded text stays encoded."""
    metadata = footer(file)
    chunks = ((metadata.row_group(number).column(place), place) for number in groups for place in places)
    return sum(_undecoded_bytes(metadata, chunk, place) for chunk, place in chunks)


def _undecoded_bytes(metadata: pq.FileMetaData, chunk: pq.ColumnChunkMetaData, place: int) -> float:
    if chunk.physical_type != _TEXT:
        return float(chunk.num_values * _width(metadata, place))
    if _PREFIXES in chunk.encodings:
        return math.inf
    return float(chunk.num_values * _TEXT_BYTES + chunk.total_uncompressed_size)


@lru_cache(maxsize=1 << 12)
def decoded_bytes_max(
    file: DataFile, groups: tuple[int, ...], places: tuple[int, ...], enough_bytes: int
) -> float:
    """The most that columns of row groups take, decoded; if a cheap bound exceeds the limit, a closer one."""
    chunks = [(number, place) for number in groups for place in places]
    with reading(file), closing(_opened(file)) as source:
        sizes = {chunk: _column_bytes_max(file, source, *chunk, closely=False) for chunk in chunks}
        size = sum(sizes.values())
        # A closer bound takes time, so it is computed only for the largest columns, until the total fits.
        for chunk in sorted(chunks, key=lambda chunk: sizes[chunk], reverse=True):
            if size <= enough_bytes or sizes[chunk] == math.inf:
                break
            size += _column_bytes_max(file, source, *chunk, closely=True) - sizes[chunk]
    return size


def _column_bytes_max(
    file: DataFile, source: BinaryIO | pa.NativeFile, number: int, place: int, *, closely: bool
) -> float:
    metadata = footer(file)
    chunk = metadata.row_group(number).column(place)
    if chunk.physical_type != _TEXT:
        return float(chunk.num_values * _width(metadata, place))
    if _PREFIXES in chunk.encodings:
        return math.inf
    size = chunk.num_values * _TEXT_BYTES
    if not _DICTIONARIES & set(chunk.encodings):
        return float(size + chunk.total_uncompressed_size)
    dictionary = dictionary_of(source, chunk)
    if dictionary is None:
        return float(size + chunk.total_uncompressed_size)
    if not closely:
        return float(size + chunk.total_uncompressed_size + chunk.num_values * dictionary.size_bytes)
    longest = _longest(source, metadata, number, chunk.path_in_schema, dictionary)
    if not is_local(file):
        return float(size + chunk.total_uncompressed_size + chunk.num_values * longest)
    pages = (page for page in pages_of(source, chunk) if not page.is_dictionary)
    return float(size + sum(p.values * longest if p.has_indices else p.size_bytes for p in pages))


def _longest(
    source: BinaryIO | pa.NativeFile, metadata: pq.FileMetaData, number: int, path: str, dictionary: Page
) -> int:
    """The length of the longest value of a dictionary."""
    source.seek(0)
    file = pq.ParquetFile(
        source, metadata=metadata, read_dictionary=[path], buffer_size=1 << 16, pre_buffer=False
    )
    batch = next(file.iter_batches(1, [number], [path], use_threads=False), None)
    array = None if batch is None else batch.column(0)
    while array is not None and not pa.types.is_dictionary(array.type):
        if not pa.types.is_nested(array.type):
            return dictionary.size_bytes
        array = array.field(0) if pa.types.is_struct(array.type) else array.values
    if array is None or len(array.dictionary) < dictionary.values:
        return dictionary.size_bytes
    return pc.max(pc.binary_length(array.dictionary)).as_py() or 0


def _opened(file: DataFile) -> BinaryIO | pa.NativeFile:
    return local_path(file).open("rb", buffering=0) if is_local(file) else open_remote(file)


def _width(metadata: pq.FileMetaData, place: int) -> int:
    column = metadata.schema.column(place)
    if column.logical_type.type == "DECIMAL":
        return _DECIMAL_BYTES
    return _WIDTHS.get(column.physical_type, 0) or int(column.length)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How to decode a row group: the rows at a time, and the columns whose text stays dictionary-encoded.

    A page of every column is in memory at once. For too many columns that would be too much, so they are decoded in
    groups.
    """

    rows: int
    as_numbers: frozenset[int]
    groups: tuple[tuple[int, ...], ...]


def planned_decoding(
    file: DataFile, number: int, places: tuple[int, ...], limit_bytes: int, settings: KernelSettings
) -> Decoding:
    """Plan how to decode a row group so that the rows decoded at a time take at most about this size.

    Text that is entirely dictionary-encoded counts as numbers, unless columns are decoded in groups. Other text counts
    with the size of its densest page.
    """
    how = _planned(file, number, places, limit_bytes, settings, numbers=True)
    if len(how.groups) == 1 or settings.temp_directory is None:
        return replace(how, groups=(places,))
    return _planned(file, number, places, limit_bytes, settings, numbers=False)


def _planned(
    file: DataFile,
    number: int,
    places: tuple[int, ...],
    limit_bytes: int,
    settings: KernelSettings,
    *,
    numbers: bool,
) -> Decoding:
    metadata = footer(file)
    group = metadata.row_group(number)
    row_bytes = 1.0
    as_numbers: set[int] = set()
    held: dict[int, int] = {}
    with reading(file), closing(_opened(file)) as source:
        for place in places:
            chunk, column = group.column(place), metadata.schema.column(place)
            pages = list(_known_pages(file, source, chunk))
            held[place] = _largest(file, chunk, pages, settings) + PAGE_BUFFER_BYTES
            uneven = _UNEVEN if column.max_repetition_level else 1
            per_row = uneven * chunk.num_values / max(group.num_rows, 1)
            if chunk.physical_type != _TEXT:
                row_bytes += per_row * _width(metadata, place)
            elif (
                numbers and _is_flat(column) and all(page.is_dictionary or page.has_indices for page in pages)
            ):
                as_numbers.add(place)
                row_bytes += per_row * _INDEX_BYTES
            else:
                longest = (
                    _longest(source, metadata, number, chunk.path_in_schema, page)
                    if page.is_dictionary
                    else _density(page)
                    for page in pages
                )
                row_bytes += per_row * (max(longest, default=0) + _TEXT_BYTES)
    rows = min(max(int(limit_bytes / row_bytes), 1), BATCH_ROWS_MAX)
    return Decoding(rows, frozenset(as_numbers), _grouped(metadata, held, settings.memory_bytes))


def _grouped(
    metadata: pq.FileMetaData, held: dict[int, int], limit_bytes: int
) -> tuple[tuple[int, ...], ...]:
    """Group columns so that the pages of a group do not exceed a limit; the parts of one column stay together."""
    groups: list[list[int]] = []
    size, before = 0, ""
    for place, own in held.items():
        column = metadata.schema.column(place).path.partition(".")[0]
        if not groups or (size + own > limit_bytes and column != before):
            groups.append([])
            size = 0
        groups[-1].append(place)
        size, before = size + own, column
    return tuple(map(tuple, groups))


def _largest(
    file: DataFile, chunk: pq.ColumnChunkMetaData, pages: list[Page], settings: KernelSettings
) -> int:
    """The largest page, decompressed; a page is decompressed as a whole, so there must be room for it."""
    largest = max((page.size_bytes for page in pages), default=0)
    if largest > _PAGE_PARTS * settings.memory_bytes:
        raise MemoryLimitError(
            f"A page of {file.path} (column {chunk.path_in_schema}) has {largest >> 20} MiB, "
            "which must be decompressed in one piece.",
            fix="Raise spark.wallaby.memory, or write the file with smaller pages.",
            memory_bytes=settings.memory_bytes,
        )
    return largest


def _density(page: Page) -> float:
    """The average size of a page's values; for dictionary-encoded values it follows from the dictionary."""
    if page.has_indices:
        return 0.0
    return page.size_bytes / max(page.values, 1) * (_PREFIXED if page.has_prefixes else 1)


def _is_flat(column: pq.ColumnSchema) -> bool:
    """Is a column of a file a top-level column, not part of another?"""
    return not column.max_repetition_level and column.path == column.name


def _known_pages(
    file: DataFile, source: BinaryIO | pa.NativeFile, chunk: pq.ColumnChunkMetaData
) -> Iterator[Page]:
    """The pages of a column; for a remote file, one page with the totals of the footer."""
    if is_local(file):
        yield from pages_of(source, chunk)
        return
    dictionary = dictionary_of(source, chunk) if _DICTIONARIES & set(chunk.encodings) else None
    if dictionary is not None:
        yield dictionary
    size = chunk.total_uncompressed_size * _PAGE_BYTES // max(chunk.total_uncompressed_size, _PAGE_BYTES)
    share = size / max(chunk.total_uncompressed_size, 1)
    values = max(int(chunk.num_values * share), 1)
    yield Page(
        size, values, is_dictionary=False, has_indices=False, has_prefixes=_PREFIXES in chunk.encodings
    )
