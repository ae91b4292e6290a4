"""Compute the sizes of rows from their values alone.

`nbytes` depends on how an array is stored: a slice, a copy and the same rows read back from a file differ in padding
and bitmaps. Decisions that shape outputs (how many parts, which rows go out together) must be the same in a retrace, so
they use these sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: The assumed size of a value of unknown length.
_TEXT_BYTES = 32
#: The assumed number of values in a list.
_LIST_VALUES = 8
_VECTOR_ROWS = 2048
BATCH_ROWS_MAX = 1 << 20
#: Batches that are smaller than the first size on average are merged, up to the second size.
_SMALL_ROWS = 1 << 14
_MERGED_ROWS = 1 << 17


def value_bytes(batches: Iterable[pa.RecordBatch]) -> int:
    """The size of the values of some batches."""
    return sum(_column_bytes(column) for batch in batches for column in batch.columns)


def _column_bytes(array: pa.Array) -> int:
    kind, length = array.type, len(array)
    if not length or pa.types.is_null(kind):
        return 0
    if pa.types.is_struct(kind):
        return sum(map(_column_bytes, array.flatten()))
    if pa.types.is_nested(kind):
        return 4 * length + _column_bytes(array.flatten())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return 4 * length + _text_bytes(array, np.dtype(np.int32))
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return 8 * length + _text_bytes(array, np.dtype(np.int64))
    return -(-int(kind.bit_width) * length // 8)


def _text_bytes(array: pa.Array, width: np.dtype[np.int32] | np.dtype[np.int64]) -> int:
    offsets = np.frombuffer(array.buffers()[1], dtype=width)
    return int(offsets[array.offset + len(array)]) - int(offsets[array.offset])


def rows_within(schema: pa.Schema, size_bytes: int, unknown_bytes: int = 0) -> int:
    """The number of rows of a schema that have about this size: whole DuckDB vectors, at least one.

    Values of unknown size count with the given size, if it is larger than the default assumption.
    """
    width: int = sum(max(_width_bytes(f.type), unknown_bytes if is_varying(f.type) else 0) for f in schema)
    return min(max(size_bytes // max(width, 1) // _VECTOR_ROWS, 1) * _VECTOR_ROWS, BATCH_ROWS_MAX)


def is_varying(kind: pa.DataType) -> bool:
    """Do values of a type differ in size?"""
    return bool(
        pa.types.is_nested(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )


def varying_bytes(table: pa.Table) -> int:
    """The average size of a value in the largest column of varying size."""
    columns = (column for column in table.columns if is_varying(column.type))
    sizes = [sum(_column_bytes(chunk) for chunk in column.chunks) for column in columns]
    rows = max(int(table.num_rows), 1)
    return -(-max(sizes, default=0) // rows)


def _width_bytes(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(_width_bytes(field.type) for field in kind)
    if pa.types.is_nested(kind):
        return _LIST_VALUES * _width_bytes(kind.value_type)
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:
        return _TEXT_BYTES


def sizes_of_values(array: pa.Array) -> npt.NDArray[np.int64]:
    """The size of every value of an array of varying size, including its offset."""
    kind = array.type
    if pa.types.is_struct(kind):
        return sum((sizes_of_values(part) for part in array.flatten()), np.zeros(len(array), np.int64))
    if not is_varying(kind):
        return np.full(len(array), 0 if pa.types.is_null(kind) else -(-int(kind.bit_width) // 8), np.int64)
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_list(kind)
    width = np.dtype(np.int64) if wide else np.dtype(np.int32)
    ends = np.frombuffer(array.buffers()[1], width)[array.offset : array.offset + len(array) + 1]
    ends = ends.astype(np.int64, copy=False)
    if not pa.types.is_nested(kind):
        return np.diff(ends) + width.itemsize
    inside = np.concatenate(([0], np.cumsum(sizes_of_values(array.values))))
    return np.asarray(np.diff(inside[ends])) + width.itemsize


def grouped(batches: Iterable[pa.RecordBatch], size_bytes: int) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Group adjacent batches up to about this size, at least one batch in each group."""
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        own = value_bytes((batch,))
        if group and size + own > size_bytes:
            yield tuple(group)
            group, size = [], 0
        group.append(batch)
        size += own
    if group:
        yield tuple(group)


def gathered(batches: Iterable[pa.RecordBatch], size_bytes: int) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Group a stream of batches in the same way; yields at least one tuple, which may be empty."""
    some = False
    for group in grouped(batches, size_bytes):
        some = True
        yield group
    if not some:
        yield ()


def merged(batches: Sequence[pa.RecordBatch]) -> tuple[pa.RecordBatch, ...]:
    """Merge small adjacent batches, because each batch costs time wherever it is handled."""
    if len(batches) < 2 or sum(batch.num_rows for batch in batches) >= _SMALL_ROWS * len(batches):
        return tuple(batches)
    found: list[pa.RecordBatch] = []
    group: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if group and rows + batch.num_rows > _MERGED_ROWS:
            found.append(pa.concat_batches(group))
            group, rows = [], 0
        group.append(batch)
        rows += batch.num_rows
    return (*found, pa.concat_batches(group))
