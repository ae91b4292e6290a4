"""Limits below projections, so that a limit meets its sort, and fewer rows are computed.

Catalyst has `Limit(Project(Sort))` for a sort by a column that is not selected; only `Limit(Sort)` is a top-k.
"""

from __future__ import annotations

from dataclasses import replace

from wallaby.plan.estimates.statistics import Statistics
from wallaby.relations.relation import Limit, Project, Relation
from wallaby.relations.tree import rewrite_up


def push_limits(relation: Relation, _: Statistics) -> Relation:
    """No limit right above a projection any more."""
    return rewrite_up(relation, _push)


def _push(relation: Relation) -> Relation:
    if isinstance(relation, Limit) and isinstance(relation.child, Project):
        project = relation.child
        return replace(project, child=_push(replace(relation, child=project.child)))
    return relation
