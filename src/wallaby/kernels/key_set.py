"""The keys of a semi or anti join's build side as bits: is a key there? A 32nd of what an index of rows takes.

Run-time filters are such joins, with many keys and nothing but keys, and every channel of a scan keeps its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

#: At least one in so many possible keys must be there: a key takes at most 64 bytes.
_SPARSE_MAX: Final = 512
_SMALL: Final = 1 << 23
#: Up to so many possible keys are looked at one by one.
_AT_ONCE: Final = 1 << 26
#: 256 MiB.
_KEYS_MAX: Final = 1 << 31

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeySet:
    """Bit `key - low` is set if the key is there."""

    low: int
    high: int
    bits: npt.NDArray[np.uint8]

    def rows_with(
        self, keys: Ints, present: npt.NDArray[np.bool_] | None, *, inside: bool
    ) -> npt.NDArray[Any]:
        """The numbers of the rows whose key is there, or of all others. A key that is NULL is not there."""
        count = self.high - self.low + 1
        # As unsigned, the difference of a key outside is too large, whichever side it is on.
        at = np.subtract(keys, self.low, dtype=np.int64).view(np.uint64)
        within = at < np.uint64(count)
        if present is not None:
            within &= present
        if not bool(within.all()):
            at = np.where(within, at, np.uint64(0))
        found = (self.bits[at >> np.uint64(3)] >> (at & np.uint64(7)).astype(np.uint8)) & np.uint8(1)
        hit = found.view(np.bool_) & within
        return np.flatnonzero(hit if inside else ~hit)


def make_key_set(keys: Ints) -> KeySet | None:
    """The set of some keys, or None if they lie too far apart. A rule of the keys alone."""
    if not len(keys):
        return KeySet(0, -1, np.zeros(1, np.uint8))
    low, high = int(keys.min()), int(keys.max())
    count = high - low + 1
    if count > max(_SMALL, _SPARSE_MAX * len(keys)) or count > _KEYS_MAX:
        return None
    if count <= _AT_ONCE:
        there = np.zeros(count, np.bool_)
        there[keys - low] = True
        return KeySet(low, high, np.packbits(there, bitorder="little"))
    # A byte for every possible key would be too much: the bits of each byte are put together in order.
    at = np.unique(keys - low)
    byte = at >> 3
    first = np.flatnonzero(np.diff(byte, prepend=-1))
    bits = np.zeros(-(-count // 8), np.uint8)
    bits[byte[first]] = np.bitwise_or.reduceat(np.uint8(1) << (at & 7).astype(np.uint8), first)
    return KeySet(low, high, bits)
