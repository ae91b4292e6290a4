"""Kept rows: a query that has run to its end, and whose rows stay with the TaskManagers until they are released.

The query's lineage protects the rows: if a TaskManager is lost, others make its rows again. This is the driver's side:
it waits for the rows, finds where they are and how many, and releases them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from wallaby.frontend.replanning import Replanning
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.lineage.kept import KeptRange, whole_result
from wallaby.lineage.names import ChannelName, QueryId
from wallaby.results.awaited import AwaitedRun
from wallaby.results.lifetime import QueryLifetime
from wallaby.spark.leaves.run import LeafRun


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """One output of a result, which is never divided: its position in the result, and its size."""

    range: KeptRange
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LocatedResult:
    """A whole result: its outputs in order, and the addresses of its channels at the time of asking."""

    query: QueryId
    outputs: tuple[KeptOutput, ...]
    addresses: dict[ChannelName, str]
    #: Have all workers reported sizes? Outputs of unknown size count as empty.
    measured: bool = True

    @property
    def rows(self) -> int:
        """The number of rows; -1 if unknown."""
        return sum(output.rows for output in self.outputs) if self.measured else -1

    @property
    def size_bytes(self) -> int:
        """The bytes of the rows in memory; -1 if unknown."""
        return sum(output.size_bytes for output in self.outputs) if self.measured else -1


class KeptRows(AwaitedRun):
    """One run of a query whose rows are kept. Threads may share it."""

    def __init__(
        self,
        begun: Collected | LeafRun,
        head: Callable[[], Head],
        lifetime: QueryLifetime,
        replanning: Replanning | None,
    ) -> None:
        super().__init__(begun, lifetime, replanning)
        self._find_head = head
        self._lock = threading.Lock()
        self._whole = False
        self._released = False
        self._head: Head | None = None

    @property
    def query(self) -> QueryId | None:
        """The query's name; None while Spark still runs a part of it first."""
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
            came = self.await_rows()
            assert not came, "kept rows do not come to the driver"
            self._whole = True
            self._head = self._find_head()
        if self._released:  # during the wait
            self.release()

    def release(self) -> None:
        """Release the rows, or end the query that makes them. Further calls do nothing."""
        self._released = True
        if self._head is not None and self.collected is not None:
            self._head.release(self.collected.query)
        elif not self._whole:
            self.cancel()

    @property
    def is_there(self) -> bool:
        """Can the rows be read?"""
        return self._head is not None and self.query in self._head.kept.queries

    def locate(self) -> LocatedResult:
        """Find the TaskManagers that hold the rows, and the sizes of the outputs.

        Raises:
            KeptResultError: the rows are gone.
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
        return LocatedResult(query, outputs, dict(self._head.kept.addresses(query)), measured)
