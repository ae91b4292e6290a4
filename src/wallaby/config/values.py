"""Read the text of a setting: numbers, sizes, times, and words from a closed list.

Each reader raises `ValueError` for a text that it does not understand.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_WHOLE = re.compile(r"[+-]?[0-9]+")
_BYTES = re.compile(r"([0-9]+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|min|h)?", re.IGNORECASE)
_STATIC = re.compile(r"static\(([0-9]+)\)")
#: A static draw of more outputs could not be recorded; see `lineage`.
STATIC_MAX = (1 << 14) - 1
UNITS_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_UNITS_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def whole_number(text: str) -> int:
    """A whole number: `4`."""
    if _WHOLE.fullmatch(text.strip()) is None:
        raise ValueError(text)
    return int(text)


def truth(text: str) -> bool:
    """`true` or `false`, in any case."""
    try:
        return {"true": True, "false": False}[text.strip().lower()]
    except KeyError:
        raise ValueError(text) from None


def byte_count(text: str) -> int:
    """Bytes, with Spark's units: `512m`, `2g`."""
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return int(match[1]) * UNITS_BYTES[match[2].lower()]


def seconds(text: str) -> float:
    """Seconds, with a unit or without: `1.5`, `200ms`, `10min`."""
    match = _SECONDS.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return float(match[1]) * _UNITS_SECONDS[(match[2] or "s").lower()]


def one_of(*words: str) -> Callable[[str], str]:
    """A reader for one of these words, in any case."""

    def read(text: str) -> str:
        if (word := text.strip().lower()) not in words:
            raise ValueError(text)
        return word

    return read


def dependencies(text: str) -> str:
    """`dynamic`, or `static(K)` in this one form."""
    word = text.strip().lower().replace(" ", "")
    match = _STATIC.fullmatch(word)
    if word != "dynamic" and (match is None or not 1 <= int(match[1]) <= STATIC_MAX):
        raise ValueError(text)
    return word


def static_outputs(dependencies: str) -> int | None:
    """K of `static(K)`; None for `dynamic`."""
    match = _STATIC.fullmatch(dependencies)
    return int(match[1]) if match is not None else None
