"""Everything that runs for one engine, started and stopped together: store, head, lifelines and TaskManagers.

An engine may end in many ways (close, the end of the interpreter, Spark stopped or dead), and parts of it may be gone
by then. So shutdown bounds every wait and always completes, whatever fails on the way.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from wallaby.config.settings import Settings
from wallaby.errors import AttachError, GcsError
from wallaby.exchange.allocator import keep_freed_memory
from wallaby.exchange.client import PeerClient, new_token
from wallaby.gcs.connection import connect, tls_files
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.gcs.redis import RedisGcs
from wallaby.gcs.registration import Registration
from wallaby.head.head import Head
from wallaby.lineage.names import WorkerId
from wallaby.node.worker_address import WorkerAddress
from wallaby.spark.certificate import make_certificate
from wallaby.spark.checks import check, needs_encryption
from wallaby.spark.cluster import DECOMMISSION, LOOPBACK, Cluster
from wallaby.spark.console import without_progress_bar
from wallaby.spark.decommission import Decommissions
from wallaby.spark.hosting import TASK_MANAGER_TAG, Hosting, fractional_profile
from wallaby.spark.interrupt import spare_on_interrupt
from wallaby.spark.quiet_log import QuietLog
from wallaby.spark.sockets import Listening, engine_sockets
from wallaby.spark.stopping import Stopping
from wallaby.version import __version__
from wallaby.worker.bootstrap import Bootstrap, ReaderAccess
from wallaby.worker.data_server import DataServer
from wallaby.worker.lifeline import Lifelines
from wallaby.worker.main import peer_client
from wallaby.worker.scratch import sweep

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
#: How long TaskManagers may take to end by themselves before their jobs are cancelled.
STOP_SECONDS = 5.0
PING_SECONDS = 0.3
_POLL_SECONDS = 0.01
#: A reason why no TaskManager starts is reported if it persists for this long.
TROUBLE_SECONDS = 10.0


class Deployment:
    """One deployment; see the module. `make_head` makes the head from a store and a client."""

    def __init__(
        self,
        context: SparkContext,
        settings: Settings,
        make_head: Callable[[RedisGcs, PeerClient], Head],
        spark_gone: Callable[[], None],
        store_folder: str = "",
        formerly: tuple[str, ...] = (),
    ) -> None:
        """Start the driver's side; `start` starts the TaskManagers.

        `store_folder` is the engine's folder in the durable store, if it has one; `formerly` are the names of the
        engine before it lost its store.

        Raises:
            AttachError: Spark's settings or the cluster's size do not allow it.
        """
        self._context = context
        self._settings = settings
        self._quiet: QuietLog | None = None
        self._store_folder = store_folder
        #: The prefix of all its keys.
        self.engine = f"e-{uuid.uuid4().hex[:8]}"
        self._formerly = formerly
        cluster = Cluster(context)
        check(cluster, settings)
        profile = fractional_profile(cluster)
        self.size = cluster.size(settings, profiles=profile is not None)
        cluster.choose_python()
        keep_freed_memory()
        for directory in (settings.local_directory or cluster.local_directories()).split(","):
            sweep(Path(directory))
        self._closing = threading.Lock()
        with ExitStack() as stack:
            stopping = Stopping(context, spark_gone)
            stack.callback(stopping.undo)
            stack.callback(self._restore_log, stopping)
            bootstrap = self._start_driver_side(stack, context, cluster, make_head)
            tag = f"wallaby-{bootstrap.engine}"
            self._hosting = Hosting(
                context,
                bootstrap,
                self.size.count,
                tag=tag,
                profile=profile,
                grows=not settings.workers,
                lost=self._lost_at,
                spark_gone=spark_gone,
            )
            stack.callback(self._hosting.stop, STOP_SECONDS)
            if cluster.is_on(DECOMMISSION) and not cluster.is_local:
                watch = Decommissions(cluster, self.gcs.workers, self.head.drain)
                watch.start()
                stack.callback(watch.stop)
            stack.callback(self._dismiss)
            stack.callback(spare_on_interrupt(context, TASK_MANAGER_TAG))
            stack.callback(stopping.unless_stopped(without_progress_bar(context)))
            atexit.register(self.close)
            self._stack = stack.pop_all()

    def _start_driver_side(
        self,
        stack: ExitStack,
        context: SparkContext,
        cluster: Cluster,
        make_head: Callable[[RedisGcs, PeerClient], Head],
    ) -> Bootstrap:
        settings, address, token = self._settings, cluster.driver_address(), new_token()
        tls = make_certificate(context) if needs_encryption(cluster) else None
        url, password = settings.gcs_url, settings.gcs_password
        #: The Redis that this process started, unless the user gave an address.
        self.embedded_store = None if url else EmbeddedRedis(bind=address)
        if self.embedded_store is not None:
            stack.callback(self.embedded_store.stop)
            url, password = self.embedded_store.url, self.embedded_store.password
        embedded = self.embedded_store
        connection = connect(
            url,
            password=password or None,
            tls=tls_files(settings.gcs_tls_ca),
            is_gone=None if embedded is None else lambda: not embedded.running,
        )
        stack.callback(connection.close)
        if self.embedded_store is None:
            stack.callback(Registration(connection, self.engine, self._formerly).end)
        self.gcs = RedisGcs(connection, self.engine)
        self._peers = peer_client(token, tls)
        stack.callback(self._peers.close)
        self.head = make_head(self.gcs, self._peers)
        server = DataServer(address, token, self.head.node, tls)
        self._head_port = server.port
        stack.callback(server.close, STOP_SECONDS)
        self.head.start()
        stack.callback(self.head.stop, STOP_SECONDS)
        self._lifelines = Lifelines(address, token, self._lifeline_lost)
        self._lifelines.start()
        stack.callback(self._lifelines.close)
        #: What readers of kept results need to know.
        self.reader_access = ReaderAccess(server.address, token, tls.certificate if tls else b"")
        return Bootstrap(
            engine=self.engine,
            gcs_url=url,
            gcs_password=password,
            gcs_tls_ca=settings.gcs_tls_ca,
            gcs_incarnation=connection.incarnation.encode(),
            token=token,
            head_address=server.address,
            lifeline_address=self._lifelines.address,
            bind=LOOPBACK if cluster.is_one_host else "",
            threads=self.size.threads,
            memory_bytes=self.size.memory_bytes,
            memory_allowance_bytes=self._settings.memory_allowance,
            lease_ms=int(settings.lease * 1000),
            local_directory=settings.local_directory,
            per_executor=self.size.per_executor,
            is_local=cluster.is_local,
            version=__version__,
            tls_certificate=tls.certificate if tls else b"",
            tls_key=tls.key if tls else b"",
            durable_store=settings.fault_tolerance_store if self._store_folder else "",
            durable_folder=self._store_folder,
            checkpoint_seconds=settings.fault_tolerance_checkpoint,
            chaos_directory=settings.chaos_directory if settings.chaos_enabled else "",
        )

    # --- TaskManagers --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the TaskManagers; `await_workers` waits for them."""
        self._hosting.start()
        if self._settings.console_quiet:  # while they start, because it takes a moment
            self._quiet = QuietLog(self._context, TASK_MANAGER_TAG)

    def await_workers(self) -> None:
        """Wait until every TaskManager is there.

        Raises:
            AttachError: they do not come; the message says why, as far as is known.
        """
        began = time.monotonic()
        while (there := len(self.gcs.workers())) < self.size.count:
            waited = time.monotonic() - began
            if self._closing.locked():
                raise AttachError(
                    "The engine was closed while it waited for TaskManagers.", fix="Attach again."
                )
            hopeless = waited > TROUBLE_SECONDS and there == 0 and self._hosting.trouble
            if hopeless or waited > self._settings.attach_timeout:
                trouble = self._hosting.trouble
                raise AttachError(
                    f"Only {there} of {self.size.count} TaskManagers came up in {waited:.0f} s."
                    + (f" Last error: {trouble}" if trouble else ""),
                    fix=_fix(trouble),
                )
            time.sleep(_POLL_SECONDS)

    def sockets(self) -> tuple[Listening, ...]:
        """All listening sockets of this engine on this host."""
        ours = {self._head_port: "head data", self._lifelines.port: "lifelines"}
        workers = [(lease.worker, WorkerAddress.decode(lease.address)) for lease in self.gcs.workers()]
        return engine_sockets(ours, self.embedded_store.pid if self.embedded_store else None, workers)

    def _lifeline_lost(self, worker: WorkerId) -> None:
        _log.debug("the lifeline of %s has ended", worker)
        self.head.hint(worker)

    def _lost_at(self, at: int) -> None:
        """Note that the TaskManager of a place has ended, according to Spark."""
        held = self._lifelines.held()
        try:
            leases = self.gcs.workers()
        except GcsError:
            return
        for lease in leases:
            if lease.worker.startswith(f"w{at}-") and lease.worker not in held:
                self.head.hint(lease.worker)

    def _restore_log(self, stopping: Stopping) -> None:
        if self._quiet is not None:
            if stopping.is_under_way:
                self._quiet.stay()
            else:
                self._quiet.undo()

    # --- the end -------------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything; a second call does nothing."""
        if self._closing.acquire(blocking=False):
            atexit.unregister(self.close)
            self._stack.close()

    def _dismiss(self) -> None:
        """Tell the TaskManagers to end, so that they do so by themselves and at once."""
        self.head.observer.expect_ends()
        try:
            for lease in self.gcs.workers():
                self.gcs.expel(lease.worker)
                self._peers.ping(WorkerAddress.decode(lease.address).endpoint, PING_SECONDS)
        except GcsError as error:
            _log.debug("the TaskManagers were not dismissed: %s", type(error).__name__)
        self._lifelines.close()


def _fix(trouble: str) -> str:
    if "ModuleNotFoundError" in trouble:
        return (
            "Set spark.pyspark.python (or PYSPARK_PYTHON) to a Python of the executors' hosts that has Wallaby "
            "and its dependencies; Wallaby's own wheel, renamed to end in .zip, may also be shipped with --py-files."
        )
    return "Look at the executors' logs, or raise spark.wallaby.attachTimeout."
