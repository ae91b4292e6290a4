"""Kernels: what one channel of a stage computes, step by step.

A kernel belongs to one channel and is used by one thread at a time, any thread. A step takes a state and an input
and gives a new state and an output; states are immutable, so an older one can be taken up again at any time. What
a kernel itself keeps (indexes, tables made of many batches) is only a cache of what states and inputs say.
Outputs depend on the states, inputs and settings alone: same in, same bytes out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from wallaby.batches.chunks import Chunks, spooled
from wallaby.batches.mapped import MappedBatches, whole
from wallaby.batches.sizes import grouped
from wallaby.errors import InternalError
from wallaby.operators.fragment_tree import Trees
from wallaby.operators.program import NOTHING, Batches
from wallaby.operators.scan_kernel import ScanKernel
from wallaby.operators.shared import SharedInputs
from wallaby.operators.spill.external import External
from wallaby.operators.spill.parts import cut_into_parts, parts_for
from wallaby.operators.state import EMPTY, KernelState, StepResult, handed_on, made_of, next_portion
from wallaby.operators.taking import first_pace
from wallaby.plan.physical import (
    CollectFragment,
    Fragment,
    JoinFragment,
    LimitFragment,
    MapFragment,
    ReduceFragment,
    RowSplit,
    ScanFragment,
    Split,
)
from wallaby.statements.connection import KernelSettings, thread_session
from wallaby.statements.growth import Growth
from wallaby.statements.tree import is_inner
from wallaby.statements.widths import rows_at_once

#: Combining goes on if it leaves at most this part of the rows.
_SHRUNK_MAX = 0.75
#: For each input of a stage, by number, where the columns are whose hash decides the channel of a row.
Keys = Mapping[int, tuple[int, ...]]
_NO_KEYS: Keys = {}

__all__ = ["EMPTY", "Kernel", "KernelState", "StepResult", "make_kernel"]


class Kernel(Protocol):
    """What one channel runs."""

    def step(
        self,
        state: KernelState,
        *,
        split: Split | RowSplit | None = None,
        begin: int = 0,
        inputs: Mapping[int, Batches] = NOTHING,
        sides: Mapping[int, Batches] = NOTHING,
        last: bool = False,
    ) -> tuple[KernelState, StepResult]:
        """Run one step.

        `split` is for scans; `begin` says where in it, as the step before did. `inputs` are the batches of this step by
        input number: in a join 0 is the build side and 1 the probe side, elsewhere there is only 0. `sides` are all
        batches of the side links, by input number; one that is not there (a run-time filter that came too late) is not
        applied. `last` says that nothing comes after: there may be no input in such a step. If the step before left a
        rest, there is none: it goes on.
        """
        ...

    def forget(self) -> None:
        """Drop caches to free memory."""
        ...


def make_kernel(
    fragment: Fragment,
    settings: KernelSettings,
    keys: Keys = _NO_KEYS,
    shared: SharedInputs | None = None,
    optional: frozenset[int] = frozenset(),
) -> Kernel:
    """The kernel of one channel. `shared` is what the kernels of the same stage make together.

    `optional` are the numbers of the sides that need not be there.
    """
    shared = shared if shared is not None else SharedInputs()
    match fragment:
        case ScanFragment():
            return ScanKernel(fragment, settings, shared, optional)
        case JoinFragment():
            return JoinKernel(fragment, settings, shared, keys)
        case ReduceFragment():
            return ReduceKernel(fragment, settings)
        case MapFragment():
            return MapKernel(fragment, settings, shared)
        case LimitFragment():
            return LimitKernel(fragment)
        case CollectFragment():
            raise InternalError("The head has no kernel: it hands rows to the client.")


class MapKernel:
    """Runs a tree on each step's batches. Keeps no state."""

    def __init__(self, fragment: MapFragment, settings: KernelSettings, shared: SharedInputs) -> None:
        self._trees = Trees(fragment.tree, 0, settings, shared)
        self._growth = Growth(fragment.tree, 0, settings)
        self._rows_max = rows_at_once(fragment.tree, settings)
        self._settings = settings
        self._pace = first_pace(fragment.tree)

    def step(
        self,
        state: KernelState,
        *,
        split: Split | RowSplit | None = None,
        begin: int = 0,
        inputs: Mapping[int, Batches] = NOTHING,
        sides: Mapping[int, Batches] = NOTHING,
        last: bool = False,  # noqa: ARG002 - the last step is like any other
    ) -> tuple[KernelState, StepResult]:
        """Some batches, perhaps none."""
        assert split is None, "only scans read splits"
        assert not begin, "only scans read splits"
        if state.outgoing:
            return next_portion(state, self._settings)
        batches = state.pending or inputs.get(0, ())
        if not batches:
            return state, StepResult()

        def run(rows: Batches) -> Iterator[pa.RecordBatch]:
            return self._trees.run({**sides, 0: rows})

        return made_of(state, batches, self._pace, run, self._settings, self._growth.weigh, self._rows_max)

    def forget(self) -> None:
        """Drop the indexes of side inputs."""
        self._trees.forget()


@dataclass(frozen=True, slots=True)
class _Pair:
    """A piece of each side of a join, both on disk."""

    build: Batches
    probe: Batches
    files: tuple[MappedBatches, ...]

    def release(self) -> None:
        """Let go of pages that were read."""
        for file in self.files:
            file.release()


class JoinKernel:
    """Collects the build side, then joins each step's probe batches with all of it.

    A build side that is too large for that is divided, and with it the probe side, by the hash of the keys: then the
    probe side is collected too, and at the end part is joined with part. A part that one key makes too large is
    joined block by block, where the kind of the join allows it. Each step joins some rows of one pair of pieces, as
    many as give an output; the state says which pair is next.
    """

    def __init__(
        self, fragment: JoinFragment, settings: KernelSettings, shared: SharedInputs, keys: Keys = _NO_KEYS
    ) -> None:
        self._trees = Trees(fragment.tree, 1, settings, shared)
        self._growth = Growth(fragment.tree, 1, settings)
        self._rows_max = rows_at_once(fragment.tree, settings)
        self._settings = settings
        self._pace = first_pace(fragment.tree)
        self._keys = keys
        self._in_blocks = is_inner(fragment.tree, 0)
        indexed = self._trees.is_indexed(0)
        self._whole_bytes = settings.indexed_bytes if indexed else settings.part_bytes
        #: Both sides in pieces, made of a state whose first probe rows are these; and the piece that is looked up in.
        self._pairs: list[_Pair] | None = None
        self._pairs_of: pa.RecordBatch | None = None
        self._build: Batches | None = None

    def step(
        self,
        state: KernelState,
        *,
        split: Split | RowSplit | None = None,
        begin: int = 0,
        inputs: Mapping[int, Batches] = NOTHING,
        sides: Mapping[int, Batches] = NOTHING,
        last: bool = False,
    ) -> tuple[KernelState, StepResult]:
        """Build batches (0) go into the state; probe batches (1) give rows, or wait for the last step."""
        assert split is None, "only scans read splits"
        assert not begin, "only scans read splits"
        if state.outgoing:
            return next_portion(state, self._settings)
        build = inputs.get(0, ())
        if build:
            state = state.with_combined(build)
        if state.joined is not None:
            return self._join_pieces(state, sides)
        rows = state.pending or inputs.get(1, ())
        if rows and self._is_divided(state):
            return state.with_waiting(rows), StepResult()
        if rows:

            def run(some: Batches) -> Iterator[pa.RecordBatch]:
                return self._trees.run({**sides, 0: state.combined, 1: some})

            return made_of(state, rows, self._pace, run, self._settings, self._growth.weigh, self._rows_max)
        if last and state.waiting:
            return self._join_pieces(replace(state, joined=0), sides)
        return state, StepResult()

    def _is_divided(self, state: KernelState) -> bool:
        """A rule of the build side alone, which is whole when the first probe batch comes."""
        divisible = self._keys.get(0) and self._keys.get(1) and self._settings.temp_directory is not None
        return bool(divisible) and state.combined_bytes > self._whole_bytes

    def _join_pieces(
        self, state: KernelState, sides: Mapping[int, Batches]
    ) -> tuple[KernelState, StepResult]:
        """Join what is next of both sides: some rows of a piece of the probe side with one of the build side."""
        if self._pairs is None or self._pairs_of is not state.waiting[0]:
            self._pairs, self._pairs_of = self._cut(state), state.waiting[0]
        at = state.joined or 0
        if at < len(self._pairs):
            pair = self._pairs[at]
            if pair.build is not self._build:
                self._trees.forget()
                self._build = pair.build

            def run(some: Batches) -> Iterator[pa.RecordBatch]:
                return self._trees.run({**sides, 0: pair.build, 1: some})

            rows = state.pending or (whole(pair.probe),)
            state, result = made_of(
                state, rows, self._pace, run, self._settings, self._growth.weigh, self._rows_max
            )
            pair.release()
            if not state.pending:
                state = replace(state, joined=at + 1)
        else:
            result = StepResult()
        if state.joined == len(self._pairs):
            self._pairs = self._pairs_of = self._build = None
            self._trees.forget()
            state = replace(EMPTY, outgoing=state.outgoing, files=state.files)
        return state, replace(result, rest=state.has_rest)

    def _cut(self, state: KernelState) -> list[_Pair]:
        """Both sides in pieces: all pairs that have to be joined, in order."""
        session = thread_session(self._settings)
        build = Chunks(state.combined, state.files, state.combined_bytes)
        probe = Chunks(state.waiting, state.files, state.waiting_bytes)
        count = parts_for(build.value_bytes, self._whole_bytes)
        builds = cut_into_parts(build, self._keys[0], count, session, self._settings)
        probes = cut_into_parts(probe, self._keys[1], count, session, self._settings)
        return [
            _Pair(block, group, (*build_part.files, *probe_part.files))
            for build_part, probe_part in zip(builds, probes, strict=True)
            for block in self._blocks(build_part)
            for group in probe_part.groups(self._settings.portion_bytes)
        ]

    def _blocks(self, build: Chunks) -> Iterator[Batches]:
        if self._in_blocks:
            return build.groups(self._whole_bytes * 3 // 2)
        return iter((build.batches,))

    def forget(self) -> None:
        """Drop the index of the build side."""
        self._trees.forget()


class ReduceKernel:
    """Collects everything, shrinking it on the way; gives its rows in the last step.

    What waits is combined with what was combined before when it has at least as many rows as that, and as the
    settings ask for: so every row is combined a bounded number of times on average, by a rule of the chunks alone.
    What is too large to be combined at once is only combined with its like; the last step then goes over all of it
    part by part. Where combining shrinks too little, almost every row being a group of its own, it is done once.
    """

    def __init__(self, fragment: ReduceFragment, settings: KernelSettings) -> None:
        self._combine = None if fragment.combine is None else Trees(fragment.combine, 0, settings)
        self._finish = Trees(fragment.finish, 0, settings)
        self._external = External(fragment.finish, settings)
        self._settings = settings
        #: Rows of very many columns: more of them are not worked on at once, and are not combined on the way.
        self._rows_max = rows_at_once(fragment.finish, settings)

    def step(
        self,
        state: KernelState,
        *,
        split: Split | RowSplit | None = None,
        begin: int = 0,
        inputs: Mapping[int, Batches] = NOTHING,
        sides: Mapping[int, Batches] = NOTHING,
        last: bool = False,
    ) -> tuple[KernelState, StepResult]:
        """Collect; finish if it is the last step."""
        assert split is None, "only scans read splits"
        assert not begin, "only scans read splits"
        assert not sides, "a reduction has no side inputs"
        if state.outgoing:
            return next_portion(state, self._settings)
        state = state.with_waiting(inputs.get(0, ()))
        if last:
            return handed_on(EMPTY, self._finished(state.collected), self._settings)
        return self._shrunk(state), StepResult()

    def _finished(self, rows: Chunks) -> Iterator[pa.RecordBatch]:
        fits = rows.value_bytes <= self._settings.part_bytes
        fits &= self._rows_max is None or _rows(rows.batches) <= self._rows_max
        if self._settings.temp_directory is None or fits:
            return self._finish.run({0: rows.batches})
        return self._external.run(thread_session(self._settings), rows)

    def _shrunk(self, state: KernelState) -> KernelState:
        if self._combine is None or not state.shrinks:
            return state
        rows, half_bytes = _rows(state.waiting), self._settings.part_bytes // 2
        if rows < self._settings.combine_rows or self._rows_max is not None:
            return state
        if state.waiting_bytes > self._settings.part_bytes and self._settings.temp_directory is not None:
            return self._shrunk_by_groups(state)
        many = state.waiting_bytes > half_bytes
        if many and state.combined_bytes > half_bytes:
            alone = tuple(self._combine.run({0: state.waiting}))
            return replace(state, waiting=(), waiting_bytes=0).with_combined(alone)
        if not many and rows < _rows(state.combined):
            return state
        together = tuple(self._combine.run({0: (*state.combined, *state.waiting)}))
        shrinks = _rows(together) <= _SHRUNK_MAX * (_rows(state.combined) + rows)
        return replace(EMPTY, shrinks=shrinks).with_combined(together)

    def _shrunk_by_groups(self, state: KernelState) -> KernelState:
        """What waits is more than can be worked on at once: each group of it is combined for itself."""
        assert self._combine is not None, "only what combines is shrunk"
        combine = self._combine

        def made() -> Iterator[pa.RecordBatch]:
            for group in grouped(state.waiting, self._settings.part_bytes):
                yield from combine.run({0: group})
                for file in state.files:
                    file.release()

        shrunk = spooled(made(), self._settings.aside_bytes, self._settings.temp_directory)
        shrinks = _rows(shrunk.batches) <= _SHRUNK_MAX * _rows(state.waiting)
        return replace(
            state,
            combined=(*state.combined, *shrunk.batches),
            combined_bytes=state.combined_bytes + shrunk.value_bytes,
            waiting=(),
            waiting_bytes=0,
            files=(*state.files, *shrunk.files),
            shrinks=shrinks,
        )

    def forget(self) -> None:
        """There are no caches between steps."""


class LimitKernel:
    """Lets `count` rows through after skipping `offset`, then needs no more."""

    def __init__(self, fragment: LimitFragment) -> None:
        self._first = fragment.offset
        self._end = sys.maxsize if fragment.count is None else fragment.offset + fragment.count

    def step(
        self,
        state: KernelState,
        *,
        split: Split | RowSplit | None = None,
        begin: int = 0,
        inputs: Mapping[int, Batches] = NOTHING,
        sides: Mapping[int, Batches] = NOTHING,  # noqa: ARG002 - the signature of a kernel
        last: bool = False,  # noqa: ARG002 - the last step is like any other
    ) -> tuple[KernelState, StepResult]:
        """Pass on, cut at both ends."""
        assert split is None, "only scans read splits"
        assert not begin, "only scans read splits"
        passed = state.rows_passed
        taken: list[pa.RecordBatch] = []
        for batch in inputs.get(0, ()):
            begin = max(self._first - passed, 0)
            end = min(self._end - passed, batch.num_rows)
            if begin < end:
                taken.append(batch.slice(begin, end - begin))
            passed += batch.num_rows
        passed = min(passed, self._end)
        return replace(state, rows_passed=passed), StepResult(taken, satisfied=passed >= self._end)

    def forget(self) -> None:
        """There are no caches."""


def _rows(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)
