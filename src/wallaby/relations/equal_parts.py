"""Find out whether two relations differ only in column ids, and in columns that only one of them has.

If so, they can be merged into one relation with the columns of both. Merging ignores projections that only drop
columns; users of the merged relation prune it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from wallaby.relations.expression import Column, Expression, Named, walk
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    Aggregate,
    Expand,
    Filter,
    Input,
    Join,
    Limit,
    Project,
    Range,
    Relation,
    Rows,
    Scan,
    Single,
    Sort,
    Union,
    Unnest,
    Window,
)
from wallaby.relations.tree import conjuncts, ids_of, is_choice, join_columns, substitute

#: Maps ids of the second relation's columns to those of the same columns in the merged one.
Mapped = dict[int, int]


def stripped(relation: Relation) -> Relation:
    """A relation without projections on top that only drop columns."""
    while isinstance(relation, Project) and is_choice(relation):
        relation = relation.child
    return relation


def merged(first: Relation, second: Relation) -> tuple[Relation, Mapped] | None:
    """The first relation with the additional columns of the second; None if they do not compute the same rows."""
    match stripped(first), stripped(second):
        case Scan() as a, Scan() as b:
            return _scans(a, b)
        case Input() as a, Input() as b:
            return (a, dict(zip(ids_of(b.columns), ids_of(a.columns), strict=True))) if _same(a, b) else None
        case Filter() as a, Filter() as b:
            return _filters(a, b)
        case Project() as a, Project() as b:
            return _projects(a, b)
        case Aggregate() as a, Aggregate() as b:
            return _aggregates(a, b)
        case Join() as a, Join() as b:
            return _joins(a, b)
        case (
            (Sort() | Limit() | Single() | Expand() | Unnest() | Window() | Union() | Rows() | Range()) as a,
            b,
        ) if a == b:
            return a, {id_: id_ for id_ in ids_of(a.columns)}
        case _:
            return None


def _same(a: Input, b: Input) -> bool:
    return a.number == b.number and len(a.columns) == len(b.columns)


def _scans(a: Scan, b: Scan) -> tuple[Relation, Mapped] | None:
    if a.files != b.files:
        return None
    columns = dict(zip(a.names, a.columns, strict=True))
    taken = set(ids_of(a.columns))
    mapped: Mapped = {}
    for name, column in zip(b.names, b.columns, strict=True):
        if name not in columns:
            if column.id in taken:
                return None
            columns[name] = column
        elif columns[name].type != column.type:
            return None
        mapped[column.id] = columns[name].id
    return replace(a, columns=tuple(columns.values()), names=tuple(columns)), mapped


def _filters(a: Filter, b: Filter) -> tuple[Relation, Mapped] | None:
    below = merged(a.child, b.child)
    if below is None:
        return None
    child, mapped = below
    ours, theirs = (set(_plain(conjuncts(a.condition), {})), set(_plain(conjuncts(b.condition), mapped)))
    return (Filter(child, a.condition), mapped) if ours == theirs else None


def _projects(a: Project, b: Project) -> tuple[Relation, Mapped] | None:
    below = merged(a.child, b.child)
    if below is None:
        return None
    child, mapped = below
    outputs = _outputs(a.outputs, b.outputs, mapped)
    return None if outputs is None else (Project(child, outputs[0]), outputs[1])


def _aggregates(a: Aggregate, b: Aggregate) -> tuple[Relation, Mapped] | None:
    below = merged(a.child, b.child)
    if below is None or len(a.keys) != len(b.keys):
        return None
    child, mapped = below
    keys = _outputs(a.keys, b.keys, mapped)
    if keys is None or len(keys[0]) != len(a.keys):
        return None
    aggregations = _outputs(a.aggregations, b.aggregations, mapped)
    if aggregations is None or {n.column.id for n in a.keys} & {n.column.id for n in aggregations[0]}:
        return None
    return Aggregate(child, a.keys, aggregations[0]), {**keys[1], **aggregations[1]}


def _joins(a: Join, b: Join) -> tuple[Relation, Mapped] | None:
    if a.kind is not b.kind:
        return None
    lefts, rights = merged(a.left, b.left), merged(a.right, b.right)
    if lefts is None or rights is None:
        return None
    left, right = lefts[0], rights[0]
    if set(ids_of(left.columns)) & set(ids_of(right.columns)):
        return None
    mapped = {**lefts[1], **rights[1]}
    if a.kind is JoinKind.EXISTENCE:
        mapped[b.columns[-1].id] = a.columns[-1].id
    ours, theirs = _plain(_expressions(a), {}), _plain(_expressions(b), mapped)
    if ours != theirs or len(a.left_keys) != len(b.left_keys):
        return None
    return replace(a, left=left, right=right, columns=join_columns(a, left, right)), mapped


def _expressions(join: Join) -> tuple[Expression, ...]:
    return (*join.left_keys, *join.right_keys, *(() if join.residual is None else (join.residual,)))


def _outputs(
    ours: tuple[Named, ...], theirs: tuple[Named, ...], below: Mapped
) -> tuple[tuple[Named, ...], Mapped] | None:
    """Our outputs and those of theirs that compute something else, and the columns that theirs become."""
    outputs = {named.column.id: named for named in ours}
    known: dict[Expression, int] = {}
    for named in ours:
        known.setdefault(_plain((named.expression,), {})[0], named.column.id)
    mapped: Mapped = {}
    for named in theirs:
        (expression,) = _plain((named.expression,), below)
        if expression not in known:
            if named.column.id in outputs:
                return None
            outputs[named.column.id] = replace(named, expression=_renumbered(named.expression, below))
            known[expression] = named.column.id
        mapped[named.column.id] = known[expression]
    return tuple(outputs.values()), mapped


def _renumbered(expression: Expression, mapped: Mapped) -> Expression:
    """Rewrite an expression over the second relation's columns in terms of the merged one."""
    columns = [part for part in walk(expression) if isinstance(part, Column)]
    return substitute(expression, {c: replace(c, id=mapped.get(c.id, c.id)) for c in columns})


def _plain(expressions: Iterable[Expression], mapped: Mapped) -> tuple[Expression, ...]:
    """The same expression without names and nullability of columns, in which equal parts may differ."""
    found = []
    for expression in expressions:
        renumbered = _renumbered(expression, mapped)
        columns = [part for part in walk(renumbered) if isinstance(part, Column)]
        found.append(substitute(renumbered, {c: replace(c, name="", nullable=True) for c in columns}))
    return tuple(found)
