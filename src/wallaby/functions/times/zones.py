"""Time zones as tables of transitions, with look-ups in both directions.

A zone travels in the plan as a text that Spark's driver wrote from Java's own rules (`relations/zone.py`), so that all
workers have Spark's rules, whatever the time zone data of their machines. Rules that continue for ever repeat every 400
years, as the calendar does; so 400 years of them are listed, and later times are looked up in those.
"""

from __future__ import annotations

import threading
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from wallaby.relations.zone import Rule, Zone, read_zone

Micros: TypeAlias = npt.NDArray[np.int64]

_SECOND: Final = 1_000_000
_DAY_SECONDS: Final = 86_400
_PERIOD_YEARS: Final = 400
_PERIOD_SECONDS: Final = 146_097 * _DAY_SECONDS
_LEAST: Final = np.iinfo(np.int64).min // _SECOND


class ZoneTable:
    """The local times of a zone: all arrays have whole seconds, `times` in ascending order."""

    def __init__(self, zone: Zone) -> None:
        times, offsets = [_LEAST], [zone.first_offset]
        for time, offset in zone.transitions:
            times.append(time)
            offsets.append(offset)
        #: Later times are moved back by whole periods before they are looked up.
        self._repeats_from: int | None = None
        if zone.rules:
            last = times[-1]
            year = _year_of(last)
            for time, offset in _transitions(zone.rules, year, year + _PERIOD_YEARS + 1):
                if time > last:
                    times.append(time)
                    offsets.append(offset)
            self._repeats_from = _first_day(year + _PERIOD_YEARS + 1) * _DAY_SECONDS
        self._times = np.array(times, np.int64)
        self._offsets = np.array(offsets, np.int64)
        self._before = np.concatenate((self._offsets[:1], self._offsets[:-1]))
        #: The first local time from which the offset after each transition applies.
        self._local_times = self._times + np.maximum(self._before, self._offsets)
        self._local_times[0] = _LEAST

    def offsets_at(self, instants: Micros) -> Micros:
        """The offset in microseconds at each instant."""
        seconds = instants // _SECOND
        found = np.searchsorted(self._times, seconds - self._periods(seconds), side="right") - 1
        return self._offsets[np.maximum(found, 0)] * _SECOND

    def local(self, instants: Micros) -> Micros:
        """The local times of instants, as microseconds since 1970."""
        return instants + self.offsets_at(instants)

    def instants(self, local: Micros) -> Micros:
        """The instants of local times: the first of two; times in a gap move later."""
        return local - self._offsets[self._places(local)[0]] * _SECOND

    def instants_near(self, local: Micros, preferred: Micros) -> Micros:
        """The same, but with the preferred offset where it is valid."""
        kept = local - preferred
        return np.where(self.offsets_at(kept) == preferred, kept, self.instants(local))

    def day_starts(self, local: Micros) -> Micros:
        """The first instants of days that begin at local times; if midnight is in a gap, the end of the gap."""
        places, moved = self._places(local)
        after = np.minimum(places + 1, len(self._times) - 1)
        gap_begins = self._times[after] + self._before[after]
        in_gap = (after > places) & (self._offsets[after] > self._before[after])
        in_gap &= local // _SECOND - moved >= gap_begins
        return np.where(
            in_gap, (self._times[after] + moved) * _SECOND, local - self._offsets[places] * _SECOND
        )

    def _places(self, local: Micros) -> tuple[npt.NDArray[np.intp], Micros]:
        """For local times: the transition whose offset applies, and by how many seconds they were moved back."""
        seconds = local // _SECOND
        moved = self._periods(seconds)
        found = np.searchsorted(self._local_times, seconds - moved, side="right") - 1
        return np.maximum(found, 0), moved

    def _periods(self, seconds: Micros) -> Micros:
        """The seconds of the whole periods by which late times are moved back."""
        if self._repeats_from is None:
            return np.zeros_like(seconds)
        late = (seconds - self._repeats_from) // _PERIOD_SECONDS + 1
        return np.maximum(late, 0) * _PERIOD_SECONDS


def _year_of(seconds: int) -> int:
    return int(np.datetime64(seconds, "s").astype("datetime64[Y]").astype(int)) + 1970


def _first_day(year: int, month: int = 1) -> int:
    """The day number of the first of a month."""
    months = (year - 1970) * 12 + month - 1
    return int(np.datetime64(months, "M").astype("datetime64[D]").astype(int))


def _transitions(rules: tuple[Rule, ...], first: int, last: int) -> list[tuple[int, int]]:
    """The instants at which rules change the offset in the given years, and the new offsets, in order."""
    found = [
        (_day_of(rule, year) * _DAY_SECONDS + rule.second - rule.base, rule.offset)
        for year in range(first, last + 1)
        for rule in rules
    ]
    return sorted(found)


def _day_of(rule: Rule, year: int) -> int:
    if rule.day < 0:
        # -1 is the last day of the month; then the weekday on or before it.
        following = (year, rule.month + 1) if rule.month < 12 else (year + 1, 1)
        day = _first_day(*following) + rule.day
        return day - (_weekday(day) - rule.weekday) % 7 if rule.weekday else day
    day = _first_day(year, rule.month) + rule.day - 1
    return day + (rule.weekday - _weekday(day)) % 7 if rule.weekday else day


def _weekday(day: int) -> int:
    """1 is Monday. The first day of 1970 was a Thursday."""
    return (day + 3) % 7 + 1


_texts: dict[str, int] = {}
_tables: list[ZoneTable] = []
_interning = threading.Lock()


def zone_number(text: str) -> int:
    """A number for a zone's text, by which statements of this process refer to it."""
    with _interning:
        if text not in _texts:
            _tables.append(ZoneTable(read_zone(text)))
            _texts[text] = len(_tables) - 1
        return _texts[text]


def zone_table(number: int) -> ZoneTable:
    """The table with a number."""
    return _tables[number]
