"""Sorting more rows than memory holds: sorted runs on disk, then range after range of all runs.

Every row of a run has its sort key beside it, DuckDB's own, bytes that compare as the rows do. Some keys of every
run, taken while it is written, divide all rows into ranges of about a portion. A range is a slice of every run, found
by bisection; it is small enough to be sorted at once, and nothing else is touched. A key that alone has more rows
than a range needs no sorting: its rows come run by run. So no number of equal keys takes more memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from wallaby.errors import InternalError
from wallaby.kernels.chunks import Chunks
from wallaby.kernels.connection import KernelSettings, Session
from wallaby.kernels.mapped import MappedBatches
from wallaby.kernels.parts import parts_for
from wallaby.kernels.sizes import grouped
from wallaby.kernels.sql_relation import input_name
from wallaby.kernels.sql_text import identifier, names_of, text
from wallaby.kernels.sql_window import key_order_sql
from wallaby.kernels.types import arrow_schema
from wallaby.plan.relation import Sort

_KEY = "sort key"
_RANGE = "range"
#: So many samples of each run fall into a range, on average: ranges are about a quarter larger than wanted.
_SAMPLES_PER_RANGE = 4
#: What is left of a sample at least. A beginning of a key divides rows as well as the key, unless they share it.
_SAMPLE_BYTES_MIN = 64


class _Run:
    """Rows in order, in batches, with their keys in the last column."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self.batches = batches
        self.starts = [0]
        for batch in batches:
            self.starts.append(self.starts[-1] + batch.num_rows)

    def __len__(self) -> int:
        return self.starts[-1]

    def __getitem__(self, row: int) -> bytes:
        at = bisect_right(self.starts, row) - 1
        key: bytes = self.batches[at].column(_KEY)[row - self.starts[at]].as_py()
        return key

    def rows(self, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        """A slice of the run."""
        for batch, start in zip(self.batches, self.starts, strict=False):
            first, last = max(begin - start, 0), min(end - start, batch.num_rows)
            if first < last:
                yield batch.slice(first, last - first)


@dataclass(frozen=True, slots=True)
class ExternalSort:
    """Sorts the rows of one input."""

    sort: Sort
    #: How many rows from the beginning are wanted; None: all.
    reach: int | None
    settings: KernelSettings

    def run(self, session: Session, rows: Chunks) -> Iterator[pa.RecordBatch]:
        """The rows in order."""
        if not rows.batches:
            return
        size = rows.value_bytes
        count = sum(batch.num_rows for batch in rows.batches)
        runs_expected = parts_for(size, self.settings.part_bytes)
        range_rows = max(count * self.settings.portion_bytes // max(size, 1), 1)
        every = max(range_rows // (_SAMPLES_PER_RANGE * runs_expected), 1)
        # Samples of long keys are fewer, and then cut short: all of them together are not more than a run.
        row_bytes, ranges = max(size // count, 1), max(count // range_rows, 1)
        samples_max = max(self.settings.part_bytes // row_bytes, _SAMPLES_PER_RANGE * ranges)
        every = max(every, count // samples_max)
        length = max(self.settings.part_bytes // max(count // every, 1), _SAMPLE_BYTES_MIN)
        runs, file, samples = self._make_runs(session, rows, every, length)
        cuts = sorted(samples)[:: max(range_rows // every, 1)]
        yield from self._merged(session, runs, file, sorted(set(cuts)), range_rows)

    def _make_runs(
        self, session: Session, rows: Chunks, every: int, length: int
    ) -> tuple[list[_Run], MappedBatches, list[bytes]]:
        if self.settings.temp_directory is None:
            raise InternalError("Runs of a sort are on disk, but there is no directory for them.")
        schema = arrow_schema(self.sort.columns).append(pa.field(_KEY, pa.binary()))
        samples: list[bytes] = []
        lengths: list[int] = []

        def sorted_batches() -> Iterator[pa.RecordBatch]:
            for group in grouped(rows.batches, self.settings.part_bytes):
                batches = 0
                table = pa.Table.from_batches(group)
                for batch in session.stream(self._run_sql(), {input_name(0): table}, schema):
                    keys = batch.column(_KEY)
                    samples.extend(keys[at].as_py()[:length] for at in range(0, batch.num_rows, every))
                    batches += 1
                    yield batch
                lengths.append(batches)
                rows.release()

        file = MappedBatches(sorted_batches(), schema, self.settings.temp_directory)
        runs, begin = [], 0
        for length in lengths:
            runs.append(_Run(file.batches[begin : begin + length]))
            begin += length
        return runs, file, samples

    def _merged(
        self, session: Session, runs: list[_Run], file: MappedBatches, cuts: list[bytes], range_rows: int
    ) -> Iterator[pa.RecordBatch]:
        positions = [0] * len(runs)
        for cut in (*cuts, None):
            if cut is None:
                below = upto = [len(run) for run in runs]
            else:
                below = _positions(runs, cut, positions, bisect_left)
                upto = _positions(runs, cut, below, bisect_right)
            many = sum(upto) - sum(below) > range_rows
            yield from self._range(session, runs, positions, below if many else upto)
            if many:
                for run, begin, end in zip(runs, below, upto, strict=True):
                    yield from (batch.drop_columns([_KEY]) for batch in run.rows(begin, end))
            positions = upto
            file.release()

    def _range(
        self, session: Session, runs: list[_Run], begin: list[int], end: list[int]
    ) -> Iterator[pa.RecordBatch]:
        """All rows between two positions of each run, in order."""
        slices = [batch for run, b, e in zip(runs, begin, end, strict=True) for batch in run.rows(b, e)]
        if not slices:
            return
        listed = ", ".join(names_of(self.sort.columns))
        sql = f"SELECT {listed} FROM {identifier(_RANGE)} ORDER BY {identifier(_KEY)}"  # noqa: S608 - names of our own
        table = pa.Table.from_batches(slices)
        yield from session.stream(sql, {_RANGE: table}, arrow_schema(self.sort.columns))

    def _run_sql(self) -> str:
        keys = ", ".join(
            f"{key_order_sql(key)}, "
            + text(f"{'ASC' if key.ascending else 'DESC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}")
            for key in self.sort.keys
        )
        listed = ", ".join(names_of(self.sort.columns))
        limit = "" if self.reach is None else f" LIMIT {self.reach}"
        return (
            f"SELECT {listed}, create_sort_key({keys}) AS {identifier(_KEY)} "  # noqa: S608 - from typed trees
            f"FROM {identifier(input_name(0))} ORDER BY {identifier(_KEY)}{limit}"
        )


def _positions(
    runs: list[_Run], key: bytes, low: list[int], bisect: Callable[[_Run, bytes, int, int], int]
) -> list[int]:
    return [bisect(run, key, at, len(run)) for run, at in zip(runs, low, strict=True)]
