"""The watch over a TaskManager's memory: it reads the real usage, and acts when that is too much.

A separate thread checks every few milliseconds, more often near the limit. `floor` decides what to do, and this module
does it. Steps that take time (dropping caches, writing to files) run on another thread, so that the watch continues
meanwhile. No step changes an output: dropped caches are rebuilt, spilled data is the same, and a task that had to wait
records what it draws.

A query ends like after a task's own error: through the store, so that all workers and the client learn of it. If it
cannot be stopped here, its error is recorded first, and then the process ends, so that the replacement does not begin
the same query again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from wallaby.errors import GcsError, MemoryLimitError
from wallaby.errors.text import write_error
from wallaby.exchange.allocator import give_freed_memory_back
from wallaby.exchange.backup import Backup
from wallaby.gcs.interface import Gcs
from wallaby.lineage.names import QueryId
from wallaby.lineage.verdict import Verdict
from wallaby.node.garbage import collect_garbage
from wallaby.node.node import EngineNode, WorkerQuery
from wallaby.node.pools import CallPool, KernelPool
from wallaby.statements.connection import close_thread_session
from wallaby.worker.memory.floor import (
    AGAIN_SECONDS,
    END_SECONDS,
    MIB,
    RESERVE_BYTES,
    MemoryAct,
    MemoryFloor,
    MemoryLimits,
)
from wallaby.worker.memory.greed import QueryMemory, greed_of, greediest
from wallaby.worker.memory.states import ChannelStates
from wallaby.worker.memory.usage import proportional_bytes, resident_bytes, room_bytes

_log = logging.getLogger(__name__)
#: How long the watch sleeps: the minimum, the maximum, and the maximum while no query runs.
LOOK_SECONDS_MIN: Final = 0.005
LOOK_SECONDS_MAX: Final = 0.05
IDLE_SECONDS: Final = 0.5
#: The assumed maximum growth of memory per second: the nearer the limit, the shorter the sleep.
GROWTH_BYTES: Final = 4 << 30
#: How often shared memory, and what the host leaves, are read.
SHARED_SECONDS: Final = 0.05
ROOM_SECONDS: Final = 0.25
#: How often, and for how long in total, it tries to tell the store of a query that costs the worker.
TELL_TIMES: Final = 5
TELL_SECONDS: Final = 0.1
#: How long after the end of a query its remaining cycles are collected: by then nothing else should refer to it.
GONE_SECONDS: Final = 1.0
#: On Linux priorities belong to threads.
NICENESS: Final = -10


class MemoryReadings(Protocol):
    """The source of the figures; see `usage`."""

    def resident(self) -> int:
        """The memory of the process, including all that it shares."""

    def proportional(self) -> int:
        """The memory of the process, with its part of what it shares."""

    def room(self) -> int | None:
        """The bytes that the host and its control groups leave."""


class HostReadings:
    """The real figures of this host. Processes that exist only for a TaskManager count with it.

    The keeper from which it was forked, and its lease keeper, share the libraries that the keeper has loaded; the
    proportional measure of each has a part of them.
    """

    def __init__(self, *beside: int) -> None:
        """`beside` are the processes that count with this one."""
        self._beside = beside
        self._beside_bytes = 0

    def resident(self) -> int:
        """See `usage`; never less than `proportional` was when it was last read."""
        return resident_bytes() + self._beside_bytes

    def proportional(self) -> int:
        """See `usage`."""
        self._beside_bytes = sum(proportional_bytes(str(process)) for process in self._beside)
        return proportional_bytes() + self._beside_bytes

    def room(self) -> int | None:
        """See `usage`."""
        return room_bytes()


class MemoryWatch:
    """Watches a TaskManager's memory; see the module. `leave` ends the process."""

    def __init__(
        self,
        node: EngineNode,
        kernels: KernelPool,
        backup: Backup,
        states: ChannelStates,
        gcs: Gcs,
        limits: MemoryLimits,
        leave: Callable[[], None],
        looks: MemoryReadings | None = None,
        *,
        keeps_freed_memory: bool = False,
    ) -> None:
        """`keeps_freed_memory` leaves what ended queries have freed to others that are served."""
        self._node = node
        self._kernels = kernels
        self._backup = backup
        self._states = states
        self._gcs = gcs
        self._leave = leave
        self._looks = looks if looks is not None else HostReadings()
        self._floor = MemoryFloor(limits)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"wallaby-{node.worker}-memory", daemon=True)
        self._steps = CallPool(f"wallaby-{node.worker}-relief", 1, node.end)
        self._notes = CallPool(f"wallaby-{node.worker}-strain", 1, node.end)
        self._at_work = False
        #: How much of the resident memory is shared with others, and when that was read; the same for the room that is
        #: left.
        self._shared_bytes, self._shared_at = 0, float("-inf")
        self._room_bytes: int | None = None
        self._room_at = float("-inf")
        #: The query that was told to end, and its error.
        self._ending: tuple[WorkerQuery, MemoryLimitError] | None = None
        #: The query that was reported to the store as the one that takes most.
        self._blamed: QueryId | None = None
        #: What was used at the last check, and when that was.
        self._last_bytes, self._last_at = 0, float("-inf")
        self._helpless = False
        #: The queries that were served at the last check, and when the remains of ended ones are collected.
        self._served: frozenset[QueryId] = frozenset()
        self._collect_at: float | None = None
        self._keeps_freed_memory = keeps_freed_memory
        #: When the memory that they have freed is given back.
        self._give_back_at: float | None = None

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def close(self, wait_seconds: float) -> None:
        """End the threads."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(wait_seconds)
        self._steps.stop(wait_seconds)
        self._notes.stop(wait_seconds)

    def _run(self) -> None:
        with contextlib.suppress(
            OSError
        ):  # if permitted, with a higher priority than the threads that fill memory
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            while not self._over.wait(self._sleep_seconds()):
                self.look(time.monotonic())
        except Exception as error:  # noqa: BLE001 - a watch that has ended in silence would be none
            _log.exception("the memory watch failed")
            self._node.end(error)

    def _sleep_seconds(self) -> float:
        if not self._node.worker_queries and self._ending is None and not self._floor.strained:
            return IDLE_SECONDS
        used = self._looks.resident() - self._shared_bytes
        room = self._floor.limits.near_bytes - used
        if self._room_bytes is not None:
            room = min(room, self._room_bytes - RESERVE_BYTES - self._floor.limits.allowance_bytes // 2)
        return min(max(room / GROWTH_BYTES, LOOK_SECONDS_MIN), LOOK_SECONDS_MAX)

    def look(self, now: float) -> None:
        """Check once, and act if necessary."""
        self._press_on(now)
        self._collect_after_queries(now)
        used, room = self._used_bytes(now), self._room(now)
        growing = self._growing_bytes(now, used)
        act = self._floor.decide(now, used, room, at_work=self._at_work, growing_bytes=growing)
        if act is MemoryAct.NOTHING:
            return
        self._shared_at = float("-inf")  # to be sure
        used = self._used_bytes(now)
        act = self._floor.decide(now, used, room, at_work=self._at_work, growing_bytes=growing)
        match act:
            case MemoryAct.SHED | MemoryAct.SPILL:
                self._step(act, used)
            case MemoryAct.END:
                self._end(now, used, room)
            case MemoryAct.LEAVE:
                self._go(used)
            case MemoryAct.RELAX:
                self._relax(now, used)
            case MemoryAct.NOTHING:
                pass

    def _collect_after_queries(self, now: float) -> None:
        """Collect cycles of ended queries, once their last steps and calls have released them.

        What they have freed is given back then; if it is kept for other queries, when there have been none for a while.
        """
        served = frozenset(self._node.worker_queries)
        if self._served - served:
            self._collect_at = self._give_back_at = now + GONE_SECONDS
        self._served = served
        if self._give_back_at is not None and served and self._keeps_freed_memory:
            self._give_back_at = now + GONE_SECONDS
        if self._collect_at is not None and now >= self._collect_at:
            self._collect_at = None
            self._steps.submit(collect_garbage)
        if self._give_back_at is not None and now >= self._give_back_at:
            self._give_back_at = None
            self._steps.submit(give_freed_memory_back)

    def _growing_bytes(self, now: float, used_bytes: int) -> int:
        """How much the process grows until a query that is told to end has ended, at the pace since the last check."""
        grown, seconds = used_bytes - self._last_bytes, now - self._last_at
        self._last_bytes, self._last_at = used_bytes, now
        return int(max(grown, 0) / max(seconds, LOOK_SECONDS_MIN) * END_SECONDS)

    # --- figures -------------------------------------------------------------------------------------

    def _used_bytes(self, now: float) -> int:
        """The memory of the process. Its shared part is read from time to time, and only if it may matter."""
        resident = self._looks.resident()
        if resident < self._floor.limits.near_bytes:
            return resident
        if now - self._shared_at >= SHARED_SECONDS:
            proportional = self._looks.proportional()
            self._shared_bytes, self._shared_at = max(self._looks.resident() - proportional, 0), now
            return proportional
        return resident - self._shared_bytes

    def _room(self, now: float) -> int | None:
        """The bytes that the kernel leaves; read rarely while that is plenty."""
        tight = self._room_bytes is not None and self._room_bytes < GROWTH_BYTES * ROOM_SECONDS
        if tight or now - self._room_at >= ROOM_SECONDS:
            self._room_bytes, self._room_at = self._looks.room(), now
        return self._room_bytes

    # --- steps that take time ------------------------------------------------------------------------

    def _step(self, act: MemoryAct, used_bytes: int) -> None:
        """Begin a step on the other thread."""
        self._at_work = True
        self._kernels.narrow(1)
        self._blame(self._greediest())

        def job() -> None:
            worker_queries = self._computing()
            try:
                freed = self._shed(worker_queries) if act is MemoryAct.SHED else self._spill(worker_queries)
            finally:
                self._floor.took(act, time.monotonic())
                self._at_work = False
            self._tell(act, used_bytes, freed)

        self._steps.submit(job)

    def _shed(self, worker_queries: list[WorkerQuery]) -> int:
        before = self._looks.resident()
        for worker_query in worker_queries:
            worker_query.work.forget()
        self._kernels.on_each(_tidy)
        collect_garbage()
        give_freed_memory_back()
        return max(before - self._looks.resident(), 0)

    def _spill(self, worker_queries: list[WorkerQuery]) -> int:
        self._backup.press(pressed=True)
        self._states.press(pressed=True)
        moved = self._backup.spill()
        for worker_query in worker_queries:
            worker_query.work.forget()  # an index holds the rows from which it was made
            moved += worker_query.work.spill()
        give_freed_memory_back()
        return moved

    def _relax(self, now: float, used_bytes: int) -> None:
        self._backup.press(pressed=False)
        self._states.press(pressed=False)
        self._kernels.narrow(None)
        self._floor.took(MemoryAct.RELAX, now)
        self._blame(None)
        self._helpless = False
        self._tell(MemoryAct.RELAX, used_bytes, 0)

    # --- ending a query ------------------------------------------------------------------------------

    def _end(self, now: float, used_bytes: int, room: int | None) -> None:
        """Tell the query that takes most to end, as if one of its tasks had raised an error."""
        greed = self._greediest()
        limits = self._floor.limits
        if greed is None or not limits.is_greedy(greed.size_bytes, used_bytes, room):
            if not self._helpless:
                _log.warning("%s uses %d MiB that belong to no query", self._node.worker, used_bytes // MIB)
            self._helpless = True
            if not self._at_work and now - (self._floor.shed_at or 0.0) >= AGAIN_SECONDS:
                self._step(MemoryAct.SHED, used_bytes)
            return
        tight = room is not None and room < RESERVE_BYTES * 2
        error = greed.error(self._node.worker, used_bytes, limits, room if tight else None)
        worker_query = greed.worker_query
        _log.warning("%s ends query %s: %s", self._node.worker, worker_query.query, error)
        self._blame(greed)
        self._ending = worker_query, error
        self._floor.took(MemoryAct.END, now)
        worker_query.work.stop(error)
        self._node.loop.post(self._node.fail, worker_query, error)
        self._tell(MemoryAct.END, used_bytes, 0)
        self._press_on(now)

    def _press_on(self, now: float) -> None:
        """Interrupt the running tasks of a query that was told to end; others must not wait for them."""
        if self._ending is None:
            return
        worker_query, error = self._ending
        running = worker_query.work.stop(error)
        if not running and worker_query.query not in self._node.worker_queries:
            self._ending = None
            self._floor.query_gone(now)
            self._kernels.narrow(1)
        else:
            self._kernels.narrow(1 + running)

    def _go(self, used_bytes: int) -> None:
        """The last resort: record the query's error, then end the process."""
        assert self._ending is not None, "a worker leaves only after it has tried to end a query"
        worker_query, error = self._ending
        _log.error("%s leaves: query %s cannot be stopped", self._node.worker, worker_query.query)
        self._tell(MemoryAct.LEAVE, used_bytes, 0)
        for _ in range(TELL_TIMES):
            epoch = worker_query.session.context.epoch
            try:
                verdict = self._gcs.fail(worker_query.query, self._node.worker, epoch, write_error(error))
            except GcsError:
                break  # the note that it is strained must suffice
            if verdict not in (Verdict.FROZEN, Verdict.STALE):
                break
            time.sleep(TELL_SECONDS)
        self._over.set()
        self._leave()

    # --- who it is -----------------------------------------------------------------------------------

    def _computing(self) -> list[WorkerQuery]:
        return [
            worker_query
            for worker_query in list(self._node.worker_queries.values())
            if worker_query.work is not None
        ]

    def _greediest(self) -> QueryMemory | None:
        return greediest(self._computing(), self._backup, self._looks.resident())

    def _blame(self, greed: QueryMemory | None) -> None:
        """Tell the store which query is to blame, in case this worker is killed."""
        query = greed.worker_query.query if greed is not None else None
        if query == self._blamed:
            return
        before, self._blamed = self._blamed, query

        def note() -> None:
            try:
                if before is not None:
                    self._gcs.strain(before, self._node.worker, False)
                if query is not None:
                    self._gcs.strain(query, self._node.worker, True)
            except GcsError as error:
                _log.debug("the store does not know that %s is strained: %s", self._node.worker, error)

        self._notes.submit(note)

    def _tell(self, act: MemoryAct, used_bytes: int, freed_bytes: int) -> None:
        """Report an act to the query's observer."""
        limit, resident = self._floor.limits.limit_bytes, self._looks.resident()
        for worker_query in self._computing():
            if worker_query.recorder is not None:
                held = greed_of(worker_query, self._backup, resident).size_bytes
                worker_query.recorder.short_of_memory(act.name.lower(), used_bytes, limit, held, freed_bytes)


def _tidy() -> None:
    """Free what DuckDB keeps, on a kernel thread between two tasks."""
    close_thread_session()
    give_freed_memory_back()
