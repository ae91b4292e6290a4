"""How long a query may take: one limit from the start of its action, however often the query runs meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from wallaby.errors import QueryTimeoutError


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """The limit of one query, in seconds; 0: no limit."""

    seconds: float = 0.0
    began_seconds: float = field(default_factory=time.monotonic)

    @property
    def left_seconds(self) -> float:
        """The time that is left, if it is limited."""
        return max(self.began_seconds + self.seconds - time.monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        """Has the time run out?"""
        return bool(self.seconds) and not self.left_seconds

    def later(self, seconds: float) -> TimeLimit:
        """The same limit, extended by time that does not count."""
        return replace(self, began_seconds=self.began_seconds + seconds)

    def error(self, who: str = "A query", where: str = "", **fields: object) -> QueryTimeoutError:
        """The error of a query whose time is over."""
        return QueryTimeoutError(
            f"{who} took longer than {self.seconds:g} s and was ended{where}.",
            fix="Raise spark.wallaby.timeout, or set it to 0 for no limit.",
            timeout_seconds=self.seconds,
            **fields,
        )

    @contextmanager
    def watched(self, expire: Callable[[], None]) -> Iterator[None]:
        """In this block, call `expire` on another thread once the time is over."""
        if not self.seconds:
            yield
            return
        timer = threading.Timer(self.left_seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


NO_LIMIT: Final = TimeLimit()
