"""The user's API: an engine attached to a SparkSession. DataFrames in, rows out.

`attach` starts a control store and the head in this process and TaskManagers in Spark's executors; `close`
removes all of them. Spark runs every query for which the engine cannot give Spark's answer, and `fallback_reasons` says
why.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from wallaby.above.dataframe import KeptDataFrame
from wallaby.above.subplans import Subplans, UnkeepableError
from wallaby.actions import Actions, require_dataframe
from wallaby.catalyst.jvm import warm_up
from wallaby.config.settings import Settings, read_settings
from wallaby.errors import (
    AttachError,
    InvalidArgumentError,
    QueryCancelledError,
)
from wallaby.exchange.client import PeerClient
from wallaby.frontend.planning import QueryPlanner
from wallaby.gcs.interface import Gcs
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.head.making import make_head
from wallaby.head.submission import Submission
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.lineage.tolerance import tolerance_of
from wallaby.node.worker_address import WorkerInfo, worker_info
from wallaby.observe.analyze import analyzed
from wallaby.plan.explain import explain as explain_plan
from wallaby.plan.planned import Planned
from wallaby.results.result import Result, SparkResult
from wallaby.runner import QueryRunner, Site
from wallaby.spark.checks import check_session
from wallaby.spark.cluster import Cluster
from wallaby.spark.deployment import Deployment
from wallaby.spark.hosting import TASK_MANAGER_TAG
from wallaby.spark.leaves.directory import LeafDirectory
from wallaby.spark.query_jobs import QueryJobs
from wallaby.spark.session_settings import SessionSettings, entries_of
from wallaby.spark.store_registration import register_in_durable_store
from wallaby.spark.succession import Succession
from wallaby.worker.memory.shares import MemoryShares

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)
EXPLAIN_MODES = ("simple", "analyze")

_attached: dict[str, Engine] = {}
#: How long `close` waits for the last events of queries that have just ended, if there is an event log.
LAST_EVENTS_SECONDS = 0.6


def attach(spark: SparkSession, **settings: object) -> Engine:
    """Attach an engine to a session: start a control store here and TaskManagers in Spark's executors.

    Args:
        spark: A classic session. It can have one engine.
        **settings: Settings by keyword, without `spark.wallaby.` and in snake case: `workers=3`, `gcs_url="redis://…"`.
            They override the session's own `spark.wallaby.*` entries. docs/configuration.md lists all.

    Returns:
        The engine. Close it when it is no longer needed, or use it in a `with` statement.

    Raises:
        AttachError: the session is a Spark Connect session, is stopped, already has an engine, or has no free slot.
        ConfigurationError: a setting is unknown or invalid.

    Example:
        >>> with wallaby.attach(spark, workers=3) as engine:
        ...     engine.to_arrow(df)
    """
    check_session(spark)
    application = spark.sparkContext.applicationId
    if application in _attached:
        raise AttachError(
            "An engine is already attached to this session.", fix="Use it, or close() it first."
        )
    entries = entries_of(spark)
    engine = Engine(spark, read_settings(entries, settings), entries)
    _attached[application] = engine
    return engine


def attached_to(spark: object) -> Engine | None:
    """The engine of a session's application, if it has one."""
    context = spark.sparkContext if isinstance(spark, SparkSession) else None
    return None if context is None or context._jsc is None else _attached.get(context.applicationId)


class Engine(Actions):
    """An engine on one Spark application: `attach` makes it. Any number of threads may use it at once.

    It is a context manager, which closes the engine at the end.

    Attributes:
        spark: The session that it was attached to.
        settings: The settings that it was attached with.
        tolerance: The parts of fault tolerance that its policy chooses.
    """

    def __init__(self, spark: SparkSession, settings: Settings, entries: Mapping[str, str]) -> None:
        self.spark = spark
        self.settings = settings
        self._session_settings = SessionSettings(entries)
        self.tolerance = tolerance_of(settings.fault_tolerance_policy)
        self._closed = False
        self._application = spark.sparkContext.applicationId
        self._registration = register_in_durable_store(settings, self.tolerance)
        folder = self._registration.store.folder if self._registration is not None else ""
        deploy = partial(Deployment, spark.sparkContext, settings, self._make_head, self.close, folder)
        try:
            self._succession = Succession(deploy, self._take, settings.gcs_timeout)
        except BaseException:
            self._end_registration()
            raise
        cluster = Cluster(spark.sparkContext)
        self._jobs = QueryJobs(spark.sparkContext, TASK_MANAGER_TAG)
        self._runner = QueryRunner(
            self.tolerance,
            self._succession,
            self._jobs,
            LeafDirectory(cluster, settings),
            cluster.result_bytes_max(),
        )
        #: The parts of Spark's own plans that run here.
        self.subplans = Subplans(
            spark.sparkContext,
            self._runner,
            self._jobs,
            lambda: self._site,
            lambda: self._deployment.reader_access,
            self._settings_in,
            self.tolerance,
        )
        try:
            self._site.shares.require_enough()
            self._deployment.start()
            self._jobs.start()
            warm_up(spark)
            self._deployment.await_workers()
        except BaseException:
            self.close()
            raise

    def _take(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._gcs, self._head = deployment.gcs, deployment.head
        size = deployment.size
        shares = MemoryShares(size.memory_bytes, size.threads)
        planner = QueryPlanner(size.count, size.threads, shares, lambda: self._runner.leaf_directory.reason)
        self._site = Site(planner, shares, size.count)

    def _make_head(self, gcs: Gcs, peers: PeerClient) -> Head:
        return make_head(self.settings, self.tolerance, gcs, peers, self._forget, self._run_elsewhere)

    def _run_elsewhere(self, submission: Submission, collected: Collected) -> None:
        self._succession.run_elsewhere(submission, collected)

    def _forget(self, query: QueryId) -> None:
        """Remove what an ended query left in the durable store."""
        if self._registration is not None:
            self._registration.store.remove(query)

    def _end_registration(self) -> None:
        if self._registration is not None:
            self._registration.end()

    # --- running -------------------------------------------------------------------------------------

    def run(self, df: DataFrame, *, observed: bool = False) -> Result:
        """Start a query and return its result at once; rows come in while the query runs.

        If Spark has to run the query, it does so when rows are read.

        Args:
            df: The query.
            observed: Measure the run in detail: the result's `stats` also say what was exchanged. With an event log,
                every query is observed.

        Raises:
            InvalidArgumentError: `df` is no DataFrame.
            AttachError: the engine is closed.
            ConfigurationError: a `spark.wallaby.*` setting that was changed since is invalid.

        Example:
            >>> result = engine.run(df)
            >>> for batch in result.batches():
            ...     print(batch.num_rows)
        """
        result = self.run_native(df, observed=observed)
        return SparkResult(df) if result is None else result

    def run_native(self, df: DataFrame, *, observed: bool = False) -> Result | None:
        """Start a query only if the engine can run it; otherwise return None, and log why.

        `fallback_reasons` has the reasons too. Arguments and errors are those of `run`.
        """
        settings, site = self._settings(df), self._site
        with self._jobs.planning(df.sparkSession) as planning:
            planned = site.planner.plan(df, settings, planning.begin)
        if planned.physical is None:
            _log.info("on Spark: %s", "; ".join(str(reason) for reason in planned.reasons))
            planning.finish()
            return None
        observed = observed or bool(settings.event_log_dir)
        job = planning.begin()
        return self._runner.start(site, df, planned, planned.physical, settings, job, observed=observed)

    def _settings(self, df: DataFrame) -> Settings:
        """Return the settings of a query: apply what the session changed since, or warn that it has no effect."""
        require_dataframe(df)
        return self._settings_in(df.sparkSession)

    def _settings_in(self, session: SparkSession) -> Settings:
        """Return the settings of queries of a session."""
        self._require_open()
        return self._session_settings.now(self.settings, self._jobs.settings(session))

    def _plan(self, df: DataFrame) -> Planned:
        return self._site.planner.plan(df, self._settings(df))

    # --- rows that stay ------------------------------------------------------------------------------

    def dataframe(self, df: DataFrame) -> DataFrame:
        """Return a Spark DataFrame over the rows of a query that stay in the TaskManagers.

        It is lazy: the query runs at the first action on the DataFrame, or on one made from it, and its rows stay until
        `unpersist`, or until nobody holds the DataFrame any more. Spark's tasks read them straight from the
        TaskManagers. The loss of a TaskManager costs what it held, nothing else. If Spark has to run the query, its
        rows stay in Spark's cache instead (`df.persist()`).

        Args:
            df: The query.

        Raises:
            InvalidArgumentError: `df` is no DataFrame.
            AttachError: the engine is closed.

        Example:
            >>> kept = engine.dataframe(df)
            >>> kept.write.parquet("out")
            >>> kept.unpersist()
        """
        require_dataframe(df)
        self._require_open()
        try:
            return self.subplans.dataframe(df)
        except UnkeepableError as error:
            _log.warning("The rows stay in Spark's cache, because Spark runs the query: %s", error)
            return df.persist()

    def persist(self, df: DataFrame) -> DataFrame:
        """Run a query now, and return a Spark DataFrame over its rows, which stay in the TaskManagers.

        Like `df.persist()` followed by an action, but a lost executor costs only what it held. See `dataframe`.

        Raises:
            InvalidArgumentError: `df` is no DataFrame.
            AttachError: the engine is closed.
            Py4JJavaError: the query failed; the text has the condition of the error.

        Example:
            >>> kept = engine.persist(df)
        """
        kept = self.dataframe(df)
        if isinstance(kept, KeptDataFrame):
            kept.run()
        else:
            kept.count()
        return kept

    # --- asking --------------------------------------------------------------------------------------

    def explain(self, df: DataFrame, mode: str = "simple") -> str:
        """Return a text about stages, channels and exchanges, or what stays on Spark and why.

        Args:
            df: The query.
            mode: `simple`, or `analyze`, which also runs the query, drops its rows, and adds what each stage did.

        Raises:
            InvalidArgumentError: `df` is no DataFrame, or there is no such mode.
            QueryError: the query failed, in the mode `analyze`.

        Example:
            >>> print(engine.explain(df, "analyze"))
        """
        if mode not in EXPLAIN_MODES:
            raise InvalidArgumentError(
                f"Unknown explain mode {mode!r}.", fix=f"Choose one of: {', '.join(EXPLAIN_MODES)}."
            )
        settings, site = self._settings(df), self._site
        planned = site.planner.plan(df, settings)
        if planned.physical is None:
            reasons = [f"  {reason}" for reason in planned.reasons]
            parts = [f"  {part}" for part in self.subplans.explain(df)]
            return "\n".join(
                ["runs on Spark:", *reasons, *(["its parts, after wallaby.enable:"] if parts else []), *parts]
            )
        text = explain_plan(planned.physical, planned.leaves)
        if mode == "simple":
            return text
        job = self._jobs.begin(df.sparkSession)
        result = self._runner.start(site, df, planned, planned.physical, settings, job, observed=True)
        for _ in result.batches():
            pass
        stats = result._observed_stats()
        return text + ("\n" + analyzed(stats) if stats is not None else "")

    def fallback_reasons(self, df: DataFrame) -> list[str]:
        """List why Spark would run this query or a part of it; empty if all of it runs natively.

        Example:
            >>> engine.fallback_reasons(spark.sql("select sin(x) from t"))
            ["Sin(x#3): the last bit of Java's result depends on the virtual machine"]

        Raises:
            InvalidArgumentError: `df` is no DataFrame.
        """
        planned = self._plan(df)
        return [str(reason) for reason in (*planned.reasons, *planned.leaf_reasons)]

    def workers(self) -> list[WorkerInfo]:
        """List every TaskManager: its id, host, process, address and state.

        Raises:
            AttachError: the engine is closed.

        Example:
            >>> engine.workers()
            [WorkerInfo(id='w0-3fa1', host='node7', pid=4711, address='grpc://10.0.0.7:43121', state='live')]
        """
        self._require_open()
        return [worker_info(lease) for lease in self._gcs.workers()]

    def drain(self, worker: str | WorkerInfo, timeout: float = 60.0) -> bool:
        """Move a TaskManager's work to others while it still serves its outputs, then end it.

        This is cheaper than a loss: outputs that others still need are not computed again. Spark starts another
        TaskManager in its place.

        Args:
            worker: One of `workers()`, or its id.
            timeout: How many seconds to wait for its end.

        Returns:
            False if it has not ended in time, for example because no other can take over its work. It then gets no new
            queries, and leaves when it can.

        Raises:
            InvalidArgumentError: there is no such TaskManager, or the timeout is negative.
            AttachError: the engine is closed.

        Example:
            >>> engine.drain(engine.workers()[0])
            True
        """
        self._require_open()
        known = WorkerId(worker.id if isinstance(worker, WorkerInfo) else worker)
        if known not in {lease.worker for lease in self._gcs.workers()}:
            raise InvalidArgumentError(f"There is no TaskManager {known}.", fix="See engine.workers().")
        if timeout < 0:
            raise InvalidArgumentError(f"The timeout {timeout} is negative.", fix="Give seconds to wait.")
        return self._head.drain(known, timeout)

    # --- ending --------------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything that `attach` started. Running queries are cancelled; closing again does nothing."""
        if self._closed:
            return
        self._closed = True
        if self.settings.event_log_dir:
            # Workers send their events every quarter of a second, and at the end of a query.
            time.sleep(LAST_EVENTS_SECONDS)
        _attached.pop(self._application, None)
        self.subplans.close()
        self._runner.cancel_leaves(
            QueryCancelledError("The engine was closed while the query ran.", fix="Attach again.")
        )
        self._jobs.close()
        self._succession.close()
        self._runner.join_leaves()
        self._runner.leaf_directory.close()
        self._end_registration()

    @property
    def is_open(self) -> bool:
        """Whether the engine can still run queries."""
        return not self._closed and self.spark.sparkContext._jsc is not None

    def _require_open(self) -> None:
        if self._closed:
            raise AttachError("This engine is closed.", fix="Attach again.")

    def __repr__(self) -> str:
        state = "" if self.is_open else ", closed"
        policy = self.settings.fault_tolerance_policy
        return f"<Engine on {self._application}: {self._site.workers} TaskManagers, policy {policy}{state}>"

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
