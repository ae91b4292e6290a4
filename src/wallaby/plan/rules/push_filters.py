"""Conditions as close to the scan as they can go: there they prune row groups and spare the most work.

Catalyst has done most of it; what is left comes from its last rules and from our own. Only what cannot raise
an error it would not have raised is moved: conditions go below projections that rename and below joins that
would have dropped the row anyway, which evaluates them on more rows than before only for joins, and there
only comparisons of columns with constants or columns are moved.
"""

from __future__ import annotations

from wallaby.plan.expression import Column, Expression, columns_in
from wallaby.plan.relation import Filter, Join, JoinKind, Project, Relation
from wallaby.plan.statistics import Statistics
from wallaby.plan.tree import by_ids, cannot_fail, conjuncts, filtered, ids_of, rewrite_up, with_children

_INNER = (JoinKind.INNER, JoinKind.CROSS)
_LEFT_MAY = frozenset((*_INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE))


def push_filters(relation: Relation, _: Statistics) -> Relation:
    """Filters where their columns come from."""
    return rewrite_up(relation, _push)


def _push(relation: Relation) -> Relation:
    if not isinstance(relation, Filter):
        return relation
    match relation.child:
        case Filter() as below:
            return _push(filtered(below.child, (*conjuncts(below.condition), *conjuncts(relation.condition))))
        case Project() as below if all(isinstance(named.expression, Column) for named in below.outputs):
            rename = by_ids({named.column.id: named.expression for named in below.outputs})
            return with_children(below, (_push(Filter(below.child, rename(relation.condition))),))
        case Join() as below:
            return _into_join(below, conjuncts(relation.condition))
        case _:
            return relation


def _into_join(join: Join, conditions: tuple[Expression, ...]) -> Relation:
    lefts, rights = frozenset(ids_of(join.left.columns)), frozenset(ids_of(join.right.columns))
    left: list[Expression] = []
    right: list[Expression] = []
    above: list[Expression] = []
    for condition in conditions:
        used = columns_in(condition)
        if cannot_fail(condition) and used <= lefts and join.kind in _LEFT_MAY:
            left.append(condition)
        elif cannot_fail(condition) and used <= rights and join.kind in _INNER:
            right.append(condition)
        else:
            above.append(condition)
    if not left and not right:
        return filtered(join, above)
    sides = (_pushed(join.left, left), _pushed(join.right, right))
    return filtered(with_children(join, sides), above)


def _pushed(side: Relation, conditions: list[Expression]) -> Relation:
    return _push(filtered(side, conditions)) if conditions else side
