"""Lower a tree to a short list of steps: SQL statements, and probes of indexed build sides between them.

A join between the rows of a task (the *streaming* input) and rows that stay the same from task to task (*fixed* inputs:
the collected build side, the side links) uses an index that is kept. Below and above it, the tree is SQL. A join that
cannot use an index is part of the SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wallaby.functions.spread import grows
from wallaby.operators.joins.index import COMPARED_KINDS, INDEXED_KINDS
from wallaby.relations.expression import Column, Named, columns_in
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    Aggregate,
    Expand,
    Filter,
    Input,
    Join,
    Project,
    Relation,
    Unnest,
    children_of,
)
from wallaby.relations.tree import expressions_of, is_choice, with_equal_children
from wallaby.sql.types import column_name
from wallaby.statements.counting import is_counted
from wallaby.statements.growth import is_row_by_row
from wallaby.statements.relation import inputs_of, relation_sql, result_columns

#: Inputs from this number on are made by the steps themselves.
_MADE = 1000
#: What these make of a row does not depend on other rows.
_OF_EACH_ROW = (Filter, Project, Unnest, Expand)


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
    #: The same join as SQL, for keys that no index can hold.
    otherwise: Statement


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Some columns of an input, in order; the result is input `number`."""

    number: int
    source: Input
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Counting:
    """Aggregate an input by counting, see `counted_groups`; the result is input `number`."""

    number: int
    source: Input
    key: Column
    aggregations: tuple[Named, ...]
    columns: tuple[Column, ...]
    #: The same aggregation as SQL, for rows that cannot be counted.
    otherwise: Statement


Step = Statement | Probe | ColumnChoice | Counting


class LoweredTree:
    """The steps of a tree, the number of the input that holds the result, and the fixed inputs."""

    def __init__(self, tree: Relation, fixed: frozenset[int], *, in_pieces: bool) -> None:
        """`in_pieces`: the rows of a task may be taken in any pieces, so that an aggregation is only a part of one."""
        self.fixed = fixed
        self._in_pieces = in_pieces
        self.steps: list[Step] = []
        self._made = _MADE
        top = self._lower(tree, in_pieces=True)
        self.result = top if isinstance(top, Input) else self._statement(top)

    @property
    def streaming(self) -> list[Step]:
        """The steps that run for every task, in order."""
        return [step for step in self.steps if step.number not in self.fixed]

    @property
    def is_chain(self) -> bool:
        """Does every streaming step use only the rows of the one before it, and fixed rows?"""
        before: int | None = None
        for step in self.streaming:
            used = {source.number for source in sources_of(step)} - self.fixed
            if len(used) != 1 or (before is not None and used != {before}):
                return False
            before = step.number
        return before is None or self.result.number == before

    def _lower(self, relation: Relation, *, in_pieces: bool) -> Relation:
        """Take indexed joins out of a tree; the input that each produces replaces it.

        `in_pieces`: what is above may take the rows of this relation in any pieces.
        """
        if isinstance(relation, Join):
            sides = _indexed_sides(relation, self.fixed)
            if sides is not None:
                return self._probe(relation, relation.columns, *sides)
        if isinstance(relation, Project) and is_choice(relation) and isinstance(relation.child, Join):
            sides = _indexed_sides(relation.child, self.fixed)
            if sides is not None:
                return replace(relation, child=self._probe(relation.child, relation.columns, *sides))
        if isinstance(relation, Aggregate) and in_pieces and is_counted(relation):
            return self._counted(relation)
        below = self._in_pieces or (in_pieces and isinstance(relation, _OF_EACH_ROW))
        children = [self._lower(child, in_pieces=below) for child in children_of(relation)]
        if (
            below
            and isinstance(relation, (*_OF_EACH_ROW, Aggregate))
            and any(map(grows, expressions_of(relation)))
        ):
            children = [self._measurable(child) for child in children]
        return with_equal_children(relation, children)

    def _counted(self, aggregate: Aggregate) -> Relation:
        """An aggregation of rows that are there, without SQL; another stays part of a statement."""
        child = self._lower(aggregate.child, in_pieces=self._in_pieces)
        chosen = child.child if isinstance(child, Project) and is_choice(child) else child
        aggregate = replace(aggregate, child=child)
        if not isinstance(chosen, Input) or len(result_columns(chosen)) < len(chosen.columns):
            return aggregate
        key = aggregate.keys[0].expression
        assert isinstance(key, Column), "only a column is counted by"
        otherwise = self._compiled(replace(aggregate, child=chosen))
        columns = aggregate.columns
        self.steps.append(
            Counting(otherwise.number, chosen, key, aggregate.aggregations, columns, otherwise=otherwise)
        )
        return Input(otherwise.number, columns)

    def _measurable(self, relation: Relation) -> Relation:
        """Make the rows that a growing step takes before it, so that what it makes of them can be computed."""
        if is_row_by_row(relation) or all(source.number in self.fixed for source in inputs_of(relation)):
            return relation
        return self._as_input(relation)

    def _probe(
        self, join: Join, wanted: tuple[Column, ...], streaming: Relation, fixed: Relation, kind: JoinKind
    ) -> Relation:
        """A probe that gives the wanted columns of a join."""
        probe_keys, build_keys = join.left_keys, join.right_keys
        if streaming is join.right:
            probe_keys, build_keys = build_keys, probe_keys
        pairs = zip(probe_keys, build_keys, strict=True)
        keys = tuple((column_name(ours.id), column_name(theirs.id)) for ours, theirs in pairs)  # type: ignore[union-attr]  # _indexed_sides: they are columns
        left = self._as_input(self._lower(streaming, in_pieces=True))
        right = self._as_input(fixed)
        if right.number >= _MADE:
            self.fixed |= {right.number}
        needed = dict.fromkeys(column.id for column in wanted)
        if join.residual is not None:
            needed |= dict.fromkeys(sorted(columns_in(join.residual)))
        known = {column.id: column for column in (*left.columns, *right.columns)}
        columns = tuple(known[column_id] for column_id in needed)
        plain = Join(left, right, kind, probe_keys, build_keys, None, columns)
        otherwise = self._compiled(plain)
        self.steps.append(Probe(otherwise.number, kind, left, right, keys, columns, otherwise=otherwise))
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
            self.steps.append(ColumnChoice(self._made, relation.child, columns))
            return Input(self._made, columns)
        statement = self._compiled(relation)
        self.steps.append(statement)
        return Input(statement.number, result_columns(relation))

    def _compiled(self, relation: Relation) -> Statement:
        self._made += 1
        unique = {source.number: source for source in inputs_of(relation)}
        return Statement(self._made, relation, relation_sql(relation), tuple(unique.values()))


def sources_of(step: Step) -> Sequence[Input]:
    """The inputs that a step uses."""
    match step:
        case Statement():
            return step.inputs
        case Probe():
            return (step.probe, step.build)
        case ColumnChoice() | Counting():
            return (step.source,)


def _indexed_sides(join: Join, fixed: frozenset[int]) -> tuple[Relation, Relation, JoinKind] | None:
    """The streaming side, the fixed side, and the kind as seen from the streaming side; None: no index."""
    if not _can_index(join):
        return None
    left_fixed, right_fixed = (
        all(i.number in fixed for i in inputs_of(side)) for side in (join.left, join.right)
    )
    if left_fixed == right_fixed or {c.id for c in join.left.columns} & {c.id for c in join.right.columns}:
        return None
    inner = join.kind is JoinKind.INNER
    if right_fixed and (
        inner or (join.residual is None and (join.kind.is_filter or join.kind is JoinKind.LEFT))
    ):
        return join.left, join.right, join.kind
    if left_fixed and (inner or (join.residual is None and join.kind is JoinKind.RIGHT)):
        return join.right, join.left, JoinKind.INNER if inner else JoinKind.LEFT
    return None


def _can_index(join: Join) -> bool:
    """Is there a whole-number key, and can other keys, in an inner join, be compared afterwards?"""
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
