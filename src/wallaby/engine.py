"""The user's API: an engine attached to a SparkSession. DataFrames in, rows out.

`attach` starts a control store and the head in this process and TaskManagers in Spark's executors; `close`
removes all of them. Spark runs every query for which the engine cannot give Spark's answer, and `fallback_reasons` says
why.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from wallaby.above.dataframe import KeptDataFrame
from wallaby.above.subplans import UnkeepableError
from wallaby.above.writer import EngineWriter
from wallaby.actions import Actions, require_dataframe
from wallaby.config.settings import Settings, read_settings
from wallaby.engine_parts import EngineParts
from wallaby.engine_status import EngineStatus
from wallaby.errors import (
    AttachError,
    InvalidArgumentError,
)
from wallaby.inspection import Inspection
from wallaby.lakes.delta import read_delta
from wallaby.lakes.iceberg import read_iceberg
from wallaby.observe.about import About
from wallaby.observe.analyze import analyzed
from wallaby.plan.explain import explain as explain_plan
from wallaby.plan.planned import Planned
from wallaby.results.following import FollowedQuery
from wallaby.results.lifetime import QueryLifetime
from wallaby.results.record import explained
from wallaby.results.result import Result
from wallaby.results.shown import Explained
from wallaby.results.spark_result import SparkResult
from wallaby.spark.checks import check_session
from wallaby.spark.session_settings import SessionSettings, entries_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter

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
            "An engine is already attached to this session.",
            fix="Use the engine that attach or enable returned, or close it first: engine.close().",
        )
    entries = entries_of(spark)
    session = SessionSettings(entries, read_settings({}, settings))
    engine = Engine(spark, read_settings(entries, settings), session)
    _attached[application] = engine
    return engine


def attached_to(spark: object) -> Engine | None:
    """The engine of a session's application, if it has one."""
    context = spark.sparkContext if isinstance(spark, SparkSession) else None
    return None if context is None or context._jsc is None else _attached.get(context.applicationId)


def explain_last(spark: SparkSession | None = None) -> str:
    """Say what became of the last query: where it ran and why, how long it took, and what cost most.

    Args:
        spark: The session; not needed if only one has an engine.

    Raises:
        AttachError: there is no engine, or there are several and no session was given.

    Example:
        >>> df.collect()
        >>> print(wallaby.explain_last())
        Query 1 (10:15:02, collect at job.py:12): select o_orderpriority, count(*) from orders group by 1
          done in the TaskManagers: 412 ms, 5 rows
    """
    engines = list(_attached.values()) if spark is None else [attached_to(spark)]
    if len(engines) != 1 or engines[0] is None:
        raise AttachError(
            "There is no engine." if len(engines) < 2 else "There are several engines.",
            fix="Attach one first." if len(engines) < 2 else "Pass the session.",
        )
    history = engines[0].history()
    return explained(history[-1]) if history else "No query has run yet."


class Engine(Actions, EngineStatus):
    """An engine on one Spark application: `attach` makes it. Any number of threads may use it at once.

    It is a context manager, which closes the engine at the end.

    Attributes:
        spark: The session that it was attached to.
        settings: The settings that it was attached with.
        tolerance: The parts of fault tolerance that its policy chooses.
    """

    def __init__(self, spark: SparkSession, settings: Settings, session: SessionSettings) -> None:
        self.spark = spark
        self.settings = settings
        self._closed = False
        self._parts = EngineParts(spark, settings, session, self.close, self._require_open)
        self.tolerance = self._parts.tolerance
        self.subplans = self._parts.subplans
        try:
            self._parts.start()
            if self._wants_page():
                _log.info("live page: %s", self.ui.url)
        except BaseException:
            self.close()
            raise

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
        result, _ = self._started(df, observed=observed)
        if isinstance(result, SparkResult):
            result.rest()
        return result

    def run_native(self, df: DataFrame, *, observed: bool = False) -> Result | None:
        """Start a query only if the engine can run it; otherwise return None, and log why.

        `fallback_reasons` has the reasons too. Arguments and errors are those of `run`.
        """
        result, record = self._started(df, observed=observed)
        if isinstance(result, SparkResult):
            record.finish("left to the caller")
            return None
        return result

    def _started(self, df: DataFrame, *, observed: bool = False) -> tuple[Result, FollowedQuery]:
        """Start a query if the engine can run it, and record it in either case."""
        settings, site = self._settings(df), self._parts.site
        about = self._parts.jobs.about(df)
        recording = self._parts.recording
        record, lifetime = recording.begin(about), self._lifetime(df, about, settings)
        try:
            with lifetime.planning():
                planned = site.planner.plan(df, settings, lifetime.begin)
            if planned.physical is None:
                record.on_spark(planned.reasons)
                recording.warn(planned.reasons)
                lifetime.end_job()
                return SparkResult(df, lifetime, record=record), record
            observed = observed or bool(settings.event_log_dir)
            result = self._parts.runner.start(
                site,
                df,
                planned,
                planned.physical,
                settings,
                lifetime,
                observed=observed,
                record=record,
            )
        except BaseException as error:
            record.failed(error)
            raise
        return result, record

    def _lifetime(self, df: DataFrame, about: About, settings: Settings) -> QueryLifetime:
        return QueryLifetime(partial(self._parts.jobs.begin, df.sparkSession, about), settings.timeout)

    def _settings(self, df: DataFrame) -> Settings:
        """Return the settings of a query: apply what the session changed since, or warn that it has no effect."""
        require_dataframe(df)
        entries = self._parts.jobs.settings(df.sparkSession)
        return self._parts.settings_from(entries, is_own=df.sparkSession is self.spark)

    def _plan(self, df: DataFrame) -> Planned:
        return self._parts.site.planner.plan(df, self._settings(df))

    @property
    def inspection(self) -> Inspection:
        """For tests and measurements of Wallaby itself: what happened inside; see `wallaby.inspection`."""
        return Inspection(self._parts.deployment, lambda df: self._plan(df).physical)

    # --- kept rows -----------------------------------------------------------------------------------

    def dataframe(self, df: DataFrame) -> DataFrame:
        """Return a Spark DataFrame over the rows of a query that stay in the TaskManagers.

        It is lazy: the query runs at the first action on the DataFrame, or on one made from it. Its rows stay until
        `unpersist`, or until nothing refers to the DataFrame any more. Spark's tasks read them straight from the
        TaskManagers. If a TaskManager is lost, only the rows that it held are computed again. If Spark has to run the
        query, its rows stay in Spark's cache instead (`df.persist()`).

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
            # As text: who keeps log records would keep the error's frames, and with them the DataFrame
            _log.warning("The rows stay in Spark's cache, because Spark runs the query: %s", str(error))
            return df.persist()

    def persist(self, df: DataFrame) -> DataFrame:
        """Run a query now, and return a Spark DataFrame over its rows, which stay in the TaskManagers.

        This is like `df.persist()` followed by an action, but the rows are in the TaskManagers. See `dataframe`.

        Raises:
            InvalidArgumentError: `df` is no DataFrame.
            AttachError: the engine is closed.
            QueryError: the query failed; `KeptResultError` if there is no room for its rows.

        Example:
            >>> kept = engine.persist(df)
        """
        kept = self.dataframe(df)
        if isinstance(kept, KeptDataFrame):
            if kept.run():
                return kept
            kept.unpersist()
            _log.warning("The rows stay in Spark's cache, because the query was left to Spark while it ran.")
            kept = df.persist()
        try:
            kept.count()
        except BaseException:
            kept.unpersist()
            raise
        return kept

    # --- tables --------------------------------------------------------------------------------------

    def write(self, df: DataFrame) -> DataFrameWriter:
        """Return a writer with PySpark's methods, which runs the query here wherever possible, at any size.

        It needs no `enable`. Besides PySpark's options it has `key`, a name for this write. A second write to the same
        table under the same key does nothing. A write that was interrupted, even by the end of its driver, is undone
        before the next one. A write with a key has to be of Parquet files on a file system of the hosts or on S3, from
        a query that runs here as a whole, or to a table of Delta Lake or Iceberg. Any other is refused.

        Args:
            df: The query.

        Raises:
            InvalidArgumentError: `df` is no DataFrame.
            AttachError: the engine is closed.

        Example:
            >>> engine.write(df).mode("append").option("key", "orders-2026-11-16").parquet("lake/orders")
        """
        require_dataframe(df)
        self._require_open()
        return EngineWriter(self.subplans, df)

    def read_delta(self, path: str | Path, version: int | None = None) -> DataFrame:
        """Return a DataFrame over a table of Delta Lake, without Spark's jars for it, on any Spark.

        The package `deltalake` (the extra `wallaby[deltalake]`) says which files the version has; Spark, and so
        Wallaby, reads them. The DataFrame stays that of its version.

        Args:
            path: The folder of the table, on a file system of the hosts.
            version: The version; the latest one if left out.

        Raises:
            MissingPackageError: `deltalake` is not installed.
            InvalidArgumentError: there is no such table or version.
            UnsupportedTableError: the rows of the table are not simply those of its files.
            AttachError: the engine is closed.

        Example:
            >>> engine.read_delta("lake/sold", version=12).groupBy("region").count()
        """
        self._require_open()
        return read_delta(self.spark, path, version)

    def read_iceberg(self, table: Any, snapshot: int | str | None = None) -> DataFrame:
        """Return a DataFrame over an Iceberg table, without Spark's jars for it, on any Spark.

        The package `pyiceberg` (the extra `wallaby[pyiceberg]`) says which files the snapshot has; Spark, and so
        Wallaby, reads them. The DataFrame stays that of its snapshot.

        Args:
            table: The folder of a table with `metadata/version-hint.text`, the path of a file of metadata, or a table
                that a catalog of pyiceberg's has loaded. Its files are on a file system of the hosts.
            snapshot: The number of a snapshot, or the name of a branch or a tag; the current one if left out.

        Raises:
            MissingPackageError: `pyiceberg` is not installed.
            InvalidArgumentError: there is no such table or snapshot.
            UnsupportedTableError: the rows of the table are not simply those of its files.
            AttachError: the engine is closed.

        Example:
            >>> engine.read_iceberg("lake/sold/metadata/v12.metadata.json").groupBy("region").count()
        """
        self._require_open()
        return read_iceberg(self.spark, table, snapshot)

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
        settings, site = self._settings(df), self._parts.site
        planned = site.planner.plan(df, settings)
        if planned.physical is None:
            reasons = [f"  {reason}" for reason in planned.reasons]
            parts = [f"  {part}" for part in self.subplans.explain(df)]
            below = ["its parts, after wallaby.enable:", *parts] if parts else []
            return Explained("\n".join(["runs on Spark:", *reasons, *below]))
        text = Explained(explain_plan(planned.physical, planned.leaves))
        if mode == "simple":
            return text
        about = self._parts.jobs.about(df)
        lifetime, record = self._lifetime(df, about, settings), self._parts.recording.begin(about)
        result = self._parts.runner.start(
            site, df, planned, planned.physical, settings, lifetime, observed=True, record=record
        )
        for _ in result.batches():
            pass
        stats = result._observed_stats()
        return Explained(text + ("\n" + analyzed(stats) if stats is not None else ""))

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

    # --- ending --------------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything that `attach` started. Running queries are cancelled; closing again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._close_page()
        if self.settings.event_log_dir:
            # Workers send their events every quarter of a second, and at the end of a query.
            time.sleep(LAST_EVENTS_SECONDS)
        _attached.pop(self._parts.application, None)
        self._parts.close()

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
        return f"<Engine on {self._parts.application}: {self._parts.site.workers} TaskManagers, policy {policy}{state}>"

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
