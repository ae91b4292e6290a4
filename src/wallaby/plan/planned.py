"""What became of a query when it was planned: stages of ours, Spark's own work, or both."""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.plan.leaf import SparkLeaf
from wallaby.plan.physical import PhysicalPlan
from wallaby.relations.reason import Reason
from wallaby.relations.relation import Relation


@dataclass(frozen=True, slots=True)
class Planned:
    """What became of a query: its stages, or the reasons why Spark has to run it.

    With leaves, the stages are made of what is assumed of them, and `relation` is planned again once they have run.
    """

    physical: PhysicalPlan | None
    reasons: tuple[Reason, ...]
    leaves: tuple[SparkLeaf, ...] = ()
    relation: Relation | None = None

    @property
    def leaf_reasons(self) -> tuple[Reason, ...]:
        """Why Spark has to run the leaves, each reason with the leaf that it is about."""
        return tuple(
            Reason(f"{leaf}, {reason.what}", reason.why, reason.remedy)
            for leaf in self.leaves
            for reason in leaf.reasons
        )
