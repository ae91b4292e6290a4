"""How many rows of its input a task takes: as many as give about one output.

Rows may produce many times their own size: a join whose keys have hundreds of partners, an exploded array, a repeated
text. So the output is measured while it is produced. If it becomes too large, it is discarded, and fewer rows are
tried. The same happens if DuckDB has no room for what it computes of some rows at once. Rows that a task has not taken
wait as input for the following tasks. So the output of a task is bounded, in memory and on disk, however its rows
multiply. The *pace* says how many rows are tried at a time. It follows from the output of earlier rows and is part of
the state, so a retrace keeps the same pace.

Only the output of a single row may exceed the limit. It is set aside on disk and output portion by portion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import pyarrow as pa

from wallaby.batches.chunks import Chunks, spooled
from wallaby.batches.sizes import value_bytes
from wallaby.relations.relation import Relation
from wallaby.statements.connection import KernelSettings, NoRoomError
from wallaby.statements.growth import Weights, tree_grows

Batches = Sequence[pa.RecordBatch]
Weigh = Callable[[Batches], Weights | None]
#: Each pace has this many times the rows of the one before. The first pace is one row.
_FACTOR_BITS: Final = 3
_FACTOR: Final = 1 << _FACTOR_BITS
PACE_MAX: Final = 8
#: The most portions that a single row may give.
PORTIONS_MAX: Final = 1 << 14
#: The pace is not known yet: all rows are tried.
ALL: Final = 0
#: The first pace for a tree with a function whose result may be large.
_CAREFUL: Final = 3


@runtime_checkable
class _Closing(Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """The position at which a read continues in its split, as one number that a record can hold.

    The output of a row that gives more than one output is sent portion by portion; the position counts those sent.
    """

    row: int = 0
    pace: int = ALL
    portion: int = 0

    @property
    def number(self) -> int:
        """The position as a number; the beginning is 0."""
        return (self.row * (PACE_MAX + 1) + self.pace) * PORTIONS_MAX + self.portion

    @classmethod
    def of(cls, number: int) -> ReadPosition:
        """The position that a number stands for."""
        rest, portion = divmod(number, PORTIONS_MAX)
        return cls(*divmod(rest, PACE_MAX + 1), portion)


@dataclass(frozen=True, slots=True)
class TakenRows:
    """The output of the first rows of an input, the number of these rows, and the next pace."""

    made: Chunks
    rows: int
    pace: int


def first_pace(tree: Relation) -> int:
    """The first pace for a tree."""
    return _CAREFUL if tree_grows(tree) else ALL


def rows_at(pace: int) -> int:
    """The number of rows that are tried at a pace."""
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
) -> TakenRows:
    """Take the first rows of an input until they give a portion; only a single row may exceed the limit.

    `weigh` computes in advance the size of intermediate results for each row, where possible. At most `rows_max` rows
    are tried at a time.
    """
    aside_bytes = settings.aside_bytes if aside_bytes is None else aside_bytes
    count = sum(batch.num_rows for batch in rows)
    weights = weigh(rows) if weigh is not None else None
    found: list[pa.RecordBatch] = []
    size = at = 0
    pace_max = PACE_MAX
    while at < count and size < settings.portion_bytes:
        length = count - at if pace == ALL else min(rows_at(pace), count - at)
        if rows_max is not None:
            length = min(length, rows_max)
        if weights is not None:
            length = weights.rows_within(at, length, limit_bytes, settings)
        stream = run(rows if length == count else _slice(rows, at, length))
        try:
            made, own, whole = _within(stream, limit_bytes - size)
        except NoRoomError:
            if length == 1:
                raise
            pace = pace_max = _slower(length)
            continue
        if whole:
            found += made
            size += own
            at += length
            if pace != ALL and pace < pace_max and own * _FACTOR <= settings.portion_bytes:
                pace += 1
            continue
        if length == 1 and not found:
            aside = spooled(_again(made, stream), aside_bytes, settings.temp_directory)
            return TakenRows(aside, at + 1, pace)
        _close(stream)
        if length == 1:
            break
        pace = _slower(length)
    if rows_max is not None and len(found) > 1:
        found = [pa.concat_batches(found)]  # rows with many columns must not be in small batches
    return TakenRows(spooled(found, aside_bytes, settings.temp_directory), at, pace)


def _slower(length: int) -> int:
    """The pace at which an eighth of some rows is tried, or one row."""
    return max(pace for pace in range(1, PACE_MAX + 1) if pace == 1 or rows_at(pace) * _FACTOR <= length)


def _within(stream: Iterator[pa.RecordBatch], limit_bytes: int) -> tuple[list[pa.RecordBatch], int, bool]:
    """The batches of a stream up to a limit, their size, and whether these are all."""
    made: list[pa.RecordBatch] = []
    size = 0
    for batch in stream:
        made.append(batch)
        size += value_bytes((batch,))
        if size > limit_bytes:
            return made, size, False
    return made, size, True


def all_within(stream: Iterator[pa.RecordBatch], limit_bytes: int) -> list[pa.RecordBatch] | None:
    """All batches of a stream; None if they exceed a limit."""
    made, _, whole = _within(stream, limit_bytes)
    _close(stream)
    return made if whole else None


def _again(first: list[pa.RecordBatch], stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while first:
        yield first.pop(0)
    yield from stream


def _close(stream: Iterator[pa.RecordBatch]) -> None:
    """Close a stream that is no longer needed, so that it frees its memory at once."""
    if isinstance(stream, _Closing):
        with closing(stream):
            pass


def rest_of(rows: Batches, begin: int) -> tuple[pa.RecordBatch, ...]:
    """The rows of an input from a number on, in their batches."""
    left: list[pa.RecordBatch] = []
    for batch in rows:
        if begin < batch.num_rows:
            left.append(batch.slice(begin) if begin else batch)
        begin = max(begin - batch.num_rows, 0)
    return tuple(left)


def _slice(rows: Batches, begin: int, length: int) -> Batches:
    return first_rows(rest_of(rows, begin), length)


def first_rows(rows: Batches, length: int) -> Batches:
    """The first rows of an input."""
    found: list[pa.RecordBatch] = []
    for batch in rows:
        if length <= 0:
            break
        found.append(batch.slice(0, length) if batch.num_rows > length else batch)
        length -= batch.num_rows
    return found
