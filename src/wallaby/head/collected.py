"""A result on its way to the client: slices as they come in, in order, and how the query ended."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from wallaby.errors import QueryError, WallabyError
from wallaby.lineage.effects import Slice
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import QueryId


class Collected:
    """Filled by the head's control loop, drained by the client's thread."""

    def __init__(self, query: QueryId, graph: StageGraph, cancel: Callable[[], None]) -> None:
        self.query = query
        self.graph = graph
        self.cancel = cancel
        self._batches: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._lock = threading.Lock()

    def add(self, slices: tuple[Slice, ...]) -> None:
        """More of the result: it is never taken back."""
        for piece in slices:
            for batch in piece.body or ():  # type: ignore[attr-defined]
                self._batches.put(batch)

    def end(self, error: BaseException | None) -> None:
        """There will be no more. Only the first call counts."""
        with self._lock:
            if self._ended.is_set():
                return
            self._error = error
            self._ended.set()
        self._batches.put(None)

    @property
    def is_over(self) -> bool:
        """Has the query ended, one way or the other?"""
        return self._ended.is_set()

    def batches(self, timeout_seconds: float | None = None) -> Iterator[Any]:
        """The record batches as they come; the query's error, if it has one, at the end.

        A client that is interrupted while it waits cancels its query.
        """
        try:
            while (batch := self._batches.get(timeout=timeout_seconds)) is not None:
                yield batch
        except KeyboardInterrupt:
            self.cancel()
            raise
        self._batches.put(None)
        if isinstance(self._error, WallabyError):
            raise self._error
        if self._error is not None:
            raise QueryError(f"The engine failed: {self._error}.") from self._error
