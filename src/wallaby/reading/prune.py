"""Keep only the columns that are used. Spark's file sources do this after the optimizer, so it has to be done here.

Catalyst has already put projections where columns are last used; scans, and the joins above them, remain to be pruned.
No operator is added or removed: `plan/rules/prune_columns.py` does that once the order of joins is known.
"""

from __future__ import annotations

from dataclasses import replace

from wallaby.relations.expression import Expression, columns_in
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
from wallaby.relations.tree import expressions_of, narrowed, with_children


def prune(relation: Relation, needed: frozenset[int]) -> Relation:
    """The same relation, perhaps without some columns that are not needed."""
    match relation:
        case Scan():
            columns = narrowed(relation.columns, needed)
            names = dict(zip((column.id for column in relation.columns), relation.names, strict=True))
            return replace(relation, columns=columns, names=tuple(names[column.id] for column in columns))
        case Input() | Rows() | Range():
            return relation
        case Project() | Aggregate() | Expand():
            return replace(relation, child=prune(relation.child, _used(*expressions_of(relation))))
        case Unnest():
            kept = tuple(column for column in relation.kept if column.id in needed)
            used = frozenset(column.id for column in kept) | _used(relation.array)
            return replace(relation, kept=kept, child=prune(relation.child, used))
        case Filter() | Sort() | Limit() | Single() | Window():
            used = _used(*expressions_of(relation))
            return replace(relation, child=prune(relation.child, needed | used))
        case Join():
            return _join(relation, needed)
        case Union():
            # Columns correspond by position, so all of them stay.
            children = (prune(c, frozenset(column.id for column in c.columns)) for c in relation.children)
            return replace(relation, children=tuple(children))


def _join(join: Join, needed: frozenset[int]) -> Relation:
    residual = () if join.residual is None else (join.residual,)
    left = prune(join.left, needed | _used(*join.left_keys, *residual))
    right = prune(
        join.right, (needed if join.kind.shows_right else frozenset()) | _used(*join.right_keys, *residual)
    )
    return with_children(join, (left, right))


def _used(*expressions: Expression) -> frozenset[int]:
    return frozenset().union(*(columns_in(expression) for expression in expressions))
