"""Inner joins in a better order, where the estimates say that it is clearly better.

Catalyst keeps the written order unless it has column statistics, which Parquet tables rarely have. Here the
sides of neighbouring inner joins are taken as one set, and the two that together give the fewest rows are
joined first, then the next two (bushy trees included). The new order must promise a good deal fewer rows
between joins than the written one, for estimates are guesses. Conditions that can fail stay where they are.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from wallaby.plan.estimate import Estimator
from wallaby.plan.expression import Expression, columns_in
from wallaby.plan.relation import Join, JoinKind, Project, Relation, children_of
from wallaby.plan.statistics import Statistics
from wallaby.plan.tree import arrange, cannot_fail, conjunction, conjuncts, ids_of, is_choice, with_children

#: Of the rows between joins in the written order, a new order may make at most this share.
_CLEARLY_BETTER = 0.7
#: Beyond so many sides, choosing would take longer than it saves.
_SIDES_MAX = 12


def order_joins(relation: Relation, statistics: Statistics) -> Relation:
    """The relation with its inner joins in the order that gives the fewest rows on the way."""
    return _ordered(relation, Estimator(statistics))


@dataclass(slots=True)
class _Joins:
    """Neighbouring inner joins taken apart."""

    sides: list[Relation]
    #: Pairs of equal expressions, each over the columns of some sides.
    pairs: list[tuple[Expression, Expression]]
    conditions: list[Expression]
    #: Rows that the written order gives, over all joins.
    rows: float = 0.0


def _ordered(relation: Relation, estimator: Estimator) -> Relation:
    if not isinstance(relation, Join) or relation.kind is not JoinKind.INNER:
        return _with_ordered(children_of(relation), relation, estimator)
    joins = _Joins([], [], [])
    _take_apart(relation, joins, estimator)
    sides = tuple(_ordered(side, estimator) for side in joins.sides)
    if 3 <= len(sides) <= _SIDES_MAX and _can_move(joins):
        found = _greedy(sides, joins, estimator)
        if found is not None and found[1] <= _CLEARLY_BETTER * joins.rows:
            return arrange(found[0], relation.columns)
    return _with_ordered(children_of(relation), relation, estimator)


def _with_ordered(children: tuple[Relation, ...], relation: Relation, estimator: Estimator) -> Relation:
    ordered = tuple(_ordered(child, estimator) for child in children)
    unchanged = all(a is b for a, b in zip(children, ordered, strict=True))
    return relation if unchanged else with_children(relation, ordered)


def _take_apart(relation: Relation, joins: _Joins, estimator: Estimator) -> None:
    """Sides, pairs and conditions of a tree of inner joins, looking through projections that only drop."""
    match relation:
        case Join(kind=JoinKind.INNER):
            joins.pairs += zip(relation.left_keys, relation.right_keys, strict=True)
            joins.conditions += () if relation.residual is None else conjuncts(relation.residual)
            joins.rows += estimator.of(relation).rows
            _take_apart(relation.left, joins, estimator)
            _take_apart(relation.right, joins, estimator)
        case Project(child=Join(kind=JoinKind.INNER) as below) if is_choice(relation):
            _take_apart(below, joins, estimator)
        case _:
            joins.sides.append(relation)


def _can_move(joins: _Joins) -> bool:
    sides = [frozenset(ids_of(side.columns)) for side in joins.sides]
    keys = [key for pair in joins.pairs for key in pair]
    of_one_side = all(any(columns_in(key) <= side for side in sides) for key in keys)
    return of_one_side and all(map(cannot_fail, (*keys, *joins.conditions)))


def _greedy(
    sides: tuple[Relation, ...], joins: _Joins, estimator: Estimator
) -> tuple[Relation, float] | None:
    """The joined sides and the rows of all joins; None if some sides share no pair of keys."""
    parts, conditions, total = list(sides), list(joins.conditions), 0.0
    while len(parts) > 1:
        candidates = [
            (estimator.of(joined).rows, i, j, joined)
            for (i, left), (j, right) in itertools.combinations(enumerate(parts), 2)
            if (joined := _joined(left, right, joins.pairs, conditions)) is not None
        ]
        if not candidates:
            return None
        rows, i, j, joined = min(candidates, key=lambda candidate: candidate[:3])
        total += rows
        used = () if joined.residual is None else conjuncts(joined.residual)
        conditions = [condition for condition in conditions if condition not in used]
        parts = [*(part for n, part in enumerate(parts) if n not in (i, j)), joined]
    return (parts[0], total) if not conditions else None


def _joined(
    left: Relation,
    right: Relation,
    pairs: list[tuple[Expression, Expression]],
    conditions: list[Expression],
) -> Join | None:
    """Two parts joined by all their pairs and by the conditions that then have all their columns."""
    lefts, rights = frozenset(ids_of(left.columns)), frozenset(ids_of(right.columns))
    keys = [
        (a, b)
        for pair in pairs
        for a, b in (pair, pair[::-1])
        if columns_in(a) <= lefts and columns_in(b) <= rights
    ]
    if not keys:
        return None
    residual = conjunction(c for c in conditions if columns_in(c) <= lefts | rights)
    return Join(
        left,
        right,
        JoinKind.INNER,
        tuple(a for a, _ in keys),
        tuple(b for _, b in keys),
        residual,
        (*left.columns, *right.columns),
    )
