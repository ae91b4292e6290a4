"""The kernel of joins: collects the build side, then joins the probe side with it, in pieces if memory is short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from wallaby.batches.chunks import Chunks
from wallaby.batches.mapped import MappedBatches, whole
from wallaby.operators.fragment_tree import Trees
from wallaby.operators.program import NOTHING, Batches
from wallaby.operators.shared import SharedInputs
from wallaby.operators.spill.parts import cut_into_parts, parts_for
from wallaby.operators.state import EMPTY, KernelState, StepResult, made_of, next_portion
from wallaby.operators.taking import first_pace
from wallaby.plan.physical import JoinFragment, RowSplit, Split
from wallaby.statements.connection import KernelSettings, thread_session
from wallaby.statements.growth import Growth
from wallaby.statements.tree import is_inner
from wallaby.statements.widths import rows_at_once

#: For each input of a stage, by number: the positions of the columns whose hash determines the channel of a row.
Keys = Mapping[int, tuple[int, ...]]
NO_KEYS: Keys = {}


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


#: Rows that go to disk are divided into parts this many times smaller than memory would allow: they are read through
#: mapped files, whose pages count too.
_SMALLER: Final = 2


class JoinKernel:
    """Collects the build side, then joins each step's probe batches with all of it.

    If the build side is too large for that, both sides are divided by the hash of the keys: the probe side is collected
    too, and at the end each part is joined with its counterpart. A part that one key makes too large is joined block by
    block, if the kind of the join allows it. Each step joins some rows of one pair of pieces, as many as give an
    output; the state says which pair is next.
    """

    def __init__(
        self, fragment: JoinFragment, settings: KernelSettings, shared: SharedInputs, keys: Keys = NO_KEYS
    ) -> None:
        self._trees = Trees(fragment.tree, 1, settings, shared, in_pieces=True)
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
        count = parts_for(build.value_bytes, self._whole_bytes // _SMALLER)
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
