"""Reorder inner joins where the estimates promise a clear gain.

Catalyst keeps the written order unless it has column statistics, which Parquet tables rarely have. Here the sides of
adjacent inner joins form one graph. Among all orders, bushy ones included, the one with the least cost is chosen: the
rows of every intermediate result, and those of every side that is built. So a join that multiplies rows comes late, or
after joins that give it more keys. With many sides, the two that together give the fewest rows are joined first, then
the next two. Because estimates are guesses, the new order must promise to be a good deal cheaper than the written one;
if it does not, the joins of the written order still get the keys that follow from others. Joins with conditions that
can fail stay where they are, and the joins below them are ordered separately.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.join_graph import JoinGraph, JoinParts, Sides, can_move, conditions_of
from wallaby.relations.relation import Join, Project, Relation, children_of
from wallaby.relations.tree import arrange, is_choice, with_children

#: A new order must cost at most this share of the written order.
_CLEARLY_BETTER = 0.7
#: Beyond this many sides, or pairs of parts to join, not every order is considered.
_SIDES_MAX = 12
_PAIRS_MAX = 3000

#: The order of some sides: a single side, or two orders joined.
Order = tuple["Order", "Order"] | int


def order_joins(relation: Relation, statistics: Statistics) -> Relation:
    """Put inner joins into the order with the fewest intermediate rows."""
    return _ordered(relation, Estimator(statistics))


@dataclass(frozen=True, slots=True)
class JoinChoice:
    """Adjacent joins of more than two sides, in the written and in the chosen order."""

    graph: JoinGraph
    written: Order
    chosen: Order


def choices(relation: Relation, statistics: Statistics) -> Iterator[JoinChoice]:
    """All choices in a query, for tools that measure how good they are."""
    yield from _choices(relation, Estimator(statistics))


def _choices(relation: Relation, estimator: Estimator) -> Iterator[JoinChoice]:
    if not isinstance(relation, Join) or not can_move(relation):
        for child in children_of(relation):
            yield from _choices(child, estimator)
        return
    parts = JoinParts()
    written = _take_apart(relation, parts)
    for side in parts.sides:
        yield from _choices(side, estimator)
    parts.sides = [_ordered(side, estimator) for side in parts.sides]
    if len(parts.sides) > 2:
        yield _choice(parts, written, estimator)


def _choice(parts: JoinParts, written: Order, estimator: Estimator) -> JoinChoice:
    graph = JoinGraph(parts, estimator)
    best = _best(graph)
    better = best is not None and _cost(graph, best) <= _CLEARLY_BETTER * _cost(graph, written)
    return JoinChoice(graph, written, best if best is not None and better else written)


def _ordered(relation: Relation, estimator: Estimator) -> Relation:
    if not isinstance(relation, Join) or not can_move(relation):
        children = children_of(relation)
        return _with_children(relation, tuple(_ordered(child, estimator) for child in children))
    parts = JoinParts()
    written = _take_apart(relation, parts)
    parts.sides = [_ordered(side, estimator) for side in parts.sides]
    if len(parts.sides) > 2:
        choice = _choice(parts, written, estimator)
        if choice.chosen is not written or _relates_earlier(relation, written, choice.graph):
            return arrange(_joined(choice.graph, choice.chosen)[0], relation.columns)
    return _put_back(relation, iter(parts.sides))


def _take_apart(relation: Relation, parts: JoinParts) -> Order:
    """Sides, pairs and conditions of a tree of inner joins, looking through projections that only drop columns."""
    match relation:
        case Join() if can_move(relation):
            parts.pairs += zip(relation.left_keys, relation.right_keys, strict=True)
            parts.conditions += conditions_of(relation)
            return _take_apart(relation.left, parts), _take_apart(relation.right, parts)
        case Project(child=Join() as below) if is_choice(relation) and can_move(below):
            return _take_apart(below, parts)
        case _:
            parts.sides.append(relation)
            return len(parts.sides) - 1


def _put_back(relation: Relation, sides: Iterator[Relation]) -> Relation:
    """Rebuild the original tree over other sides, in their order."""
    match relation:
        case Join() if can_move(relation):
            children = (_put_back(relation.left, sides), _put_back(relation.right, sides))
            return _with_children(relation, children)
        case Project(child=Join() as below) if is_choice(relation) and can_move(below):
            return _with_children(relation, (_put_back(below, sides),))
        case _:
            return next(sides)


def _relates_earlier(relation: Relation, order: Order, graph: JoinGraph) -> bool:
    """Does a join of the written order get keys or conditions that were not written there, but follow from others?"""
    if isinstance(order, int):
        return False
    while isinstance(relation, Project):
        relation = relation.child
    assert isinstance(relation, Join), "the order was read from this tree"
    made = graph.join(relation.left, relation.right, *(_joined(graph, part)[1] for part in order))
    more_keys = len(made.left_keys) > len(relation.left_keys)
    return (
        more_keys
        or len(conditions_of(made)) > len(conditions_of(relation))
        or _relates_earlier(relation.left, order[0], graph)
        or _relates_earlier(relation.right, order[1], graph)
    )


def _with_children(relation: Relation, children: tuple[Relation, ...]) -> Relation:
    unchanged = all(a is b for a, b in zip(children_of(relation), children, strict=True))
    return relation if unchanged else with_children(relation, children)


def _joined(graph: JoinGraph, order: Order) -> tuple[Relation, Sides]:
    if isinstance(order, int):
        return graph.sides[order], 1 << order
    (left, lefts), (right, rights) = (_joined(graph, part) for part in order)
    return graph.join(left, right, lefts, rights), lefts | rights


# --- cost --------------------------------------------------------------------------------------------------


def _cost(graph: JoinGraph, order: Order) -> float:
    return _cost_of(graph, order)[0]


def _cost_of(graph: JoinGraph, order: Order) -> tuple[float, Sides]:
    if isinstance(order, int):
        return 0.0, 1 << order
    (left, lefts), (right, rights) = (_cost_of(graph, part) for part in order)
    return left + right + _cost_of_join(graph, lefts, rights), lefts | rights


def _cost_of_join(graph: JoinGraph, left: Sides, right: Sides) -> float:
    """The rows that are built, and those of the result; the last result is the same for all orders."""
    both = left | right
    out = 0.0 if both == graph.all else graph.rows(both)
    return min(graph.rows(left), graph.rows(right)) + out


# --- search ------------------------------------------------------------------------------------------------


def _best(graph: JoinGraph) -> Order | None:
    """The best order; None if some sides share no keys."""
    if len(graph.sides) <= _SIDES_MAX:
        pairs = list(itertools.islice(pairs_of(graph), _PAIRS_MAX + 1))
        if len(pairs) <= _PAIRS_MAX:
            return _least(graph, pairs)
    return _greedy(graph)


def _least(graph: JoinGraph, pairs: list[tuple[Sides, Sides]]) -> Order | None:
    """The cheapest of all orders: every set of sides is built from two smaller ones in the best way."""
    best: dict[Sides, tuple[float, Order]] = {1 << at: (0.0, at) for at in range(len(graph.sides))}
    for left, right in sorted(pairs, key=lambda pair: (pair[0] | pair[1]).bit_count()):
        (left_cost, lefts), (right_cost, rights) = best[left], best[right]
        cost = left_cost + right_cost + _cost_of_join(graph, left, right)
        known = best.get(left | right)
        if known is None or cost < known[0]:
            best[left | right] = (cost, (lefts, rights))
    return best[graph.all][1] if graph.all in best else None


def pairs_of(graph: JoinGraph) -> Iterator[tuple[Sides, Sides]]:
    """All pairs of connected sets that share keys, each once (Moerkotte and Neumann, DPccp)."""
    for at in reversed(range(len(graph.sides))):
        yield from _pairs_from(graph, 1 << at)
        for found in _grown(graph, 1 << at, (1 << at + 1) - 1):
            yield from _pairs_from(graph, found)


def _pairs_from(graph: JoinGraph, left: Sides) -> Iterator[tuple[Sides, Sides]]:
    """A connected set paired with all connected sets that come after its first side and are adjacent to it."""
    excluded = left | (left & -left) - 1
    touching = _neighbours(graph, left) & ~excluded
    for at in reversed(range(touching.bit_length())):
        if touching >> at & 1:
            yield left, 1 << at
            before = touching & (1 << at + 1) - 1
            for right in _grown(graph, 1 << at, excluded | before):
                yield left, right


def _grown(graph: JoinGraph, sides: Sides, excluded: Sides) -> Iterator[Sides]:
    """All connected sets that contain a set, without the excluded sides."""
    around = _neighbours(graph, sides) & ~excluded
    for more in _subsets(around):
        yield sides | more
    for more in _subsets(around):
        yield from _grown(graph, sides | more, excluded | around)


def _subsets(sides: Sides) -> Iterator[Sides]:
    subset = sides & -sides
    while subset:
        yield subset
        subset = subset - sides & sides


def _neighbours(graph: JoinGraph, sides: Sides) -> Sides:
    around, rest = 0, sides
    while rest:
        lowest = rest & -rest
        around |= graph.neighbours[lowest.bit_length() - 1]
        rest ^= lowest
    return around & ~sides


def _greedy(graph: JoinGraph) -> Order | None:
    """Join the two parts that together give the fewest rows, then the next two, and so on."""
    orders: dict[Sides, Order] = {1 << at: at for at in range(len(graph.sides))}
    while len(orders) > 1:
        candidates = [
            (graph.rows(left | right), left, right)
            for left, right in itertools.combinations(orders, 2)
            if graph.is_joined(left, right)
        ]
        if not candidates:
            return None
        _, left, right = min(candidates)
        orders[left | right] = (orders.pop(left), orders.pop(right))
    return orders[graph.all]
