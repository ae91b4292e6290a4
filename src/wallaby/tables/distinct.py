"""Estimate the number of distinct values of a column from its Parquet footer.

Few writers record it for each row group. But each row group has a dictionary of its values, and sizes reveal how large
that is. One way: the data pages begin after the dictionary, so its compressed size is known. Another: with `d` values
of `w` bits among `n` rows, a row takes `w * d / n` bits of the dictionary and `log2(d)` bits to refer to it. The second
way underestimates if equal values are adjacent, because runs take no space; the first if values compress better than
assumed. Neither overestimates, so the larger result counts. If the ranges of the row groups do not overlap, their
values differ and add up. Otherwise row groups draw from the same values, as far as their ranges overlap, and the number
of values in one group tells how many there are in total.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import exp, log2
from typing import Any, Final

#: The widths of values of fixed width, for which the size of a dictionary is known.
_WIDTH_BYTES: Final = {"INT32": 4, "INT64": 8}
_TEXT: Final = "BYTE_ARRAY"
#: In a dictionary, each text is preceded by its length.
_LENGTH_BYTES: Final = 4
#: The bytes of a value in a compressed dictionary besides those in which values differ.
_COMPRESSED_BYTES: Final = 2
#: Texts compress to about this share.
_COMPRESSED_TEXT: Final = 0.6
#: The header of a dictionary, and the overhead of a compressor for a few bytes.
_HEADER_BYTES: Final = 20
#: If this share of a group's rows is distinct, there may be any number of values in total.
_ALL_DIFFERENT: Final = 0.98
_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class GroupValues:
    """One row group: its rows, its distinct values, and the bounds of the values."""

    rows: int
    distinct: float
    low: Any
    high: Any


def values_of_group(chunk: Any, rows: int, bounds: tuple[Any, Any] | None) -> GroupValues | None:
    """The values of a column in a row group with these bounds, according to the footer; None if unknown."""
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
    """The number that the writer recorded. Some write 0 if they did not count."""
    known = chunk.statistics
    said = known.distinct_count if known is not None and known.has_distinct_count else None
    return max(1.0, float(said)) if said else None


def _by_dictionary(chunk: Any, low: Any, high: Any) -> float | None:
    """The number of values in a dictionary of known size."""
    begin, end = chunk.dictionary_page_offset, chunk.data_page_offset
    value = _value_bytes(chunk, low, high)
    if begin is None or end is None or begin <= 0 or end <= begin or value is None:
        return None
    size = float(end - begin)
    return max(1.0, max(size - _HEADER_BYTES, size / 2) / value)


def _value_bytes(chunk: Any, low: Any, high: Any) -> float | None:
    """The size of one value in a dictionary that is compressed like its chunk."""
    compressed = chunk.compression != "UNCOMPRESSED"
    width = _WIDTH_BYTES.get(chunk.physical_type)
    if width is not None:
        if not compressed or not isinstance(low, int) or not isinstance(high, int):
            return float(width)
        return float(min(width, _COMPRESSED_BYTES + (max(1, high - low).bit_length() + 7) // 8))
    if chunk.physical_type == _TEXT and isinstance(low, str) and isinstance(high, str):
        # The first and the last value are two of the values.
        plain = _LENGTH_BYTES + (len(low.encode()) + len(high.encode())) / 2
        return plain * _COMPRESSED_TEXT if compressed else plain
    return None


def distinct_values(groups: Sequence[GroupValues]) -> float:
    """The number of distinct values in all row groups together."""
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
    """How many times the range of a row group fits into the total range: data sorted by date has one part per group."""
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
    """Find where an increasing function has a value, between two bounds."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return high
