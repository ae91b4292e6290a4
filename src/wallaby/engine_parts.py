"""The parts of an engine: how they are made and connected, and in which order they start and end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from wallaby.above.staging import recover_known
from wallaby.above.subplans import Subplans
from wallaby.catalyst.jvm import WarmUp
from wallaby.config.settings import Settings
from wallaby.errors import QueryCancelledError
from wallaby.exchange.client import PeerClient
from wallaby.frontend.planning import QueryPlanner
from wallaby.gcs.interface import Gcs
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.head.making import make_head
from wallaby.head.submission import Submission
from wallaby.lineage.names import QueryId
from wallaby.lineage.tolerance import tolerance_of
from wallaby.results.following import FollowedQueries
from wallaby.runner import QueryRunner, Site
from wallaby.spark.cluster import Cluster
from wallaby.spark.connect_progress import ConnectProgress
from wallaby.spark.deployment import Deployment
from wallaby.spark.durable_registration import register_in_durable_store
from wallaby.spark.hosting import TASK_MANAGER_TAG
from wallaby.spark.idle_settings import warn_of_idle
from wallaby.spark.leaves.directory import LeafDirectory
from wallaby.spark.query_jobs import QueryJobs
from wallaby.spark.session_settings import SessionSettings
from wallaby.spark.succession import Succession
from wallaby.worker.memory.shares import MemoryShares

#: How long an engine that closes waits for its warm-up, which uses the JVM.
WARM_UP_SECONDS_MAX = 10.0


class EngineParts(ABC):
    """What `Engine` consists of.

    The deployment (control store, head, TaskManagers) may be replaced by another while the engine lives; all other
    parts stay.
    """

    _gcs: Gcs

    def __init__(self, spark: SparkSession, settings: Settings, session: SessionSettings) -> None:
        self.spark = spark
        self.settings = settings
        self._session_settings = session
        self.tolerance = tolerance_of(settings.fault_tolerance_policy)
        warn_of_idle(settings, self.tolerance)
        self._recording = FollowedQueries()
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
        self._warm_up = WarmUp(spark)
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
            self._settings_from,
            self.tolerance,
            self._recording,
        )

    @abstractmethod
    def close(self) -> None:
        """End the engine."""

    @abstractmethod
    def _require_open(self) -> None:
        """Refuse if the engine is closed."""

    def _start_parts(self) -> None:
        """Start the TaskManagers, and wait until they are ready."""
        self._site.shares.require_enough()
        self._deployment.start()
        self._jobs.start()
        self._warm_up.start()
        self._deployment.await_workers()
        recover_known()

    def _close_parts(self) -> None:
        """End every part, and cancel the queries that still run."""
        self._warm_up.join(WARM_UP_SECONDS_MAX)
        self.subplans.close()
        self._runner.cancel_leaves(
            QueryCancelledError("The engine was closed while the query ran.", fix="Attach again.")
        )
        self._jobs.close()
        self._succession.close()
        self._runner.join_leaves()
        self._runner.leaf_directory.close()
        self._end_registration()

    def _take(self, deployment: Deployment) -> None:
        """Use a deployment: the first one, or its successor."""
        self._deployment = deployment
        self._gcs, self._head = deployment.gcs, deployment.head
        size = deployment.size
        shares = MemoryShares(size.memory_bytes, size.threads)
        planner = QueryPlanner(size.count, size.threads, shares, lambda: self._runner.leaf_directory.reason)
        self._site = Site(planner, shares, size.count, leaves_slot=size.leaves_slot)

    def _make_head(self, gcs: Gcs, peers: PeerClient) -> Head:
        return make_head(
            self.settings,
            self.tolerance,
            gcs,
            peers,
            self._forget,
            self._run_elsewhere,
            lambda: self._runner.is_watched,
        )

    def _report_to_connect(self) -> None:
        """From now on, tell the clients of Spark Connect how far their queries are."""
        self._runner.on_submit = ConnectProgress(self.spark.sparkContext, lambda: self._gcs).follow

    def _run_elsewhere(self, submission: Submission, collected: Collected) -> None:
        self._succession.run_elsewhere(submission, collected)

    def _forget(self, query: QueryId) -> None:
        """Remove what an ended query left in the durable store."""
        if self._registration is not None:
            self._registration.store.remove(query)

    def _end_registration(self) -> None:
        if self._registration is not None:
            self._registration.end()

    def _settings_from(self, entries: Mapping[str, str], *, is_own: bool = False) -> Settings:
        """Return the settings of queries of a session with these entries; is it that of the engine?"""
        self._require_open()
        return self._session_settings.now(self.settings, entries, is_own=is_own)
