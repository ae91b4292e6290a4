"""Push limits below projections, so that a limit is next to its sort and fewer rows are computed.

Catalyst has `Limit(Project(Sort))` for a sort by a column that is not selected; only `Limit(Sort)` is a top-k.
"""

from __future__ import annotations

from dataclasses import replace

from wallaby.plan.estimates.statistics import Statistics
from wallaby.relations.relation import Limit, Project, Relation
from wallaby.relations.tree import rewrite_up


def push_limits(relation: Relation, _: Statistics) -> Relation:
    """Move every limit that is right above a projection below it."""
    return rewrite_up(relation, _push)


def _push(relation: Relation) -> Relation:
    if isinstance(relation, Limit) and isinstance(relation.child, Project):
        project = relation.child
        return replace(project, child=_push(replace(relation, child=project.child)))
    return relation
