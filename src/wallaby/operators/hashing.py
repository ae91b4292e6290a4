"""The hash that decides where a row goes: a fixed function of its keys, the same in every process.

Whole numbers, dates and times are mixed here: three nanoseconds a row, however few rows there are. For all other types
DuckDB hashes, which takes -0.0 for 0.0 and every NaN for one; a statement of it takes two milliseconds before the first
row. Which of the two it is follows from the types alone, and both sides of a join have the same. NULL has a hash like
any other value. Another version of DuckDB may hash otherwise; all workers of a query run the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wallaby.sql.words import identifier
from wallaby.statements.connection import DuckDbSession

Hashes = npt.NDArray[np.uint64]

_TABLE: Final = "batch"
#: An odd number without a pattern: multiplying by it carries every bit up, shifting brings it down again.
_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)


def row_hashes(batch: pa.RecordBatch, keys: Sequence[int], session: DuckDbSession) -> Hashes:
    """A hash of every row, of which all bits can be used. `keys` are positions of columns."""
    columns = [batch.column(position) for position in keys]
    if all(_is_whole(column.type) for column in columns):
        return _mixed(columns)
    names = [f"k{number}" for number in range(len(keys))]
    table = pa.table(columns, names=names)
    listed = ", ".join(identifier(name) for name in names)
    hashed = session.query(f"SELECT hash({listed}) AS h FROM {identifier(_TABLE)}", {_TABLE: table})  # noqa: S608 - names of our own
    hashes: Hashes = hashed.column(0).to_numpy()
    return hashes


def _is_whole(kind: pa.DataType) -> bool:
    """Are values of this type whole numbers, of which equal ones have equal bits?"""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _mixed(columns: Sequence[pa.Array]) -> Hashes:
    first, *others = columns
    hashes = _bits(first)
    _mix(hashes)
    for column in others:
        hashes ^= _bits(column)
        _mix(hashes)
    return hashes


def _mix(bits: Hashes) -> None:
    for _ in range(2):
        bits ^= bits >> _HALF
        bits *= _FACTOR
    bits ^= bits >> _HALF


def _bits(column: pa.Array) -> Hashes:
    """The values as bits of our own; what stands below a NULL is arbitrary, and is not taken."""
    if not len(column):
        return np.empty(0, np.uint64)
    of = np.dtype(f"i{column.type.bit_width // 8}")
    values = np.frombuffer(column.buffers()[1], of)[column.offset : column.offset + len(column)]
    bits = values.astype(np.int64).view(np.uint64)
    if column.null_count:
        bits[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return bits
