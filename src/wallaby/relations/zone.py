"""The rules of a time zone as a plan carries them: a text that Spark's driver writes from Java's rules.

`name;first;transitions;rule;rule;…`: the offset from UTC before all transitions, in seconds; the transitions, each
`when:offset` in seconds of UTC, separated by commas; and the rules that hold after the last of them, year after year.
A rule is `month,day,weekday,second,base,offset`: on that day (negative: from the month's end; with a weekday, the
first such one from there, or the last one up to there) at that second, in a clock which is `base` ahead of UTC, the
offset becomes the given one. A zone without transitions or rules has a fixed offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from wallaby.errors import EncodingError

_RULE_PARTS: Final = 6


@dataclass(frozen=True, slots=True)
class Rule:
    """When the offset changes in every year, and its new value."""

    month: int
    day: int
    #: 1 is Monday; 0: the day itself.
    weekday: int
    second: int
    base: int
    offset: int


@dataclass(frozen=True, slots=True)
class Zone:
    """The rules of a time zone."""

    name: str
    first_offset: int
    transitions: tuple[tuple[int, int], ...]
    rules: tuple[Rule, ...]

    @property
    def fixed_offset(self) -> int | None:
        """The offset in seconds of a zone whose offset never changes."""
        return None if self.transitions or self.rules else self.first_offset


UTC: Final = "UTC;0;"


@lru_cache(maxsize=256)
def read_zone(text: str) -> Zone:
    """The zone that a text describes."""
    try:
        name, first, transitions, *rules = text.split(";")
        return Zone(
            name,
            int(first),
            tuple(_transition(part) for part in transitions.split(",") if part),
            tuple(_rule(part) for part in rules),
        )
    except (ValueError, TypeError) as error:
        raise EncodingError(f"{text[:80]!r} does not describe a time zone.") from error


def is_fixed(text: str) -> bool:
    """Does a zone always have the same offset?"""
    return read_zone(text).fixed_offset is not None


def _transition(text: str) -> tuple[int, int]:
    time, offset = text.split(":")
    return int(time), int(offset)


def _rule(text: str) -> Rule:
    parts = [int(part) for part in text.split(",")]
    if len(parts) != _RULE_PARTS:
        raise ValueError(text)
    return Rule(*parts)
