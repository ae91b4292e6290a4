"""The outcome of planning a query: stages for the TaskManagers, work for Spark, or both."""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.plan.leaf import SparkLeaf
from wallaby.plan.physical import PhysicalPlan
from wallaby.relations.reason import Reason
from wallaby.relations.relation import Relation


@dataclass(frozen=True, slots=True)
class Planned:
    """The outcome of planning a query: its stages, or the reasons why Spark has to run it.

    With leaves, the stages rest on assumptions about them, and `relation` is planned again once the leaves have run.
    """

    physical: PhysicalPlan | None
    reasons: tuple[Reason, ...]
    leaves: tuple[SparkLeaf, ...] = ()
    relation: Relation | None = None

    @property
    def leaf_reasons(self) -> tuple[Reason, ...]:
        """Why Spark has to run the leaves; each reason names its leaf."""
        return tuple(
            Reason(f"{leaf}, {reason.what}", reason.why, reason.remedy)
            for leaf in self.leaves
            for reason in leaf.reasons
        )
