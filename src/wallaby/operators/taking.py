"""How many rows of its input a task takes: as many as give about an output, not more.

Rows may give many times as much as they are: a join whose keys have hundreds of partners, an array that is exploded, a
text that is repeated. So what is made of rows is counted while it is made. If it gets too much, it is given up, and
fewer rows are tried; what a task has not taken waits, as input, for the tasks after it. So what a task makes is
bounded, whatever its rows multiply to, on disk as well as in memory. The *pace* says how many rows are tried at a time.
It follows from what the rows before gave, so it is part of where a task stands, and a retrace keeps the same pace.

Only what a single row gives may be more than that. It is put aside, on disk, and given out portion by portion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from wallaby.batches.chunks import Chunks, spooled
from wallaby.batches.sizes import value_bytes
from wallaby.errors import REPORT_IT, STEP_FAILED, KernelError, MemoryLimitError
from wallaby.relations.expression import walk
from wallaby.relations.relation import Relation, children_of
from wallaby.relations.tree import expressions_of
from wallaby.statements.connection import KernelSettings
from wallaby.statements.growth import Weights, grown_bytes_max, grows

Batches = Sequence[pa.RecordBatch]
Weigh = Callable[[Batches], Weights | None]
#: From one pace to the next the rows are so many times as many. The first pace is one row.
_FACTOR_BITS: Final = 3
_FACTOR: Final = 1 << _FACTOR_BITS
PACE_MAX: Final = 8
#: A single row gives no more portions than this.
PORTIONS_MAX: Final = 1 << 14
#: The pace is not known yet: all rows are tried.
ALL: Final = 0
#: More values, of 16 bytes each, than an array of the JVM's can have: no memory helps, and Spark says what is wrong.
_JVM_BYTES_MAX: Final = (1 << 31) * 16
#: The pace at which to begin where a function may make something large of something small.
_CAREFUL: Final = 3


@runtime_checkable
class _Closing(Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a read goes on in the rows of its split: as one number, since a record has to name it.

    A row that gives more than an output is given out portion by portion: so many have gone.
    """

    row: int = 0
    pace: int = ALL
    portion: int = 0

    @property
    def number(self) -> int:
        """The beginning is 0."""
        return (self.row * (PACE_MAX + 1) + self.pace) * PORTIONS_MAX + self.portion

    @classmethod
    def of(cls, number: int) -> Place:
        """The place of a number."""
        rest, portion = divmod(number, PORTIONS_MAX)
        return cls(*divmod(rest, PACE_MAX + 1), portion)


@dataclass(frozen=True, slots=True)
class Taken:
    """What was made of some rows from the beginning of an input, how many they were, and the pace to go on with."""

    made: Chunks
    rows: int
    pace: int


def first_pace(tree: Relation) -> int:
    """The pace at which to begin with a tree."""
    growing = any(grows(part) for expression in expressions_of(tree) for part in walk(expression))
    return _CAREFUL if growing or any(first_pace(child) for child in children_of(tree)) else ALL


def rows_at(pace: int) -> int:
    """How many rows are tried at a pace."""
    return 1 << _FACTOR_BITS * (pace - 1)


def take(
    rows: Batches,
    pace: int,
    run: Callable[[Batches], Iterator[pa.RecordBatch]],
    settings: KernelSettings,
    limit_bytes: int,
    aside_bytes: int | None = None,
    weigh: Weigh | None = None,
    rows_max: int | None = None,
) -> Taken:
    """Rows from the beginning of an input, until they give a portion; never more than the limit, but by one row.

    `weigh` tells what is made of each row on the way, where that can be known before. No more than `rows_max` are tried
    at a time.
    """
    aside_bytes = settings.aside_bytes if aside_bytes is None else aside_bytes
    count = sum(batch.num_rows for batch in rows)
    weights = weigh(rows) if weigh is not None else None
    found: list[pa.RecordBatch] = []
    size = at = 0
    while at < count and size < settings.portion_bytes:
        length = count - at if pace == ALL else min(rows_at(pace), count - at)
        if rows_max is not None:
            length = min(length, rows_max)
        if weights is not None:
            length = _light(weights, at, length, limit_bytes, settings)
        stream = run(rows if length == count else _slice(rows, at, length))
        made, own, whole = _within(stream, limit_bytes - size)
        if whole:
            found += made
            size += own
            at += length
            if pace != ALL and pace < PACE_MAX and own * _FACTOR <= settings.portion_bytes:
                pace += 1
            continue
        if length == 1 and not found:
            aside = spooled(_again(made, stream), aside_bytes, settings.temp_directory)
            return Taken(aside, at + 1, pace)
        _close(stream)
        if length == 1:
            break
        pace = max(pace for pace in range(1, PACE_MAX + 1) if pace == 1 or rows_at(pace) * _FACTOR <= length)
    if rows_max is not None and len(found) > 1:
        found = [pa.concat_batches(found)]  # rows of many columns must not be in small batches
    return Taken(spooled(found, aside_bytes, settings.temp_directory), at, pace)


def _light(weights: Weights, at: int, length: int, limit_bytes: int, settings: KernelSettings) -> int:
    """So many rows that not too much is made of them on the way; at least one."""
    if weights[at] > _JVM_BYTES_MAX:
        raise KernelError(STEP_FAILED, fix=REPORT_IT, detail=f"a row would make {int(weights[at])} bytes")
    if weights[at] > grown_bytes_max(settings):
        raise MemoryLimitError(
            f"A single row produces text or an array of {int(weights[at]) >> 20} MiB.",
            fix="Raise spark.wallaby.memory.",
            memory_bytes=settings.memory_bytes,
        )
    reached = np.cumsum(weights[at : at + length])
    return max(int(np.searchsorted(reached, limit_bytes, side="right")), 1)


def _within(stream: Iterator[pa.RecordBatch], limit_bytes: int) -> tuple[list[pa.RecordBatch], int, bool]:
    """What comes as long as it is not more than a limit, its size, and whether that is all."""
    made: list[pa.RecordBatch] = []
    size = 0
    for batch in stream:
        made.append(batch)
        size += value_bytes((batch,))
        if size > limit_bytes:
            return made, size, False
    return made, size, True


def all_within(stream: Iterator[pa.RecordBatch], limit_bytes: int) -> list[pa.RecordBatch] | None:
    """All that comes; None if it is more than a limit."""
    made, _, whole = _within(stream, limit_bytes)
    _close(stream)
    return made if whole else None


def _again(first: list[pa.RecordBatch], stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while first:
        yield first.pop(0)
    yield from stream


def _close(stream: Iterator[pa.RecordBatch]) -> None:
    """Have a stream that is not wanted any more free what it holds, now."""
    if isinstance(stream, _Closing):
        with closing(stream):
            pass


def rest_of(rows: Batches, begin: int) -> tuple[pa.RecordBatch, ...]:
    """The rows of an input from one on, in their batches."""
    left: list[pa.RecordBatch] = []
    for batch in rows:
        if begin < batch.num_rows:
            left.append(batch.slice(begin) if begin else batch)
        begin = max(begin - batch.num_rows, 0)
    return tuple(left)


def _slice(rows: Batches, begin: int, length: int) -> Batches:
    return first_rows(rest_of(rows, begin), length)


def first_rows(rows: Batches, length: int) -> Batches:
    """So many rows from the beginning of an input."""
    found: list[pa.RecordBatch] = []
    for batch in rows:
        if length <= 0:
            break
        found.append(batch.slice(0, length) if batch.num_rows > length else batch)
        length -= batch.num_rows
    return found
