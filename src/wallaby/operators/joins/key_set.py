"""The keys of a semi or anti join's build side as bits, which take a 32nd of the memory of an index of rows.

Run-time filters are such joins, with many keys and nothing but keys, and every channel of a scan keeps its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

#: At least one in this many possible keys must be present, so that a key takes at most 64 bytes.
_SPARSE_MAX: Final = 512
_SMALL: Final = 1 << 23
#: While the bits are made, this many possible keys have a byte each at a time. Sorting the keys instead takes ten times
#: as long, and numpy's `unique` holds Python's lock meanwhile. A multiple of eight.
_AT_ONCE: Final = 1 << 26
#: 256 MiB.
_KEYS_MAX: Final = 1 << 31

#: So many keys are looked up at a time: what is computed on the way stays in the processor's cache.
BLOCK_ROWS: Final = 1 << 16

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeySet:
    """A set of keys: bit `key - low` is set if the key is present."""

    low: int
    high: int
    bits: npt.NDArray[np.uint8]

    def count(self) -> int:
        """The number of keys."""
        return int(np.bitwise_count(self.bits).sum())

    def rows_with(
        self, keys: Ints, present: npt.NDArray[np.bool_] | None, *, inside: bool
    ) -> npt.NDArray[Any]:
        """The numbers of the rows whose key is in the set, or of all others. NULL is never in the set."""
        hit = self.contains(keys, present)
        return np.flatnonzero(hit if inside else ~hit)

    def contains(self, keys: Ints, present: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        """Is each key in the set? NULL is not."""
        if len(keys) <= BLOCK_ROWS:
            return self._contains(keys, present)
        hit = np.empty(len(keys), np.bool_)
        for begin in range(0, len(keys), BLOCK_ROWS):
            some = slice(begin, begin + BLOCK_ROWS)
            hit[some] = self._contains(keys[some], None if present is None else present[some])
        return hit

    def _contains(self, keys: Ints, present: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        count = self.high - self.low + 1
        # As an unsigned number, the difference of a key out of range is too large on either side.
        at = np.subtract(keys, self.low, dtype=np.int64).view(np.uint64)
        within = at < np.uint64(count)
        if present is not None:
            within &= present
        if not bool(within.all()):
            at *= within
        found = (
            self.bits[(at >> np.uint64(3)).view(np.int64)] >> (at & np.uint64(7)).astype(np.uint8)
        ) & np.uint8(1)
        within &= found.view(np.bool_)
        return within


def make_key_set(keys: Ints) -> KeySet | None:
    """Make a set of keys; None if they are too sparse, which depends only on the keys."""
    if not len(keys):
        return KeySet(0, -1, np.zeros(1, np.uint8))
    low, high = int(keys.min()), int(keys.max())
    count = high - low + 1
    if count > max(_SMALL, _SPARSE_MAX * len(keys)) or count > _KEYS_MAX:
        return None
    bits = np.zeros(-(-count // 8), np.uint8)
    for begin in range(0, count, _AT_ONCE):
        there = np.zeros(min(_AT_ONCE, count - begin), np.bool_)
        if count <= _AT_ONCE:
            there[keys - low] = True
        else:
            at = np.subtract(keys, low + begin, dtype=np.int64).view(np.uint64)
            there[at[at < np.uint64(len(there))]] = True
        bits[begin >> 3 : (begin + len(there) + 7) >> 3] = np.packbits(there, bitorder="little")
    return KeySet(low, high, bits)
