"""Preflight: every check whether a query can run here. Each gives reasons, and each is made once.

In their order:

1. `leaf_reasons`, before a file is opened: Spark can hand over the rows of leaves, and that pays.
2. `unreadable_files`: the engine reads the files as Spark does. Tables with other files become leaves.
3. `relation_reasons`, before planning: the relation can be cut into stages.
4. `stage_reasons`, after planning: the engine computes every stage exactly as Spark does.
5. `gain_reasons`: with leaves, the whole plan is worth it.

Reading a plan comes before all of them and has reasons of its own (`reading`). `guarded` turns bugs into reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from wallaby.plan.choice import worth
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.leaf import SparkLeaf, not_worthwhile
from wallaby.plan.physical import PhysicalPlan, trees_of
from wallaby.plan.unplannable import unplannable
from wallaby.reading.defect import DEFECTS, defect
from wallaby.relations.reason import Reason
from wallaby.relations.relation import DataFile, Relation, Scan
from wallaby.statements.relation import relation_reason
from wallaby.tables.tables import scan_reason

Reasons = tuple[Reason, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LeafChecks:
    """The checks of one query that are about its Spark leaves."""

    #: Says why Spark cannot hand rows over; None if it can.
    hand_over_reason: Callable[[], Reason | None]
    minimum_bytes: int

    def leaf_reasons(self, relation: Relation, leaves: tuple[SparkLeaf, ...]) -> Reasons:
        """The reasons why Spark should run all of a query with these leaves; empty without leaves or if they pay."""
        if not leaves:
            return ()
        against = self.hand_over_reason() or not_worthwhile(relation, leaves, self.minimum_bytes)
        return () if against is None else (*reasons_of(leaves), against)

    def gain_reasons(self, physical: PhysicalPlan, leaves: tuple[SparkLeaf, ...]) -> Reasons:
        """The reasons why a plan whose rows go to the driver does not pay with its leaves; empty if it does."""
        if not leaves or not self.minimum_bytes:
            return ()
        found = worth(physical, to_driver=True)
        if found.is_taken:
            return ()
        against = Reason("Spark leaf", str(found), "set spark.wallaby.leaf.minimum to 0")
        return (*reasons_of(leaves), against)


def reasons_of(leaves: tuple[SparkLeaf, ...]) -> Reasons:
    """The reasons why Spark has to run these leaves."""
    return tuple(dict.fromkeys(reason for leaf in leaves for reason in leaf.reasons))


def unreadable_files(scans: Iterable[Scan]) -> dict[DataFile, str]:
    """The files that the engine cannot read as Spark does, each with the reason: at most one of each table."""
    odd = map(scan_reason, scans)
    return {reason.file: reason.why for reason in odd if reason is not None}


def relation_reasons(relation: Relation, statistics: Statistics) -> Reasons:
    """The reasons why a relation cannot be cut into stages."""
    return unplannable(relation, statistics)


def stage_reasons(physical: PhysicalPlan) -> Reasons:
    """The reasons why stages of a plan cannot be computed exactly as Spark does."""
    trees = (tree for fragment in physical.fragments for tree in trees_of(fragment))
    return tuple(Reason("a stage", why) for tree in trees if (why := relation_reason(tree)))


def guarded(work: Callable[[], T], refused: Callable[[Reasons], T]) -> T:
    """The outcome of `work`. If a bug ends it, the outcome is that Spark runs the query."""
    try:
        return work()
    except DEFECTS as error:
        return refused((defect("planning", error),))
