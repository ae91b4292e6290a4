"""Proxies for the network between the workers of one engine on this host, which can cut it between two of them.

Every data server has a proxy on loopback, whose address replaces the server's own in the store; so it must be put there
before any worker has read addresses. The proxy identifies the process behind a connection by its port, and cuts the
traffic between two workers, in both directions, while both still reach all others.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import psutil

from wallaby.engine import Engine
from wallaby.lineage.names import WorkerId
from wallaby.node.worker_address import WorkerAddress

#: Actions on the network from outside; see `outside`.
CUT_WIRE: Final = "cut wire"
SILENCE_WIRE: Final = "silence wire"
_LOOPBACK: Final = "127.0.0.1"
_CHUNK_BYTES: Final = 1 << 16
_CONNECT_SECONDS: Final = 5.0
#: With this option, closing a socket resets the connection, so that the other end notices at once.
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass(slots=True, eq=False)
class _Wire:
    """One connection: its source, its target, and its two sockets."""

    source: str
    target: str
    sockets: tuple[socket.socket, ...] = field(default=())

    def close(self) -> None:
        for end in self.sockets:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class HostWires:
    """All connections to the data servers of an engine's present workers."""

    def __init__(self, engine: Engine) -> None:
        self._lock = threading.Lock()
        self._pids: dict[str, int] = {worker.id: worker.pid for worker in engine.workers()}
        self._listeners: list[socket.socket] = []
        self._wires: list[_Wire] = []
        self._between: frozenset[str] = frozenset()
        self._silent = False
        #: How often something between the two was blocked.
        self.held_back = 0
        self._install(engine)

    def carries(self, worker: str) -> bool:
        """Does this worker's traffic go through proxies? That of later workers does not."""
        return worker in self._pids and psutil.pid_exists(self._pids[worker])

    def cut(self, one: str, other: str, *, silent: bool) -> int:
        """Block everything between two workers from now on; returns the number of connections.

        Silent: data disappears. Otherwise present and new connections are reset.
        """
        with self._lock:
            self._between, self._silent = frozenset((one, other)), silent
            cut = [wire for wire in self._wires if self._is_cut(wire)]
        if not silent:
            for wire in cut:
                wire.close()
        return len(cut)

    def close(self) -> None:
        """End all proxies."""
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            wires = list(self._wires)
        for wire in wires:
            wire.close()

    def _install(self, engine: Engine) -> None:
        inspection = engine.inspection
        for worker in self._pids:
            inspection.reroute(WorkerId(worker), partial(self._proxied, worker))

    def _proxied(self, worker: str, place: WorkerAddress) -> WorkerAddress:
        """Start a worker's proxy; returns the address at which it listens."""
        server = urlsplit(place.endpoint)
        listener = socket.create_server((_LOOPBACK, 0))
        self._listeners.append(listener)
        threading.Thread(
            target=self._accept, args=(listener, worker, server.port), name="chaos-wire", daemon=True
        ).start()
        return replace(place, endpoint=f"{server.scheme}://{_LOOPBACK}:{listener.getsockname()[1]}")

    def _accept(self, listener: socket.socket, worker: str, port: int) -> None:
        while True:
            try:
                incoming, (_, source_port) = listener.accept()
            except OSError:
                return
            wire = _Wire(self._owner(source_port), worker, (incoming,))
            with self._lock:
                self._wires.append(wire)
                cut = self._is_cut(wire)
                self.held_back += cut
            if cut and not self._silent:
                wire.close()
                continue
            try:
                outgoing = socket.create_connection((_LOOPBACK, port), _CONNECT_SECONDS)
            except OSError:
                wire.close()
                continue
            outgoing.settimeout(None)
            wire.sockets = (incoming, outgoing)
            for ends in ((incoming, outgoing), (outgoing, incoming)):
                threading.Thread(
                    target=self._pump, args=(wire, *ends), name="chaos-wire", daemon=True
                ).start()

    def _pump(self, wire: _Wire, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(_CHUNK_BYTES):
                with self._lock:
                    cut = self._is_cut(wire)
                    self.held_back += cut
                if not cut:
                    target.sendall(data)
        except OSError:
            pass
        wire.close()
        with self._lock, contextlib.suppress(ValueError):
            self._wires.remove(wire)

    def _is_cut(self, wire: _Wire) -> bool:
        return frozenset((wire.source, wire.target)) == self._between

    def _owner(self, port: int) -> str:
        """The worker whose process has this port; empty if there is none."""
        for worker, pid in self._pids.items():
            with contextlib.suppress(psutil.Error):
                connections = psutil.Process(pid).net_connections("tcp")
                if any(c.laddr.port == port and c.status != psutil.CONN_LISTEN for c in connections):
                    return worker
        return ""
