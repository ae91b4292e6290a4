"""Estimate how much the tasks of each query make the process grow, from its size when tasks begin and end.

Nobody counts the memory that a running task takes. What the process grows by while tasks of one query run alone is that
query's. While tasks of several run at once, a query that has run alone lately is charged what it took then, and the
others share the rest; so a long task that takes little is not charged for the many short ones beside it. Memory that is
given back is taken off all estimates in proportion.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: After this time, what a query took while it ran alone counts half: a query does not stay as it is.
HALF_LIFE_SECONDS: Final = 1.0
#: How long a query must have run alone, lately, to be known.
ALONE_SECONDS_MIN: Final = 0.02


@dataclass(slots=True)
class _Account:
    """The figures of one query."""

    tasks: int = 0
    grown_bytes: float = 0.0
    #: What the process grew by while only this query ran, and for how long; older times count less.
    alone_bytes: float = 0.0
    alone_seconds: float = 0.0

    @property
    def is_known(self) -> bool:
        return self.alone_seconds >= ALONE_SECONDS_MIN

    def expected_bytes(self, seconds: float) -> float:
        return max(self.alone_bytes, 0.0) / self.alone_seconds * seconds


class ProcessGrowth:
    """The estimates of one process; see the module. Any thread may call it. An owner is the work of a query."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: weakref.WeakKeyDictionary[object, _Account] = weakref.WeakKeyDictionary()
        self._last: tuple[float, int] | None = None

    def begins(self, owner: object, resident_bytes: int, now: float) -> None:
        """Note that a task begins."""
        with self._lock:
            self._advance(resident_bytes, now)
            self._accounts.setdefault(owner, _Account()).tasks += 1

    def ends(self, owner: object, resident_bytes: int, now: float) -> None:
        """Note that a task ends."""
        with self._lock:
            self._advance(resident_bytes, now)
            if owner in self._accounts:
                self._accounts[owner].tasks -= 1

    def forget(self, owner: object) -> None:
        """Forget a query that has ended."""
        with self._lock:
            self._accounts.pop(owner, None)

    def of(self, owner: object, resident_bytes: int, now: float) -> int:
        """The bytes by which an owner's tasks made the process grow, without those that it has given back."""
        with self._lock:
            self._advance(resident_bytes, now)
            return int(self._accounts[owner].grown_bytes) if owner in self._accounts else 0

    def _advance(self, resident_bytes: int, now: float) -> None:
        """Charge the growth since the last call to the queries whose tasks ran in that time."""
        then, before_bytes = self._last or (now, resident_bytes)
        self._last = now, resident_bytes
        seconds, grown_bytes = max(now - then, 0.0), resident_bytes - before_bytes
        accounts = list(self._accounts.values())
        running = [account for account in accounts if account.tasks > 0]
        if grown_bytes < 0:
            _give_back(accounts, -grown_bytes)
        elif grown_bytes > 0:
            _charge(running, grown_bytes, seconds)
        fades = 0.5 ** (seconds / HALF_LIFE_SECONDS)
        for account in accounts:
            account.alone_bytes *= fades
            account.alone_seconds *= fades
        if len(running) == 1:
            running[0].alone_bytes += grown_bytes
            running[0].alone_seconds += seconds


def _give_back(accounts: Iterable[_Account], freed_bytes: int) -> None:
    whole = sum(account.grown_bytes for account in accounts)
    left = max(1 - freed_bytes / whole, 0.0) if whole else 0.0
    for account in accounts:
        account.grown_bytes *= left


def _charge(running: list[_Account], grown_bytes: int, seconds: float) -> None:
    """Known queries are charged as expected, and the others the rest, by the number of their tasks."""
    known = {id(account): account.expected_bytes(seconds) for account in running if account.is_known}
    expected = sum(known.values())
    others = sum(account.tasks for account in running if id(account) not in known)
    # If all are known, they share the whole as they are expected to; if others are there, they take the rest.
    scale = min(grown_bytes / expected, 1.0 if others else float("inf")) if expected else 0.0
    rest = grown_bytes - expected * scale
    heads = others or sum(account.tasks for account in running)
    for account in running:
        account.grown_bytes += known.get(id(account), 0.0) * scale
        if id(account) not in known or not others:
            account.grown_bytes += rest * account.tasks / heads
