"""Turn right outer joins into left outer joins with the sides exchanged, because kernels probe with the left side."""

from __future__ import annotations

from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.joins import flipped
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Join, Relation
from wallaby.relations.tree import arrange, rewrite_up


def flip_right_joins(relation: Relation, _: Statistics) -> Relation:
    """Exchange the sides of all right outer joins."""
    return rewrite_up(relation, _flip)


def _flip(relation: Relation) -> Relation:
    if isinstance(relation, Join) and relation.kind is JoinKind.RIGHT:
        return arrange(flipped(relation, JoinKind.LEFT), relation.columns)
    return relation
