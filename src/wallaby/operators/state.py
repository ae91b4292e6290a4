"""What a channel has between its steps, and what a step gives.

A state is immutable: an older one can be taken up again at any time. Its batches are in memory or in mapped files;
which makes no difference to what is computed from them.
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
    """What a channel has collected, what it has still to hand on, and how many rows it has let through."""

    #: What is combined already; in a join the build side.
    combined: tuple[pa.RecordBatch, ...] = ()
    #: What is collected as it came; in a join whose build side is too large, the probe side.
    waiting: tuple[pa.RecordBatch, ...] = ()
    #: Rows of the last step that did not fit into its output.
    outgoing: tuple[pa.RecordBatch, ...] = ()
    #: Rows of the last step's input that it did not take, because those that it took gave enough.
    pending: tuple[pa.RecordBatch, ...] = ()
    #: How many rows of an input are tried at a time; see `taking`.
    pace: int = ALL
    #: In a join whose two sides are divided: how many pairs of pieces are joined; None: it has not begun.
    joined: int | None = None
    rows_passed: int = 0
    #: Is it worthwhile to combine what waits?
    shrinks: bool = True
    #: The sizes of the values that are combined and that wait; see `sizes`.
    combined_bytes: int = 0
    waiting_bytes: int = 0
    #: The files that hold some of the batches.
    files: tuple[MappedBatches, ...] = ()

    @property
    def batches(self) -> Iterator[pa.RecordBatch]:
        """All that it holds."""
        yield from self.combined
        yield from self.waiting
        yield from self.outgoing
        yield from self.pending

    @property
    def has_rest(self) -> bool:
        """Will a step without input give more rows?"""
        return bool(self.outgoing or self.pending or self.joined is not None)

    @property
    def size_bytes(self) -> int:
        """What it holds, in memory or not."""
        return sum(batch.nbytes for batch in self.batches)

    @property
    def collected(self) -> Chunks:
        """What is combined and what waits."""
        return Chunks((*self.combined, *self.waiting), self.files, self.combined_bytes + self.waiting_bytes)

    def with_combined(self, more: Sequence[pa.RecordBatch]) -> KernelState:
        """The same, and more that is combined."""
        size = self.combined_bytes + value_bytes(more)
        return replace(self, combined=(*self.combined, *more), combined_bytes=size)

    def with_waiting(self, more: Sequence[pa.RecordBatch]) -> KernelState:
        """The same, and more that waits."""
        size = self.waiting_bytes + value_bytes(more)
        return replace(self, waiting=(*self.waiting, *more), waiting_bytes=size)


EMPTY = KernelState()


def by_schema(batches: Iterable[pa.RecordBatch]) -> dict[pa.Schema, list[pa.RecordBatch]]:
    """Batches that go into one file each: a file has one schema, what a join has collected of its two sides has two."""
    found: dict[pa.Schema, list[pa.RecordBatch]] = {}
    for batch in batches:
        found.setdefault(batch.schema, []).append(batch)
    return found


@dataclass(frozen=True, slots=True)
class StepResult:
    """The rows of a step, in batches none of which is empty.

    `satisfied` if no more input can change anything; `rest` if a step without input will give more rows. `begin` if
    there is more to read of the split: where the step that goes on with it has to begin.
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
    """Give out what is made of some rows: of as many of them as give a portion or a few. The others are pending.

    `pace` is the one to begin with if there is none yet; no more than `rows_max` are tried at a time.
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
    """Give rows out: the first portion now, the others, put aside, in the steps that follow."""
    aside = spooled(made, settings.aside_bytes, settings.temp_directory)
    files = (*state.files, *aside.files)
    return next_portion(replace(state, outgoing=aside.batches, files=files), settings)


def next_portion(state: KernelState, settings: KernelSettings) -> tuple[KernelState, StepResult]:
    """Give the next rows out that were put aside."""
    portion = next(grouped(state.outgoing, settings.portion_bytes), ())
    state = replace(state, outgoing=state.outgoing[len(portion) :])
    return state, StepResult(list(portion), rest=state.has_rest)
