"""The kernel of stages that transform rows one step at a time and keep no state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from wallaby.operators.fragment_tree import Trees
from wallaby.operators.program import NOTHING, Batches
from wallaby.operators.shared import SharedInputs
from wallaby.operators.state import KernelState, StepResult, made_of, next_portion
from wallaby.operators.taking import first_pace
from wallaby.plan.physical import MapFragment, RowSplit, Split
from wallaby.statements.connection import KernelSettings
from wallaby.statements.growth import Growth
from wallaby.statements.widths import rows_at_once


class MapKernel:
    """Runs a tree on each step's batches. Keeps no state."""

    def __init__(self, fragment: MapFragment, settings: KernelSettings, shared: SharedInputs) -> None:
        self._trees = Trees(fragment.tree, 0, settings, shared, in_pieces=True)
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
