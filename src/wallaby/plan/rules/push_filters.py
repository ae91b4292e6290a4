"""Push conditions as close to the scan as possible: there they prune row groups and save the most work.

A condition that relates the two sides of an inner join becomes part of the join: an equality becomes a key, anything
else a condition on the pairs. Above the join it would only drop rows that were produced for nothing; a join without
keys produces all pairs.

Catalyst has done most of this; the remaining conditions come from its last rules and from our own. A condition is moved
only if it cannot raise an error that it would not have raised before. Conditions go below projections that rename
columns, and below joins. Only below a join are they evaluated for more rows than before, and there only comparisons of
columns with constants or columns are moved.
"""

from __future__ import annotations

from dataclasses import replace

from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.join_graph import equality
from wallaby.relations.expression import Column, Expression, columns_in
from wallaby.relations.infallible import cannot_fail
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Filter, Join, Project, Relation
from wallaby.relations.tree import by_ids, conjunction, conjuncts, filtered, ids_of, rewrite_up, with_children


def push_filters(relation: Relation, _: Statistics) -> Relation:
    """Move filters to where their columns come from."""
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
    between: list[Expression] = []
    above: list[Expression] = []
    for condition in conditions:
        used = columns_in(condition)
        if not cannot_fail(condition):
            above.append(condition)
        elif used <= lefts and join.kind.filters_left:
            left.append(condition)
        elif used <= rights and join.kind.is_inner:
            right.append(condition)
        elif join.kind.is_inner:
            between.append(condition)
        else:
            above.append(condition)
    joined: Relation = _related(join, lefts, rights, between) if between else join
    if left or right:
        joined = with_children(joined, (_pushed(join.left, left), _pushed(join.right, right)))
    return filtered(joined, above)


def _related(join: Join, lefts: frozenset[int], rights: frozenset[int], conditions: list[Expression]) -> Join:
    """An inner join with more conditions on its pairs."""
    keys = list(zip(join.left_keys, join.right_keys, strict=True))
    rest = [] if join.residual is None else [join.residual]
    for condition in conditions:
        pair = equality(condition)
        sides = None if pair is None else (columns_in(pair[0]), columns_in(pair[1]))
        if pair is not None and sides is not None and sides[0] <= lefts and sides[1] <= rights:
            keys.append(pair)
        elif pair is not None and sides is not None and sides[0] <= rights and sides[1] <= lefts:
            keys.append(pair[::-1])
        else:
            rest.append(condition)
    return replace(
        join,
        kind=JoinKind.INNER,
        left_keys=tuple(a for a, _ in keys),
        right_keys=tuple(b for _, b in keys),
        residual=conjunction(rest),
    )


def _pushed(side: Relation, conditions: list[Expression]) -> Relation:
    return _push(filtered(side, conditions)) if conditions else side
