"""What a user holds: an engine attached to a SparkSession. DataFrames in, rows out.

`attach` starts a control store and the head in this process and TaskManagers in Spark's executors; `close`
leaves nothing of them. A query that cannot be run exactly as Spark would run it is run by Spark, and
`fallback_reasons` says why.
"""

from __future__ import annotations

import logging
import re
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from wallaby.catalyst import read_plan, warm_up
from wallaby.catalyst.defect import DEFECTS, defect
from wallaby.catalyst.reader import ReadResult
from wallaby.config import PREFIX, Settings, contradiction, read_settings, static_outputs
from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.errors import (
    AttachError,
    HandOverError,
    InvalidArgumentError,
    QueryCancelledError,
)
from wallaby.exchange.backup import Backup
from wallaby.exchange.client import PeerClient
from wallaby.exchange.memory import ByteBudget
from wallaby.gcs.interface import Gcs
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.head.observer import Observer
from wallaby.kernels.file_systems import make_known, storages_of
from wallaby.kernels.partitions import without_excluded_files
from wallaby.kernels.sql import relation_reason
from wallaby.kernels.tables import known_tables, scan_reason
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.lineage.tolerance import NONE, Tolerance, tolerance_of
from wallaby.observe.analyze import analyzed
from wallaby.observe.log import log_directory
from wallaby.plan.doubt import may_doubt
from wallaby.plan.explain import explain as explain_plan
from wallaby.plan.leaf import (
    SparkLeaf,
    assumed_statistics,
    handed_over,
    leaf_number,
    not_worthwhile,
    scans_in,
    whole_scan,
)
from wallaby.plan.physical import PhysicalPlan, trees_of
from wallaby.plan.planner import plan
from wallaby.plan.reason import Reason
from wallaby.plan.relation import ParquetFile, Relation, Scan
from wallaby.plan.settings import PlanSettings
from wallaby.plan.statistics import Statistics
from wallaby.plan.unplannable import unplannable
from wallaby.result import LeafResult, Result, SparkResult, result_of
from wallaby.spark.bypass import on_spark
from wallaby.spark.cluster import Cluster
from wallaby.spark.deployment import Deployment
from wallaby.spark.leaf_directory import LeafDirectory
from wallaby.spark.leaf_run import LeafRun
from wallaby.spark.store_stay import begin_stay
from wallaby.worker.orders import order_book
from wallaby.worker.payload import QueryPayload
from wallaby.worker.place import Place
from wallaby.worker.shares import Shares

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row

_log = logging.getLogger(__name__)
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
EXPLAIN_MODES = ("simple", "analyze")
#: More rows than this are not shown, and Spark has an error for it.
SHOW_ROWS_MAX = (1 << 31) - 1

_attached: dict[str, Engine] = {}
#: How long a close waits for the last events of queries that have just ended, if there is an event log.
LAST_EVENTS_SECONDS = 0.6
#: How long a close waits for the Spark jobs of leaves that it has cancelled.
LEAF_END_SECONDS = 5.0


def attach(spark: SparkSession, **settings: object) -> Engine:
    """Attach an engine to a session.

    Settings come from the session's `spark.wallaby.*` entries and from keywords (`workers=3`), which come first.

    Raises:
        AttachError: the session is a Spark Connect one, is stopped, has an engine already, or has no room.
        ConfigurationError: a setting is unknown or impossible.
    """
    _check_session(spark)
    application = spark.sparkContext.applicationId
    if application in _attached:
        raise AttachError(
            "An engine is attached to this session already.", fix="Use it, or close() it first."
        )
    configured = {k: v for k, v in spark.sparkContext.getConf().getAll() if k.startswith(PREFIX)}
    engine = Engine(spark, read_settings(configured, settings))
    _attached[application] = engine
    return engine


def attached_to(spark: object) -> Engine | None:
    """The engine of a session's application, if it has one."""
    context = spark.sparkContext if isinstance(spark, SparkSession) else None
    return None if context is None or context._jsc is None else _attached.get(context.applicationId)


def _check_session(spark: object) -> None:
    if not isinstance(spark, SparkSession):
        connect_session = type(spark).__module__.startswith("pyspark.sql.connect")
        what = "a Spark Connect session, which hides its plans" if connect_session else type(spark).__name__
        raise AttachError(f"Cannot attach to {what}.", fix="Use a classic SparkSession, without remote().")
    if spark.sparkContext._jsc is None:
        raise AttachError("Cannot attach to a stopped session.", fix="Start a new SparkSession.")


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


class Engine:
    """An engine on one Spark application. Also a context manager."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark = spark
        self.settings = settings
        self.tolerance = _tolerance(settings)
        self._closed = False
        self._application = spark.sparkContext.applicationId
        self._stay = begin_stay(settings, self.tolerance)
        folder = self._stay.store.folder if self._stay is not None else ""
        try:
            self._deployment = Deployment(spark.sparkContext, settings, self._make_head, self.close, folder)
        except BaseException:
            self._end_stay()
            raise
        size = self._deployment.size
        self._count, self._threads = size.count, size.threads
        self._shares = Shares(size.memory_bytes, size.threads)
        self._leaf_directory = LeafDirectory(Cluster(spark.sparkContext), settings)
        #: Those that somebody still holds or that still run.
        self._leaf_runs: weakref.WeakSet[LeafRun] = weakref.WeakSet()
        self._gcs, self._head = self._deployment.gcs, self._deployment.head
        try:
            self._shares.require_enough()
            self._deployment.start()
            warm_up(spark)
            self._deployment.await_workers()
        except BaseException:
            self.close()
            raise

    def _make_head(self, gcs: Gcs, peers: PeerClient) -> Head:
        settings = self.settings
        return Head(
            gcs,
            Backup(ByteBudget(1), (), 0, owner="head"),
            peers,
            peers.ping,
            CoordinatorSettings(
                lease_ms=int(settings.lease * 1000),
                no_workers_ms=int(settings.no_workers_timeout * 1000),
                task_worker_losses_max=settings.max_task_worker_losses,
                recovers=self.tolerance.recorded,
            ),
            Observer(log_directory(settings.event_log_dir)),
            settings.progress_enabled,
            order_book(settings),
            self._forget,
        )

    def _forget(self, query: QueryId) -> None:
        """A query is over: what is in the durable store of it goes."""
        if self._stay is not None:
            self._stay.store.remove(query)

    def _end_stay(self) -> None:
        if self._stay is not None:
            self._stay.end()

    # --- running -------------------------------------------------------------------------------------

    def run(self, df: DataFrame, *, observed: bool = False) -> Result:
        """Run a query; the result streams in. What cannot be run here is run by Spark when rows are asked for.

        If it is observed, the result's `stats` also say what was exchanged. With an event log every query is.
        """
        return self.run_here(df, observed=observed) or SparkResult(df)

    def run_here(self, df: DataFrame, *, observed: bool = False) -> Result | None:
        """Run a query if the engine can; None, and a line in the log, if Spark has to."""
        planned = self._plan(df)
        if planned.physical is None:
            _log.info("on Spark: %s", "; ".join(str(reason) for reason in planned.reasons))
            return None
        return self._start(
            df, planned, planned.physical, observed=observed or bool(self.settings.event_log_dir)
        )

    def _start(self, df: DataFrame, planned: Planned, physical: PhysicalPlan, *, observed: bool) -> Result:
        if planned.relation is None:
            return result_of(df, self._submit(physical, self.settings.timeout, observed=observed))
        relation = planned.relation
        _log.info("partly on Spark: %s", "; ".join(map(str, planned.leaf_reasons)))

        def submit(files: Mapping[int, tuple[ParquetFile, ...]], timeout_seconds: float) -> Collected:
            final, reasons = self._physical(handed_over(relation, files))
            if final is None:
                raise HandOverError("; ".join(map(str, reasons)))
            return self._submit(final, timeout_seconds, observed=observed)

        work = [(leaf, whole_scan(relation, leaf)) for leaf in planned.leaves]
        run = LeafRun(df, work, self._leaf_directory, submit, self.settings.timeout)
        self._leaf_runs.add(run)
        run.start()
        return LeafResult(df, run)

    def _submit(self, physical: PhysicalPlan, timeout_seconds: float, *, observed: bool) -> Collected:
        payload = QueryPayload(
            physical,
            self._window_bytes(physical),
            min(self.settings.task_target, self._shares.task_bytes),
            self._shares.kernel_bytes,
            observed=observed,
            tolerance=self.tolerance,
            static_outputs=static_outputs(self.settings.execution_dependencies),
            several=self.settings.execution_draw == "several",
            storages=storages_of(physical.fragments),
        )
        return self._head.submit(
            physical,
            payload,
            timeout_seconds,
            held_back=may_doubt(physical),
            begins_again=self.settings.fault_tolerance_enabled and not self.tolerance.recorded,
        )

    def _window_bytes(self, physical: PhysicalPlan) -> int:
        """The setting, or less where all the windows of a TaskManager would be more than their share of memory."""
        edges = sum(len(physical.graph.edges_from(channel)) for channel in physical.graph.channels)
        return min(self.settings.window, self._shares.window_bytes(-(-edges // self._count)))

    def _plan(self, df: DataFrame) -> Planned:
        self._require_open()
        try:
            read, relation = self._read(df)
        except DEFECTS as error:
            return Planned(None, (defect("planning", error),))
        if relation is None:
            return Planned(None, read.reasons)
        if not read.leaves:
            return Planned(*self._physical(relation))
        of_leaves = tuple(dict.fromkeys(reason for leaf in read.leaves for reason in leaf.reasons))
        against = self._leaf_directory.reason or not_worthwhile(
            relation, read.leaves, self.settings.leaf_minimum
        )
        if against is not None:
            return Planned(None, (*of_leaves, against))
        physical, reasons = self._physical(relation, read.leaves)
        if physical is None:
            return Planned(None, (*of_leaves, *reasons))
        return Planned(physical, (), read.leaves, relation)

    def _read(self, df: DataFrame) -> tuple[ReadResult, Relation | None]:
        """A query as a relation of those files that matter to it; tables with other files than we read are leaves."""
        read = read_plan(df, leaves=True)
        make_known(read.storages)
        relation = None if read.relation is None else without_excluded_files(read.relation)
        odd = [scan_reason(scan) for scan in _tables(relation)]
        unreadable = {reason.file: reason.why for reason in odd if reason is not None}
        if unreadable:
            read = read_plan(df, leaves=True, unreadable=unreadable)
            relation = None if read.relation is None else without_excluded_files(read.relation)
        return read, relation

    def _physical(
        self, relation: Relation, leaves: tuple[SparkLeaf, ...] = ()
    ) -> tuple[PhysicalPlan | None, tuple[Reason, ...]]:
        """The stages of a relation, with what is assumed of leaves that have not run yet; or why there are none."""
        pending = {leaf.number: leaf for leaf in leaves}
        known = known_tables(_tables(relation), min(self.settings.split, self._shares.task_bytes))
        assumed = [
            assumed_statistics(pending[number], scan)
            for scan in scans_in(relation)
            if (number := leaf_number(scan)) is not None
        ]
        statistics = Statistics((*known.tables, *assumed))
        reasons = unplannable(relation, statistics)
        if reasons:
            return None, reasons
        channels = self.settings.channels or self._count * self._threads
        broadcast_bytes = min(self.settings.broadcast, self._shares.broadcast_bytes)
        settings = PlanSettings(channels=channels, workers=self._count, broadcast_bytes=broadcast_bytes)
        try:
            physical = plan(relation, statistics, settings)
        except DEFECTS as error:
            return None, (defect("planning", error),)
        reasons = tuple(
            Reason("a stage", why)
            for fragment in physical.fragments
            for tree in trees_of(fragment)
            if (why := relation_reason(tree))
        )
        return (None, reasons) if reasons else (physical, ())

    def to_arrow(self, df: DataFrame) -> pa.Table:
        """Exactly `df.toArrow()`."""
        return self.run(df).arrow()

    def collect(self, df: DataFrame) -> list[Row]:
        """Exactly `df.collect()`."""
        return self.run(df).rows()

    def to_pandas(self, df: DataFrame) -> pd.DataFrame:
        """Exactly `df.toPandas()`."""
        return self.run(df).pandas()

    def count(self, df: DataFrame) -> int:
        """Exactly `df.count()`."""
        return int(self.run(df.groupBy().count()).rows()[0][0])

    def take(self, df: DataFrame, num: int) -> list[Row]:
        """Exactly `df.take(num)`."""
        return self.run(df.limit(num)).rows()

    def first(self, df: DataFrame) -> Row | None:
        """Exactly `df.first()`."""
        rows = self.take(df, 1)
        return rows[0] if rows else None

    def head(self, df: DataFrame, n: int | None = None) -> Row | list[Row] | None:
        """Exactly `df.head(n)`."""
        return self.first(df) if n is None else self.take(df, n)

    def show(self, df: DataFrame, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> None:
        """Exactly `df.show()`."""
        result = self.run_here(df.limit(n + 1)) if 0 <= n < SHOW_ROWS_MAX else None
        shown = df if result is None else self.as_local_rows(df, result)
        with on_spark():
            shown.show(n, truncate, vertical)

    def as_local_rows(self, df: DataFrame, result: Result) -> DataFrame:
        """A result as a DataFrame of local rows, which Spark can print without a job."""
        return self.spark.createDataFrame(result.arrow(), df.schema)

    # --- asking --------------------------------------------------------------------------------------

    def explain(self, df: DataFrame, mode: str = "simple") -> str:
        """Stages, channels and exchanges; or what stays on Spark and why.

        In the mode analyze the query is run, its rows are dropped, and what each stage did is added.
        """
        if mode not in EXPLAIN_MODES:
            raise InvalidArgumentError(
                f"There is no way {mode!r} to explain.", fix=f"Choose one of: {', '.join(EXPLAIN_MODES)}."
            )
        planned = self._plan(df)
        if planned.physical is None:
            return "runs on Spark:\n" + "\n".join(f"  {reason}" for reason in planned.reasons)
        text = explain_plan(planned.physical, planned.leaves)
        if mode == "simple":
            return text
        result = self._start(df, planned, planned.physical, observed=True)
        for _ in result.batches():
            pass
        stats = result.observed_stats()
        return text + ("\n" + analyzed(stats) if stats is not None else "")

    def fallback_reasons(self, df: DataFrame) -> list[str]:
        """Why Spark would run this query or a part of it; empty if the whole of it runs here."""
        planned = self._plan(df)
        return [str(reason) for reason in (*planned.reasons, *planned.leaf_reasons)]

    def workers(self) -> list[dict[str, Any]]:
        """Id, host, pid, address and state of every TaskManager."""
        self._require_open()
        found = []
        for lease in self._gcs.workers():
            place = Place.decode(lease.address)
            state = "draining" if lease.draining else "live" if lease.remaining_ms > 0 else "silent"
            found.append(
                {
                    "id": lease.worker,
                    "host": place.host,
                    "pid": place.pid,
                    "address": place.endpoint,
                    "state": state,
                }
            )
        return found

    def drain(self, worker: str, timeout: float = 60.0) -> bool:
        """Move a TaskManager's work to others while it still serves what it has made, then let it go.

        Cheaper than a loss: nothing that it has made and others still need is made again. Spark starts another in its
        place. False if it has not come to its end in time, for example because there is nobody to take its work over;
        it still gets no new queries then, and leaves when it can.

        Raises:
            InvalidArgumentError: there is no such TaskManager.
        """
        self._require_open()
        known = WorkerId(worker)
        if known not in {lease.worker for lease in self._gcs.workers()}:
            raise InvalidArgumentError(f"There is no TaskManager {worker}.", fix="See engine.workers().")
        return self._head.drain(known, timeout)

    # --- ending --------------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything that attach has started. Running queries are cancelled."""
        if self._closed:
            return
        self._closed = True
        if self.settings.event_log_dir:
            # Workers send their events every quarter of a second, and at the end of a query.
            time.sleep(LAST_EVENTS_SECONDS)
        _attached.pop(self._application, None)
        for run in list(self._leaf_runs):
            run.cancel(QueryCancelledError("The engine was closed while the query ran.", fix="Attach again."))
        self._deployment.close()
        for run in list(self._leaf_runs):
            run.join(LEAF_END_SECONDS)
        self._leaf_directory.close()
        self._end_stay()

    @property
    def is_open(self) -> bool:
        """Can it still run queries?"""
        return not self._closed and self.spark.sparkContext._jsc is not None

    def _require_open(self) -> None:
        if self._closed:
            raise AttachError("This engine is closed.", fix="Attach again.")

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _tolerance(settings: Settings) -> Tolerance:
    """The parts of fault tolerance that the settings name, if they do not contradict each other."""
    policy = f"faultTolerance.policy={settings.fault_tolerance_policy}"
    chosen = tolerance_of(settings.fault_tolerance_policy)
    if not settings.fault_tolerance_enabled:
        if "faultTolerance.policy" in settings.given:
            raise contradiction(
                "faultTolerance.enabled=false", policy, "without fault tolerance there is no policy"
            )
        chosen = NONE
    if chosen.staged and settings.execution_mode == "pipelined" and "execution.mode" in settings.given:
        why = "under it, a stage starts only when its inputs are complete"
        raise contradiction("execution.mode=pipelined", policy, why)
    return replace(chosen, staged=chosen.staged or settings.execution_mode == "stagewise")


def _tables(relation: Relation | None) -> list[Scan]:
    """The scans of a relation whose files are there already."""
    scans = () if relation is None else scans_in(relation)
    return [scan for scan in scans if leaf_number(scan) is None]
