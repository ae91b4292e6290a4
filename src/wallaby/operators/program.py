"""Run a tree: rows flow through its steps in portions, so that no step ever holds the whole output of another.

A join may give hundreds of times its input, and the next join again. So a step produces its next portion only when the
one before it has been consumed: probes cut their rows by the number of partners and the size of the output, and
statements yield rows as DuckDB computes them. There is never more than one portion between two steps, however the rows
multiply. Portions depend only on values and settings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, assert_never, cast

import pyarrow as pa

from wallaby.batches.chunks import spooled
from wallaby.batches.mapped import MappedBatches, combined_on_disk
from wallaby.batches.sizes import gathered, rows_within, value_bytes
from wallaby.operators.counted_groups import counted_groups
from wallaby.operators.joins.index import JoinIndex, make_index
from wallaby.operators.joins.key_set import KeySet
from wallaby.operators.joins.probing import joined_batches
from wallaby.operators.shared import SharedInputs, SharedValue
from wallaby.operators.steps import ColumnChoice, Counting, LoweredTree, Probe, Statement, Step
from wallaby.operators.taking import first_rows, rest_of
from wallaby.relations.relation import Input, Relation
from wallaby.sql.types import arrow_schema, column_name
from wallaby.statements.connection import (
    OVER_PORTIONS,
    DuckDbSession,
    KernelSettings,
    NoRoomError,
    Rows,
    TableView,
)
from wallaby.statements.growth import Growth
from wallaby.statements.relation import input_name, relation_sql, result_columns
from wallaby.statements.widths import divided, side_by_side

T = TypeVar("T")
_NO_VIEWS: Mapping[int, TableView] = {}
#: Batches that are smaller than this on average are merged before they are used.
_SMALL_ROWS = 1 << 14
#: A kept table is on disk if it is larger than this fraction of a kernel's memory.
_KEPT_PARTS = 4
#: Rows that produce too much are tried again in this many pieces.
_PIECES = 8

Batches = Sequence[pa.RecordBatch]
#: No inputs.
NOTHING: Mapping[int, Batches] = {}


class _TooMuchError(Exception):
    """The output of some rows exceeds the room; that of fewer rows may fit."""


@dataclass(frozen=True, slots=True)
class _Run:
    """The inputs and results of one run of a program."""

    session: DuckDbSession
    inputs: Mapping[int, Batches]
    views: Mapping[int, TableView]
    #: The results of steps over fixed inputs; if steps branch, of the others too.
    tables: dict[int, pa.Table] = field(default_factory=dict)


class Program:
    """A compiled tree and its caches. It belongs to one channel, and to one thread at a time."""

    def __init__(
        self,
        tree: Relation,
        fixed: frozenset[int],
        shared: SharedInputs | None = None,
        name: Hashable = None,
        *,
        in_pieces: bool = False,
    ) -> None:
        """`name` distinguishes the program from others with which it shares results; `in_pieces`: see `LoweredTree`."""
        self.columns = tree.columns
        self._shared = shared if shared is not None else SharedInputs()
        self._name = name
        self._lowered = LoweredTree(tree, fixed, in_pieces=in_pieces)
        self._fixed = self._lowered.fixed
        #: The results of steps over fixed inputs, by number, and the indexes.
        self._kept: dict[Hashable, SharedValue[object]] = {}
        #: The files of kept tables that are too large for memory.
        self._files: dict[int, list[MappedBatches]] = {}
        #: What the functions of a statement make of the rows that other steps have made, by the statement's number.
        self._growth: dict[int, Growth] = {}

    def run(self, session: DuckDbSession, inputs: Mapping[int, Batches]) -> list[pa.RecordBatch]:
        """The tree's rows for the given inputs."""
        return list(self.stream(session, inputs))

    def stream(
        self,
        session: DuckDbSession,
        inputs: Mapping[int, Batches],
        views: Mapping[int, TableView] = _NO_VIEWS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows batch by batch as they are made; none is empty. Only statements may read views."""
        run = _Run(session, inputs, views)
        for step in self._lowered.steps:
            if step.number in self._fixed:
                run.tables[step.number] = self._made_once(step, run)
        steps = self._lowered.streaming
        if not steps:
            flow: Iterator[pa.RecordBatch] = iter(self._table(self._lowered.result, run).to_batches())
        elif self._lowered.is_chain:
            flow = self._flow(steps, run)
        else:
            flow = self._branching(steps, run)
        for batch in flow:
            if batch.num_rows:
                yield batch if batch.num_columns == max(len(self.columns), 1) else self._selected(batch)
        for file in (file for files in self._files.values() for file in files):
            file.release()

    def is_indexed(self, number: int) -> bool:
        """Are the unchanged rows of an input the build side of a probe?"""
        return any(isinstance(step, Probe) and step.build.number == number for step in self._lowered.steps)

    def forget(self) -> None:
        """Free kept tables and indexes; they are made again when needed."""
        self._kept.clear()
        self._files.clear()

    def _selected(self, result: pa.RecordBatch) -> pa.RecordBatch:
        """Repeat the columns that the tree has twice."""
        return result.select([column_name(column.id) for column in self.columns])

    # ------------------------------------------------------------------------------------------------ streaming
    def _flow(self, steps: Sequence[Step], run: _Run) -> Iterator[pa.RecordBatch]:
        """Feed each step with the output of the one before. The first takes all its rows: those of a task are few."""
        flow = self._first(steps[0], run)
        for step in steps[1:]:
            flow = self._through(step, flow, run)
        return flow

    def _first(self, step: Step, run: _Run) -> Iterator[pa.RecordBatch]:
        match step:
            case Statement():
                return self._answered(step, run)
            case ColumnChoice():
                return self._through(step, iter(self._table(step.source, run).to_batches()), run)
            case Probe():
                if self._index(step, run) is None:
                    return self._answered(step.otherwise, run)
                return self._through(step, iter(self._table(step.probe, run).to_batches()), run)
            case Counting() if step.source.number in run.views:
                return self._answered(step.otherwise, run)
            case Counting():
                return self._counted(step, self._table(step.source, run).to_batches(), run)
            case _ as unreachable:
                assert_never(unreachable)

    def _through(self, step: Step, flow: Iterator[pa.RecordBatch], run: _Run) -> Iterator[pa.RecordBatch]:
        match step:
            case ColumnChoice():
                names = [column_name(column.id) for column in step.columns]
                return (batch.select(names) for batch in flow)
            case Probe():
                index = self._index(step, run)
                if index is None:
                    return self._by_statement(step.otherwise, step.probe, flow, run)
                schema, limit = arrow_schema(step.columns), run.session.settings.flow_bytes
                return joined_batches(index, flow, step.keys, step.kind, schema, limit)
            case Statement():
                (source,) = (source for source in step.inputs if source.number not in self._fixed)
                return self._by_statement(step, source, flow, run)
            case Counting():
                groups = gathered(flow, run.session.settings.flow_bytes)
                return (batch for group in groups for batch in self._counted(step, group, run))
            case _ as unreachable:
                assert_never(unreachable)

    def _by_statement(
        self, step: Statement, source: Input, flow: Iterator[pa.RecordBatch], run: _Run
    ) -> Iterator[pa.RecordBatch]:
        """Run a statement on as many rows at a time as there is room for, at least once: it may count zero rows."""
        # A statement reads its other inputs anew each time.
        joins = len(step.inputs) > 1
        settings = run.session.settings
        for group in gathered(flow, settings.part_bytes if joins else settings.flow_bytes):
            for part in self._light(step, source, group, settings):
                yield from self._in_room(step, source, part, run)
            del group

    def _in_room(self, step: Statement, source: Input, rows: Batches, run: _Run) -> Iterator[pa.RecordBatch]:
        """Run a statement on some rows; if DuckDB has no room for them, on fewer at a time."""
        waiting = [rows]
        while waiting:
            part = waiting.pop()
            run.tables[source.number] = _one_table(part, arrow_schema(source.columns))
            is_first = True
            try:
                for batch in self._answered(step, run):
                    is_first = False
                    yield batch
            except NoRoomError:
                if not is_first or sum(batch.num_rows for batch in part) <= 1:
                    raise
                waiting.extend(reversed(list(_cut(part))))
            finally:
                del run.tables[source.number]

    def _counted(self, step: Counting, rows: Batches, run: _Run) -> Iterator[pa.RecordBatch]:
        """The groups of rows that are there, in batches like those of a statement."""
        settings = run.session.settings
        # DuckDB is idle meanwhile, so this may take its memory.
        made = counted_groups(step, rows, settings.memory_bytes)
        if made is None:
            number, known = step.source.number, step.source.number in run.tables
            run.tables[number] = _one_table(rows, arrow_schema(step.source.columns))
            yield from self._answered(step.otherwise, run)
            if not known:
                del run.tables[number]
            return
        length = rows_within(made.schema, settings.flow_bytes)
        yield from (made.slice(begin, length) for begin in range(0, made.num_rows, length))

    def _light(
        self, step: Statement, source: Input, rows: Batches, settings: KernelSettings
    ) -> Iterator[Batches]:
        """Divide rows so that there is room for what the functions of a statement make of each part."""
        if step.number not in self._growth:
            self._growth[step.number] = Growth(step.relation, source.number, settings)
        weights = self._growth[step.number].weigh(rows) if rows else None
        if weights is None:
            yield rows
            return
        at, count, limit = 0, sum(batch.num_rows for batch in rows), OVER_PORTIONS * settings.portion_bytes
        while at < count:
            length = weights.rows_within(at, count - at, limit, settings)
            yield first_rows(rest_of(rows, at), length)
            at += length

    def _answered(self, step: Statement, run: _Run) -> Iterator[pa.RecordBatch]:
        given = {input_name(number): rows for number, rows in self._given(step, run).items()}
        schema = arrow_schema(result_columns(step.relation))
        parts = divided(step.relation, run.session.settings)
        if len(parts) == 1:
            return run.session.stream(step.sql, given, schema)
        answers = (
            run.session.stream(relation_sql(part), given, arrow_schema(result_columns(part)))
            for part in parts
        )
        return iter((side_by_side(answers, schema),))

    def _given(self, step: Statement, run: _Run) -> dict[int, Rows]:
        return {
            source.number: run.views.get(source.number) or self._table(source, run) for source in step.inputs
        }

    # ------------------------------------------------------------------------------------------------ branching
    def _branching(self, steps: Sequence[Step], run: _Run) -> Iterator[pa.RecordBatch]:
        """Run a tree whose rows branch: step by step, on as many rows as there is room for."""
        streaming = sorted(run.inputs.keys() - self._fixed)
        if len(streaming) != 1 or run.views:
            yield from self._made_of(steps, run, None)
            return
        (number,) = streaming
        waiting: list[Batches] = [tuple(run.inputs[number])]
        while waiting:
            rows = waiting.pop()
            part = _Run(run.session, {**run.inputs, number: rows}, run.views, dict(run.tables))
            many = sum(batch.num_rows for batch in rows) > 1
            limit = run.session.settings.part_bytes if many else None
            try:
                made = list(self._made_of(steps, part, limit))
            except _TooMuchError:
                waiting.extend(reversed(list(_cut(rows))))
                continue
            yield from made

    def _made_of(self, steps: Sequence[Step], run: _Run, limit: int | None) -> Iterator[pa.RecordBatch]:
        for step in steps:
            schema = arrow_schema(
                step.columns if not isinstance(step, Statement) else result_columns(step.relation)
            )
            made = _limited(self._first(step, run), limit)
            run.tables[step.number] = _one_table(tuple(made), schema)
        return iter(run.tables[self._lowered.result.number].to_batches())

    # ----------------------------------------------------------------------------------------------------- kept
    def _made_once(self, step: Step, run: _Run) -> pa.Table:
        """The result of a step over fixed inputs, in one chunk because it is read repeatedly."""
        match step:
            case Statement():
                given = tuple(self._given(step, run).values())
                columns = result_columns(step.relation)
                return self._keep(
                    step.number,
                    given,
                    lambda: self._combined(
                        step.number, self._answered(step, run), arrow_schema(columns), run
                    ),
                )
            case ColumnChoice():
                return self._table(step.source, run).select(
                    [column_name(column.id) for column in step.columns]
                )
            case Probe() | Counting():
                raise AssertionError("it has streaming rows")
            case _ as unreachable:
                assert_never(unreachable)

    def _table(self, source: Input, run: _Run) -> pa.Table:
        if source.number in run.tables:
            return run.tables[source.number]
        batches = tuple(run.inputs.get(source.number, ()))
        schema = arrow_schema(source.columns)
        if source.number in self._fixed:
            return self._keep(
                source.number, batches, lambda: self._combined(source.number, batches, schema, run)
            )
        return _one_table(batches, schema)

    def _combined(
        self, number: int, batches: Iterable[pa.RecordBatch], schema: pa.Schema, run: _Run
    ) -> pa.Table:
        """Combine batches into one chunk, because it is read repeatedly: in memory, or on disk if it is large."""
        settings = run.session.settings
        limit_bytes = settings.memory_bytes // _KEPT_PARTS
        if not isinstance(batches, tuple):
            batches = spooled(batches, limit_bytes, settings.temp_directory).batches
        table = pa.Table.from_batches(batches, schema)
        if settings.temp_directory is None or table.nbytes <= limit_bytes:
            return table.combine_chunks()
        try:
            table, self._files[number] = combined_on_disk(table, settings.temp_directory)
        except pa.ArrowInvalid:  # a column has more text than one chunk can hold
            return table.combine_chunks()
        return table

    def _index(self, step: Probe, run: _Run) -> JoinIndex | KeySet | None:
        build = self._table(step.build, run)
        limit_bytes = run.session.settings.memory_bytes
        keys = [theirs for _, theirs in step.keys]
        shown = any(column_name(column.id) in build.column_names for column in step.columns)
        # DuckDB is idle while an index is used, so the index may take its memory.
        return self._keep(
            ("index", step.number),
            (build,),
            lambda: make_index(build, keys, limit_bytes, step.kind, shown=shown),
        )

    def _keep(self, key: Hashable, inputs: tuple[object, ...], make: Callable[[], T]) -> T:
        """The result for these inputs: kept from before, made by another channel, or made now."""
        kept = self._kept.get(key)
        if kept is None or not kept.is_of(inputs):
            kept = self._kept[key] = self._shared.of((self._name, key), inputs)
        return cast("SharedValue[T]", kept).get(make)


def _one_table(batches: Batches, schema: pa.Schema) -> pa.Table:
    """Merge many small batches, with which DuckDB is slow."""
    table = pa.Table.from_batches(batches, schema)
    return table.combine_chunks() if table.num_rows < _SMALL_ROWS * len(batches) else table


def _limited(batches: Iterator[pa.RecordBatch], limit_bytes: int | None) -> Iterator[pa.RecordBatch]:
    """Yield batches as they come; raise if they become too large together."""
    size = 0
    for batch in batches:
        size += value_bytes((batch,))
        if limit_bytes is not None and size > limit_bytes:
            raise _TooMuchError
        yield batch


def _cut(batches: Batches) -> Iterator[Batches]:
    """Cut batches into a few pieces, in order; none is empty."""
    table = pa.Table.from_batches(batches)
    length = -(-table.num_rows // _PIECES)
    for begin in range(0, table.num_rows, length):
        yield table.slice(begin, length).to_batches()
