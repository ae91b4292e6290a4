"""A tree as a short program: SQL statements, and probes of indexed build sides between them.

A join between the rows of this step (the *streaming* input) and rows that stay the same from step to step (*fixed*
inputs: the collected build side, the side links) is done by an index that is kept. Below and above it the tree is
SQL. What cannot be indexed is part of the SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, assert_never, cast

import pyarrow as pa

from wallaby.kernels.connection import Rows, Session, View
from wallaby.kernels.index import COMPARED_KINDS, INDEXED_KINDS, JoinIndex, make_index
from wallaby.kernels.key_set import KeySet
from wallaby.kernels.mapped import MappedBatches, combined_on_disk
from wallaby.kernels.probing import joined_batches
from wallaby.kernels.shared import Made, Shared
from wallaby.kernels.sizes import value_bytes
from wallaby.kernels.sql import input_name, inputs_of, relation_sql, result_columns
from wallaby.kernels.tree import with_children
from wallaby.kernels.types import arrow_schema, column_name
from wallaby.plan.expression import Column, columns_in
from wallaby.plan.relation import (
    Filter,
    Input,
    Join,
    JoinKind,
    Project,
    Relation,
    children_of,
)
from wallaby.plan.tree import is_choice

T = TypeVar("T")
_NO_VIEWS: Mapping[int, View] = {}
#: Inputs with such numbers are made by the program itself.
_MADE = 1000
#: Batches that are smaller than this on average are put together before they are used.
_SMALL_ROWS = 1 << 14
#: What is kept is on disk if it is larger than this part of a kernel's memory.
_KEPT_PARTS = 4


@dataclass(frozen=True, slots=True)
class Statement:
    """Run SQL on inputs; the result is input `number`."""

    number: int
    relation: Relation
    sql: str
    inputs: tuple[Input, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """Join the streaming rows of input `probe` with the fixed rows of input `build`."""

    number: int
    kind: JoinKind
    probe: Input
    build: Input
    #: The names of the key columns on both sides.
    keys: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    #: The same as SQL, for keys that no index can hold.
    otherwise: Statement


@dataclass(frozen=True, slots=True)
class Choice:
    """Some columns of an input, in order; the result is input `number`."""

    number: int
    source: Input
    columns: tuple[Column, ...]


Step = Statement | Probe | Choice
Batches = Sequence[pa.RecordBatch]
#: No inputs.
NOTHING: Mapping[int, Batches] = {}


class Program:
    """A compiled tree with what it keeps between runs. It belongs to one channel, and one thread at a time."""

    def __init__(
        self, tree: Relation, fixed: frozenset[int], shared: Shared | None = None, name: Hashable = None
    ) -> None:
        """`name` tells the program from others whose kernels share what they make."""
        self.columns = tree.columns
        self._shared = shared if shared is not None else Shared()
        self._name = name
        self._fixed = fixed
        self._steps: list[Step] = []
        self._made = _MADE
        top = self._lower(tree)
        self._views = _NO_VIEWS
        self._result = top if isinstance(top, Input) else self._statement(top)
        #: What was made of fixed inputs, by number, and the indexes.
        self._kept: dict[Hashable, Made[object]] = {}
        #: The files of kept tables that are too large for memory.
        self._files: dict[int, list[MappedBatches]] = {}

    def run(self, session: Session, inputs: Mapping[int, Batches]) -> list[pa.RecordBatch]:
        """The tree's rows for the given inputs."""
        return list(self.stream(session, inputs))

    def stream(
        self, session: Session, inputs: Mapping[int, Batches], views: Mapping[int, View] = _NO_VIEWS
    ) -> Iterator[pa.RecordBatch]:
        """The same, batch by batch as they are made; none is empty. Only statements may use inputs that are views.

        From its last probe on the tree works on as many joined rows at a time as memory has room for: a join may
        give many times what went into it.
        """
        self._views = views
        tables: dict[int, pa.Table] = {}
        probes = [at for at, step in enumerate(self._steps) if isinstance(step, Probe)]
        begun = probes[-1] if probes else len(self._steps) - 1
        for step in self._steps[: max(begun, 0)]:
            tables[step.number] = self._step(step, session, inputs, tables)
        for result in self._last_steps(self._steps[max(begun, 0) :], session, inputs, tables):
            if result.num_rows:
                yield result if result.num_columns == max(len(self.columns), 1) else self._selected(result)
        for file in (file for files in self._files.values() for file in files):
            file.release()

    def _selected(self, result: pa.RecordBatch) -> pa.RecordBatch:
        """With a column twice that stands twice."""
        return result.select([column_name(column.id) for column in self.columns])

    def _last_steps(
        self,
        steps: Sequence[Step],
        session: Session,
        inputs: Mapping[int, Batches],
        tables: dict[int, pa.Table],
    ) -> Iterator[pa.RecordBatch]:
        if not steps:
            yield from self._table(self._result, session, inputs, tables).to_batches()
            return
        first, rest = steps[0], steps[1:]
        if isinstance(first, Probe) and (index := self._index(first, session, inputs, tables)) is not None:
            rows = self._table(first.probe, session, inputs, tables)
            schema = arrow_schema(first.columns)
            joined = joined_batches(index, rows, first.keys, first.kind, schema, session.settings.part_bytes)
            if not rest:
                yield from joined
                return
            pieces = _gathered(joined, session.settings.part_bytes)
            for piece in pieces if rows.num_rows else iter(((),)):
                tables[first.number] = pa.Table.from_batches(piece, schema)
                yield from self._last_statements(rest, session, inputs, tables)
            return
        others = [step.otherwise if isinstance(step, Probe) else step for step in steps]
        yield from self._last_statements(others, session, inputs, tables)

    def _last_statements(
        self,
        steps: Sequence[Step],
        session: Session,
        inputs: Mapping[int, Batches],
        tables: dict[int, pa.Table],
    ) -> Iterator[pa.RecordBatch]:
        """All but the last give tables; the last one's rows go on as they are made."""
        for step in steps[:-1]:
            tables[step.number] = self._step(step, session, inputs, tables)
        last = steps[-1]
        if isinstance(last, Choice):
            yield from self._step(last, session, inputs, tables).to_batches()
            return
        assert isinstance(last, Statement), "there is no probe behind the last one"
        given = {
            input_name(source.number): self._views.get(source.number)
            or self._table(source, session, inputs, tables)
            for source in last.inputs
        }
        yield from session.stream(last.sql, given, arrow_schema(result_columns(last.relation)))

    def is_indexed(self, number: int) -> bool:
        """Are the rows of an input, as they come, the build side of a probe?"""
        return any(isinstance(step, Probe) and step.build.number == number for step in self._steps)

    def forget(self) -> None:
        """Give the memory of kept tables and indexes back; they are made again when needed."""
        self._kept.clear()
        self._files.clear()

    def _keep(self, key: Hashable, inputs: tuple[object, ...], make: Callable[[], T]) -> T:
        """What is made of these inputs: kept from before, made by another channel, or made now."""
        kept = self._kept.get(key)
        if kept is None or not kept.is_of(inputs):
            kept = self._kept[key] = self._shared.of((self._name, key), inputs)
        return cast("Made[T]", kept).get(make)

    # ------------------------------------------------------------------------------------------------- compile
    def _lower(self, relation: Relation) -> Relation:
        """The tree with indexed joins taken out, each replaced by the input that it makes."""
        if isinstance(relation, Join):
            sides = _indexed_sides(relation, self._fixed)
            if sides is not None:
                return self._probe(relation, relation.columns, *sides)
        if isinstance(relation, Project) and is_choice(relation) and isinstance(relation.child, Join):
            sides = _indexed_sides(relation.child, self._fixed)
            if sides is not None:
                return replace(relation, child=self._probe(relation.child, relation.columns, *sides))
        return with_children(relation, [self._lower(child) for child in children_of(relation)])

    def _probe(
        self, join: Join, wanted: tuple[Column, ...], streaming: Relation, fixed: Relation, kind: JoinKind
    ) -> Relation:
        """A probe that gives the wanted columns of a join."""
        probe_keys, build_keys = join.left_keys, join.right_keys
        if streaming is join.right:
            probe_keys, build_keys = build_keys, probe_keys
        pairs = zip(probe_keys, build_keys, strict=True)
        keys = tuple((column_name(ours.id), column_name(theirs.id)) for ours, theirs in pairs)  # type: ignore[union-attr]  # _indexed_sides: they are columns
        left = self._as_input(self._lower(streaming))
        right = self._as_input(fixed)
        if right.number >= _MADE:
            self._fixed |= {right.number}
        needed = dict.fromkeys(column.id for column in wanted)
        if join.residual is not None:
            needed |= dict.fromkeys(sorted(columns_in(join.residual)))
        known = {column.id: column for column in (*left.columns, *right.columns)}
        columns = tuple(known[column_id] for column_id in needed)
        plain = Join(left, right, kind, probe_keys, build_keys, None, columns)
        otherwise = self._compiled(plain)
        self._steps.append(Probe(otherwise.number, kind, left, right, keys, columns, otherwise=otherwise))
        rows: Relation = Input(otherwise.number, columns)
        return rows if join.residual is None else Filter(rows, join.residual)

    def _as_input(self, relation: Relation) -> Input:
        return relation if isinstance(relation, Input) else self._statement(relation)

    def _statement(self, relation: Relation) -> Input:
        columns = result_columns(relation)
        if (
            isinstance(relation, Project)
            and is_choice(relation)
            and isinstance(relation.child, Input)
            and columns
        ):
            self._made += 1
            self._steps.append(Choice(self._made, relation.child, columns))
            return Input(self._made, columns)
        statement = self._compiled(relation)
        self._steps.append(statement)
        return Input(statement.number, result_columns(relation))

    def _compiled(self, relation: Relation) -> Statement:
        self._made += 1
        unique = {source.number: source for source in inputs_of(relation)}
        return Statement(self._made, relation, relation_sql(relation), tuple(unique.values()))

    # ----------------------------------------------------------------------------------------------------- run
    def _step(
        self, step: Step, session: Session, inputs: Mapping[int, Batches], tables: dict[int, pa.Table]
    ) -> pa.Table:
        match step:
            case Statement():
                return self._run_statement(step, session, inputs, tables)
            case Choice():
                names = [column_name(column.id) for column in step.columns]
                return self._table(step.source, session, inputs, tables).select(names)
            case Probe():
                index = self._index(step, session, inputs, tables)
                if index is None:
                    return self._run_statement(step.otherwise, session, inputs, tables)
                rows = self._table(step.probe, session, inputs, tables)
                schema = arrow_schema(step.columns)
                joined = joined_batches(
                    index, rows, step.keys, step.kind, schema, session.settings.part_bytes
                )
                return pa.Table.from_batches(joined, schema)
            case _ as unreachable:
                assert_never(unreachable)

    def _run_statement(
        self, step: Statement, session: Session, inputs: Mapping[int, Batches], tables: dict[int, pa.Table]
    ) -> pa.Table:
        given: dict[int, Rows] = {
            source.number: self._views.get(source.number) or self._table(source, session, inputs, tables)
            for source in step.inputs
        }

        def run() -> pa.Table:
            made = session.query(step.sql, {input_name(number): table for number, table in given.items()})
            schema = arrow_schema(result_columns(step.relation))
            return made if made.schema.equals(schema) else made.cast(schema)

        return self._keep(step.number, tuple(given.values()), run) if step.number in self._fixed else run()

    def _table(
        self, source: Input, session: Session, inputs: Mapping[int, Batches], tables: dict[int, pa.Table]
    ) -> pa.Table:
        if source.number in tables:
            return tables[source.number]
        batches = tuple(inputs.get(source.number, ()))
        if source.number in self._fixed:
            return self._keep(source.number, batches, lambda: self._combined(source, batches, session))
        table = pa.Table.from_batches(batches, arrow_schema(source.columns))
        # Many small batches become one: DuckDB is slow with them.
        return table.combine_chunks() if table.num_rows < _SMALL_ROWS * len(batches) else table

    def _combined(self, source: Input, batches: Batches, session: Session) -> pa.Table:
        """In one chunk, since it is read again and again: in memory, or on disk if it is large."""
        table = pa.Table.from_batches(batches, arrow_schema(source.columns))
        directory = session.settings.temp_directory
        if directory is None or table.nbytes <= session.settings.memory_bytes // _KEPT_PARTS:
            return table.combine_chunks()
        try:
            table, self._files[source.number] = combined_on_disk(table, directory)
        except pa.ArrowInvalid:  # a column has more text than one chunk can hold
            return table.combine_chunks()
        return table

    def _index(
        self, step: Probe, session: Session, inputs: Mapping[int, Batches], tables: dict[int, pa.Table]
    ) -> JoinIndex | KeySet | None:
        build = self._table(step.build, session, inputs, tables)
        limit_bytes = session.settings.memory_bytes
        keys = [theirs for _, theirs in step.keys]
        shown = any(column_name(column.id) in build.column_names for column in step.columns)
        # DuckDB has nothing to do while an index is used, so the index may be as large.
        return self._keep(
            ("index", step.number),
            (build,),
            lambda: make_index(build, keys, limit_bytes, step.kind, shown=shown),
        )


def _gathered(batches: Iterator[pa.RecordBatch], size_bytes: int) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Batches that come, together up to about this size. At least one tuple, if only an empty one."""
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        own = value_bytes((batch,))
        if group and size + own > size_bytes:
            yield tuple(group)
            group, size = [], 0
        group.append(batch)
        size += own
    yield tuple(group)


def _indexed_sides(join: Join, fixed: frozenset[int]) -> tuple[Relation, Relation, JoinKind] | None:
    """The streaming side, the fixed side and the kind as seen from the streaming side; None: no index here."""
    if not _can_index(join):
        return None
    left_fixed, right_fixed = (
        all(i.number in fixed for i in inputs_of(side)) for side in (join.left, join.right)
    )
    if left_fixed == right_fixed or {c.id for c in join.left.columns} & {c.id for c in join.right.columns}:
        return None
    inner = join.kind is JoinKind.INNER
    if right_fixed and (inner or (join.residual is None and join.kind in _FROM_THE_LEFT)):
        return join.left, join.right, join.kind
    if left_fixed and (inner or (join.residual is None and join.kind is JoinKind.RIGHT)):
        return join.right, join.left, JoinKind.INNER if inner else JoinKind.LEFT
    return None


def _can_index(join: Join) -> bool:
    """Is there a whole-number key, and can the others, in an inner join, be compared afterwards?"""
    pairs = list(zip(join.left_keys, join.right_keys, strict=True))
    if not all(
        isinstance(left, Column) and isinstance(right, Column) and left.type.kind in COMPARED_KINDS
        for left, right in pairs
    ):
        return False
    indexed = [left.type.kind in INDEXED_KINDS and right.type.kind in INDEXED_KINDS for left, right in pairs]
    if len(pairs) == 1:
        return indexed[0]
    return join.kind is JoinKind.INNER and any(indexed) and all(a.type == b.type for a, b in pairs)


_FROM_THE_LEFT = (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
