"""Let the reader drop rows that have no partner among the keys of a side input, before it decodes their other columns.

Polars decodes the columns of a filter first, and of the others only the rows that pass. If few rows have a partner,
most of a row group is never decoded, never becomes Arrow data and is never probed. The join itself still decides about
every row that is read, so a filter may let some others pass. Whether keys are few enough depends on the keys alone, so
a retrace reads the same rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from wallaby.operators.joins.index import INDEXED_KINDS, whole_numbers
from wallaby.operators.joins.key_set import KeySet, make_key_set
from wallaby.operators.shared import SharedInputs, SharedValue
from wallaby.relations.relation import Relation, Scan
from wallaby.sql.types import column_name
from wallaby.tables.key_bounds import KeyBounds
from wallaby.tables.reading import Reading, uses_split_once

#: Keys are few if at most one in this many between the least and the greatest is present. Where a table has only some
#: of the possible keys, as orders have, more of its rows may pass than that.
_FEW_PARTS: Final = 8
#: Sparse keys are hashed into this many bits: one MiB, which stays in the processor's cache.
_HASH_BITS: Final = 23
#: With more keys than one in this many bits, too many other rows would pass.
_HASHED_PARTS: Final = 16
#: A set of bits takes at most this fraction of a kernel's memory.
_MEMORY_PARTS: Final = 16
#: For fewer rows, it takes longer to make the set than to read them.
_ROWS_MIN: Final = 1 << 16

Sides = Mapping[int, Sequence[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class HashedKeys:
    """Keys that are too sparse for a set of bits: a bit for each hash. A few other keys are taken for present."""

    bits: npt.NDArray[np.uint8]

    def contains(
        self, keys: npt.NDArray[np.int64], present: npt.NDArray[np.bool_] | None
    ) -> npt.NDArray[np.bool_]:
        """May each key be present? NULL is not."""
        at = _hashes(keys)
        found = (self.bits[at >> 3] >> (at & 7).astype(np.uint8)) & np.uint8(1)
        hit: npt.NDArray[np.bool_] = found.view(np.bool_)
        return hit if present is None else hit & present


def _hashes(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The upper bits of the product with 2^64 divided by the golden ratio."""
    mixed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(64 - _HASH_BITS)).view(np.int64)


class KeyFilter:
    """Adds the keys of side inputs to the plan for reading a scan's splits.

    The sets of keys are made once per stage. A tree that uses the split more than once gets all rows.
    """

    def __init__(
        self, scan: Scan, tree: Relation, bounds: KeyBounds, shared: SharedInputs, memory_bytes: int
    ) -> None:
        """`memory_bytes` is the limit of a kernel; a set takes a small part of it."""
        names = {column.id: name for column, name in zip(scan.columns, scan.names, strict=True)}
        self._shared = shared
        self._limit_bytes = memory_bytes // _MEMORY_PARTS
        self._keys = [
            (names[column.id], number, column_name(key.id))
            for column, number, key in (bounds.pairs if uses_split_once(tree) else ())
            if column.type.kind in INDEXED_KINDS and key.type.kind in INDEXED_KINDS
        ]
        self._kept: dict[Hashable, SharedValue[object]] = {}

    def reading(self, reading: Reading, rows: int, sides: Sides) -> Reading:
        """The plan for a split of this many rows, with filters by the sides whose keys are few."""
        if rows < _ROWS_MIN:
            return reading
        for name, number, key in self._keys:
            keys = self._key_set(number, key, sides[number]) if number in sides else None
            if keys is not None:
                kept = _is_in(name, keys)
                reading = replace(
                    reading,
                    keep=kept if reading.keep is None else reading.keep & kept,
                    kept_by=tuple(dict.fromkeys((*reading.kept_by, name))),
                )
        return reading

    def forget(self) -> None:
        """Drop the sets; they are made again when needed."""
        self._kept.clear()

    def _key_set(
        self, number: int, key: str, batches: Sequence[pa.RecordBatch]
    ) -> KeySet | HashedKeys | None:
        inputs, name = tuple(batches), ("keys", number, key)
        kept = self._kept.get(name)
        if kept is None or not kept.is_of(inputs):
            kept = self._kept[name] = self._shared.of(name, inputs)
        return cast("SharedValue[KeySet | HashedKeys | None]", kept).get(
            lambda: _keys_of(key, inputs, self._limit_bytes)
        )


def _keys_of(name: str, batches: Sequence[pa.RecordBatch], limit_bytes: int) -> KeySet | HashedKeys | None:
    pairs = [whole_numbers(batch.column(name)) for batch in batches]
    values = [keys if present is None else keys[present] for keys, present in pairs]
    keys = np.concatenate(values) if values else np.zeros(0, np.int64)
    width = int(keys.max()) - int(keys.min()) + 1 if len(keys) else 0
    if width <= limit_bytes * 8 and (known := make_key_set(keys)) is not None:
        return known if known.count() * _FEW_PARTS <= width else None
    if len(keys) * _HASHED_PARTS > 1 << _HASH_BITS or len(keys) * _FEW_PARTS > width:
        return None
    there = np.zeros(1 << _HASH_BITS, np.bool_)
    there[_hashes(keys)] = True
    return HashedKeys(np.packbits(there, bitorder="little"))


def _is_in(name: str, keys: KeySet | HashedKeys) -> pl.Expr:
    """Is the value of a column in a set? Polars asks for some rows at a time, on its own threads."""

    def found(values: pl.Series) -> pl.Series:
        numbers, present = whole_numbers(values.to_physical().to_arrow())
        return pl.Series(values.name, keys.contains(numbers, present))

    column = pl.selectors.by_name(name).as_expr()
    return column.map_batches(found, return_dtype=pl.Boolean, is_elementwise=True)
