"""How many different values a column has, guessed from its Parquet footer.

Footers do not say it, but writers keep a dictionary of the values of each row group, and the size of a column tells
how large that is: with `d` values of `w` bits among `n` rows, a row takes `w * d / n` bits of the dictionary and
`log2(d)` bits to point into it. Where the row groups' ranges follow each other, their values differ and add up.
Elsewhere all row groups draw from the same values, and how many a group found says how many there are to find.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log2
from typing import Any, Final

#: Only of values of fixed width is the size of a dictionary known.
_WIDTH_BITS: Final = {"INT32": 32, "INT64": 64}
#: Where this share of a group's rows is different, there may be any number of values.
_ALL_DIFFERENT: Final = 0.98
_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class GroupValues:
    """One row group: its rows, its different values, and the bounds of the values."""

    rows: int
    distinct: float
    low: Any
    high: Any


def values_of_group(chunk: Any, rows: int, bounds: tuple[Any, Any] | None) -> GroupValues | None:
    """What the footer tells of a column in a row group with these bounds; None if it does not."""
    width = _WIDTH_BITS.get(chunk.physical_type)
    if width is None or bounds is None or not chunk.has_dictionary_page or not rows:
        return None
    bits = 8 * chunk.total_uncompressed_size / rows
    distinct = _solved(lambda d: width * d / rows + log2(d), bits, 1.0, float(rows))
    return GroupValues(rows, distinct, *bounds)


def distinct_values(groups: Sequence[GroupValues]) -> float:
    """The different values of all row groups together."""
    total = sum(group.distinct for group in groups)
    in_order = sorted(groups, key=lambda group: (group.low, group.high))
    if all(before.high <= after.low for before, after in itertools.pairwise(in_order)):
        return total
    rows = sum(group.rows for group in groups) / len(groups)
    found = total / len(groups)
    if found >= _ALL_DIFFERENT * rows:
        return total
    return min(total, _solved(lambda d: d * (1 - exp(-rows / d)), found, 1.0, total))


def _solved(rising: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Where a rising function has a value, as far as it has it between two points."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return high
