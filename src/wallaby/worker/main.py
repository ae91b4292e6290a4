"""A TaskManager's process: everything that `serve` starts, and ends before it returns.

It runs inside the Python process of a Spark task and blocks there until the worker is expelled, its store is
lost, or the driver or the executor is gone. Then it has a few seconds to clean up; a process that cannot, because
native code holds it, is ended all the same.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import tempfile
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from wallaby.errors import AttachError, GcsError, GcsLostError, GcsUnavailableError
from wallaby.exchange.allocator import keep_freed_memory
from wallaby.exchange.backup import Backup
from wallaby.exchange.client import PeerClient
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.incoming import ServerLimits
from wallaby.exchange.memory import ByteBudget
from wallaby.exchange.server import ServerTls
from wallaby.faults.injection import FaultInjector
from wallaby.faults.orders import FaultOrders
from wallaby.gcs.connection import Connection, connect, tls_files
from wallaby.gcs.incarnation import incarnation_of
from wallaby.gcs.redis import RedisGcs
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.node.actors import DISCOVERY, TASK_MANAGER
from wallaby.node.directory import Directory
from wallaby.node.garbage import leave_out_what_is_here
from wallaby.node.node import EngineNode, Performs, WorkerQuery
from wallaby.node.outputs.durable_outputs import DurableOutputs
from wallaby.node.outputs.untracked import Untracked
from wallaby.node.payload import QueryPayload
from wallaby.node.perform import NodeSettings, Performer
from wallaby.node.session import QuerySession
from wallaby.node.worker_address import WorkerAddress
from wallaby.observe.event_batch import EVENTS
from wallaby.observe.recorder import EventRecorder
from wallaby.version import __version__
from wallaby.worker.bootstrap import TLS_NAME, Bootstrap
from wallaby.worker.data_server import STORE_LOST, DataServer
from wallaby.worker.execution import Execution
from wallaby.worker.executor_slot import spark_id_of_executor
from wallaby.worker.lease_keeper import LeaseKeeper
from wallaby.worker.lifeline import Lifeline
from wallaby.worker.memory.allocator_settings import keeps_between_queries
from wallaby.worker.memory.floor import MemoryLimits
from wallaby.worker.memory.shares import MemoryShares
from wallaby.worker.memory.watch import HostReadings, MemoryWatch
from wallaby.worker.scratch import make_scratch, remove_scratch, sweep
from wallaby.worker.taskmanager import TaskManager

_log = logging.getLogger(__name__)
STOP_SECONDS = 2.0
#: A process that should end is killed if it has not ended after this time.
END_SECONDS = 8.0
#: How often a TaskManager checks whether its parent process is still alive.
PARENT_SECONDS = 1.0
#: Renewals per lease; one arriving in time is enough.
RENEWALS_PER_LEASE = 4
DISK_BYTES_MAX = 1 << 44


def peer_client(token: str, tls: ServerTls | None) -> PeerClient:
    """A client for the data servers of one engine."""
    return PeerClient(token, tls_roots=tls.certificate, tls_name=TLS_NAME) if tls else PeerClient(token)


def serve(bootstrap: Bootstrap, at: int = 0) -> bool:
    """Run the TaskManager of one of the engine's places until it ends.

    True if it ended although its driver neither ended nor dismissed it, so another may have to replace it.
    """
    if bootstrap.version and bootstrap.version != __version__:
        raise AttachError(
            f"The driver has Wallaby {bootstrap.version} and this executor has {__version__}.",
            fix="Install the same version on both, or ship the wheel, its name ending in .zip, with --py-files.",
        )
    keep_freed_memory(bootstrap.memory_bytes)
    threads = bootstrap.threads or os.cpu_count() or 1
    pa.set_cpu_count(
        threads
    )  # Spark sets OMP_NUM_THREADS to the task's share of CPUs, which is meaningless here
    process = _Process(bootstrap, at, threads)
    process.run()
    return process.is_missed


class _Process:
    """The parts of one TaskManager."""

    def __init__(self, bootstrap: Bootstrap, at: int, threads: int) -> None:
        self._bootstrap = bootstrap
        self._over = threading.Event()
        self._orphaned = False
        self._asked_to_end = False
        worker = WorkerId(f"w{at}-{uuid.uuid4().hex[:8]}")
        self._lifeline = Lifeline(bootstrap.lifeline_address, bootstrap.token, worker)
        self._lease_keeper = LeaseKeeper(bootstrap, worker)
        tls = ServerTls(bootstrap.tls_certificate, bootstrap.tls_key) if bootstrap.tls_key else None
        self._client = peer_client(bootstrap.token, tls)
        self._lost: GcsLostError | None = None
        self._connection = self._connect()
        self._gcs = RedisGcs(self._connection, bootstrap.engine)
        self._node = EngineNode(worker, self._ended)
        host = bootstrap.bind or _spark_address() or self._lifeline.local_host
        shares = MemoryShares(bootstrap.memory_bytes, threads)
        limits = ServerLimits(incoming_bytes=shares.incoming_bytes)
        local = _local_directory(bootstrap)
        sweep(local)
        directory = self._scratch = make_scratch(local)
        budget = ByteBudget(shares.backup_bytes)
        self._backup = Backup(budget, (directory,), DISK_BYTES_MAX, owner=worker)
        self._server = DataServer(host, bootstrap.token, self._node, tls, limits, self._backup)
        keeps = keeps_between_queries(bootstrap.memory_bytes)
        self._execution = Execution(str(directory), shares.state_bytes, keeps_freed_memory=keeps)
        self._durable_store = None
        if bootstrap.durable_store:
            self._durable_store = DurableStore(bootstrap.durable_store, bootstrap.durable_folder)
        self._performer = Performer(
            self._node,
            self._gcs,
            self._backup,
            self._client,
            Directory(self._gcs, bootstrap.head_address).address_of,
            self._open,
            lambda _query, _slices, go_on: go_on(),
            NodeSettings(kernel_threads=threads, push_bytes=shares.push_bytes, lease_ms=bootstrap.lease_ms),
            WorkerAddress(
                self._server.address, socket.gethostname(), os.getpid(), spark_id_of_executor()
            ).encode(),
        )
        self._watch = MemoryWatch(
            self._node,
            self._performer.kernels,
            self._backup,
            self._execution.states,
            self._gcs,
            MemoryLimits(bootstrap.memory_bytes, bootstrap.memory_allowance_bytes),
            self._give_up,
            HostReadings(os.getppid(), self._lease_keeper.process_id),
            keeps_freed_memory=keeps,
        )

    def _connect(self) -> Connection:
        """Connect to the store with which the engine began, and to no other that may be there now."""
        told = self._bootstrap
        try:
            return connect(
                told.gcs_url,
                password=told.gcs_password or None,
                incarnation=incarnation_of(told.gcs_incarnation),
                tls=tls_files(told.gcs_tls_ca),
            )
        except GcsLostError as lost:
            self._tell_loss(lost)
            self._lifeline.close()
            self._lease_keeper.close()
            self._client.close()
            raise

    def _tell_loss(self, lost: GcsLostError) -> None:
        """Tell the head that the store is lost: it may still be connected, and would wait long for workers."""
        self._client.send(self._bootstrap.head_address, STORE_LOST, lost.what.encode())

    def run(self) -> None:
        """Serve until the end, then clean up."""
        manager = TaskManager(self._bootstrap.lease_ms // RENEWALS_PER_LEASE)
        parent = os.getppid()
        restore = _on_signals(self._ask_to_end)
        self._lifeline.watch(self._head_gone)
        self._lease_keeper.start()
        leave_out_what_is_here()
        try:
            self._node.start(self._armed(), {TASK_MANAGER: manager.run(), DISCOVERY: manager.discover()})
            self._watch.start()
            while not (self._over.wait(PARENT_SECONDS) or self._asked_to_end):
                if os.getppid() != parent:
                    _log.warning("the parent process of %s has ended", self._node.worker)
                    break
        finally:
            limit = threading.Timer(END_SECONDS, self._give_up)
            limit.daemon = True
            limit.start()
            self._stop()
            limit.cancel()
            restore()

    @property
    def is_missed(self) -> bool:
        """Must it be replaced? Not if it was dismissed or asked to end, or has lost the store."""
        return not (self._orphaned or self._asked_to_end or self._lost)

    def _armed(self) -> Performs:
        """The performer of effects; with chaos, faults may strike first."""
        if not self._bootstrap.chaos_directory:
            return self._performer
        book = FaultOrders(Path(self._bootstrap.chaos_directory))
        return FaultInjector(self._performer, self._node, book, deafen=self._server.close)

    def _ask_to_end(self) -> None:
        """Ask the process to end. Called in a signal handler, so no lock: the main thread may hold the event's."""
        self._asked_to_end = True

    def _stop(self) -> None:
        self._lease_keeper.close()
        self._watch.close(STOP_SECONDS)
        self._node.stop()
        if self._lost is not None:
            self._tell_loss(self._lost)
        self._say_goodbye()
        self._server.close(STOP_SECONDS)
        self._performer.stop(STOP_SECONDS)
        self._client.close()
        self._backup.close()
        self._execution.close()
        remove_scratch(self._scratch)
        self._connection.close()

    def _say_goodbye(self) -> None:
        """Unregister a worker that leaves by itself, so that nobody waits for it."""
        if not self._orphaned:
            with contextlib.suppress(GcsError):
                self._gcs.expel(self._node.worker)
        self._lifeline.close()

    def _give_up(self) -> None:
        """Exit the process although something does not end."""
        remove_scratch(self._scratch)
        os._exit(1)

    def _head_gone(self) -> None:
        if not self._over.is_set():
            _log.info("the driver of %s has ended or dismissed it", self._node.worker)
            self._orphaned = True
        self._over.set()

    def _ended(self, error: BaseException | None) -> None:
        if error is not None:
            _log.warning("%s ends: %s", self._node.worker, error)
        if isinstance(error, GcsLostError):
            self._lost = error
        self._over.set()

    def _open(self, query: QueryId) -> WorkerQuery | None:
        """Read from the store what is needed to serve a query, once per query."""
        try:
            data = self._gcs.payload(query)
        except GcsUnavailableError:
            return None
        except GcsError as error:
            self._ended(error)
            return None
        if data is None:
            return None
        payload = QueryPayload.decode(data)
        session = QuerySession(
            self._node.worker, payload.plan.graph, payload.session_settings(), lambda: None
        )
        untracked = None if payload.tolerance.recorded else Untracked(session)
        durable = None
        if self._durable_store is not None and payload.tolerance.uses_durable_store:
            seconds = self._bootstrap.checkpoint_seconds
            durable = DurableOutputs(self._durable_store, query, session, self._gcs, seconds)
        work, recorder = self._execution.of(payload), self._recorder(query, payload)
        return WorkerQuery(session, query, work, recorder, untracked, durable)

    def _recorder(self, query: QueryId, payload: QueryPayload) -> EventRecorder | None:
        if not payload.observed:
            return None
        head = self._bootstrap.head_address
        return EventRecorder(query, self._node.worker, lambda body: self._client.send(head, EVENTS, body))


def _on_signals(do: Callable[[], None]) -> Callable[[], None]:
    """Treat the signals by which PySpark's daemon ends its children as requests. Returns how to undo that."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = {number: signal.signal(number, lambda *_: do()) for number in (signal.SIGHUP, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore


def _spark_address() -> str:
    """The address that Spark is configured to use on this host, or has for this pod; it must belong to this host."""
    name = os.environ.get("SPARK_LOCAL_IP") or os.environ.get("SPARK_EXECUTOR_POD_IP", "")
    try:
        return socket.gethostbyname(name) if name else ""
    except OSError:
        return ""


def _local_directory(bootstrap: Bootstrap) -> Path:
    """The directory for spilling: the given one, else Spark's first local directory, else the system's."""
    spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    directory = Path(bootstrap.local_directory or spark or tempfile.gettempdir())
    directory.mkdir(parents=True, exist_ok=True)
    return directory
