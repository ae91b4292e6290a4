"""The state of a channel between its steps, and the result of a step.

A state is immutable, so an older one can be used again at any time. Its batches are in memory or in mapped files, which
makes no difference to the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from wallaby.batches.chunks import Chunks, spooled
from wallaby.batches.mapped import MappedBatches
from wallaby.batches.sizes import grouped, value_bytes
from wallaby.operators.taking import ALL, Batches, Weigh, rest_of, take
from wallaby.statements.connection import OVER_PORTIONS, KernelSettings


@dataclass(frozen=True, slots=True, weakref_slot=True)
class KernelState:
    """What a channel has collected, what it still has to output, and how many rows it has passed on."""

    #: Combined rows; in a join, the build side.
    combined: tuple[pa.RecordBatch, ...] = ()
    #: Rows as they came; in a join whose build side is too large, the probe side.
    waiting: tuple[pa.RecordBatch, ...] = ()
    #: Rows of the last step that did not fit into its output.
    outgoing: tuple[pa.RecordBatch, ...] = ()
    #: Input rows that the last step did not take, because those that it took gave enough output.
    pending: tuple[pa.RecordBatch, ...] = ()
    #: How many rows of an input are tried at a time; see `taking`.
    pace: int = ALL
    #: In a divided join: how many pairs of pieces have been joined; None: joining has not begun.
    joined: int | None = None
    rows_passed: int = 0
    #: Is it worthwhile to combine waiting rows?
    shrinks: bool = True
    #: The sizes of the combined and of the waiting values; see `sizes`.
    combined_bytes: int = 0
    waiting_bytes: int = 0
    #: The files that hold some of the batches.
    files: tuple[MappedBatches, ...] = ()

    @property
    def batches(self) -> Iterator[pa.RecordBatch]:
        """All batches that the state holds."""
        yield from self.combined
        yield from self.waiting
        yield from self.outgoing
        yield from self.pending

    @property
    def has_rest(self) -> bool:
        """Will a step without input output more rows?"""
        return bool(self.outgoing or self.pending or self.joined is not None)

    @property
    def size_bytes(self) -> int:
        """The size of the state, in memory or not."""
        return sum(batch.nbytes for batch in self.batches)

    @property
    def collected(self) -> Chunks:
        """Combined and waiting rows."""
        return Chunks((*self.combined, *self.waiting), self.files, self.combined_bytes + self.waiting_bytes)

    def with_combined(self, more: Sequence[pa.RecordBatch]) -> KernelState:
        """The same state with more combined rows."""
        size = self.combined_bytes + value_bytes(more)
        return replace(self, combined=(*self.combined, *more), combined_bytes=size)

    def with_waiting(self, more: Sequence[pa.RecordBatch]) -> KernelState:
        """The same state with more waiting rows."""
        size = self.waiting_bytes + value_bytes(more)
        return replace(self, waiting=(*self.waiting, *more), waiting_bytes=size)


EMPTY = KernelState()


def by_schema(batches: Iterable[pa.RecordBatch]) -> dict[pa.Schema, list[pa.RecordBatch]]:
    """Group batches for files: a file has one schema, but the two sides of a join have two."""
    found: dict[pa.Schema, list[pa.RecordBatch]] = {}
    for batch in batches:
        found.setdefault(batch.schema, []).append(batch)
    return found


@dataclass(frozen=True, slots=True)
class StepResult:
    """The output of a step, in batches none of which is empty.

    `satisfied` means that further input cannot change anything; `rest` that a step without input will output more rows.
    `begin` is set if there is more to read of the split: the position at which the next step has to begin.
    """

    batches: list[pa.RecordBatch] = field(default_factory=list)
    satisfied: bool = False
    rest: bool = False
    begin: int | None = None


def made_of(
    state: KernelState,
    rows: Sequence[pa.RecordBatch],
    pace: int,
    run: Callable[[Batches], Iterator[pa.RecordBatch]],
    settings: KernelSettings,
    weigh: Weigh | None = None,
    rows_max: int | None = None,
) -> tuple[KernelState, StepResult]:
    """Output the results of as many rows as give a portion or a few; the other rows become pending.

    `pace` is used if there is none yet; at most `rows_max` rows are tried at a time.
    """
    limit = OVER_PORTIONS * settings.portion_bytes
    taken = take(rows, state.pace or pace, run, settings, limit, weigh=weigh, rows_max=rows_max)
    files = (*state.files, *taken.made.files)
    pending = rest_of(rows, taken.rows)
    state = replace(state, outgoing=taken.made.batches, pending=pending, pace=taken.pace, files=files)
    return next_portion(state, settings)


def handed_on(
    state: KernelState, made: Iterable[pa.RecordBatch], settings: KernelSettings
) -> tuple[KernelState, StepResult]:
    """Output the first portion of some rows now, and set the others aside for the following steps."""
    aside = spooled(made, settings.aside_bytes, settings.temp_directory)
    files = (*state.files, *aside.files)
    return next_portion(replace(state, outgoing=aside.batches, files=files), settings)


def next_portion(state: KernelState, settings: KernelSettings) -> tuple[KernelState, StepResult]:
    """Output the next portion of rows that were set aside."""
    portion = next(grouped(state.outgoing, settings.portion_bytes), ())
    state = replace(state, outgoing=state.outgoing[len(portion) :])
    return state, StepResult(list(portion), rest=state.has_rest)
