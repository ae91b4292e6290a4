"""A window over a partition that is too large for DuckDB: its rows are sorted on disk and computed portion by portion.

The rows are sorted as a sort of more than memory is (`sorting`), by partition and order, and numbered. If a function
depends on rows that come later, all portions are written to a file first, and their edges are kept (`window_plan`).
Then one portion at a time is computed, with a few rows before and after it. DuckDB is given only the columns that the
functions read; the others pass by.

Whether and how rows are divided depends only on their values and the settings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from typing import Final

import numpy as np
import pyarrow as pa

from wallaby.batches.chunks import Chunks
from wallaby.batches.mapped import whole
from wallaby.batches.sizes import grouped, value_bytes
from wallaby.batches.stored import StoredBatches
from wallaby.errors import InternalError
from wallaby.functions.parts import EXACT_MAX
from wallaby.operators.spill.numbering import Numbering
from wallaby.operators.spill.parts import parts_for
from wallaby.operators.spill.sorting import ExternalSort
from wallaby.relations.relation import Input, Sort, Window
from wallaby.sql.types import arrow_schema
from wallaby.statements.connection import MIB, DuckDbSession, KernelSettings
from wallaby.statements.divided_window import DividedWindow, Portion
from wallaby.statements.relation import result_columns
from wallaby.statements.window_plan import RowPlace

_ROWS: Final = "portion_rows"
_EDGES: Final = "edges_of_others"
#: The parts that DuckDB computes a window over at once: at least, and at most.
_PARTS_MIN: Final = 2
_PARTS_MAX: Final = 8
#: What DuckDB adds to a row, and how many such bytes, times parts, it manages for each MiB that it may hold.
_ROW_BYTES: Final = 32
_ROW_BYTES_PER_MIB: Final = 12


def is_too_large(rows: Chunks, settings: KernelSettings) -> bool:
    """Are these rows so large that DuckDB may be unable to compute a window over all of them?

    It spills, but while it merges sorted rows it holds some of every run, so the longer the rows, the fewer fit. It was
    seen to end with an error from 3 parts on with 32 MiB and rows of 400 bytes, and from 16 on with rows of 100.
    """
    if settings.temp_directory is None or rows.value_bytes <= _PARTS_MIN * settings.part_bytes:
        return False
    count: int = sum(batch.num_rows for batch in rows.batches)
    row_bytes = rows.value_bytes // max(count, 1) + _ROW_BYTES
    parts = _ROW_BYTES_PER_MIB * (settings.memory_bytes // MIB) // row_bytes
    return rows.value_bytes > min(max(parts, _PARTS_MIN), _PARTS_MAX) * settings.part_bytes


class ExternalWindow:
    """Computes a window over an input, portion by portion."""

    def __init__(self, window: Window, plan: DividedWindow, settings: KernelSettings) -> None:
        assert isinstance(window.child, Input), "what is below a window has been computed"
        self._columns = result_columns(window.child)
        self._results = arrow_schema([call.column for call in window.calls])
        self._schema = arrow_schema(result_columns(window))
        self._plan = plan
        self._settings = settings

    def accepts(self, rows: Chunks) -> bool:
        """Are there few enough rows for the results to be those over all rows at once?

        The rows around each portion must not be more than a portion themselves.
        """
        count = sum(batch.num_rows for batch in rows.batches)
        if self._plan.rows_max is not None and count > self._plan.rows_max:
            return False
        around = self._plan.tail + self._plan.head
        return bool(around * rows.value_bytes <= self._settings.flow_bytes * max(count, 1))

    def run(self, session: DuckDbSession, rows: Chunks) -> Iterator[pa.RecordBatch] | None:
        """The results; None: only their values show that they might be rounded differently."""
        numbered = self._numbered(session, rows)
        if not self._plan.looks_ahead:
            return self._computed(session, numbered, [])
        if self._settings.temp_directory is None:
            raise InternalError("Portions of a window are on disk, but there is no directory for them.")
        with ExitStack() as stack:
            file = StoredBatches(self._numbered_schema, self._settings.temp_directory)
            stack.callback(file.close)
            edges: list[pa.Table] = []
            sums: list[int] = []
            count = 0
            for count, batch in enumerate(numbered, start=1):
                file.append(batch)
                visible = self._visible(batch)
                edges += self._edges(session, visible, _portion(count - 1, batch))
                sums = self._magnitudes(session, visible, sums)
            if any(total > EXACT_MAX for total in sums):
                return None
            stack.pop_all()
        return self._from_file(session, file, count, edges)

    def _from_file(
        self, session: DuckDbSession, file: StoredBatches, count: int, edges: list[pa.Table]
    ) -> Iterator[pa.RecordBatch]:
        with closing(file):
            yield from self._computed(session, map(file.read, range(count)), edges)

    # ----------------------------------------------------------------------------------------------- the rows
    def _numbered(self, session: DuckDbSession, rows: Chunks) -> Iterator[pa.RecordBatch]:
        """The rows in order, in portions, with their numbers beside them."""
        keys = self._plan.order
        if keys:
            ordered = ExternalSort(Sort(Input(0, self._columns), keys), None, self._settings).run(
                session, rows
            )
        else:
            ordered = (batch for group in rows.groups(self._settings.flow_bytes) for batch in group)
        numbering = Numbering()
        for batch in _portions(ordered, self._settings.flow_bytes):
            found = session.query(self._plan.keys_sql(_ROWS), {_ROWS: pa.Table.from_batches([batch])})
            numbers = numbering.numbers(found)
            for place in self._plan.places:
                batch = batch.append_column(_field(place), pa.array(numbers[place]))  # noqa: PLW2901 - it grows
            yield batch

    @property
    def _numbered_schema(self) -> pa.Schema:
        schema = arrow_schema(self._columns)
        for place in self._plan.places:
            schema = schema.append(_field(place))
        return schema

    def _visible(
        self, own: pa.RecordBatch, before: pa.Table | None = None, after: pa.Table | None = None
    ) -> pa.Table:
        """What the statements see of a portion and of the rows around it."""
        tables = ((-1, before), (0, self._seen(own)), (1, after))
        marked = [
            table.append_column(_field(RowPlace.OWN), pa.array(np.full(table.num_rows, side)))
            for side, table in tables
            if table is not None
        ]
        return pa.concat_tables(marked)

    def _seen(self, batch: pa.RecordBatch) -> pa.Table:
        names = [*self._plan.used, *(place.value for place in self._plan.places)]
        return pa.Table.from_batches([batch.select(names)])

    # ------------------------------------------------------------------------------------------------ portions
    def _computed(
        self, session: DuckDbSession, batches: Iterator[pa.RecordBatch], edges: list[pa.Table]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of each portion with their results. Without edges they are collected on the way."""
        collects = not self._plan.looks_ahead
        for number, (before, own, after) in enumerate(self._around(batches)):
            portion = _portion(number, own)
            visible = self._visible(own, before, after)
            tables = {_ROWS: visible}
            if edges:
                tables[_EDGES] = pa.concat_tables(edges)
            sql = self._plan.results_sql(_ROWS, portion, _EDGES if edges else None)
            results = pa.Table.from_batches(session.stream(sql, tables, self._results), self._results)
            columns = [
                own.column(name) for name in arrow_schema(self._columns).names if name in self._schema.names
            ]
            columns += [column.combine_chunks() for column in results.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)
            if collects:
                edges += self._edges(session, self._visible(own), portion)

    def _around(
        self, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[tuple[pa.Table | None, pa.RecordBatch, pa.Table | None]]:
        """Each portion between the rows before and after it that its functions see."""
        tail, head = self._plan.tail, self._plan.head
        coming: deque[pa.RecordBatch] = deque()
        before: pa.Table | None = None
        while True:
            while not coming or sum(batch.num_rows for batch in coming) - coming[0].num_rows < head:
                batch = next(batches, None)
                if batch is None:
                    break
                coming.append(batch)
            if not coming:
                return
            own = coming.popleft()
            after = pa.concat_tables(map(self._seen, coming)).slice(0, head) if head and coming else None
            yield before, own, after
            if tail:
                seen = [self._seen(own)] if before is None else [before, self._seen(own)]
                before = _last(pa.concat_tables(seen), tail)

    def _edges(self, session: DuckDbSession, visible: pa.Table, portion: Portion) -> list[pa.Table]:
        if not self._plan.has_edges:
            return []
        return [session.query(self._plan.edges_sql(_ROWS, portion), {_ROWS: visible})]

    def _magnitudes(self, session: DuckDbSession, visible: pa.Table, sums: list[int]) -> list[int]:
        """Add a portion's sums of magnitudes to `sums`, those of the portions before it."""
        sql = self._plan.magnitudes_sql(_ROWS)
        if sql is None:
            return sums
        (row,) = session.query(sql, {_ROWS: visible}).to_pylist()
        own = [int(value) for value in row.values()]
        return [a + b for a, b in zip(sums, own, strict=True)] if sums else own


def _portions(batches: Iterable[pa.RecordBatch], size_bytes: int) -> Iterator[pa.RecordBatch]:
    """Batches of about a size: small ones are put together, large ones are cut."""
    for group in grouped(batches, size_bytes):
        batch = whole(group)
        length = -(-batch.num_rows // parts_for(value_bytes((batch,)), size_bytes))
        yield from (batch.slice(at, length) for at in range(0, batch.num_rows, max(length, 1)))


def _portion(number: int, batch: pa.RecordBatch) -> Portion:
    def ends(place: RowPlace) -> tuple[int, int]:
        if place.value not in batch.schema.names:
            return 0, 0
        column = batch.column(place.value)
        return column[0].as_py(), column[-1].as_py()

    return Portion(number, *ends(RowPlace.PARTITION), *ends(RowPlace.PEERS))


def _last(table: pa.Table, count: int) -> pa.Table:
    """The last rows of a table, copied, so that the others can be freed."""
    begin = max(table.num_rows - count, 0)
    return table.take(pa.array(np.arange(begin, table.num_rows)))


def _field(place: RowPlace) -> pa.Field:
    return pa.field(place.value, pa.int64())
