"""The kernel of a channel that reads splits."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from wallaby.batches.chunks import Chunks, spooled
from wallaby.batches.mapped import MappedBatches
from wallaby.batches.sizes import grouped
from wallaby.batches.task_timing import Lap, lap
from wallaby.errors import KernelError, MemoryLimitError
from wallaby.operators.fragment_tree import Trees
from wallaby.operators.generated_rows import generate_rows
from wallaby.operators.key_filter import KeyFilter
from wallaby.operators.program import NOTHING, Batches
from wallaby.operators.shared import SharedInputs
from wallaby.operators.state import KernelState, StepResult
from wallaby.operators.taking import (
    PORTIONS_MAX,
    ReadPosition,
    all_within,
    first_pace,
    first_rows,
    rest_of,
    take,
)
from wallaby.plan.physical import RowSplit, ScanFragment, Split
from wallaby.relations.formats import Parquet
from wallaby.relations.relation import Scan
from wallaby.statements.connection import OVER_PORTIONS, KernelSettings
from wallaby.statements.growth import Growth
from wallaby.statements.widths import rows_at_once
from wallaby.tables.footer import check_unchanged
from wallaby.tables.in_place import MEMORY_BYTES_MIN, reads_in_place, rows_in_place
from wallaby.tables.key_bounds import KeyBounds
from wallaby.tables.reading import Reading, planned_reading
from wallaby.tables.row_windows import RowWindow, is_read_in_windows, piece_windows, whole_bytes_max, windows
from wallaby.tables.scan import LargeSplitError, groups_to_read, read_split


class ScanKernel:
    """Reads a split and runs a tree on as many of its rows as give an output. Keeps no state."""

    def __init__(
        self,
        fragment: ScanFragment,
        settings: KernelSettings,
        shared: SharedInputs,
        optional: frozenset[int] = frozenset(),
    ) -> None:
        """`optional` are the sides that may be missing."""
        self._fragment = fragment
        self._optional = optional
        self._bounds = KeyBounds(fragment.scan.columns, fragment.tree)
        source = fragment.scan
        self._reading = planned_reading(source, fragment.tree) if isinstance(source, Scan) else None
        self._key_filter = (
            KeyFilter(source, fragment.tree, self._bounds, shared, settings.memory_bytes)
            if isinstance(source, Scan)
            else None
        )
        tree = self._reading.tree if self._reading else fragment.tree
        self._trees = Trees(tree, 0, settings, shared, in_pieces=True)
        self._growth = Growth(tree, 0, settings)
        self._rows_max = rows_at_once(tree, settings)
        self._readable = frozenset(settings.readable)
        self._settings = settings
        self._pace = first_pace(fragment.tree)
        #: The output of a row that gives more than one output; with its split and its number.
        self._aside: tuple[Split | RowSplit, int, Chunks] | None = None
        #: A split that is being read.
        self._read: _Read | None = None
        #: The files that hold some of what is kept.
        self._files: tuple[MappedBatches, ...] = ()
        in_place = self._readable and settings.memory_bytes >= MEMORY_BYTES_MIN and reads_in_place(fragment)
        self._in_place = Trees(fragment.tree, 0, settings, SharedInputs()) if in_place else None

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
        """Process one split, or the rest of it, or nothing at the end."""
        assert not inputs, "a scan reads splits"
        if split is None:
            assert last, "a step of a scan has a split or is the last"
            return state, StepResult()
        if not begin and (made := self._made_in_place(split, sides)) is not None:
            return state, StepResult(made)
        position = ReadPosition.of(begin)
        if position.portion:
            return state, self._portion(split, sides, position)
        result = self._read_on(split, sides, position, prune=not begin)
        if result.begin is not None and not begin and self._is_pruned(split, sides):
            # Later tasks may skip more row groups, and must count the rows as this one does.
            self._drop()
            result = self._read_on(split, sides, position, prune=False)
        return state, result

    def _read_on(
        self, split: Split | RowSplit, sides: Mapping[int, Batches], position: ReadPosition, *, prune: bool
    ) -> StepResult:
        """Process a split from a position until some rows are output."""
        row = position.row
        while True:
            window = self._window(split, sides, row, prune=prune)
            left = rest_of(window.rows, max(row - window.begin, 0))
            if left or window.end is None:
                break
            row = window.end
        row = max(row, window.begin)
        if not left:
            self._close()
            return StepResult([] if position.number else list(self._run(sides, window.rows)))
        limit = OVER_PORTIONS * self._settings.portion_bytes

        def run(some: Batches) -> Iterator[pa.RecordBatch]:
            return self._run(sides, some)

        pace, weigh = position.pace or self._pace, self._growth.weigh
        taken = take(left, pace, run, self._settings, limit, limit, weigh, self._rows_max)
        if taken.made.value_bytes > limit:
            if not self._optional.intersection(sides):
                self._aside = split, row, taken.made
            return self._portion(split, sides, ReadPosition(row, taken.pace))
        after: int | None = row + taken.rows
        if row + taken.rows == window.begin + sum(batch.num_rows for batch in window.rows):
            after = window.end
        if after is None:
            self._close()
            return StepResult(list(taken.made.batches))
        return StepResult(list(taken.made.batches), begin=ReadPosition(after, taken.pace).number)

    def _run(self, sides: Mapping[int, Batches], rows: Batches) -> Iterator[pa.RecordBatch]:
        return self._trees.run({**sides, 0: rows})

    def _portion(
        self, split: Split | RowSplit, sides: Mapping[int, Batches], position: ReadPosition
    ) -> StepResult:
        """A portion of the output of a single row, and where to continue: with the next portion, or with the next row.

        Sides that may arrive between portions are not applied, because all portions of a row must come from one list.
        """
        if self._aside is None or self._aside[:2] != (split, position.row):
            self._aside = None
            window = self._window(split, sides, position.row, prune=False)
            row = first_rows(rest_of(window.rows, position.row - window.begin), 1)
            needed = {number: side for number, side in sides.items() if number not in self._optional}
            limit = OVER_PORTIONS * self._settings.portion_bytes
            made = spooled(self._run(needed, row), limit, self._settings.temp_directory)
            self._aside = split, position.row, made
        portions = list(grouped(self._aside[2].batches, self._settings.portion_bytes))
        if len(portions) > PORTIONS_MAX:
            raise MemoryLimitError(
                f"A single row produces {self._aside[2].value_bytes >> 20} MiB, "
                f"more than {PORTIONS_MAX} outputs can hold.",
                fix="Raise spark.wallaby.memory.",
                memory_bytes=self._settings.memory_bytes,
            )
        after = replace(position, portion=position.portion + 1)
        if after.portion == len(portions):
            self._aside = None
            after = ReadPosition(position.row + 1, position.pace)
        return StepResult(list(portions[position.portion]), begin=after.number)

    def _window(
        self, split: Split | RowSplit, sides: Mapping[int, Batches], row: int, *, prune: bool
    ) -> RowWindow:
        """The window of a split that contains a row, or the first one after it in which a filter has left rows."""
        beside = _objects(sides)
        read = self._read
        if read is None or prune or not read.can_go_on(split, beside, row):
            self._close()
            read = self._read = _Read(split, beside, self._windows(split, sides, row, prune=prune))
        while read.window is None or (
            read.window.end is not None and (read.window.end <= row or not read.window.rows)
        ):
            read.window = None  # one at a time
            with lap(Lap.SCAN):
                read.window = next(read.coming)
        return read.window

    def _windows(
        self, split: Split | RowSplit, sides: Mapping[int, Batches], row: int, *, prune: bool
    ) -> Iterator[RowWindow]:
        """The windows of a large split; otherwise one window with all rows, perhaps without some row groups."""
        source, conditions = self._fragment.scan, self._fragment.conditions
        if not isinstance(source, Scan):
            assert isinstance(split, RowSplit), "what is no file is made by rows"
            yield RowWindow(0, None, generate_rows(source, split).to_batches())
            return
        assert isinstance(split, Split), "files are read by row groups"
        assert self._reading is not None, "how to read a file is planned"
        more = self._bounds.conditions(sides)
        now = (*conditions, *more) if prune else conditions
        if not isinstance(source.format, Parquet):
            yield from piece_windows(source, split, now, self._reading, self._settings, row)
            return
        if not is_read_in_windows(source, split, conditions, self._reading, self._settings):
            with suppress(LargeSplitError):
                limit = whole_bytes_max(self._settings)
                reading = self._filtered(split, sides) if prune else self._reading
                yield RowWindow(0, None, read_split(source, split, now, reading, limit).to_batches())
                return
        yield from windows(source, split, conditions, more, self._reading, self._settings, row)

    def _filtered(self, split: Split, sides: Mapping[int, Batches]) -> Reading:
        """The plan for reading a split, with a filter by the keys of side inputs if they are few."""
        assert self._reading is not None, "how to read a file is planned"
        assert self._key_filter is not None, "how to read a file is planned"
        return self._key_filter.reading(self._reading, split.rows, sides)

    def _is_pruned(self, split: Split | RowSplit, sides: Mapping[int, Batches]) -> bool:
        """Do side inputs exclude rows from the count of a split's rows?"""
        source, conditions = self._fragment.scan, self._fragment.conditions
        more = self._bounds.conditions(sides)
        if not more or not isinstance(source, Scan) or not isinstance(split, Split):
            return False
        if not isinstance(source.format, Parquet):
            return False
        if self._filtered(split, sides) is not self._reading:
            return True
        return groups_to_read(source, split, (*conditions, *more)) != groups_to_read(
            source, split, conditions
        )

    @property
    def kept(self) -> KernelState:
        """The batches that stay in memory until the channel's next task: unused rows, and rows set aside."""
        read = self._read.window.rows if self._read is not None and self._read.window is not None else ()
        aside = self._aside[2] if self._aside is not None else Chunks()
        return KernelState(pending=tuple(read), outgoing=aside.batches, files=(*self._files, *aside.files))

    @kept.setter
    def kept(self, state: KernelState) -> None:
        """Replace the batches by equal ones, perhaps on disk."""
        self._files = state.files
        if self._read is not None and self._read.window is not None:
            self._read.window = replace(self._read.window, rows=state.pending)
        if self._aside is not None:
            made = Chunks(state.outgoing, state.files, self._aside[2].value_bytes)
            self._aside = (*self._aside[:2], made)

    def _made_in_place(
        self, split: Split | RowSplit, sides: Mapping[int, Batches]
    ) -> list[pa.RecordBatch] | None:
        """The output for rows that DuckDB itself reads; None if it should not or cannot, or gives too much."""
        source = self._fragment.scan
        if self._in_place is None or not isinstance(source, Scan) or not isinstance(split, Split):
            return None
        check_unchanged(split.file)
        conditions = (*self._fragment.conditions, *self._bounds.conditions(sides))
        view = rows_in_place(source, split, groups_to_read(source, split, conditions), self._readable)
        if view is None:
            return None
        try:
            stream = self._in_place.run({**sides, 0: ()}, view)
            made = all_within(stream, OVER_PORTIONS * self._settings.portion_bytes)
        except (
            KernelError,
            MemoryLimitError,
        ):  # the reader reports what is wrong with the file, or needs less memory
            return None
        check_unchanged(split.file)
        return made

    def forget(self) -> None:
        """Drop the indexes of side inputs, and rows set aside."""
        self._drop()
        self._trees.forget()
        if self._key_filter is not None:
            self._key_filter.forget()
        if self._in_place is not None:
            self._in_place.forget()

    def _drop(self) -> None:
        self._close()
        self._aside = None

    def _close(self) -> None:
        """Stop reading a split."""
        if self._read is not None and isinstance(self._read.coming, Generator):
            self._read.coming.close()
        self._read, self._files = None, ()


@dataclass(slots=True)
class _Read:
    """A split that is being read: its side inputs, the windows that are still to be read, and the current one."""

    split: Split | RowSplit
    beside: tuple[object, ...]
    coming: Iterator[RowWindow]
    window: RowWindow | None = None

    def can_go_on(self, split: Split | RowSplit, beside: tuple[object, ...], row: int) -> bool:
        """Do these windows belong to a split with the same side inputs, and is a row not before them?"""
        same = len(beside) == len(self.beside) and all(
            a is b for a, b in zip(beside, self.beside, strict=True)
        )
        return same and split == self.split and self.window is not None and self.window.begin <= row


def _objects(sides: Mapping[int, Batches]) -> tuple[object, ...]:
    return tuple(batch for number in sorted(sides) for batch in sides[number])
