"""The kernel of a channel that reads splits."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from wallaby.errors import KernelError, MemoryLimitError
from wallaby.kernels.connection import KernelSettings
from wallaby.kernels.footer import check_unchanged
from wallaby.kernels.in_place import MEMORY_BYTES_MIN, reads_in_place, rows_in_place
from wallaby.kernels.key_bounds import KeyBounds
from wallaby.kernels.laps import Lap, lap
from wallaby.kernels.made import made_rows
from wallaby.kernels.program import NOTHING, Batches
from wallaby.kernels.reading import planned_reading
from wallaby.kernels.scan import groups_to_read, read_split
from wallaby.kernels.shared import Shared
from wallaby.kernels.state import KernelState, StepResult
from wallaby.kernels.trees import Trees
from wallaby.plan.physical import RowSplit, ScanFragment, Split
from wallaby.plan.relation import Scan


class ScanKernel:
    """Reads a split and runs a tree on it. Keeps no state."""

    def __init__(self, fragment: ScanFragment, settings: KernelSettings, shared: Shared) -> None:
        self._fragment = fragment
        self._bounds = KeyBounds(fragment.scan.columns, fragment.tree)
        source = fragment.scan
        self._reading = planned_reading(source, fragment.tree) if isinstance(source, Scan) else None
        self._trees = Trees(self._reading.tree if self._reading else fragment.tree, 0, settings, shared)
        self._readable = frozenset(settings.readable)
        in_place = self._readable and settings.memory_bytes >= MEMORY_BYTES_MIN and reads_in_place(fragment)
        self._in_place = Trees(fragment.tree, 0, settings, Shared()) if in_place else None

    def step(
        self,
        state: KernelState,
        *,
        split: Split | RowSplit | None = None,
        inputs: Mapping[int, Batches] = NOTHING,
        sides: Mapping[int, Batches] = NOTHING,
        last: bool = False,
    ) -> tuple[KernelState, StepResult]:
        """One split, or nothing at the end."""
        assert not inputs, "a scan reads splits"
        if split is None:
            assert last, "a step of a scan has a split or is the last"
            return state, StepResult()
        made = self._made_in_place(split, sides)
        if made is not None:
            return state, StepResult(made)
        with lap(Lap.SCAN):
            rows = self._rows(split, sides)
        return state, StepResult(list(self._trees.run({**sides, 0: rows.to_batches()})))

    def _made_in_place(
        self, split: Split | RowSplit, sides: Mapping[int, Batches]
    ) -> list[pa.RecordBatch] | None:
        """What DuckDB makes of rows that it reads itself; None if it should not, or could not read them."""
        source = self._fragment.scan
        if self._in_place is None or not isinstance(source, Scan) or not isinstance(split, Split):
            return None
        check_unchanged(split.file)
        conditions = (*self._fragment.conditions, *self._bounds.conditions(sides))
        view = rows_in_place(source, split, groups_to_read(source, split, conditions), self._readable)
        if view is None:
            return None
        try:
            made = list(self._in_place.run({**sides, 0: ()}, view))
        except (
            KernelError,
            MemoryLimitError,
        ):  # the reader says what is wrong with the file, or needs less memory
            return None
        check_unchanged(split.file)
        return made

    def _rows(self, split: Split | RowSplit, sides: Mapping[int, Batches]) -> pa.Table:
        source = self._fragment.scan
        if isinstance(source, Scan):
            assert isinstance(split, Split), "files are read by row groups"
            conditions = (*self._fragment.conditions, *self._bounds.conditions(sides))
            return read_split(source, split, conditions, self._reading)
        assert isinstance(split, RowSplit), "what is no file is made by rows"
        return made_rows(source, split)

    def forget(self) -> None:
        """Drop the indexes of side inputs."""
        self._trees.forget()
        if self._in_place is not None:
            self._in_place.forget()
