"""The kernel of LIMIT and OFFSET."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from wallaby.operators.program import NOTHING, Batches
from wallaby.operators.state import KernelState, StepResult
from wallaby.plan.physical import LimitFragment, RowSplit, Split


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
