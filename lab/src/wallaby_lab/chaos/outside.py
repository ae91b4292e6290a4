"""Actions on an engine's processes from outside, each with a proof that it took effect."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import psutil
import redis

from wallaby.engine import Engine
from wallaby.gcs.embedded import EmbeddedRedis, redis_server_binary
from wallaby.results.worker_info import WorkerInfo
from wallaby_lab.chaos.wires import CUT_WIRE, SILENCE_WIRE, HostWires

#: How long an action may take to show.
SEEN_SECONDS: Final = 20.0
#: How many leases a worker stays stopped, so that it wakes as a zombie.
STOPPED_LEASES: Final = 3.0
_POLL_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof that an action was taken at a time and had its effect."""

    at: float
    what: str


class Outside:
    """Actions on one engine. `undo` ends those that last."""

    def __init__(self, engine: Engine, wires: HostWires | None = None) -> None:
        self._engine = engine
        self._wires = wires
        self._lease_seconds = engine.settings.lease
        self._undo: list[Callable[[], object]] = []
        self.kinds: dict[str, Callable[[], list[Proof]]] = {
            "kill": lambda: self._kill(1),
            "kill two": lambda: self._kill(2),
            "kill all": lambda: self._kill(1 << 16),
            "kill again": self._kill_again,
            "kill executor": self._kill_executor,
            "stop": self._stop,
            "pause store": self._pause_store,
            "reset store": self._reset_store,
            "restart store": self._restart_store,
            CUT_WIRE: lambda: self._cut_wire(silent=False),
            SILENCE_WIRE: lambda: self._cut_wire(silent=True),
        }

    def undo(self) -> None:
        """End the lasting actions."""
        while self._undo:
            self._undo.pop()()

    # --- TaskManagers --------------------------------------------------------------------------------

    def _live(self) -> list[WorkerInfo]:
        return [worker for worker in self._engine.workers() if worker.is_live]

    def _kill(self, count: int) -> list[Proof]:
        victims = [(worker.id, psutil.Process(worker.pid)) for worker in self._live()[:count]]
        at = time.time()
        for _, process in victims:
            process.send_signal(signal.SIGKILL)
        return [Proof(at, f"SIGKILL ended {worker}") for worker, process in victims if _ended(process)]

    def _kill_again(self) -> list[Proof]:
        """Kill a worker, and then its replacement."""
        victim = self._live()[0]
        place, known = victim.id.partition("-")[0], {worker.id for worker in self._live()}
        first = self._kill(1)
        deadline = time.monotonic() + SEEN_SECONDS
        while time.monotonic() < deadline:
            for worker in self._live():
                if worker.id not in known and worker.id.startswith(f"{place}-"):
                    process, at = psutil.Process(worker.pid), time.time()
                    process.send_signal(signal.SIGKILL)
                    return (
                        [*first, Proof(at, f"SIGKILL ended {worker.id}, the replacement")]
                        if _ended(process)
                        else []
                    )
            time.sleep(_POLL_SECONDS)
        return []

    def _kill_executor(self) -> list[Proof]:
        """Kill the JVM of an executor, and with it its Python workers."""
        worker = self._live()[0]
        ours = {process.pid for process in psutil.Process().children()}
        for parent in psutil.Process(worker.pid).parents():
            if parent.name() == "java":
                if parent.pid in ours:
                    return []  # under local[n] the driver's own JVM is the executor
                at = time.time()
                parent.send_signal(signal.SIGKILL)
                return [Proof(at, f"SIGKILL ended the executor of {worker.id}")] if _ended(parent) else []
        return []

    def _stop(self) -> list[Proof]:
        worker = self._live()[0]
        return self._stand_still(psutil.Process(worker.pid), worker.id)

    def _stand_still(self, process: psutil.Process, name: str) -> list[Proof]:
        seconds = STOPPED_LEASES * self._lease_seconds
        at = time.time()
        process.send_signal(signal.SIGSTOP)
        stopped = _seen(lambda: process.status() == psutil.STATUS_STOPPED)
        waker = threading.Timer(seconds, _let_go_on, (process,))
        waker.daemon = True
        waker.start()
        self._undo.append(lambda: _let_go_on(process))
        return [Proof(at, f"SIGSTOP held {name} for {seconds:g} s")] if stopped else []

    def _cut_wire(self, *, silent: bool) -> list[Proof]:
        """Cut the network between two workers, both of which still reach the store and everybody else."""
        assert self._wires is not None, "the network is cut where proxies carry it"
        carried = [worker.id for worker in self._live() if self._wires.carries(worker.id)]
        if len(carried) < 2:
            return []
        one, other = carried[:2]
        wires, at = self._wires, time.time()
        count = wires.cut(one, other, silent=silent)
        seen = _seen(lambda: wires.held_back > 0)
        how = "silenced" if silent else "reset"
        return [Proof(at, f"{count} connections between {one} and {other} were {how}")] if seen else []

    # --- the store -----------------------------------------------------------------------------------

    def _store(self) -> EmbeddedRedis:
        store = self._engine.inspection.embedded_store
        assert store is not None, "chaos runs with an embedded store"
        return store

    def _pause_store(self) -> list[Proof]:
        return self._stand_still(psutil.Process(self._store().pid), "the store")

    def _reset_store(self) -> list[Proof]:
        """Shut down the driver's connections to the store while they are in use."""
        port, at = urlsplit(self._store().url).port, time.time()
        ours = [c for c in psutil.Process().net_connections("tcp") if c.raddr and c.raddr.port == port]
        for connection in ours:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fd)) as shared:
                shared.shutdown(socket.SHUT_RDWR)
        return [Proof(at, f"{len(ours)} connections to the store were shut down")] if ours else []

    def _restart_store(self) -> list[Proof]:
        """Kill the server and start an empty one at its address."""
        store = self._store()
        address = urlsplit(store.url)
        process, at = psutil.Process(store.pid), time.time()
        process.send_signal(signal.SIGKILL)
        if not _ended(process):
            return []
        command = [str(redis_server_binary()), "-"]
        other = subprocess.Popen(  # noqa: S603 - the wheel's own binary
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._undo.append(lambda: _end(other))
        assert other.stdin is not None
        settings = f"bind {address.hostname}\nport {address.port}\nrequirepass {store.password}\nsave ''\n"
        other.stdin.write(settings.encode())
        other.stdin.close()

        def answers() -> bool:
            try:
                with redis.Redis.from_url(store.url, password=store.password) as client:
                    return bool(client.ping())
            except redis.RedisError:
                return False

        return [Proof(at, "the store came back empty")] if _seen(answers) else []


def _seen(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SEEN_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _ended(process: psutil.Process) -> bool:
    def is_gone() -> bool:
        try:
            return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    return _seen(is_gone)


def _let_go_on(process: psutil.Process) -> None:
    if process.is_running():
        process.send_signal(signal.SIGCONT)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(SEEN_SECONDS)
