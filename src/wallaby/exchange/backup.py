"""Upstream backup: the outputs of one TaskManager, for all its queries, until each query is dropped.

Outputs are kept in memory while the budget lasts. After that, the oldest go to segment files, because they were
probably delivered long ago and are read again only after a failure; the newest stay in memory for delivery. An output
that does not fit in memory goes directly to its file. If the disk is full as well, `keep` returns False, and the worker
leaves as if it had crashed, or ends the query if it holds kept results (`node.outputs.disk_full`).

A committed name has one content (invariant 2), so keeping an output again changes nothing. That does not hold for an
attempt that was never committed: an output is kept with the epoch of the channel run that made it, and the output of a
later run replaces it (`lineage.effects.replaces`). Batch boundaries are preserved in memory and on disk. A body that
goes over several edges, a broadcast, is kept once.

Threads: `keep_in_memory`, `release`, `has` and the byte counts never touch a disk and may be called from any thread,
including kernel threads; so may `slices_of`, which returns handles for bodies in files. `keep`, `slice_of`, `drop` and
`close` may write, map or remove files, and are for threads that are allowed to wait. All may be called concurrently.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import pyarrow as pa

from wallaby.errors.files import FULL
from wallaby.exchange.body import Body, size_of
from wallaby.exchange.lazy_body import GoneError, LazyBody, fetched
from wallaby.exchange.memory import ByteBudget
from wallaby.exchange.segment import SEGMENT_BYTES, SegmentRange, Segments
from wallaby.lineage.effects import Slice, replaces
from wallaby.lineage.names import Edge, QueryId, TaskName

#: The prefix of backup directories, by which leftovers of killed processes are found and swept.
DIRECTORY_PREFIX = "wallaby-backup-"
#: How many dropped queries are remembered, to reject late outputs.
DROPPED_MAX = 4096


class _Stored:
    """One body, in memory or in a file. Its place is set before the batches are dropped, so readers need no lock."""

    __slots__ = ("batches", "place", "rows", "size_bytes")

    def __init__(self, batches: tuple[pa.RecordBatch, ...]) -> None:
        self.batches: tuple[pa.RecordBatch, ...] | None = batches
        self.place: SegmentRange | None = None
        self.size_bytes = size_of(batches)
        self.rows = sum(batch.num_rows for batch in batches)


class _Output:
    """One output: its bodies, each once, and which of them goes over which edge."""

    __slots__ = ("bodies", "by_edge", "final", "since_epoch", "size_bytes")

    def __init__(self, output: Mapping[Edge, Body], final: bool, since_epoch: int) -> None:
        self.bodies: dict[tuple[int, ...], _Stored] = {}
        self.by_edge: dict[Edge, _Stored | None] = {}
        self.final = final
        self.since_epoch = since_epoch
        for edge, body in output.items():
            stored = None
            if body:
                identity = tuple(map(id, body))
                stored = self.bodies.get(identity) or self.bodies.setdefault(identity, _Stored(body))
            self.by_edge[edge] = stored
        self.size_bytes = sum(stored.size_bytes for stored in self.bodies.values())


class Backup:
    """Upstream backup; see the module. `budget` may be shared; `disk_bytes_max` bounds the segment files."""

    def __init__(
        self,
        budget: ByteBudget,
        directories: Sequence[Path],
        disk_bytes_max: int,
        *,
        owner: str = "",
        compression: str | None = None,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._budget = budget
        self._disk = ByteBudget(disk_bytes_max)
        self._compression = compression
        self._segment_bytes = segment_bytes
        prefix = DIRECTORY_PREFIX + re.sub(r"[^\w-]", "_", owner, flags=re.ASCII)[:64] + "-"
        self._roots = tuple(Path(tempfile.mkdtemp(prefix=prefix, dir=parent)) for parent in directories)
        self._lock = threading.Lock()
        self._spilling = threading.Lock()
        self._outputs: dict[QueryId, dict[TaskName, _Output]] = {}
        self._segments: dict[QueryId, Segments] = {}
        self._disk_bytes: dict[QueryId, int] = {}
        #: The outputs in memory, the oldest first.
        self._in_memory: dict[tuple[QueryId, TaskName], _Output] = {}
        self._memory_bytes = 0
        self._dropped: dict[QueryId, None] = {}
        self._queries = 0
        self._pressed = False

    @property
    def directories(self) -> tuple[Path, ...]:
        """Where the segment files are."""
        return self._roots

    @property
    def bytes_in_memory(self) -> int:
        """The bytes of outputs in memory."""
        return self._memory_bytes

    @property
    def bytes_on_disk(self) -> int:
        """The bytes of outputs in segment files."""
        return self._disk.used_bytes

    def disk_bytes_of(self, query: QueryId) -> int:
        """The bytes that a query has in segment files."""
        with self._lock:
            return self._disk_bytes.get(query, 0)

    def memory_bytes_of(self, query: QueryId) -> int:
        """The bytes that a query has in memory."""
        with self._lock:
            return sum(entry.size_bytes for (of, _), entry in self._in_memory.items() if of == query)

    def press(self, *, pressed: bool) -> None:
        """Note whether memory is short. While it is, nothing new is kept in memory."""
        self._pressed = pressed

    def spill(self) -> int:
        """Move everything from memory to files; returns the bytes. It may wait for the disk."""
        moved = 0
        with self._spilling:
            while (oldest := self._oldest()) is not None:
                if not self._spill(*oldest):
                    break
                moved += oldest[2].size_bytes
        return moved

    # --- keeping -------------------------------------------------------------------------------------

    def keep_in_memory(
        self,
        query: QueryId,
        task: TaskName,
        output: Mapping[Edge, Body],
        *,
        final: bool,
        since_epoch: int = 1,
    ) -> bool:
        """Keep an output if memory has room for it. If False, call `keep` from a thread that may wait."""
        return self._enter(query, task, _Output(output, final, since_epoch))

    def keep(
        self,
        query: QueryId,
        task: TaskName,
        output: Mapping[Edge, Body],
        *,
        final: bool,
        since_epoch: int = 1,
    ) -> bool:
        """Keep an output in memory or on disk, making room if necessary; False if that is impossible."""
        entry = _Output(output, final, since_epoch)
        if self._enter(query, task, entry):
            return True
        with self._spilling:
            while (
                entry.size_bytes <= self._budget.limit_bytes
                and not self._pressed
                and (oldest := self._oldest()) is not None
            ):
                if not self._spill(*oldest):
                    break
                if self._enter(query, task, entry):
                    return True
            return self._spill_new(query, task, entry)

    def _enter(self, query: QueryId, task: TaskName, entry: _Output) -> bool:
        """Put an output into memory. One that is already kept, or that comes after the query's end, needs no room."""
        with self._lock:
            if query in self._dropped or self._stays(query, task, entry):
                return True
            if (self._pressed and entry.size_bytes) or not self._budget.take(entry.size_bytes):
                return False  # the old output stays until the new one is stored
            self._let_go(query, task)
            self._memory_bytes += entry.size_bytes
            self._outputs.setdefault(query, {})[task] = entry
            if entry.bodies:
                self._in_memory[query, task] = entry
            return True

    def _stays(self, query: QueryId, task: TaskName, entry: _Output) -> bool:
        """Is an output kept under this name that the new one does not replace? Call with the lock held."""
        kept = self._outputs.get(query, {}).get(task)
        return kept is not None and not replaces(entry.since_epoch, kept.since_epoch)

    def _let_go(self, query: QueryId, task: TaskName) -> None:
        """Forget an output. Data in files stays until the query is dropped. Call with the lock held."""
        self._outputs.get(query, {}).pop(task, None)
        entry = self._in_memory.pop((query, task), None)
        if entry is not None:
            self._memory_bytes -= entry.size_bytes
            self._budget.give(entry.size_bytes)

    def _oldest(self) -> tuple[QueryId, TaskName, _Output] | None:
        with self._lock:
            for (query, task), entry in self._in_memory.items():
                return query, task, entry
            return None

    def _spill(self, query: QueryId, task: TaskName, entry: _Output) -> bool:
        """Move an output from memory to disk. False if the disk has no room; it then stays in memory."""
        places = self._write(query, entry)
        if places is None and query not in self._dropped:
            return False
        with self._lock:
            if self._in_memory.get((query, task)) is not entry:
                return True  # dropped or replaced meanwhile, so already accounted for
            assert places is not None
            del self._in_memory[query, task]
            for stored, place in zip(entry.bodies.values(), places, strict=True):
                stored.place = place
                stored.batches = None
            self._memory_bytes -= entry.size_bytes
            self._budget.give(entry.size_bytes)
            return True

    def _spill_new(self, query: QueryId, task: TaskName, entry: _Output) -> bool:
        """Write an output that does not fit in memory directly to disk."""
        places = self._write(query, entry)
        with self._lock:
            if query in self._dropped:
                return True
            if places is None:
                return False
            for stored, place in zip(entry.bodies.values(), places, strict=True):
                stored.place = place
                stored.batches = None
            if not self._stays(query, task, entry):
                self._let_go(query, task)
                self._outputs.setdefault(query, {})[task] = entry
            return True

    def _write(self, query: QueryId, entry: _Output) -> list[SegmentRange] | None:
        """Write the bodies of an output; None if the disk is full or the query was dropped."""
        segments = self._segments_of(query)
        if segments is None:
            return None
        places = []
        for stored in entry.bodies.values():
            assert stored.batches is not None
            try:
                place = segments.append(stored.batches, self._disk.limit_bytes - self._disk.used_bytes)
            except OSError as error:
                if error.errno not in FULL:
                    raise
                return None
            if place is None or not self._account(query, place.length_bytes):
                return None
            places.append(place)
        return places

    def _account(self, query: QueryId, size_bytes: int) -> bool:
        """Count the bytes written. Only the spilling thread writes, so there is still room for them."""
        with self._lock:
            if query in self._dropped:
                return False
            if not self._disk.take(size_bytes):
                return False
            self._disk_bytes[query] = self._disk_bytes.get(query, 0) + size_bytes
            return True

    def _segments_of(self, query: QueryId) -> Segments | None:
        with self._lock:
            if query in self._dropped or not self._roots:
                return None
            if query not in self._segments:
                directories = tuple(root / str(self._queries) for root in self._roots)
                self._queries += 1
                self._segments[query] = Segments(directories, self._compression, self._segment_bytes)
            return self._segments[query]

    # --- reading -------------------------------------------------------------------------------------

    def has(self, query: QueryId, task: TaskName) -> bool:
        """Is this output kept?"""
        with self._lock:
            return task in self._outputs.get(query, ())

    def slices_of(
        self, query: QueryId, items: Iterable[tuple[Edge, TaskName]], limit_bytes: int | None = None
    ) -> tuple[Slice, ...]:
        """The first slices of a push, up to a size, at least one: all are in memory during the push.

        Bodies in files are `LazyBody`. The slices of a broadcast share one body, so that it is sent once. `GoneError`
        if one is not kept, because the query was dropped.
        """
        bodies: dict[int, tuple[pa.RecordBatch, ...] | LazyBody] = {}
        slices: list[Slice] = []
        total_bytes = 0
        for edge, task in items:
            entry, stored = self._find(query, task, edge)
            if stored is not None and id(stored) not in bodies:
                total_bytes += stored.size_bytes
                if slices and limit_bytes is not None and total_bytes > limit_bytes:
                    break
            if stored is None:
                slices.append(Slice(task, edge, entry.final))
                continue
            if id(stored) not in bodies:
                bodies[id(stored)] = stored.batches or LazyBody(partial(self._read, query, stored))
            slices.append(Slice(task, edge, entry.final, stored.size_bytes, bodies[id(stored)]))
        return tuple(slices)

    def sizes_of(self, query: QueryId, items: Iterable[tuple[Edge, TaskName]]) -> list[tuple[int, int]]:
        """Rows and bytes of some slices. `GoneError` if one is not kept."""
        found = [self._find(query, task, edge)[1] for edge, task in items]
        return [(stored.rows, stored.size_bytes) if stored is not None else (0, 0) for stored in found]

    def slice_of(self, query: QueryId, task: TaskName, edge: Edge) -> tuple[Body, bool, int]:
        """One slice: its body, whether it is its channel's last, and its size."""
        (piece,) = fetched(self.slices_of(query, ((edge, task),)))
        return cast(Body, piece.body), piece.final, piece.size_bytes

    def _find(self, query: QueryId, task: TaskName, edge: Edge) -> tuple[_Output, _Stored | None]:
        with self._lock:
            entry = self._outputs.get(query, {}).get(task)
        if entry is None or edge not in entry.by_edge:
            raise GoneError(f"The backup has no slice of {task} for {edge} of query {query}.")
        return entry, entry.by_edge[edge]

    def _read(self, query: QueryId, stored: _Stored) -> tuple[pa.RecordBatch, ...]:
        batches = stored.batches
        if batches is None and stored.place is not None:
            with self._lock:
                segments = self._segments.get(query)
            batches = segments.read(stored.place) if segments is not None else None
        if batches is None:
            raise GoneError(f"The backup of query {query} was dropped.")
        return batches

    # --- ending --------------------------------------------------------------------------------------

    def release(self, query: QueryId, tasks: Iterable[TaskName]) -> None:
        """Forget some outputs of a running query. Data in files stays until the query is dropped."""
        with self._lock:
            for task in tasks:
                self._let_go(query, task)

    def drop(self, query: QueryId) -> None:
        """Forget a query and remove its files. Later outputs of it are not kept."""
        with self._lock:
            self._dropped[query] = None
            while len(self._dropped) > DROPPED_MAX:
                del self._dropped[next(iter(self._dropped))]
            for task in list(self._outputs.get(query, ())):
                self._let_go(query, task)
            self._outputs.pop(query, None)
            segments = self._segments.pop(query, None)
            self._disk.give(self._disk_bytes.pop(query, 0))
        if segments is not None:
            segments.close()

    def close(self) -> None:
        """Drop every query and remove the directories."""
        with self._lock:
            queries = (*self._outputs, *self._segments)
            roots, self._roots = self._roots, ()
        for query in dict.fromkeys(queries):
            self.drop(query)
        for root in roots:
            shutil.rmtree(root, ignore_errors=True)
