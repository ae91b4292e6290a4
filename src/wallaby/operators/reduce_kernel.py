"""The kernel of stages that need all rows before they give any: aggregations, sorts, windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from wallaby.batches.chunks import Chunks, spooled
from wallaby.batches.sizes import grouped
from wallaby.operators.fragment_tree import Trees
from wallaby.operators.program import NOTHING, Batches
from wallaby.operators.spill.external import External
from wallaby.operators.state import EMPTY, KernelState, StepResult, handed_on, next_portion
from wallaby.plan.physical import ReduceFragment, RowSplit, Split
from wallaby.statements.connection import KernelSettings, thread_session
from wallaby.statements.widths import rows_at_once

#: Combining continues if it leaves at most this share of the rows.
_SHRUNK_MAX = 0.75


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


def _rows(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)
