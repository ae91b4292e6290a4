"""Move semi and anti joins above inner joins that leave few rows, so that fewer rows are looked up.

Catalyst pushes them down, to the table whose rows they filter. If an inner join leaves less than half of that table's
rows, it comes first here. Both orders give the same rows, because neither join uses the columns that the other adds.
"""

from __future__ import annotations

from dataclasses import replace

from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.joins import flipped
from wallaby.relations.infallible import cannot_fail
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Join, Project, Relation
from wallaby.relations.tree import arrange, ids_of, is_choice, join_columns, rewrite_up

#: The inner join must leave at most this share of the rows that the semi join would look up.
_LEFT_MAX = 0.5


def delay_semi_joins(relation: Relation, statistics: Statistics) -> Relation:
    """The relation with semi and anti joins above the inner joins that make them cheaper."""
    estimator = Estimator(statistics)
    return rewrite_up(relation, lambda each: _delayed(each, estimator))


def _delayed(relation: Relation, estimator: Estimator) -> Relation:
    if not isinstance(relation, Join) or relation.kind is not JoinKind.INNER:
        return relation
    conditions = () if relation.residual is None else (relation.residual,)
    if not all(map(cannot_fail, (*relation.left_keys, *relation.right_keys, *conditions))):
        return relation
    for join in (relation, flipped(relation, JoinKind.INNER)):
        semi = _semi_join(join.left)
        if semi is None or set(ids_of(semi.right.columns)) & set(ids_of(join.right.columns)):
            continue
        rows = replace(join, left=semi.left, columns=join_columns(join, semi.left, join.right))
        if estimator.of(rows).rows <= _LEFT_MAX * estimator.of(semi.left).rows:
            first = _delayed(rows, estimator)
            later = replace(semi, left=first, columns=join_columns(semi, first, semi.right))
            return arrange(later, relation.columns)
    return relation


def _semi_join(relation: Relation) -> Join | None:
    """A semi or anti join, perhaps below a projection that selects columns; the selection is repeated above."""
    while isinstance(relation, Project) and is_choice(relation):
        relation = relation.child
    return relation if isinstance(relation, Join) and relation.kind.is_filter else None
