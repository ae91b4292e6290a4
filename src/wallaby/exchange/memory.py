"""A budget of bytes that several holders share, from any thread.

It only counts, and nobody waits for it: a caller that gets False spills, refuses or does without, so there is nothing
to deadlock on. What was taken is given back exactly once (checked).
"""

from __future__ import annotations

import threading

from wallaby.errors import InternalError


class ByteBudget:
    """At most `limit_bytes` are taken at a time, except for the one overdraft that `take_if_any_left` allows."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._used_bytes = 0
        self._lock = threading.Lock()

    @property
    def used_bytes(self) -> int:
        """The bytes that are taken now."""
        return self._used_bytes

    def take(self, size_bytes: int) -> bool:
        """Take this many bytes if they fit."""
        with self._lock:
            if self._used_bytes + size_bytes > self.limit_bytes:
                return False
            self._used_bytes += size_bytes
            return True

    def take_if_any_left(self, size_bytes: int) -> bool:
        """Take bytes unless everything is taken already, so that more than the budget gets its turn too."""
        with self._lock:
            if self._used_bytes >= self.limit_bytes:
                return False
            self._used_bytes += size_bytes
            return True

    def give(self, size_bytes: int) -> None:
        """Give bytes back that were taken."""
        with self._lock:
            self._used_bytes -= size_bytes
            if self._used_bytes < 0:
                raise InternalError(f"A budget of {self.limit_bytes} bytes got back more than was taken.")
