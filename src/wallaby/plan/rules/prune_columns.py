"""Scan only the columns that are needed, and exchange only those that the next stage needs.

The needed columns are determined from the root down. Below every node that may move rows (join, sort, limit, union), a
projection drops the columns that are no longer needed, so that no exchange carries, for example, the column of a filter
that has already been applied.
"""

from __future__ import annotations

from dataclasses import replace

from wallaby.plan.estimates.statistics import Statistics
from wallaby.relations.expression import Named, columns_in
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
from wallaby.relations.tree import expressions_of, ids_of, narrow, narrowed, with_children

Needed = frozenset[int]


def prune_columns(relation: Relation, _: Statistics) -> Relation:
    """Remove everything that a relation does not need for its own columns."""
    return _pruned(relation, frozenset(ids_of(relation.columns)))


def pruned_to(relation: Relation, needed: Needed) -> Relation:
    """The relation with exactly the needed columns, and without anything that they do not need."""
    return narrow(_pruned(relation, needed), needed)


def _pruned(relation: Relation, needed: Needed) -> Relation:
    """The relation with the needed columns, and perhaps others."""
    match relation:
        case Input() | Range():
            return relation
        case Rows() | Expand():
            return _pruned_positions(relation, needed)
        case Unnest():
            return _pruned_unnest(relation, needed)
        case Scan():
            columns = narrowed(relation.columns, needed)
            names = dict(zip(ids_of(relation.columns), relation.names, strict=True))
            return replace(relation, columns=columns, names=tuple(names[column.id] for column in columns))
        case Filter():
            return replace(relation, child=_pruned(relation.child, needed | _used(relation)))
        case Project():
            return _pruned_project(relation, needed)
        case Join():
            used = _used(relation)
            # Such a join has no columns of the right side, even if columns with the same ids are needed.
            right = needed | used if relation.kind.shows_right else used
            sides = (pruned_to(relation.left, needed | used), pruned_to(relation.right, right))
            return with_children(relation, sides)
        case Aggregate():
            kept = tuple(named for named in relation.aggregations if named.column.id in needed)
            # At least one column must remain, so that rows can be counted.
            pruned = replace(
                relation, aggregations=kept if kept or relation.keys else relation.aggregations[:1]
            )
            return replace(pruned, child=_pruned(relation.child, _used(pruned)))
        case Window():
            return _pruned_window(relation, needed)
        case Sort() | Limit() | Single():
            return _pruned_whole(relation, needed)
        case Union():
            return _pruned_union(relation, needed)


def _pruned_project(project: Project, needed: Needed) -> Relation:
    columns = narrowed(project.columns, needed)
    wanted = {column.id for column in columns}
    outputs = {named.column.id: named for named in project.outputs if named.column.id in wanted}
    pruned = replace(project, outputs=tuple(outputs.values()))
    child = _pruned(project.child, _used(pruned))
    changes_nothing = all(named.expression == named.column for named in pruned.outputs)
    if changes_nothing and ids_of(child.columns) == ids_of(pruned.columns):
        return child
    return replace(pruned, child=child)


def _pruned_positions(relation: Rows | Expand, needed: Needed) -> Relation:
    """Prune relations whose columns correspond by position, in each row or in each projection."""
    columns = narrowed(relation.columns, needed)
    chosen = [i for i, column in enumerate(relation.columns) if column in columns]
    if isinstance(relation, Rows):
        return Rows(tuple(tuple(row[i] for i in chosen) for row in relation.rows), columns)
    projections = tuple(tuple(projection[i] for i in chosen) for projection in relation.projections)
    pruned = Expand(relation.child, projections, columns)
    return replace(pruned, child=_pruned(relation.child, _used(pruned)))


def _pruned_unnest(unnest: Unnest, needed: Needed) -> Relation:
    kept = tuple(column for column in unnest.kept if column.id in needed)
    position = unnest.position if unnest.position is not None and unnest.position.id in needed else None
    pruned = replace(unnest, kept=kept, position=position)
    return replace(pruned, child=_pruned(unnest.child, frozenset(ids_of(kept)) | _used(pruned)))


def _pruned_whole(relation: Sort | Limit | Single, needed: Needed) -> Relation:
    """Prune a relation that needs all rows at once: no unneeded column may reach it."""
    match relation:
        case Sort():
            return replace(relation, child=pruned_to(relation.child, needed | _used(relation)))
        case Limit(child=Sort() as sort):
            # Nothing may come between a limit and its sort: together they are a top-k.
            return replace(relation, child=_pruned(sort, needed))
        case Limit() | Single():
            return replace(relation, child=pruned_to(relation.child, needed))


def _pruned_window(window: Window, needed: Needed) -> Relation:
    calls = tuple(call for call in window.calls if call.column.id in needed)
    pruned = replace(window, calls=calls)
    child = pruned_to(window.child, needed | (_used(pruned) if calls else frozenset()))
    return replace(pruned, child=child) if calls else child


def _pruned_union(union: Union, needed: Needed) -> Relation:
    columns = narrowed(union.columns, needed)
    wanted = {column.id for column in columns}
    positions = [i for i, column in enumerate(union.columns) if column.id in wanted]
    children: list[Relation] = []
    for child in union.children:
        own = tuple(child.columns[i] for i in positions)
        pruned = _pruned(child, frozenset(ids_of(own)))
        outputs = tuple(map(Named, columns, own))
        same = ids_of(pruned.columns) == ids_of(own) == ids_of(columns)
        children.append(pruned if same else Project(pruned, outputs))
    return Union(tuple(children), columns)


def _used(relation: Relation) -> Needed:
    return frozenset().union(*map(columns_in, expressions_of(relation)))
