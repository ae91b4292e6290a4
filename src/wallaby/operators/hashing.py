"""The hash that determines the channel of a row: a fixed function of its keys, the same in every process.

Whole numbers, dates and times are hashed here: three nanoseconds per row, however few rows there are. DuckDB hashes all
other types, with -0.0 equal to 0.0 and all NaNs equal; its statement takes two milliseconds before the first row. The
types alone decide which of the two is used, and both sides of a join have the same types. NULL has a hash like any
other value. Another version of DuckDB may hash differently, but all workers of a query run the same version.
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
#: An odd number without a pattern: multiplying by it spreads every bit upwards, and shifting brings it down again.
_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)


def row_hashes(batch: pa.RecordBatch, keys: Sequence[int], session: DuckDbSession) -> Hashes:
    """A hash of every row, all of whose bits can be used. `keys` are positions of columns."""
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
    """Are values of this type whole numbers, so that equal values have equal bits?"""
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
    """The bits of the values in new memory, without the arbitrary bits under a NULL."""
    if not len(column):
        return np.empty(0, np.uint64)
    of = np.dtype(f"i{column.type.bit_width // 8}")
    values = np.frombuffer(column.buffers()[1], of)[column.offset : column.offset + len(column)]
    bits = values.astype(np.int64).view(np.uint64)
    if column.null_count:
        bits[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return bits
