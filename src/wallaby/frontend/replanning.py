"""Another plan for a query whose build sides turned out larger than estimated.

A build side that is estimated to be small goes to every channel whole. If it is not small after all, the workers end
the query before their memory is used up. Another plan divides such sides between the channels instead; it is slower and
needs no room for them. The query begins again with it, unless rows have been given to the client.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from wallaby.errors import QueryError
from wallaby.head.collected import Collected

_log = logging.getLogger(__name__)
#: The setting that the error of a build side that is too large names.
_SETTING: Final = "spark.wallaby.broadcast"
#: By how much the first new plan lowers the limit for such sides; the second has none of them.
_LOWER: Final = 16


class Replanning:
    """The plans that are left to try. `begin` plans with a limit for build sides and submits the query."""

    def __init__(self, limit_bytes: int, begin: Callable[[int], Collected | None]) -> None:
        self._limits = [limit_bytes // _LOWER, 0] if limit_bytes else []
        self._begin = begin

    def after(self, error: QueryError) -> Collected | None:
        """The query, begun again; None if no other plan would avoid this error."""
        if error.fields.get("setting") != _SETTING or not self._limits:
            return None
        limit = self._limits.pop(0)
        _log.warning(
            "planned again, with at most %d KiB for a broadcast build side: %s", limit >> 10, error.what
        )
        return self._begin(limit)
