"""From a DataFrame to stages: read Catalyst's plan, decide what Spark must run, and plan the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wallaby.config.settings import Settings
from wallaby.frontend.read_query import read_query
from wallaby.plan.choice import worth
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.leaf import (
    SparkLeaf,
    assumed_statistics,
    leaf_number,
    not_worthwhile,
    scans_in,
    tables_in,
)
from wallaby.plan.physical import PhysicalPlan, trees_of
from wallaby.plan.planned import Planned
from wallaby.plan.planner import plan
from wallaby.plan.settings import PlanSettings
from wallaby.reading.defect import DEFECTS, defect
from wallaby.relations.reason import Reason, UnplannableError
from wallaby.relations.relation import Relation
from wallaby.statements.relation import relation_reason
from wallaby.tables.tables import known_tables
from wallaby.worker.memory.shares import MemoryShares

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class QueryPlanner:
    """Plans queries for an engine with a number of TaskManagers, each with these threads and shares of memory."""

    def __init__(
        self, workers: int, threads: int, shares: MemoryShares, leaf_reason: Callable[[], Reason | None]
    ) -> None:
        """`leaf_reason` says why Spark cannot hand rows over; None if it can."""
        self._count = workers
        self._threads = threads
        self._shares = shares
        self._leaf_reason = leaf_reason

    def plan(
        self,
        df: DataFrame,
        settings: Settings,
        begin: Callable[[], object] = lambda: None,
        *,
        keeps: bool = False,
    ) -> Planned:
        """Plan a query. `begin` is called when that may take time; with `keeps` its rows stay with the workers."""
        try:
            read, relation = read_query(df, settings.leaf_minimum, begin)
        except DEFECTS as error:
            return Planned(None, (defect("planning", error),))
        if relation is None:
            return Planned(None, read.reasons)
        if not read.leaves:
            return Planned(*self.physical(relation, settings, keeps=keeps))
        of_leaves = tuple(dict.fromkeys(reason for leaf in read.leaves for reason in leaf.reasons))
        against = self._leaf_reason() or not_worthwhile(relation, read.leaves, settings.leaf_minimum)
        if against is not None:
            return Planned(None, (*of_leaves, against))
        physical, reasons = self.physical(relation, settings, read.leaves, keeps=keeps)
        if physical is None:
            return Planned(None, (*of_leaves, *reasons))
        if settings.leaf_minimum and not keeps and not (found := worth(physical, to_driver=True)).is_taken:
            against = Reason("Spark leaf", str(found), "set spark.wallaby.leaf.minimum to 0")
            return Planned(None, (*of_leaves, against))
        return Planned(physical, (), read.leaves, relation)

    def physical(
        self,
        relation: Relation,
        settings: Settings,
        leaves: tuple[SparkLeaf, ...] = (),
        *,
        keeps: bool = False,
    ) -> tuple[PhysicalPlan | None, tuple[Reason, ...]]:
        """Plan the stages of a relation, with assumptions about leaves that have not run yet; or say why not."""
        pending = {leaf.number: leaf for leaf in leaves}
        known = known_tables(tables_in(relation), min(settings.split, self._shares.task_bytes))
        assumed = [
            assumed_statistics(pending[number], scan)
            for scan in scans_in(relation)
            if (number := leaf_number(scan)) is not None
        ]
        statistics = Statistics((*known.tables, *assumed))
        channels = settings.channels or self._count * self._threads
        sizes = PlanSettings(
            channels=channels, workers=self._count, broadcast_bytes=self.broadcast_bytes(settings)
        )
        try:
            physical = plan(relation, statistics, sizes, keeps=keeps)
        except UnplannableError as error:
            return None, error.reasons
        except DEFECTS as error:
            return None, (defect("planning", error),)
        reasons = tuple(
            Reason("a stage", why)
            for fragment in physical.fragments
            for tree in trees_of(fragment)
            if (why := relation_reason(tree))
        )
        return (None, reasons) if reasons else (physical, ())

    def broadcast_bytes(self, settings: Settings) -> int:
        """The largest build side that goes to every channel."""
        return min(settings.broadcast, self._shares.broadcast_bytes)
