"""The parts of an engine: how they are made and connected, and in which order they start and end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyspark import SparkContext
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


class EngineParts:
    """What an `Engine` consists of.

    The deployment (control store, head, TaskManagers) may be replaced by another while the engine lives; all other
    parts stay.
    """

    #: The present deployment, and what queries are planned for there.
    deployment: Deployment
    site: Site

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        session: SessionSettings,
        close: Callable[[], None],
        require_open: Callable[[], None],
    ) -> None:
        """Make the parts. They `close` the engine if Spark ends, and plan no query unless it is open."""
        context = spark.sparkContext
        self.application = context.applicationId
        self.settings = settings
        self.tolerance = tolerance_of(settings.fault_tolerance_policy)
        warn_of_idle(settings, self.tolerance)
        self._session_settings, self._require_open = session, require_open
        self.recording = FollowedQueries()
        self._registration = register_in_durable_store(settings, self.tolerance)
        folder = self._registration.store.folder if self._registration is not None else ""
        deploy = partial(Deployment, context, settings, self._make_head, close, folder)
        try:
            self._succession = Succession(deploy, self._take, settings.gcs_timeout)
        except BaseException:
            self._end_registration()
            raise
        cluster = Cluster(context)
        self.jobs = QueryJobs(context, TASK_MANAGER_TAG)
        self._warm_up = WarmUp(spark)
        self.runner = QueryRunner(
            self.tolerance,
            self._succession,
            LeafDirectory(cluster, settings),
            cluster.result_bytes_max(),
        )
        #: The parts of Spark's own plans that run here.
        self.subplans = Subplans(
            context,
            self.runner,
            self.jobs,
            lambda: self.site,
            lambda: self.deployment.reader_access,
            self.settings_from,
            self.tolerance,
            self.recording,
        )

    @property
    def gcs(self) -> Gcs:
        """The control store."""
        return self.deployment.gcs

    @property
    def head(self) -> Head:
        """The driver's node."""
        return self.deployment.head

    def start(self) -> None:
        """Start the TaskManagers, and wait until they are ready."""
        self.site.shares.require_enough()
        self.deployment.start()
        self.jobs.start()
        self.deployment.await_workers()
        # Not before: the TaskManagers need the cores to start, and the first query is still to be written.
        self._warm_up.start()
        recover_known()

    def close(self) -> None:
        """End every part, and cancel the queries that still run."""
        self._warm_up.join(WARM_UP_SECONDS_MAX)
        self.subplans.close()
        self.runner.cancel_leaves(
            QueryCancelledError("The engine was closed while the query ran.", fix="Attach again.")
        )
        self.jobs.close()
        self._succession.close()
        self.runner.join_leaves()
        self.runner.leaf_directory.close()
        self._end_registration()

    def settings_from(self, entries: Mapping[str, str], *, is_own: bool = False) -> Settings:
        """Return the settings of a session's queries. `is_own`: the engine was attached to this session."""
        self._require_open()
        return self._session_settings.now(self.settings, entries, is_own=is_own)

    def report_to_connect(self, context: SparkContext) -> None:
        """From now on, tell the clients of Spark Connect how far their queries are."""
        self.runner.on_submit = ConnectProgress(context, lambda: self.gcs).follow

    def _take(self, deployment: Deployment) -> None:
        """Use a deployment: the first one, or its successor."""
        self.deployment = deployment
        size = deployment.size
        shares = MemoryShares(size.memory_bytes, size.threads)
        planner = QueryPlanner(size.count, size.threads, shares, lambda: self.runner.leaf_directory.reason)
        self.site = Site(planner, shares, size.count, leaves_slot=size.leaves_slot)

    def _make_head(self, gcs: Gcs, peers: PeerClient) -> Head:
        return make_head(
            self.settings,
            self.tolerance,
            gcs,
            peers,
            self._forget,
            self._run_elsewhere,
            lambda: self.runner.is_watched,
        )

    def _run_elsewhere(self, submission: Submission, collected: Collected) -> None:
        self._succession.run_elsewhere(submission, collected)

    def _forget(self, query: QueryId) -> None:
        """Remove what an ended query left in the durable store."""
        if self._registration is not None:
            self._registration.store.remove(query)

    def _end_registration(self) -> None:
        if self._registration is not None:
            self._registration.end()
