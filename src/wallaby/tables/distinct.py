"""How many different values a column has, guessed from its Parquet footer.

Few writers say it for each row group. But writers keep a dictionary of the values of each row group, and sizes tell how
large that is. One way: the pages begin behind it, so its compressed size is known. Another: with `d` values of `w` bits
among `n` rows, a row takes `w * d / n` bits of the dictionary and `log2(d)` bits to point into it. The second way finds
too few values where equal ones stand together, for runs take no room; the first where values compress better than
thought. Neither finds too many, so the larger one counts. Where the row groups' ranges follow each other, their values
differ and add up. Elsewhere row groups draw from the same values, as far as their ranges are the same, and how many a
group found says how many there are to find.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import exp, log2
from typing import Any, Final

#: Of values of fixed width, the size of a dictionary is known.
_WIDTH_BYTES: Final = {"INT32": 4, "INT64": 8}
_TEXT: Final = "BYTE_ARRAY"
#: In a dictionary each text comes after its length.
_LENGTH_BYTES: Final = 4
#: What a value takes in a compressed dictionary beside the bytes in which values differ.
_COMPRESSED_BYTES: Final = 2
#: Texts compress to about this share.
_COMPRESSED_TEXT: Final = 0.6
#: In front of a dictionary, and what a compressor adds to a few bytes.
_HEADER_BYTES: Final = 20
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
    if bounds is None or not rows:
        return None
    counted = _counted(chunk)
    if counted is not None:
        return GroupValues(rows, min(counted, rows), *bounds)
    if not chunk.has_dictionary_page:
        return None
    by_dictionary = _by_dictionary(chunk, *bounds)
    width = _WIDTH_BYTES.get(chunk.physical_type)
    if width is None:
        return None if by_dictionary is None else GroupValues(rows, min(by_dictionary, rows), *bounds)
    bits = 8 * chunk.total_uncompressed_size / rows
    by_rows = _solved(lambda d: 8 * width * d / rows + log2(d), bits, 1.0, float(rows))
    return GroupValues(rows, min(rows, max(by_rows, by_dictionary or 1.0)), *bounds)


def _counted(chunk: Any) -> float | None:
    """What the writer says. Some write 0 where they did not count."""
    known = chunk.statistics
    said = known.distinct_count if known is not None and known.has_distinct_count else None
    return max(1.0, float(said)) if said else None


def _by_dictionary(chunk: Any, low: Any, high: Any) -> float | None:
    """The values of a dictionary of known size."""
    begin, end = chunk.dictionary_page_offset, chunk.data_page_offset
    value = _value_bytes(chunk, low, high)
    if begin is None or end is None or begin <= 0 or end <= begin or value is None:
        return None
    size = float(end - begin)
    return max(1.0, max(size - _HEADER_BYTES, size / 2) / value)


def _value_bytes(chunk: Any, low: Any, high: Any) -> float | None:
    """What one value takes in a dictionary, compressed as its chunk is."""
    compressed = chunk.compression != "UNCOMPRESSED"
    width = _WIDTH_BYTES.get(chunk.physical_type)
    if width is not None:
        if not compressed or not isinstance(low, int) or not isinstance(high, int):
            return float(width)
        return float(min(width, _COMPRESSED_BYTES + (max(1, high - low).bit_length() + 7) // 8))
    if chunk.physical_type == _TEXT and isinstance(low, str) and isinstance(high, str):
        # The first and the last value are two like any others.
        plain = _LENGTH_BYTES + (len(low.encode()) + len(high.encode())) / 2
        return plain * _COMPRESSED_TEXT if compressed else plain
    return None


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
    drawn_from = _solved(lambda d: d * (1 - exp(-rows / d)), found, 1.0, total)
    return min(total, drawn_from * _ranges(groups))


def _ranges(groups: Sequence[GroupValues]) -> float:
    """How many times the range of a row group is in the range of all: rows that come by date have one in each."""
    widths = [_width(group.low, group.high) for group in groups]
    whole = _width(min(group.low for group in groups), max(group.high for group in groups))
    known = [width for width in widths if width is not None]
    if whole is None or len(known) < len(widths) or not sum(known):
        return 1.0
    return max(1.0, whole * len(known) / sum(known))


def _width(low: Any, high: Any) -> float | None:
    match low, high:
        case (int(), int()) | (Decimal(), Decimal()):
            return float(high - low)
        case (date(), date()):
            return float(high.toordinal() - low.toordinal())
        case _:
            return None


def _solved(rising: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Where a rising function has a value, as far as it has it between two points."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return high
