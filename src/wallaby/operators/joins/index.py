"""A join's build side, indexed by one whole-number key and probed by every batch; further keys are compared afterwards.

Each present key has a *place*, its number in the order of the keys. If the keys are dense, an array holds the place of
every possible key. If they are sparse, a bit says whether a key is present, and its place is the number of bits set
before it. Measured with 1.5 million orders and 6 million lineitems in 60 probes: 0.08 s, against 0.78 s for DuckDB with
the build side in a table of its own and 1.9 s with it in Arrow. Rows come in the order of the probe side, then of the
build side. Keys that are NULL equal nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from wallaby.batches.sizes import sizes_of_values
from wallaby.operators.joins.key_set import BLOCK_ROWS, KeySet, make_key_set
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.types import Kind

INDEXED_KINDS: Final = frozenset({Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG, Kind.DATE})
#: Kinds whose values are equal in Arrow if they are equal in Spark.
COMPARED_KINDS: Final = INDEXED_KINDS | {Kind.STRING, Kind.DECIMAL, Kind.BOOLEAN}
#: If at least one in this many possible keys is present, each possible key has an entry.
_DENSE_MAX: Final = 4
_FEW_ENTRIES: Final = 1 << 16
_ENTRY_BYTES: Final = 4
_ROWS_MAX: Final = 1 << 31
#: With several keys: the most rows with the same indexed key, on average, that are compared by the other keys.
_PARTNERS_MAX: Final = 8
_ROW_BITS: Final = 32
_ROW_MASK: Final = (1 << _ROW_BITS) - 1

_Ints = npt.NDArray[np.int64]
_Places = npt.NDArray[np.int32]
_Rows = npt.NDArray[Any]


def _by_blocks(
    look_up: Callable[[_Ints, Any], _Places], keys: _Ints, present: npt.NDArray[np.bool_] | None
) -> _Places:
    """Look up some keys at a time, so that intermediate results stay in the processor's cache."""
    if len(keys) <= BLOCK_ROWS:
        return look_up(keys, present)
    places = np.empty(len(keys), np.int32)
    for begin in range(0, len(keys), BLOCK_ROWS):
        some = slice(begin, begin + BLOCK_ROWS)
        places[some] = look_up(keys[some], None if present is None else present[some])
    return places


@dataclass(frozen=True, slots=True)
class PlaceArray:
    """Places in an array: entry `key - low` holds the place of a key, or -1."""

    low: int
    high: int
    entries: _Places

    def places(self, keys: _Ints, present: npt.NDArray[np.bool_] | None) -> _Places:
        """The place of every key, -1 where it is not there."""
        return _by_blocks(self._places, keys, present)

    def _places(self, keys: _Ints, present: npt.NDArray[np.bool_] | None) -> _Places:
        count = self.high - self.low + 1
        # As an unsigned number, the difference of a key out of range is too large on either side: the last entry is
        # empty.
        at = np.minimum(np.subtract(keys, self.low, dtype=np.int64).view(np.uint64), np.uint64(count))
        if present is not None:
            at[~present] = count
        found: _Places = self.entries[at.view(np.int64)]
        return found


@dataclass(frozen=True, slots=True)
class Ranks:
    """Places by counting: a key's place is the number of present keys before it, stored for every byte of the set."""

    keys: KeySet
    before: _Places

    def places(self, keys: _Ints, present: npt.NDArray[np.bool_] | None) -> _Places:
        """The place of every key, -1 where it is not there."""
        found = self.keys.rows_with(keys, present, inside=True)
        places = np.full(len(keys), -1, np.int32)
        places[found] = self.places_of_present(keys[found])
        return places

    def places_of_present(self, keys: _Ints) -> _Places:
        """The place of every key; all of them are present."""
        return _by_blocks(self._places_of_present, keys, None)

    def _places_of_present(self, keys: _Ints, _: None) -> _Places:
        at = keys - self.keys.low
        byte = at >> 3
        lower = (np.uint8(1) << (at & 7).astype(np.uint8)) - np.uint8(1)
        places: _Places = self.before[byte] + np.bitwise_count(self.keys.bits[byte] & lower)
        return places


@dataclass(frozen=True, slots=True)
class JoinIndex:
    """The build rows of place p are `rows[begins[p]]` up to `rows[begins[p + 1]]`.

    If every key occurs at most once, there is no `begins`: the row is `rows[p]`.
    """

    build: pa.Table
    where: PlaceArray | Ranks
    rows: _Places
    begins: _Places | None
    #: Which of the join's keys is indexed.
    key: int = 0
    #: Cached sizes of the values of the build side's columns, and the largest of them.
    known_sizes: dict[str, _Places] = field(default_factory=dict)
    known_longest: dict[str, int] = field(default_factory=dict)

    def sizes(self, name: str) -> _Places:
        """The sizes of the texts or lists of a column of the build side."""
        if name not in self.known_sizes:
            self.known_sizes[name] = self._sizes(name).astype(np.int32)
        return self.known_sizes[name]

    def longest(self, name: str) -> int:
        """The size of the longest text or list of a column of the build side."""
        if name not in self.known_longest:
            self.known_longest[name] = int(self._sizes(name).max(initial=0))
        return self.known_longest[name]

    def _sizes(self, name: str) -> npt.NDArray[np.int64]:
        chunks = self.build.column(name).chunks
        return sizes_of_values(chunks[0]) if chunks else np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Matches:
    """For rows of a batch: where their partners begin in the index's `rows`, and how many there are."""

    begin: _Places
    #: None: one partner where `begin` is not negative, otherwise none.
    counts: _Places | None
    #: The rows of the batch that these are: those with partners, if few have any; None: all.
    rows: _Rows | None = None

    def piece(self, begin: int, end: int) -> Matches:
        """The same for some of the rows."""
        return Matches(
            self.begin[begin:end],
            None if self.counts is None else self.counts[begin:end],
            None if self.rows is None else self.rows[begin:end],
        )

    def in_batch(self, chosen: _Rows | None) -> _Rows | None:
        """Turn positions among these rows into rows of the batch; None: all."""
        return chosen if self.rows is None else self.rows if chosen is None else self.rows[chosen]


def make_index(
    build: pa.Table,
    keys: Sequence[str],
    limit_bytes: int,
    kind: JoinKind = JoinKind.INNER,
    *,
    shown: bool = True,
) -> JoinIndex | KeySet | None:
    """Index key columns; None if their values are too sparse. The decision depends only on the rows and the limit.

    If the result has no columns of the build side, a set of keys is enough, with each key once. With several keys, some
    of which may not be whole numbers, the one with the most values is indexed.
    """
    build = build.combine_chunks()
    if kind.is_filter:
        values, present = whole_numbers(build.column(keys[0]))
        return make_key_set(values if present is None else values[present])
    if build.num_rows >= _ROWS_MAX or any(column.num_chunks > 1 for column in build.columns):
        return None
    indexed = (at for at, key in enumerate(keys) if _is_indexed(build.schema.field(key).type))
    candidates = [known for at in indexed if (known := _known(build, keys[at], at, limit_bytes)) is not None]
    if not candidates:
        return None
    known = max(candidates, key=lambda candidate: (candidate.distinct, -candidate.key))
    used, ranks, distinct = known.values, known.ranks, known.distinct
    if len(keys) > 1 and len(used) > _PARTNERS_MAX * distinct:
        return None
    if len(keys) == 1 and distinct == len(used) and not shown and kind is JoinKind.INNER:
        return ranks.keys
    places = ranks.places_of_present(used)
    where = _place_array(ranks.keys, used, places, limit_bytes) or ranks
    numbers = np.arange(len(used), dtype=np.int32) if known.rows is None else known.rows
    if distinct == len(used):
        at_place = np.empty(distinct, np.int32)
        at_place[places] = numbers
        return JoinIndex(build, where, at_place, None, known.key)
    # Place and row in one number, so that sorting is stable.
    both = (places.astype(np.int64) << _ROW_BITS) | numbers
    ordered = pl.Series(both).sort().to_numpy()
    begins = np.zeros(distinct + 1, np.int32)
    np.cumsum(np.bincount(places, minlength=distinct), out=begins[1:])
    return JoinIndex(build, where, (ordered & _ROW_MASK).astype(np.int32), begins, known.key)


@dataclass(frozen=True, slots=True)
class _Known:
    """A key column: its values without NULL, their rows (None: all), and their order."""

    key: int
    values: _Ints
    rows: _Places | None
    ranks: Ranks
    distinct: int


def _known(build: pa.Table, name: str, key: int, limit_bytes: int) -> _Known | None:
    values, present = whole_numbers(build.column(name))
    rows = np.flatnonzero(present).astype(np.int32) if present is not None else None
    used = values if rows is None else values[rows]
    found = ranked(used, limit_bytes)
    return None if found is None else _Known(key, used, rows, *found)


def _is_indexed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind))


def ranked(used: _Ints, limit_bytes: int) -> tuple[Ranks, int] | None:
    """The set of keys with the number of keys before each byte, and the number of distinct keys."""
    keys = make_key_set(used)
    if keys is None or len(keys.bits) * (1 + _ENTRY_BYTES) > limit_bytes:
        return None
    before = np.zeros(len(keys.bits) + 1, np.int32)
    np.cumsum(np.bitwise_count(keys.bits), dtype=np.int32, out=before[1:])
    return Ranks(keys, before), int(before[-1])


def _place_array(keys: KeySet, used: _Ints, places: _Places, limit_bytes: int) -> PlaceArray | None:
    count = keys.high - keys.low + 1
    if count > max(_FEW_ENTRIES, _DENSE_MAX * len(used)) or count * _ENTRY_BYTES > limit_bytes:
        return None
    entries = np.full(count + 1, -1, np.int32)
    entries[used - keys.low] = places
    return PlaceArray(keys.low, keys.high, entries)


def find(index: JoinIndex, column: pa.Array, kind: JoinKind) -> Matches:
    """Find the partners of each row of a column; in an inner join, rows without partners may be left out."""
    keys, present = whole_numbers(column)
    places, rows = None, None
    if kind is JoinKind.INNER and isinstance(index.where, Ranks):
        rows = index.where.keys.rows_with(keys, present, inside=True)
        places = index.where.places_of_present(keys[rows])
    else:
        places = index.where.places(keys, present)
        if kind is JoinKind.INNER:
            rows = np.flatnonzero(places >= 0)
            places = places[rows] if len(rows) < len(places) else places
    if rows is not None and len(rows) == len(keys):
        rows = None
    if index.begins is None:
        return Matches(places, None, rows)
    begin = index.begins[places]
    # For -1 this subtracts the last begin from the first one: negative, so there is none.
    return Matches(begin, np.maximum(index.begins[places + 1] - begin, 0), rows)


def pairs(index: JoinIndex, found: Matches, kind: JoinKind) -> tuple[_Rows | None, pa.Array]:
    """The pairs of a join: rows of the batch, and rows of the build side beside them.

    The first is None if all rows of the batch come, in order. A NULL in the second marks a row without a partner.
    """
    if found.counts is None:
        chosen, partners = _pairs_of_one(index, found.begin, kind)
    else:
        chosen, partners = _pairs_of_many(index, found.begin, found.counts, kind)
    return found.in_batch(chosen), partners


def pairs_by_pieces(
    index: JoinIndex, found: Matches, kind: JoinKind, rows_max: int
) -> Iterator[tuple[_Rows | None, pa.Array]]:
    """The pairs of a single row with too many partners, some of its partners at a time."""
    if found.counts is None or len(found.begin) != 1 or int(found.counts[0]) <= rows_max:
        yield pairs(index, found, kind)
        return
    first, count = int(found.begin[0]), int(found.counts[0])
    for begin in range(first, first + count, rows_max):
        partners = index.rows[begin : min(begin + rows_max, first + count)]
        yield found.in_batch(np.zeros(len(partners), np.int64)), pa.array(partners)


def rows_in(keys: KeySet, column: pa.Array, kind: JoinKind) -> _Rows | None:
    """The rows of a batch whose key is in a set, or for an anti join the other rows; None: all of them."""
    chosen = keys.rows_with(*whole_numbers(column), inside=kind is not JoinKind.ANTI)
    return None if len(chosen) == len(column) else chosen


def cut_by_partners(found: Matches, rows_max: int) -> list[int]:
    """The ends of pieces of a batch that each have at most this many partners, or one row."""
    length = len(found.begin)
    if found.counts is None or not length:
        return [length]
    partners = np.cumsum(np.maximum(found.counts, 1), dtype=np.int64)
    ends: list[int] = []
    begin = taken = 0
    while begin < length:
        end = int(np.searchsorted(partners, taken + rows_max, side="right"))
        begin = max(end, begin + 1)
        taken = int(partners[begin - 1])
        ends.append(begin)
    return ends


def _pairs_of_one(index: JoinIndex, places: _Places, kind: JoinKind) -> tuple[_Rows | None, pa.Array]:
    hit = places >= 0
    if kind is JoinKind.LEFT:
        if not len(index.rows):
            return None, pa.nulls(len(places), pa.int32())
        return None, pa.array(index.rows[np.where(hit, places, 0)], mask=~hit)
    chosen = None if bool(hit.all()) else np.flatnonzero(hit)
    return chosen, pa.array(index.rows[places if chosen is None else places[chosen]])


def _pairs_of_many(
    index: JoinIndex, begin: _Places, counts: _Places, kind: JoinKind
) -> tuple[_Rows | None, pa.Array]:
    shown = np.maximum(counts, 1) if kind is JoinKind.LEFT else counts
    rows = np.repeat(np.arange(len(counts)), shown)
    first = np.cumsum(shown, dtype=np.int64) - shown
    at = np.arange(len(rows)) - first[rows] + begin[rows]
    if kind is JoinKind.LEFT:
        alone = counts[rows] == 0
        return rows, pa.array(index.rows[np.where(alone, 0, at)], mask=alone)
    return rows, pa.array(index.rows[at])


def whole_numbers(column: pa.Array | pa.ChunkedArray) -> tuple[_Ints, npt.NDArray[np.bool_] | None]:
    """The values, arbitrary where they are NULL, and a mask of those that are not NULL, if there are NULLs."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    present = None
    if column.null_count:
        present = column.is_valid().to_numpy(zero_copy_only=False)
        column = column.fill_null(0)
    return column.to_numpy().astype(np.int64, copy=False), present
