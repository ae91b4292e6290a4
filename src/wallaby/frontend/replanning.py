"""Another plan for a query whose build sides turned out larger than estimated.

A build side that is estimated to be small goes whole to every channel. If it turns out to be large, the workers end the
query before their memory is used up. Another plan divides such sides among the channels instead, which is slower but
needs no room for them. The query is restarted with that plan, unless the client has rows already.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from wallaby.errors import QueryError
from wallaby.head.collected import Collected

_log = logging.getLogger(__name__)
#: The setting that is named in the error about a build side that is too large.
_SETTING: Final = "spark.wallaby.broadcast"
#: The factor by which the first new plan lowers the limit for such sides; the second plan has none of them.
_LOWER: Final = 16


class Replanning:
    """The plans that remain to be tried. `begin` plans with a limit for build sides and submits the query."""

    def __init__(self, limit_bytes: int, begin: Callable[[int], Collected | None]) -> None:
        self._limits = [limit_bytes // _LOWER, 0] if limit_bytes else []
        self._begin = begin

    def avoids(self, error: BaseException) -> bool:
        """Would another plan avoid this error?"""
        return (
            isinstance(error, QueryError) and error.fields.get("setting") == _SETTING and bool(self._limits)
        )

    def after(self, error: QueryError) -> Collected | None:
        """Begin the query again; None if no other plan would avoid this error."""
        if not self.avoids(error):
            return None
        limit = self._limits.pop(0)
        _log.warning(
            "planned again, with at most %d KiB for a broadcast build side: %s", limit >> 10, error.what
        )
        return self._begin(limit)
