"""Execute tasks in production: run kernels on Arrow data, then cut the output into slices and compute its checksum.

All of it runs on a kernel thread. One task at a time uses a channel's kernel; re-reads, several of which may run at
once, have a kernel per thread.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from wallaby.batches import stopping
from wallaby.batches.checksum import checksum
from wallaby.batches.sizes import merged
from wallaby.batches.task_timing import Lap, lap
from wallaby.errors import MemoryLimitError, QueryCancelledError, QueryError
from wallaby.exchange.allocator import give_freed_memory_back
from wallaby.lineage.effects import Execute, Executed, FailPoint, Output, Slice
from wallaby.lineage.graph import Routing
from wallaby.lineage.names import Edge, TaskName
from wallaby.node.garbage import collect_garbage, let_go_of_frames
from wallaby.node.payload import QueryPayload
from wallaby.operators.kernel import EMPTY, Kernel, make_kernel
from wallaby.operators.partition import partition
from wallaby.operators.scan_kernel import ScanKernel
from wallaby.operators.shared import SharedInputs
from wallaby.plan.operator_word import operator_word
from wallaby.plan.physical import (
    JoinFragment,
    MapFragment,
    PhysicalPlan,
    ReduceFragment,
    ScanFragment,
    WriteFragment,
)
from wallaby.statements.connection import KernelSettings, thread_session
from wallaby.tables.file_systems import make_known
from wallaby.tables.in_place import readable_files
from wallaby.worker.memory.growth import ProcessGrowth
from wallaby.worker.memory.shares import KERNEL_SHARE, TASK_SHARE
from wallaby.worker.memory.states import ChannelStates
from wallaby.worker.memory.usage import resident_bytes

_Batches = tuple[pa.RecordBatch, ...]
#: The default limit of what channels may collect in memory.
STATE_BYTES = 1 << 30
#: The end of a query waits this long and this often for tasks that it has stopped: one may be between two statements.
STOP_SECONDS = 0.05
STOPS_MAX = 20


class Execution:
    """The things that all queries of one TaskManager share, such as the directory to which kernels spill."""

    def __init__(
        self, local_directory: str, state_bytes: int = STATE_BYTES, *, keeps_freed_memory: bool = False
    ) -> None:
        """`keeps_freed_memory` leaves what an ended query has freed to the next one."""
        self._directory = Path(tempfile.mkdtemp(prefix="wallaby-kernels-", dir=local_directory))
        self.states = ChannelStates(self._directory, state_bytes)
        self._growth = ProcessGrowth()
        self._keeps_freed_memory = keeps_freed_memory

    def of(self, payload: QueryPayload) -> QueryWork:
        """Make the work of one query."""
        make_known(payload.storages)
        settings = KernelSettings(
            memory_bytes=payload.kernel_memory_bytes,
            temp_directory=self._directory,
            portion_bytes=payload.task_target_bytes,
            # Reads count towards the task's share, which follows from the kernel's: both are parts of one budget.
            read_bytes=int(payload.kernel_memory_bytes / KERNEL_SHARE * TASK_SHARE),
            readable=readable_files(payload.plan.fragments),
        )
        return QueryWork(
            payload.plan,
            settings,
            self.states,
            self._growth,
            tolerant=payload.tolerance.recorded,
            keeps_freed_memory=self._keeps_freed_memory,
        )

    def close(self) -> None:
        """Remove spilled data."""
        shutil.rmtree(self._directory, ignore_errors=True)


class QueryWork:
    """The computation of one query at one TaskManager."""

    def __init__(
        self,
        plan: PhysicalPlan,
        settings: KernelSettings,
        states: ChannelStates,
        growth: ProcessGrowth | None = None,
        *,
        tolerant: bool = True,
        keeps_freed_memory: bool = False,
    ) -> None:
        self._tolerant = tolerant
        self._keeps_freed_memory = keeps_freed_memory
        self._plan = plan
        self._settings = settings
        self._states = states
        self._growth = growth if growth is not None else ProcessGrowth()
        self._kernels: dict[tuple[int, int], tuple[Kernel, threading.Lock]] = {}
        self._shared: dict[int, SharedInputs] = {}
        self._lock = threading.Lock()
        #: Set when the query must stop: the error with which its tasks end.
        self._stopped: QueryError | None = None

    def execute(self, effect: Execute) -> Executed:
        """Run one step of one channel; returns an output with a slice for every edge."""
        with self.running(effect.task):
            return self._execute(effect)

    @contextmanager
    def running(self, task: TaskName) -> Iterator[None]:
        """Register what this thread does inside as work for this task, which can be stopped."""
        if self._stopped is not None:
            raise self._stopped
        before_bytes = resident_bytes()
        self._growth.begins(self, before_bytes, time.monotonic())
        try:
            with stopping.stoppable(self, task, before_bytes):
                yield
        finally:
            self._growth.ends(self, resident_bytes(), time.monotonic())

    def grown_bytes(self, resident: int) -> int:
        """The bytes by which the query's tasks have made the process grow, if it has `resident` bytes now."""
        return self._growth.of(self, resident, time.monotonic())

    def tasks(self) -> tuple[stopping.Task, ...]:
        """The running tasks."""
        return stopping.running(self)

    def stop(self, error: QueryError) -> int:
        """Stop computing: tasks end with this error, running ones as soon as they can. Returns how many are running.

        Call it again while some are running: a step may be between two statements.
        """
        self._stopped = error
        return stopping.stop(self, error)

    def _execute(self, effect: Execute) -> Executed:
        stage = effect.task.stage
        fragment = self._plan.fragments[stage]
        split, begin, splits = None, 0, 1
        if effect.split is not None and isinstance(fragment, ScanFragment):
            splits = len(fragment.splits)
            split, begin = fragment.splits[effect.split % splits], effect.split // splits
        try:
            kernel, turn = self._kernel(effect)
            with turn:  # a rewound channel may begin here before its last task has ended
                state, result = kernel.step(
                    effect.state if effect.state is not None else EMPTY,
                    split=split,
                    begin=begin,
                    inputs=self._inputs(effect),
                    sides=self._sides(effect),
                    last=effect.last,
                )
            with lap(Lap.PARTITION):
                slices = self._cut(effect.task, merged(result.batches))
        except MemoryLimitError as error:
            if error is self._stopped:
                raise
            raise _told_where(error, self._plan, effect.task) from error
        with turn:  # it must not be spilled meanwhile
            if isinstance(fragment, JoinFragment | ReduceFragment | MapFragment | WriteFragment):
                state = self._states.settle((self, effect.task.of), state)
            self._settle_kept(self._key(effect), kernel)
        with lap(Lap.CHECKSUM):
            total = checksum(slices[edge] for edge in sorted(slices)) if self._tolerant else 0
        bodies = {edge: (sum(b.nbytes for b in part), part or None) for edge, part in slices.items()}
        next_split = None
        if result.begin is not None and effect.split is not None:
            next_split = result.begin * splits + effect.split % splits
        return Executed(state, Output(total, bodies, result.satisfied, result.rest, next_split))

    def forget(self) -> None:
        """Drop the caches of idle kernels; they are rebuilt when needed."""
        with self._lock:
            kernels = list(self._kernels.items())
        for key, (kernel, turn) in kernels:
            if turn.acquire(blocking=False):
                try:
                    kernel.forget()
                    self._settle_kept(key, kernel)
                finally:
                    turn.release()

    def _settle_kept(self, key: tuple[int, int], kernel: Kernel) -> None:
        """Count the rows that a reader keeps for its next task as collected state."""
        if isinstance(kernel, ScanKernel):
            kernel.kept = self._states.settle((self, _Reader(*key)), kernel.kept)

    def spill(self) -> int:
        """Spill the states of idle channels to files; returns the bytes."""
        with self._lock:
            turns = {key: turn for key, (_, turn) in self._kernels.items()}
        moved = 0
        for channel, turn in turns.items():
            if turn.acquire(blocking=False):
                try:
                    moved += self._states.spill((self, channel))
                finally:
                    turn.release()
        return moved

    def held_bytes(self) -> dict[int, int]:
        """The bytes that channels have collected in memory, by stage."""
        return self._states.held_bytes(self)

    def operator_of(self, stage: int) -> str:
        """The operator of a stage, in a word."""
        return _operator(self._plan, stage)

    def close(self) -> None:
        """End the work: stop what still computes for the query, and free what its channels collected."""
        self._end_tasks()
        self._states.drop(self)
        self._growth.forget(self)
        with self._lock:
            self._kernels.clear()
            self._shared.clear()
        let_go_of_frames(self._stopped)
        collect_garbage()
        if not self._keeps_freed_memory:
            give_freed_memory_back()

    def _end_tasks(self) -> None:
        """Stop the running tasks. A cancelled join could otherwise keep its thread from other queries for hours."""
        error = self._stopped or QueryCancelledError("The query has ended.")
        for _ in range(STOPS_MAX):
            if not self.stop(error):
                return
            time.sleep(STOP_SECONDS)

    def _key(self, effect: Execute) -> tuple[int, int]:
        """The key of a kernel: a channel, or a thread for all re-reads of a stage."""
        return (
            effect.task.of
            if effect.point is not FailPoint.REREAD
            else (effect.task.stage, threading.get_ident())
        )

    def _kernel(self, effect: Execute) -> tuple[Kernel, threading.Lock]:
        key = self._key(effect)
        with self._lock:
            if key not in self._kernels:
                stage = effect.task.stage
                shared = self._shared.setdefault(stage, SharedInputs())
                fragment, keys = self._plan.fragments[stage], self._hashed_by(stage)
                kernel = make_kernel(
                    fragment, self._settings, keys, shared, self._optional(stage), effect.task.channel
                )
                self._kernels[key] = kernel, threading.Lock()
            return self._kernels[key]

    def _hashed_by(self, stage: int) -> dict[int, tuple[int, ...]]:
        """The positions of the keys by which rows are distributed to the channels of a stage, by input number."""
        return {
            number: self._plan.partition_keys[links[0]]
            for number, links in enumerate(self._plan.graph.phases(stage))
            if links
        }

    def _inputs(self, effect: Execute) -> Mapping[int, list[pa.RecordBatch]]:
        """The drawn batches by input number; in a join the phase determines the side."""
        if effect.draw is None:
            return {}
        number = 0
        if isinstance(self._plan.fragments[effect.task.stage], JoinFragment):
            phases = self._plan.graph.phases(effect.task.stage)
            number = next(at for at, links in enumerate(phases) if effect.draw.link in links)
        return {number: _batches(effect.inputs)}

    def _optional(self, stage: int) -> frozenset[int]:
        """The numbers of the side inputs that are applied only if they arrive in time."""
        graph, first = self._plan.graph, self._first_side(stage)
        links = graph.sides(stage)
        return frozenset(first + at for at, link in enumerate(links) if not graph.links[link].required)

    def _first_side(self, stage: int) -> int:
        return 2 if isinstance(self._plan.fragments[stage], JoinFragment) else 1

    def _sides(self, effect: Execute) -> Mapping[int, list[pa.RecordBatch]]:
        first = self._first_side(effect.task.stage)
        links = self._plan.graph.sides(effect.task.stage)
        return {
            first + at: _batches(effect.sides[link]) for at, link in enumerate(links) if link in effect.sides
        }

    def _cut(self, task: TaskName, batches: _Batches) -> dict[Edge, _Batches]:
        """Cut an output into the slice of every edge: all rows, or those whose key belongs to the consumer."""
        slices: dict[Edge, _Batches] = {}
        parts: dict[int, list[list[pa.RecordBatch]]] = {}
        for edge in self._plan.graph.edges_from(task.of):
            link = self._plan.graph.links[edge.link]
            keys = self._plan.partition_keys[edge.link]
            channels = self._plan.graph.stages[link.consumer].channels
            if link.routing is not Routing.HASH or channels == 1 or not keys:
                slices[edge] = batches
                continue
            if edge.link not in parts:
                parts[edge.link] = partition(batches, keys, channels, thread_session(self._settings))
            slices[edge] = tuple(parts[edge.link][edge.consumer])
        return slices


class _Reader(NamedTuple):
    """A kernel that keeps rows of an unfinished split; see `QueryWork._key`."""

    stage: int
    of: int


def _told_where(error: MemoryLimitError, plan: PhysicalPlan, task: TaskName) -> MemoryLimitError:
    """Add the operator and the stage to an error."""
    operator = _operator(plan, task.stage)
    what = f"The {operator} of stage {task.stage}: {error.what}"
    fix = f"{error.fix} engine.explain(df) shows the stages."
    more = {"operator": operator, "stage": task.stage, "task": task}
    return MemoryLimitError(what, fix=fix, **{**error.fields, **more})


def _operator(plan: PhysicalPlan, stage: int) -> str:
    return operator_word(plan.fragments[stage])


def _batches(slices: tuple[Slice, ...]) -> list[pa.RecordBatch]:
    return [batch for piece in slices for batch in (piece.body or ())]  # type: ignore[attr-defined]
