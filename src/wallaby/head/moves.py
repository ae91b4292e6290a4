"""Tell whether lost parts of kept results are being made again, because readers wait as long as they are.

Nothing is committed while a channel is retraced, so the store does not show that it advances. The workers do: they are
asked for their standing with the query, as the stall watch asks them (`coordinator.stalls`). Readers ask often, so an
answer is used for a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from wallaby.lineage.names import QueryId, WorkerId
from wallaby.node.standing import Standing

#: How long an answer is used.
USED_SECONDS: Final = 1.0
#: How long a worker may take to answer. One that does not answer does not move.
STANDING_SECONDS: Final = 0.5


@dataclass(slots=True)
class _Seen:
    """The last answers about a query, until when they count, and how often something had moved."""

    moves: int = 0
    until_seconds: float = 0.0
    marks: dict[WorkerId, tuple[int, ...]] = field(default_factory=dict)


class KeptMoves:
    """Counts how often something was seen to move, by query. Any thread may use it."""

    def __init__(
        self, ask: Callable[[QueryId, WorkerId], Standing | None], now_seconds: Callable[[], float]
    ) -> None:
        self._ask = ask
        self._now_seconds = now_seconds
        self._lock = threading.Lock()
        self._seen: dict[QueryId, _Seen] = {}

    def of(self, query: QueryId, workers: Iterable[WorkerId]) -> int:
        """A number that grows while one of the workers is busy with a query, or something moves there."""
        with self._lock:
            seen = self._seen.setdefault(query, _Seen())
            if self._now_seconds() < seen.until_seconds:
                return seen.moves
            # While one reader asks, the others get the last answer.
            seen.until_seconds = self._now_seconds() + USED_SECONDS
        found = {worker: standing for worker in workers if (standing := self._ask(query, worker)) is not None}
        marks = {worker: standing.marks for worker, standing in found.items()}
        with self._lock:
            is_moved = any(seen.marks.get(worker) != now for worker, now in marks.items())
            seen.moves += is_moved or any(standing.busy for standing in found.values())
            seen.marks |= marks
            return seen.moves

    def forget(self, query: QueryId) -> None:
        """Forget a result that is gone."""
        with self._lock:
            self._seen.pop(query, None)
