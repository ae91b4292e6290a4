"""What a channel has between its steps, and what a step gives.

A state is immutable: an older one can be taken up again at any time. Its batches are in memory or in mapped files;
which makes no difference to what is computed from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from wallaby.kernels.chunks import Chunks, spooled
from wallaby.kernels.connection import KernelSettings
from wallaby.kernels.mapped import MappedBatches
from wallaby.kernels.sizes import grouped, value_bytes


@dataclass(frozen=True, slots=True)
class KernelState:
    """What a channel has collected, what it has still to hand on, and how many rows it has let through."""

    #: What is combined already; in a join the build side.
    combined: tuple[pa.RecordBatch, ...] = ()
    #: What is collected as it came; in a join whose build side is too large, the probe side.
    waiting: tuple[pa.RecordBatch, ...] = ()
    #: Rows of the last step that did not fit into its output.
    outgoing: tuple[pa.RecordBatch, ...] = ()
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

    `satisfied` if no more input can change anything; `rest` if a step without input will give more rows.
    """

    batches: list[pa.RecordBatch] = field(default_factory=list)
    satisfied: bool = False
    rest: bool = False


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
    rest = state.outgoing[len(portion) :]
    return replace(state, outgoing=rest), StepResult(list(portion), rest=bool(rest))
