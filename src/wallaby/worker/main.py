"""A TaskManager's process: everything that `serve` starts, and that it leaves nothing of when it returns.

It runs inside the Python process of a Spark task and blocks there until the worker is expelled, its store is
lost, or the driver is gone.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Any

from wallaby.errors import GcsError, GcsUnavailableError
from wallaby.exchange.backup import Backup
from wallaby.exchange.client import PeerClient
from wallaby.exchange.memory import ByteBudget
from wallaby.exchange.server import FlightDataServer
from wallaby.gcs.connection import connect
from wallaby.gcs.redis import RedisGcs
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.worker.bootstrap import Bootstrap
from wallaby.worker.directory import Directory
from wallaby.worker.execution import Execution
from wallaby.worker.node import Node, Serving
from wallaby.worker.payload import QueryPayload
from wallaby.worker.place import Place
from wallaby.worker.perform import NodeSettings, Performer
from wallaby.worker.session import Session
from wallaby.worker.taskmanager import TaskManager

_log = logging.getLogger(__name__)
#: How long a push may wait for the control loop.
RECEIVE_SECONDS = 5.0
STOP_SECONDS = 5.0
#: A TaskManager looks this often whether its parent process is still there.
PARENT_SECONDS = 1.0
#: Of the memory budget, what backups may take before they spill.
BACKUP_SHARE = 0.4
DISK_BYTES_MAX = 1 << 44


class DataServer(FlightDataServer):
    """The Flight server of a node: pushes go to the node's loop, a ping also wakes it."""

    def __init__(self, host: str, token: str, node: Node) -> None:
        self._node = node
        super().__init__(host, token, node.worker, self._receive_on_loop)

    def _receive_on_loop(
        self, query: QueryId, epoch: int, _sender: WorkerId, target: WorkerId, slices: tuple[Slice, ...]
    ) -> PushReply:
        answer: Future[PushReply] = Future()
        self._node.loop.post(lambda: answer.set_result(self._node.receive(query, epoch, target, slices)))
        try:
            return answer.result(timeout=RECEIVE_SECONDS)
        except FutureTimeoutError:
            return PushReply(accepted=False)

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        """A ping: whoever asks may also have news."""
        self._node.loop.post(self._node.wake_named, "task manager")
        self._node.loop.post(self._node.wake_sessions)
        return super().do_action(context, action)


def serve(bootstrap: Bootstrap) -> None:
    """Be a TaskManager until it is over."""
    _Process(bootstrap).run()


class _Process:
    """The parts of one TaskManager."""

    def __init__(self, bootstrap: Bootstrap) -> None:
        self._bootstrap = bootstrap
        self._over = threading.Event()
        worker = WorkerId(f"w-{uuid.uuid4().hex[:8]}")
        connection = connect(bootstrap.gcs_url, password=bootstrap.gcs_password)
        self._connection = connection
        self._gcs = RedisGcs(connection)
        self._node = Node(worker, self._ended)
        self._server = DataServer(_bind_address(bootstrap), bootstrap.token, self._node)
        self._client = PeerClient(bootstrap.token)
        directory = _local_directory(bootstrap)
        budget = ByteBudget(int(bootstrap.memory_bytes * BACKUP_SHARE))
        self._backup = Backup(budget, (directory,), DISK_BYTES_MAX, owner=worker)
        threads = bootstrap.threads or os.cpu_count() or 1
        self._execution = Execution(str(directory))
        self._performer = Performer(
            self._node,
            self._gcs,
            self._backup,
            self._client,
            Directory(self._gcs, bootstrap.head_address).address_of,
            self._open,
            lambda _query, _slices: None,
            NodeSettings(kernel_threads=threads, lease_ms=bootstrap.lease_ms),
            Place(self._server.address, socket.gethostname(), os.getpid()).encode(),
        )

    def run(self) -> None:
        """Serve until it is over, then leave nothing behind."""
        manager = TaskManager(self._bootstrap.lease_ms // 3)
        parent = os.getppid()
        try:
            self._node.start(self._performer, {"task manager": manager.run()})
            while not self._over.wait(PARENT_SECONDS):
                if os.getppid() != parent:
                    _log.warning("the parent of %s is gone", self._node.worker)
                    break
        finally:
            self._stop()

    def _stop(self) -> None:
        self._node.stop()
        self._server.close(STOP_SECONDS)
        self._performer.stop(STOP_SECONDS)
        self._client.close()
        self._backup.close()
        self._execution.close()
        self._connection.close()

    def _ended(self, error: BaseException | None) -> None:
        if error is not None:
            _log.warning("%s ends: %s", self._node.worker, error)
        self._over.set()

    def _open(self, query: QueryId) -> Serving | None:
        """What is needed to serve a query; asked once per query, of the store."""
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
        session = Session(self._node.worker, payload.plan.graph, payload.session_settings(), lambda: None)
        return Serving(query, session, self._execution.of(payload))


def _bind_address(bootstrap: Bootstrap) -> str:
    return bootstrap.bind or socket.gethostbyname(socket.gethostname())


def _local_directory(bootstrap: Bootstrap) -> Path:
    """Where to spill: the given directory, else Spark's first local directory, else the system's."""
    spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    directory = Path(bootstrap.local_directory or spark or tempfile.gettempdir())
    directory.mkdir(parents=True, exist_ok=True)
    return directory
