"""Lifelines: idle connections from every TaskManager to the head, by which each side notices the other's end.

The kernel closes the connections of a process that dies, however it dies. So the head learns of a killed TaskManager
within milliseconds, on every master, before a lease expires or Spark notices; and a TaskManager whose driver is gone
ends at once. Its lease keeper (worker/lease_keeper.py) has a second lifeline, because the connections of a process are
closed only when its memory has been freed. A broken connection is a hint, not a verdict: the head still asks.

Nothing but the greeting is ever sent. The head sends a nonce, the worker answers with its id and a keyed
digest over both. So the token itself is not on the wire, and no encryption is needed. A connection with a wrong, too
long or late answer is closed.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from wallaby.lineage.names import WorkerId

_log = logging.getLogger(__name__)
NONCE_BYTES = 16
DIGEST_BYTES = 32
ID_BYTES_MAX = 64
#: How long a greeting may take, on both sides.
GREETING_SECONDS = 5.0
#: The most connections that have not greeted yet; others are closed.
STRANGERS_MAX = 256
_TICK_SECONDS = 1.0
_WELCOME = b"+"


@dataclass(slots=True)
class _Line:
    """One connection at the head: a stranger until it has greeted."""

    socket: socket.socket
    nonce: bytes
    deadline: float
    greeting: bytes = b""
    worker: WorkerId | None = None


class Lifelines:
    """The head's ends of all lifelines, on their own thread."""

    def __init__(self, host: str, token: str, lost: Callable[[WorkerId], None]) -> None:
        self._token = token
        self._lost = lost
        self._listener = socket.create_server((host, 0), family=_family(host), backlog=128)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        #: The address to which workers connect: `host:port`.
        self.address = f"{host}:{self.port}"
        self._waker, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._lines: dict[socket.socket, _Line] = {}
        self._thread = threading.Thread(target=self._run, name="wallaby-lifelines", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def held(self) -> frozenset[WorkerId]:
        """The workers whose lifelines are up."""
        return frozenset(line.worker for line in list(self._lines.values()) if line.worker is not None)

    def close(self, wait_seconds: float = 5.0) -> None:
        """Close all lifelines, which ends every remaining worker."""
        self._waker.close()
        if self._thread.ident is None:
            self._close_all()
        else:
            self._thread.join(wait_seconds)

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select(_TICK_SECONDS):
                if key.fileobj is self._woken:
                    self._close_all()
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._read(self._lines[key.fileobj])
            now = time.monotonic()
            late = [line for line in self._lines.values() if line.worker is None and line.deadline < now]
            for line in late:
                self._drop(line)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            _log.debug("no lifeline: %s", error)
            return
        strangers = sum(1 for line in self._lines.values() if line.worker is None)
        if strangers >= STRANGERS_MAX:
            connection.close()
            return
        line = _Line(connection, secrets.token_bytes(NONCE_BYTES), time.monotonic() + GREETING_SECONDS)
        self._lines[connection] = line
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.send(line.nonce)
        except OSError:
            self._lines.pop(connection).socket.close()
            return
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, line: _Line) -> None:
        try:
            data = line.socket.recv(256)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or line.worker is not None:  # closed, or it sends more than the greeting
            self._drop(line)
            return
        line.greeting += data
        size_bytes = 1 + line.greeting[0] + DIGEST_BYTES
        if line.greeting[0] > ID_BYTES_MAX or len(line.greeting) > size_bytes:
            self._drop(line)
        elif len(line.greeting) == size_bytes:
            self._greet(line)

    def _greet(self, line: _Line) -> None:
        name, digest = line.greeting[1:-DIGEST_BYTES], line.greeting[-DIGEST_BYTES:]
        if not hmac.compare_digest(digest, _digest(self._token, line.nonce, name)):
            _log.warning("a lifeline with a wrong token was cut off")
            self._drop(line)
            return
        try:
            line.worker = WorkerId(name.decode("ascii"))
            line.socket.send(_WELCOME)
        except (UnicodeDecodeError, OSError):
            self._drop(line)

    def _drop(self, line: _Line) -> None:
        self._selector.unregister(line.socket)
        self._lines.pop(line.socket)
        line.socket.close()
        if line.worker is not None:
            self._lost(line.worker)

    def _close_all(self) -> None:
        self._selector.close()
        self._listener.close()
        self._woken.close()
        for line in self._lines.values():
            line.socket.close()
        self._lines.clear()


class Lifeline:
    """A worker's end. The constructor greets; `watch` reports when the head is gone."""

    def __init__(self, address: str, token: str, worker: WorkerId) -> None:
        """Connect to the head.

        Raises:
            OSError: the head is not there, or does not accept the token.
        """
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=GREETING_SECONDS)
        try:
            nonce = self._receive(NONCE_BYTES)
            name = worker.encode("ascii")
            self._socket.sendall(bytes([len(name)]) + name + _digest(token, nonce, name))
            self._receive(len(_WELCOME))
        except OSError:
            self._socket.close()
            raise
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        #: The address of this host as the head sees it, unless there is network address translation.
        self.local_host: str = self._socket.getsockname()[0]

    def watch(self, gone: Callable[[], None]) -> None:
        """Call `gone`, on a separate thread, when the head's end is closed."""
        threading.Thread(target=self._wait, args=(gone,), name="wallaby-lifeline", daemon=True).start()

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the watching thread, which close alone does not
        self._socket.close()

    def _wait(self, gone: Callable[[], None]) -> None:
        with contextlib.suppress(OSError):
            while self._socket.recv(64):
                pass
        gone()

    def _receive(self, size_bytes: int) -> bytes:
        data = b""
        while len(data) < size_bytes:
            more = self._socket.recv(size_bytes - len(data))
            if not more:
                raise ConnectionResetError("The head closed the lifeline during the greeting.")
            data += more
        return data


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _digest(token: str, nonce: bytes, name: bytes) -> bytes:
    return hmac.new(token.encode("ascii"), nonce + name, hashlib.sha256).digest()
