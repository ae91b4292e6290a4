"""Starting queries: submitted to the head at once, or after the parts that Spark runs first.

Each query is also a Spark job; cancelling that job ends the query.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from wallaby.config.settings import Settings
from wallaby.errors import GcsLostError, HandOverError, QueryCancelledError
from wallaby.frontend.payload import payload_of
from wallaby.frontend.planning import QueryPlanner
from wallaby.frontend.replanning import Replanning
from wallaby.functions.registry import DOUBTFUL_FUNCTIONS
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.lineage.graph import StageKind
from wallaby.lineage.tolerance import Tolerance
from wallaby.plan.doubt import may_doubt
from wallaby.plan.leaf import handed_over, whole_scan
from wallaby.plan.physical import Ending, PhysicalPlan
from wallaby.plan.planned import Planned
from wallaby.relations.relation import DataFile, Relation
from wallaby.relations.target import WriteTarget
from wallaby.results.awaited import AwaitedRun
from wallaby.results.following import FollowedQuery
from wallaby.results.kept import KeptRows
from wallaby.results.leaves import LeafResult
from wallaby.results.lifetime import EndRun, QueryLifetime
from wallaby.results.result import Result, may_go_on, result_of
from wallaby.spark.leaves.directory import LeafDirectory
from wallaby.spark.leaves.run import LeafRun
from wallaby.spark.query_jobs import QueryJob
from wallaby.spark.succession import Succession
from wallaby.worker.memory.shares import MemoryShares

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How often one query is restarted because the store was lost.
STORE_LOSSES_MAX = 3
#: How long `close` waits for the Spark jobs of leaves that it has cancelled.
LEAF_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Site:
    """The TaskManagers of one deployment, for which queries are planned. Another deployment is another site."""

    planner: QueryPlanner
    shares: MemoryShares
    workers: int
    #: Can Spark's own tasks run beside the TaskManagers?
    leaves_slot: bool = True


class QueryRunner:
    """Starts planned queries."""

    def __init__(
        self,
        tolerance: Tolerance,
        succession: Succession,
        leaf_directory: LeafDirectory,
        whole_bytes_max: int,
    ) -> None:
        """`whole_bytes_max` is Spark's limit for the size of a whole result."""
        self._tolerance = tolerance
        self._succession = succession
        self.leaf_directory = leaf_directory
        self._whole_bytes_max = whole_bytes_max
        #: Are all queries observed, because somebody may look at them while they run?
        self.is_watched = False
        #: Called with every query that is submitted, on the thread that submits it. It must not block.
        self.on_submit: Callable[[QueryJob, Collected], None] | None = None
        #: Runs with leaves that are still referenced or still running.
        self._leaf_runs: weakref.WeakSet[LeafRun] = weakref.WeakSet()

    def start(
        self,
        site: Site,
        df: DataFrame,
        planned: Planned,
        physical: PhysicalPlan,
        settings: Settings,
        lifetime: QueryLifetime,
        *,
        observed: bool,
        record: FollowedQuery | None = None,
    ) -> Result:
        """Start a planned query; if Spark runs parts of it first, its stages are still assumptions."""
        try:
            lifetime.begin()
            lifetime.goes_on_if(partial(may_go_on, settings.spark_errors, None))
            if planned.relation is not None:
                if record is not None:
                    record.partly(planned.leaf_reasons)
                return self._start_leaves(
                    site, df, planned, planned.relation, lifetime, settings, observed=observed, record=record
                )
            replanning = self._replanning(site, df, settings, lifetime, observed=observed)
            lifetime.goes_on_if(partial(may_go_on, settings.spark_errors, replanning))
            collected = self._begin(site, physical, settings, lifetime, observed=observed)
            return result_of(
                df,
                collected,
                lifetime,
                spark_errors=settings.spark_errors,
                replanning=replanning,
                record=record,
            )
        except BaseException as error:
            lifetime.finish(error)
            raise

    def keep(
        self,
        site: Site,
        df: DataFrame,
        planned: Planned,
        physical: PhysicalPlan,
        settings: Settings,
        lifetime: QueryLifetime,
        *,
        observed: bool,
    ) -> KeptRows:
        """Start a query whose rows stay with the TaskManagers."""
        begun, replanning = self._start_awaited(
            site, df, planned, physical, settings, lifetime, StageKind.KEEP, observed=observed
        )
        return KeptRows(begun, self._succession.head, lifetime, replanning)

    def write(
        self,
        site: Site,
        df: DataFrame,
        planned: Planned,
        physical: PhysicalPlan,
        settings: Settings,
        lifetime: QueryLifetime,
        target: WriteTarget,
        *,
        observed: bool,
    ) -> AwaitedRun:
        """Start a query whose rows the TaskManagers write; the rows that come are the manifest."""
        begun, replanning = self._start_awaited(
            site, df, planned, physical, settings, lifetime, target, observed=observed
        )
        return AwaitedRun(begun, lifetime, replanning)

    def _start_awaited(
        self,
        site: Site,
        df: DataFrame,
        planned: Planned,
        physical: PhysicalPlan,
        settings: Settings,
        lifetime: QueryLifetime,
        ending: Ending,
        *,
        observed: bool,
    ) -> tuple[Collected | LeafRun, Replanning | None]:
        try:
            lifetime.begin()
            if planned.relation is not None:
                run = self._run_leaves(
                    site, df, planned, planned.relation, lifetime, settings, observed=observed, ending=ending
                )
                return run, None
            replanning = self._replanning(site, df, settings, lifetime, observed=observed, ending=ending)
            lifetime.goes_on_if(replanning.avoids)
            return self._begin(site, physical, settings, lifetime, observed=observed), replanning
        except BaseException as error:
            lifetime.finish(error)
            raise

    def cancel_leaves(self, error: QueryCancelledError) -> None:
        """End the queries for which Spark is still running leaves."""
        for run in list(self._leaf_runs):
            run.cancel(error)

    def join_leaves(self) -> None:
        """Wait a limited time until the ended ones have cleaned up."""
        for run in list(self._leaf_runs):
            run.join(LEAF_END_SECONDS)

    def _begin(
        self,
        site: Site,
        physical: PhysicalPlan,
        settings: Settings,
        lifetime: QueryLifetime,
        *,
        observed: bool,
    ) -> Collected:
        def known(collected: Collected) -> None:
            lifetime.runs(collected.cancel)

        collected = self._submit(site, physical, settings, lifetime, known, observed=observed)
        collected.when_over(partial(lifetime.run_over, collected.cancel))
        return collected

    def _replanning(
        self,
        site: Site,
        df: DataFrame,
        settings: Settings,
        lifetime: QueryLifetime,
        *,
        observed: bool,
        ending: Ending = StageKind.COLLECT,
    ) -> Replanning:
        begin = partial(self._begin_again, site, df, settings, lifetime, observed, ending=ending)
        return Replanning(site.planner.broadcast_bytes(settings), begin)

    def _begin_again(
        self,
        site: Site,
        df: DataFrame,
        settings: Settings,
        lifetime: QueryLifetime,
        observed: bool,
        broadcast: int,
        *,
        ending: Ending = StageKind.COLLECT,
    ) -> Collected | None:
        """Begin a query again with a lower limit for broadcast build sides; None if it cannot be planned."""
        lifetime.require()
        settings = replace(settings, broadcast=broadcast)
        with lifetime.planning():
            planned = site.planner.plan(df, settings, lifetime.begin, ending=ending)
        if planned.physical is None or planned.relation is not None:
            return None
        return self._begin(site, planned.physical, settings, lifetime, observed=observed)

    def _start_leaves(
        self,
        site: Site,
        df: DataFrame,
        planned: Planned,
        relation: Relation,
        lifetime: QueryLifetime,
        settings: Settings,
        *,
        observed: bool,
        record: FollowedQuery | None = None,
    ) -> Result:
        run = self._run_leaves(site, df, planned, relation, lifetime, settings, observed=observed)
        return LeafResult(df, run, lifetime, spark_errors=settings.spark_errors, record=record)

    def _run_leaves(
        self,
        site: Site,
        df: DataFrame,
        planned: Planned,
        relation: Relation,
        lifetime: QueryLifetime,
        settings: Settings,
        *,
        observed: bool,
        ending: Ending = StageKind.COLLECT,
    ) -> LeafRun:
        def submit(
            files: Mapping[int, tuple[DataFile, ...]], known: Callable[[Collected], None]
        ) -> Collected:
            final, reasons = site.planner.physical(handed_over(relation, files), settings, ending=ending)
            if final is None:
                raise HandOverError("; ".join(map(str, reasons)))
            return self._submit(site, final, settings, lifetime, known, observed=observed)

        work = [(leaf, whole_scan(relation, leaf)) for leaf in planned.leaves]
        run = LeafRun(df, work, self.leaf_directory, submit, lifetime.limit)
        self._leaf_runs.add(run)
        end: EndRun = run.cancel
        lifetime.runs(end)
        run.when_over(partial(lifetime.run_over, end))
        run.start()
        return run

    def _submit(
        self,
        site: Site,
        physical: PhysicalPlan,
        settings: Settings,
        lifetime: QueryLifetime,
        known: Callable[[Collected], None],
        *,
        observed: bool,
    ) -> Collected:
        def submitted(collected: Collected) -> None:
            known(collected)
            if self.on_submit is not None:
                self.on_submit(lifetime.begin(), collected)

        observed = observed or self.is_watched
        submit = partial(
            Head.submit,
            plan=physical,
            payload=payload_of(
                physical, settings, site.shares, site.workers, self._tolerance, observed=observed
            ),
            limit=lifetime.limit,
            held_back=may_doubt(physical, DOUBTFUL_FUNCTIONS),
            begins_again=self._tolerance.run_again,
            store_losses_max=STORE_LOSSES_MAX if settings.retry_on_gcs_loss else 0,
            whole_bytes_max=self._whole_bytes_max,
            about=lifetime.begin().about,
            known=submitted,
        )
        head = self._succession.head()
        try:
            return submit(head)
        except GcsLostError as lost:  # it turns out only now, but nothing of the query has run
            head.lose_store(lost)
            return submit(self._succession.head())
