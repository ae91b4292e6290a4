"""Kernels: the computation of one channel of a stage, step by step.

A kernel belongs to one channel; any thread may use it, but only one at a time. A step takes a state and an input, and
returns a new state and an output. States are immutable, so an older one can be used again at any time. What a kernel
itself keeps (indexes, tables made of many batches) is only a cache of states and inputs. Outputs depend only on states,
inputs and settings: the same input gives the same bytes.
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

#: Combining continues if it leaves at most this share of the rows.
_SHRUNK_MAX = 0.75
#: For each input of a stage, by number: the positions of the columns whose hash determines the channel of a row.
Keys = Mapping[int, tuple[int, ...]]
_NO_KEYS: Keys = {}

__all__ = ["EMPTY", "Kernel", "KernelState", "StepResult", "make_kernel"]


class Kernel(Protocol):
    """The computation of one channel."""

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

        `split` is for scans; `begin` is the position in it that the step before returned. `inputs` are the batches of
        this step by input number: in a join 0 is the build side and 1 the probe side, elsewhere there is only 0.
        `sides` are all batches of the side links, by input number; a missing one (a run-time filter that came too late)
        is not applied. `last` means that nothing comes after; such a step may have no input. If the step before left a
        rest, this step has no input and continues with the rest.
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
    """Make the kernel of one channel. `shared` holds what the kernels of the same stage share.

    `optional` are the numbers of the sides that may be missing.
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
        """Run the tree on some batches, perhaps none."""
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
    """A piece of each side of a divided join, both on disk."""

    build: Batches
    probe: Batches
    files: tuple[MappedBatches, ...]

    def release(self) -> None:
        """Release the pages that were read."""
        for file in self.files:
            file.release()


class JoinKernel:
    """Collects the build side, then joins each step's probe batches with all of it.

    If the build side is too large for that, both sides are divided by the hash of the keys: the probe side is collected
    too, and at the end each part is joined with its counterpart. A part that one key makes too large is joined block by
    block, if the kind of the join allows it. Each step joins some rows of one pair of pieces, as many as give an
    output; the state says which pair is next.
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
        #: Cache: both sides in pieces, for the state with these first probe rows; and the piece that is being probed.
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
        """Add build batches (0) to the state; join probe batches (1), or keep them for the last step."""
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
        """Is the join divided? Depends only on the build side, which is complete when the first probe batch comes."""
        divisible = self._keys.get(0) and self._keys.get(1) and self._settings.temp_directory is not None
        return bool(divisible) and state.combined_bytes > self._whole_bytes

    def _join_pieces(
        self, state: KernelState, sides: Mapping[int, Batches]
    ) -> tuple[KernelState, StepResult]:
        """Join the next rows: some of a piece of the probe side with a piece of the build side."""
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
        """Divide both sides into pieces: all pairs that have to be joined, in order."""
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
    """Collects all rows, combining them on the way; outputs rows in the last step.

    Waiting rows are combined with those combined before when there are at least as many of them, and at least as many
    as the settings require. So every row is combined a bounded number of times on average, and the decision depends
    only on the chunks. Rows that are too large to be combined at once are only combined among themselves; the last step
    then processes all of them part by part. If combining removes too few rows, because almost every row is its own
    group, it is done only once.
    """

    def __init__(self, fragment: ReduceFragment, settings: KernelSettings) -> None:
        self._combine = None if fragment.combine is None else Trees(fragment.combine, 0, settings)
        self._finish = Trees(fragment.finish, 0, settings)
        self._external = External(fragment.finish, settings)
        self._settings = settings
        #: The limit for rows with very many columns: beyond it, rows are not processed at once, and not combined on the
        #: way.
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
        """Collect rows; finish in the last step."""
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
        """Combine waiting rows in groups, because they are too many to be processed at once."""
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
        """Do nothing: there are no caches between steps."""


class LimitKernel:
    """Passes `count` rows on after skipping `offset`, then needs no more input."""

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
        """Pass rows on, cut at both ends."""
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
        """Do nothing: there are no caches."""


def _rows(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)
