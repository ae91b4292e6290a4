"""What one query at one worker keeps in the durable store, in addition to or instead of the worker's own backup.

Outputs that must outlive the worker are written there before their commit; the worker's memory then holds a copy only
while there is room and some consumer lacks it. Outputs that the worker does not have, because they were made elsewhere
or released, are found by their records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from wallaby.errors import GcsUnavailableError
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.lazy_body import GoneError
from wallaby.exchange.spool import Spool
from wallaby.gcs.interface import Gcs
from wallaby.lineage.effects import BackUp, FailPoint, Slice
from wallaby.lineage.lineage import LineageRecord, decode
from wallaby.lineage.names import ChannelName, Edge, QueryId, TaskName
from wallaby.lineage.verdict import Verdict
from wallaby.node.outputs.checkpoints import Checkpoints
from wallaby.node.outputs.cuts import Cuts
from wallaby.node.outputs.released import Released
from wallaby.node.session import QuerySession


class LocalBackup(Protocol):
    """The worker's own backup; see `exchange.backup`."""

    def keep_in_memory(
        self, query: QueryId, task: TaskName, output: Mapping[Edge, Any], *, final: bool, since_epoch: int
    ) -> bool:
        """Keep an output if memory has room for it."""

    def has(self, query: QueryId, task: TaskName) -> bool:
        """Is this output kept?"""

    def slices_of(
        self, query: QueryId, items: Iterable[tuple[Edge, TaskName]], limit_bytes: int
    ) -> tuple[Slice, ...]:
        """The slices of kept outputs."""


class DurableOutputs:
    """Durable outputs; see the module. For threads that may wait."""

    def __init__(
        self, store: DurableStore, query: QueryId, session: QuerySession, gcs: Gcs, checkpoint_seconds: float
    ) -> None:
        tolerance = session.context.tolerance
        self._query = query
        self._worker = session.worker
        self.released = Released(session)
        self._gcs = gcs
        self._records: dict[ChannelName, tuple[bytes, ...]] = {}
        self._spool = Spool(store, query) if tolerance.durable else None
        self.checkpoints = Checkpoints(store, query, checkpoint_seconds)
        self.cuts = Cuts(store, query, session.graph, self.checkpoints, checkpoint_seconds)

    @property
    def spools(self) -> bool:
        """Do outputs go to the durable store?"""
        return self._spool is not None

    def keep(self, local: LocalBackup, effect: BackUp) -> int:
        """Write an output, unless it exists already, and keep a copy while there is room; returns the bytes written."""
        assert self._spool is not None
        bodies = {edge: body for edge, (_, body) in effect.output.slices.items()}
        written = 0
        if effect.point is FailPoint.BACK_UP:
            checksum = effect.output.checksum
            written = self._spool.keep(effect.task, checksum, bodies, final=effect.final)  # type: ignore[arg-type]
        since = effect.since_epoch
        local.keep_in_memory(self._query, effect.task, bodies, final=effect.final, since_epoch=since)
        return written

    def slices_of(
        self, local: LocalBackup, items: Iterable[tuple[Edge, TaskName]], epoch: int, limit_bytes: int
    ) -> tuple[Slice, ...]:
        """The first slices of a push, up to a size. `GoneError` if the GCS does not say which records are committed."""
        found: list[Slice] = []
        total_bytes = 0
        for edge, task in items:
            try:
                (piece,) = local.slices_of(self._query, ((edge, task),), limit_bytes)
            except GoneError:
                if self._spool is None:
                    raise
                piece = self._spool.slice_of(task, edge, self._record(task, epoch))
            total_bytes += piece.size_bytes
            if found and total_bytes > limit_bytes:
                break
            found.append(piece)
        return tuple(found)

    def _record(self, task: TaskName, epoch: int) -> LineageRecord:
        """The committed record of a task, which identifies the object of its output."""
        known = self._records.get(task.of, ())
        if task.seq >= len(known):
            try:
                reply = self._gcs.records(self._query, self._worker, epoch, task.of)
            except GcsUnavailableError as error:
                raise GoneError(f"The record of {task} cannot be read now.") from error
            if reply.verdict is not Verdict.DONE or task.seq >= len(reply.records):
                raise GoneError(f"The record of {task} cannot be read now: {reply.verdict.value}.")
            known = self._records[task.of] = reply.records
        return decode(known[task.seq])
