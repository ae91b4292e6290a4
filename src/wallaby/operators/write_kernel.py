"""The kernel of a writing stage: collects rows until they fill files, writes the files, and returns their names.

Contents and names of files depend only on the rows and on how they were drawn. So a channel that is retraced writes the
same files again, or finds them. The rows that it returns, the manifest, are committed and delivered like any other
output: the head gets each name once, and only names of complete files. A file that no committed task has named is not
in the manifest, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wallaby.batches.checksum import checksum
from wallaby.batches.chunks import Chunks
from wallaby.batches.sizes import grouped, value_bytes
from wallaby.operators.program import NOTHING, Batches
from wallaby.operators.state import EMPTY, KernelState, StepResult
from wallaby.plan.physical import RowSplit, Split, WriteFragment
from wallaby.relations.target import MANIFEST, file_name, partition_folder
from wallaby.sql.types import arrow_schema
from wallaby.statements.connection import KernelSettings
from wallaby.tables.parquet_writing import ParquetForm

_Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
#: A channel that writes partitions collects rows for this many files before it writes all its partitions.
_FILES_HELD = 8


@dataclass(frozen=True, slots=True)
class _File:
    """A file to be written: its folder, and its rows in portions."""

    folder: str
    rows: int
    portions: Iterator[pa.Table]


class WriteKernel:
    """Writes the rows of one channel."""

    def __init__(self, fragment: WriteFragment, settings: KernelSettings, channel: int) -> None:
        self._target = fragment.target
        self._form = ParquetForm(fragment.target)
        self._settings = settings
        self._channel = channel
        held = _FILES_HELD if fragment.target.partitions else 1
        self._enough_bytes = fragment.target.file_bytes * held

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
        """Collect rows; write them when there are enough, and in the last step."""
        assert split is None, "only scans read splits"
        assert not begin, "only scans read splits"
        assert not sides, "a writer has no side inputs"
        state = state.with_waiting(inputs.get(0, ()))
        if not state.waiting or (not last and state.waiting_bytes < self._enough_bytes):
            return state, StepResult()
        made = self._write(state.collected, state.rows_passed)
        return replace(EMPTY, rows_passed=state.rows_passed + made.num_rows), StepResult([made])

    def _write(self, rows: Chunks, first: int) -> pa.RecordBatch:
        """Write rows to files, numbered from `first`, and return the manifest."""
        content = checksum((rows.batches,))
        found: list[tuple[str, int, int]] = []
        for number, file in enumerate(self._files(rows), first):
            name = file_name(self._target, self._channel, number, content)
            name = f"{file.folder}/{name}" if file.folder else name
            size_bytes = self._form.write(name, file.portions)
            found.append((name, file.rows, size_bytes))
            rows.release()
        columns = [list(column) for column in zip(*found, strict=True)]
        schema = arrow_schema(MANIFEST)
        return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)

    def _files(self, rows: Chunks) -> Iterator[_File]:
        """Divide rows into files."""
        if self._target.partitions:
            yield from self._partitions(pa.Table.from_batches(rows.batches))
            return
        total = sum(batch.num_rows for batch in rows.batches)
        table = pa.Table.from_batches(rows.batches)
        for begin, end in self._cut(0, total):
            part = table.slice(begin, end - begin)
            yield _File("", end - begin, _portions(part, self._settings.flow_bytes))

    def _cut(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Divide a range of rows so that no part is too large for a file."""
        most = self._target.rows_max or end - begin
        for at in range(begin, end, most):
            yield at, min(at + most, end)

    def _partitions(self, table: pa.Table) -> Iterator[_File]:
        """Make files of one partition each, ordered by partition value; rows keep their order."""
        count = len(self._target.partitions)
        texts = table.columns[-count:]
        data = table.select(range(table.num_columns - count))
        codes, values = _codes(texts)
        order = np.argsort(codes, kind="stable")
        bounds = np.flatnonzero(np.diff(codes[order], prepend=-1, append=-1))
        width = max(value_bytes(table.to_batches()) // max(table.num_rows, 1), 1)
        step = max(self._settings.flow_bytes // width, 1)
        for first, after in pairwise(bounds):
            folder = partition_folder(self._target.partitions, values[codes[order[first]]])
            for begin, end in self._cut(int(first), int(after)):
                yield _File(folder, end - begin, _taken(data, order[begin:end], step))

    def forget(self) -> None:
        """Do nothing: there are no caches between steps."""


def _portions(table: pa.Table, size_bytes: int) -> Iterator[pa.Table]:
    for group in grouped(table.to_batches(), size_bytes):
        yield pa.Table.from_batches(group, table.schema)


def _taken(table: pa.Table, places: _Numbers, step: int) -> Iterator[pa.Table]:
    """Take rows by position, `step` at a time."""
    for begin in range(0, len(places), step):
        yield table.take(pa.array(places[begin : begin + step]))


def _codes(texts: Sequence[pa.ChunkedArray]) -> tuple[_Numbers, list[tuple[str | None, ...]]]:
    """The partition number of each row, and the values of each partition; numbers follow the order of values."""
    codes = np.zeros(len(texts[0]), dtype=np.int64)
    known: list[list[str | None]] = []
    for column in texts:
        named = pc.if_else(
            pc.equal(column, ""), pa.scalar(None, column.type), column
        )  # the partition of NULL has these too
        encoded = pa.concat_arrays(named.chunks).dictionary_encode(null_encoding="encode")
        known.append(encoded.dictionary.to_pylist())
        codes = codes * len(known[-1]) + encoded.indices.to_numpy()
    encoded = pa.array(codes).dictionary_encode()
    found = [_texts(code, known) for code in encoded.dictionary.to_pylist()]
    places = sorted(range(len(found)), key=lambda at: [text or "" for text in found[at]])
    ranks = np.empty(len(found), dtype=np.int64)
    ranks[places] = np.arange(len(found))
    return ranks[encoded.indices.to_numpy()], [found[at] for at in places]


def _texts(code: int, known: Sequence[Sequence[str | None]]) -> tuple[str | None, ...]:
    """The values that a code stands for: its digits, where the last column is the lowest digit."""
    digits = []
    for values in reversed(known):
        code, digit = divmod(code, len(values))
        digits.append(values[digit])
    return tuple(reversed(digits))
