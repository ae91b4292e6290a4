"""Redis servers that tests own, with replicas and files on disk, and an address that can be led from one to another."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from wallaby.gcs.embedded import redis_server_binary

SEEN_SECONDS = 30.0


def seen(holds: Any, what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + SEEN_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


class RedisServer:
    """A `redis-server` of the test's own, with whatever settings it is given."""

    def __init__(self, directory: Path, *settings: str) -> None:
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self._settings = settings
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.start()

    def start(self) -> None:
        lines = [f"port {self.port}", "bind 127.0.0.1", 'save ""', "dir .", 'logfile ""', *self._settings]
        self._process = subprocess.Popen(
            [str(redis_server_binary()), "-"],
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        self._process.stdin.write("\n".join(lines).encode())
        self._process.stdin.close()
        seen(self._answers, "Redis does not come up")

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError):
            return bool(self.command("PING"))
        return False

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        return self._process.pid

    def command(self, *parts: object) -> Any:
        with redis.Redis(port=self.port, socket_timeout=20) as client:
            return client.execute_command(*parts)

    def info(self, name: str) -> Any:
        return self.command("INFO", "everything")[name]

    def replicate(self, primary: RedisServer) -> None:
        """Be a replica from now on, and have everything."""
        self.command("REPLICAOF", "127.0.0.1", primary.port)
        seen(lambda: self.info("master_link_status") == "up", "the replica does not come up")

    def catch_up(self, primary: RedisServer) -> None:
        """Wait until everything that the primary has written by now is here too."""
        wanted = primary.info("master_repl_offset")
        seen(lambda: self.info("slave_repl_offset") >= wanted, "the replica lags behind")

    def promote(self) -> None:
        self.command("REPLICAOF", "NO", "ONE")

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(SEEN_SECONDS)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It lives, and answers nobody."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGCONT)
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class Switchboard:
    """A TCP address that leads to one server or another, as a virtual IP or a proxy does."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._pumps: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def lead_to(self, port: int, *, cut: bool = True, spare: tuple[int, ...] = ()) -> int:
        """New connections go elsewhere; those that there are end, but for those from processes that are spared.

        How many connections were ended.
        """
        self._target = port
        with self._lock:
            pairs = list(self._pairs)
        ended = 0
        for pair in pairs:
            if cut and _local_port(pair[0]) not in spare:
                ended += 1
                for end in pair:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
        return ended

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._target), 10)
                except OSError:
                    near.close()
                    continue
                with self._lock:
                    self._pairs.append((near, far))
                for ends in ((near, far), (far, near)):
                    pump = threading.Thread(target=_pump, args=ends, daemon=True)
                    pump.start()
                    self._pumps.append(pump)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        self.lead_to(0)
        for pump in self._pumps:
            pump.join(10)
        for end in (end for pair in self._pairs for end in pair):
            end.close()


def _local_port(near: socket.socket) -> int:
    """The client's port of a connection."""
    try:
        return int(near.getpeername()[1])
    except OSError:
        return 0


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def primary_and_replica(directory: Path) -> Iterator[tuple[RedisServer, RedisServer, Switchboard]]:
    """A primary, a replica that has everything, and an address that leads to the primary."""
    with contextlib.ExitStack() as stack:
        primary = RedisServer(directory / "primary")
        stack.callback(primary.stop)
        replica = RedisServer(directory / "replica")
        stack.callback(replica.stop)
        replica.replicate(primary)
        board = Switchboard(primary.port)
        stack.callback(board.close)
        yield primary, replica, board
