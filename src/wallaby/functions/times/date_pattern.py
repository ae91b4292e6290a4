"""Patterns for writing and reading dates and times: those of Java's letters that have a single meaning.

A pattern is parsed into parts: a letter and its number of repetitions, or a literal text. Letters that depend on a
locale, on weeks, on eras or on a zone's name are not supported.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

#: The allowed repetitions of each letter.
_WRITTEN: Final[dict[str, tuple[int, ...]]] = {
    "y": (1, 2, 4),
    "M": (1, 2, 3, 4),
    "L": (1, 2, 3, 4),
    "d": (1, 2),
    "D": (1, 3),
    "H": (1, 2),
    "h": (1, 2),
    "m": (1, 2),
    "s": (1, 2),
    "S": (1, 2, 3, 4, 5, 6, 7, 8, 9),
    "a": (1,),
    "E": (1, 2, 3, 4),
    "Q": (1, 2),
    "q": (1, 2),
}
#: In these, every part except the year and the fraction of a second has a fixed number of digits.
_READ: Final[dict[str, tuple[int, ...]]] = {
    "y": (4,),
    "M": (2,),
    "d": (2,),
    "H": (2,),
    "m": (2,),
    "s": (2,),
    "S": (1, 2, 3, 4, 5, 6),
}
_DATE: Final = ("y", "M", "d")
_TIME: Final = ("H", "m", "s", "S")
#: Characters other than letters that have a meaning in patterns.
_RESERVED: Final = frozenset("[]{}#")


@dataclass(frozen=True, slots=True)
class Part:
    """A repeated letter or, without a letter, a literal text."""

    letter: str
    count: int
    text: str = ""


@lru_cache(maxsize=256)
def written_parts(pattern: str) -> tuple[Part, ...] | None:
    """The parts of a pattern for writing; None if one of them is not supported."""
    return _parts(pattern, _WRITTEN)


@lru_cache(maxsize=256)
def read_parts(pattern: str) -> tuple[Part, ...] | None:
    """The parts of a pattern for reading; none may repeat, and larger units must precede smaller ones."""
    parts = _parts(pattern, _READ)
    letters = [part.letter for part in parts or () if part.letter]
    for group in (_DATE, _TIME):
        present = [letter for letter in group if letter in letters]
        if tuple(present) != group[: len(present)] or any(letters.count(letter) > 1 for letter in present):
            return None
    return parts if parts and "y" in letters and _is_apart(parts) else None


def _is_apart(parts: tuple[Part, ...]) -> bool:
    """Is it clear where a fraction begins and ends? It may have fewer digits than the pattern."""
    if not all(part.text.isascii() for part in parts):
        return False
    if any(part.letter == "S" for part in parts) and parts[-1].text.endswith("'"):
        return False  # Spark drops it
    for before, after in pairwise(parts):
        if before.letter == "S" and (after.letter or after.text[0].isdigit()):
            return False
        if after.letter == "S" and before.letter:
            return False
    return True


def _parts(pattern: str, allowed: dict[str, tuple[int, ...]]) -> tuple[Part, ...] | None:
    parts: list[Part] = []
    place = 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == "'":
            end = place + 1
            text = ""
            while end < len(pattern) and (pattern[end] != "'" or pattern[end : end + 2] == "''"):
                text += pattern[end]
                end += 2 if pattern[end] == "'" else 1
            if end >= len(pattern):
                return None
            parts.append(Part("", 0, text or "'"))
            place = end + 1
        elif sign.isalpha():
            count = len(pattern) - place - len(pattern[place:].lstrip(sign))
            if count not in allowed.get(sign, ()):
                return None
            parts.append(Part(sign, count))
            place += count
        elif sign in _RESERVED or not sign.isascii():
            return None
        else:
            parts.append(Part("", 0, sign))
            place += 1
    return tuple(parts) or None
