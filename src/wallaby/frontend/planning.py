"""From a DataFrame to stages: read Catalyst's plan, decide what Spark must run, and plan the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wallaby.config.settings import Settings
from wallaby.frontend.preflight import (
    LeafChecks,
    Reasons,
    guarded,
    reasons_of,
    relation_reasons,
    stage_reasons,
)
from wallaby.frontend.read_query import read_query
from wallaby.lineage.graph import StageKind
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.leaf import (
    SparkLeaf,
    assumed_statistics,
    leaf_number,
    scans_in,
    tables_in,
)
from wallaby.plan.physical import Ending, PhysicalPlan
from wallaby.plan.planned import Planned
from wallaby.plan.planner import plan_prepared, prepare
from wallaby.plan.rules.share_subplans import SharedParts
from wallaby.plan.settings import PlanSettings
from wallaby.relations.reason import Reason
from wallaby.relations.relation import Relation
from wallaby.tables.tables import known_tables
from wallaby.worker.memory.shares import MemoryShares

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Says why a relation is not worth being planned; None if it may be. It is asked twice: before the rules of planning
#: are applied, which takes as long as reading the plan, and before it is cut into stages, which takes as long again.
Against = Callable[[Relation | SharedParts, Statistics, PlanSettings], Reason | None]


def nothing_against(
    relation: Relation | SharedParts, statistics: Statistics, sizes: PlanSettings
) -> Reason | None:
    """Have no objection to any relation."""
    del relation, statistics, sizes
    return None


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
        begin: Callable[[], object] | None = None,
        ending: Ending = StageKind.COLLECT,
    ) -> Planned:
        """Plan a query. `begin` is called before what may take time; None if the query does not run now."""
        return guarded(
            lambda: self._plan(df, settings, begin, ending), lambda reasons: Planned(None, reasons)
        )

    def _plan(
        self, df: DataFrame, settings: Settings, begin: Callable[[], object] | None, ending: Ending
    ) -> Planned:
        to_driver = ending is StageKind.COLLECT
        checks = LeafChecks(self._leaf_reason, settings.leaf_minimum)
        read = read_query(df, checks, begin, to_driver=to_driver)
        if read.relation is None:
            return Planned(None, read.reasons)
        physical, reasons = self._physical(read.relation, settings, read.leaves, ending)
        if physical is None:
            return Planned(None, (*reasons_of(read.leaves), *reasons))
        if not read.leaves:
            return Planned(physical, ())
        if to_driver and (reasons := checks.gain_reasons(physical, read.leaves)):
            return Planned(None, reasons)
        return Planned(physical, (), read.leaves, read.relation)

    def physical(
        self,
        relation: Relation,
        settings: Settings,
        leaves: tuple[SparkLeaf, ...] = (),
        ending: Ending = StageKind.COLLECT,
        against: Against = nothing_against,
    ) -> tuple[PhysicalPlan | None, Reasons]:
        """Plan the stages of a relation, with assumptions about leaves that have not run yet; or say why not.

        What is `against` the plan is asked while it is made.
        """
        return guarded(
            lambda: self._physical(relation, settings, leaves, ending, against),
            lambda reasons: (None, reasons),
        )

    def _physical(
        self,
        relation: Relation,
        settings: Settings,
        leaves: tuple[SparkLeaf, ...],
        ending: Ending,
        against: Against = nothing_against,
    ) -> tuple[PhysicalPlan | None, Reasons]:
        pending = {leaf.number: leaf for leaf in leaves}
        channels = settings.channels or self._count * self._threads
        known = known_tables(tables_in(relation), min(settings.split, self._shares.task_bytes), channels)
        assumed = [
            assumed_statistics(pending[number], scan)
            for scan in scans_in(relation)
            if (number := leaf_number(scan)) is not None
        ]
        statistics = Statistics((*known.tables, *assumed))
        reasons = relation_reasons(relation, statistics)
        if reasons:
            return None, reasons
        sizes = PlanSettings(
            channels=channels, workers=self._count, broadcast_bytes=self.broadcast_bytes(settings)
        )
        why = against(relation, statistics, sizes)
        if why is not None:
            return None, (why,)
        prepared = prepare(relation, statistics, sizes)
        why = against(prepared, statistics, sizes)
        if why is not None:
            return None, (why,)
        physical = plan_prepared(prepared, relation.columns, statistics, sizes, ending)
        reasons = stage_reasons(physical)
        return (None, reasons) if reasons else (physical, ())

    def broadcast_bytes(self, settings: Settings) -> int:
        """The largest build side that goes to every channel."""
        return min(settings.broadcast, self._shares.broadcast_bytes)
