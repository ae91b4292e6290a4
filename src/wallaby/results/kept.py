"""Rows that stay with the TaskManagers: a query that is run to its end, whose rows are read when somebody wants them.

The rows are under the query's lineage until they are released: if a TaskManager is lost, others make again what it
held. Here is the driver's side: wait until the rows are there, say where they are and how many, let them go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from wallaby.errors import HandOverError, QueryError
from wallaby.frontend.replanning import Replanning
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.lineage.kept import KeptRange, whole_result
from wallaby.lineage.names import ChannelName, QueryId
from wallaby.results.answered import only_this_query_is_interrupted
from wallaby.spark.leaves.run import LeafRun


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """One output of a result, which is never divided: where it is in the result, and how large."""

    range: KeptRange
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class KeptPlaces:
    """A result that is whole: its outputs in order, and at which addresses its channels were when this was asked."""

    query: QueryId
    outputs: tuple[KeptOutput, ...]
    addresses: dict[ChannelName, str]
    #: Have all workers told the sizes? Outputs of unknown size count as empty.
    measured: bool = True

    @property
    def rows(self) -> int:
        """How many rows it has; -1: nobody knows."""
        return sum(output.rows for output in self.outputs) if self.measured else -1

    @property
    def size_bytes(self) -> int:
        """How many bytes they take in memory; -1: nobody knows."""
        return sum(output.size_bytes for output in self.outputs) if self.measured else -1


class KeptRows:
    """One run of a query whose rows stay. Threads may share it."""

    def __init__(
        self, begun: Collected | LeafRun, head: Callable[[], Head], replanning: Replanning | None
    ) -> None:
        self._begun = begun
        self._find_head = head
        self._replanning = replanning
        self._lock = threading.Lock()
        self._whole = False
        self._released = False
        self._head: Head | None = None
        self.collected: Collected | None = begun if isinstance(begun, Collected) else None

    @property
    def query(self) -> QueryId | None:
        """The query's name; None while Spark runs a part of it first."""
        return None if self.collected is None else self.collected.query

    def await_whole(self) -> None:
        """Wait until all rows are there. Ctrl-C ends this query and no other.

        Raises:
            HandOverError: Spark ran a part of the query, and its rows could not be handed over.
            QueryError: the query failed or was cancelled.
        """
        with self._lock:
            if self._whole:
                return
            try:
                with only_this_query_is_interrupted():
                    self._await()
            except KeyboardInterrupt:
                self.cancel()
                raise
            self._whole = True
            self._head = self._find_head()
        if self._released:  # while it was waited for
            self.release()

    def _await(self) -> None:
        if isinstance(self._begun, LeafRun):
            outcome = self._begun.outcome.result()
            if isinstance(outcome, HandOverError):
                raise outcome
            self.collected = outcome
        while True:
            assert self.collected is not None
            try:
                for _ in self.collected.batches():
                    raise AssertionError("rows that stay do not come to the driver")
            except QueryError as error:
                again = None if self._replanning is None else self._replanning.after(error)
                if again is None:
                    raise
                self.collected = again
            else:
                return

    def cancel(self) -> None:
        """End the query, unless all of its rows are there."""
        if isinstance(self._begun, LeafRun):
            self._begun.cancel()
        elif self.collected is not None:
            self.collected.cancel()

    def release(self) -> None:
        """Let the rows go, or end the query that makes them. Once is enough."""
        self._released = True
        if self._head is not None and self.collected is not None:
            self._head.release(self.collected.query)
        elif not self._whole:
            self.cancel()

    @property
    def is_there(self) -> bool:
        """Can the rows be read?"""
        return self._head is not None and self.query in self._head.kept.queries

    def places(self) -> KeptPlaces:
        """Where the rows are, and how many.

        Raises:
            KeptResultError: they are not there any more.
            GcsError: the control store does not answer, or is lost.
        """
        assert self._head is not None, "await_whole comes first"
        assert self.collected is not None
        query = self.collected.query
        channels = self._head.kept.channels(query)
        sizes = self._head.kept_sizes(query, channels)
        outputs = tuple(
            KeptOutput(KeptRange(each.channel, each.edge, seq, seq + 1), rows, size_bytes)
            for each in whole_result(self.collected.graph, channels)
            for seq, (rows, size_bytes) in enumerate(sizes.get(each.channel) or [(0, 0)] * each.end)
        )
        measured = len(sizes) == len(channels)
        return KeptPlaces(query, outputs, dict(self._head.kept.addresses(query)), measured)
