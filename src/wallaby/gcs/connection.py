"""The connection to Redis: every setting is explicit, and every failure is one of our own types.

redis-py is untyped in the parts used here, hence the `Any` of its objects.

- redis-py never sends anything twice by itself: its retries are off. A lost reply is a `GcsUnavailableError`, and the
  caller repeats the action, which is idempotent.
- Every new connection is checked before it carries a command: password, version, eviction policy, role,
  and the server's incarnation (`incarnation.py`). A restart of Redis breaks every connection, so the first one
  made afterwards finds another incarnation and raises `GcsLostError`: a query never continues with a store that may
  have lost something.
- The server may change while a connection stays open, so every script also gets the incarnation and compares it.
- Scripts are called by their digest; the text is sent only to a server that does not know the script yet.
"""

from __future__ import annotations

import hashlib
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
import redis.backoff
import redis.connection
import redis.exceptions
import redis.retry

from wallaby.errors import (
    GcsAuthenticationError,
    GcsError,
    GcsLostError,
    GcsUnavailableError,
    GcsUnreachableError,
    GcsVersionError,
)
from wallaby.gcs.address import GcsAddress, parse_address
from wallaby.gcs.incarnation import LOST_WORD, Incarnation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

#: The oldest Redis that the scripts are tested with; the embedded one.
OLDEST_VERSION = (6, 2)
#: How many keys Redis scans in one step of a search; this limits its pause, not the answer.
SCAN_COUNT = 1000
_PASSWORD_FIX = "Set spark.wallaby.gcs.password."  # noqa: S105 - no password
_RUNNING_FIX = "Check that Redis runs there, that the address is right and that no firewall is between."


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Time limits, and the number of connections that one process opens."""

    connect_seconds: float = 2.0
    read_seconds: float = 5.0
    #: How long a call waits for one of the process's connections to become free.
    pool_seconds: float = 5.0
    connections: int = 16


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """What a `rediss://` address needs beyond the system's certificates. Verification is never off."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


def tls_files(ca: str) -> TlsFiles | None:
    """The certificates to check a server against, from a file; None for the system's."""
    return TlsFiles(ca=Path(ca)) if ca else None


@dataclass(frozen=True, slots=True)
class GcsServer:
    """The server at the other end, as it describes itself."""

    incarnation: Incarnation
    version: str
    process_id: int

    @property
    def run_id(self) -> str:
        """The name of its present run."""
        return self.incarnation.run_id


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script with its digest, by which the server caches it."""

    name: str
    text: str = field(repr=False)
    digest: str

    @staticmethod
    def of(name: str, text: str) -> Script:
        """A script from its text."""
        return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def connect(
    url: str,
    *,
    username: str | None = None,
    password: str | None = None,
    incarnation: Incarnation | None = None,
    limits: ConnectionLimits | None = None,
    tls: TlsFiles | None = None,
    is_gone: Callable[[], bool] | None = None,
) -> Connection:
    """Connect and check the server; raise a typed error that says what to do if it is unsuitable.

    Args:
        url: `redis://`, `rediss://` or `unix://`; see `address.py`.
        username: An ACL user, if not the default one and not in the URL.
        password: The password, if not in the URL.
        incarnation: The one with which the engine began; another one raises `GcsLostError`.
        limits: Time limits and the number of connections.
        tls: Certificates for `rediss://`.
        is_gone: For an embedded server: is it known to have ended? Then a server that does not answer is lost.
    """
    address = parse_address(url, username=username, password=password)
    return Connection(address, incarnation, limits or ConnectionLimits(), tls, is_gone)


class Connection:
    """A pool of connections to one incarnation of one Redis server. Threads may share it."""

    def __init__(
        self,
        address: GcsAddress,
        incarnation: Incarnation | None,
        limits: ConnectionLimits,
        tls: TlsFiles | None,
        is_gone: Callable[[], bool] | None,
    ) -> None:
        self.address = address
        self._expected = incarnation
        self._is_gone = is_gone
        self._connect_seconds = limits.connect_seconds
        self._server: GcsServer | None = None
        client: Any = redis.Redis
        self._client = client(connection_pool=_pool(address, limits, tls, self._check))
        try:
            self._client.execute_command("PING")
        except redis.exceptions.RedisError as error:
            self.close()
            raise _could_not_connect(error, address) from error
        except GcsError:
            self.close()
            raise

    @property
    def server(self) -> GcsServer:
        """The server of the first connection; it has been the same since."""
        assert self._server is not None
        return self._server

    @property
    def incarnation(self) -> Incarnation:
        """The incarnation that this connection is bound to."""
        return self._expected or self.server.incarnation

    def run(self, script: Script, keys: Sequence[bytes], arguments: Sequence[bytes | str | int]) -> Any:
        """Run a script: one round trip, two when the server does not know it yet.

        Raises:
            GcsUnavailableError: No answer; the script may or may not have run.
            GcsLostError: The server is another incarnation than the one first connected to, or is known to be gone.
            GcsError: The server refused; the message says why.
        """
        try:
            try:
                return self._client.execute_command("EVALSHA", script.digest, len(keys), *keys, *arguments)
            except redis.exceptions.NoScriptError:
                return self._client.execute_command("EVAL", script.text, len(keys), *keys, *arguments)
        except redis.exceptions.RedisError as error:
            raise self._failed(error, script.name) from error

    def command(self, *parts: bytes | str | int) -> Any:
        """Send one plain command. For tests and repair; the protocol's actions are scripts."""
        try:
            return self._client.execute_command(*parts)
        except redis.exceptions.RedisError as error:
            raise self._failed(error, str(parts[0])) from error

    def find_keys(self, pattern: str) -> list[bytes]:
        """The keys that match a pattern. A key that appears or disappears meanwhile may be missed."""
        found: set[bytes] = set()
        cursor = 0
        while True:
            cursor, keys = self.command("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)
            found.update(keys)
            if cursor == 0:
                return sorted(found)

    def close(self) -> None:
        """Close every connection; a later call opens them again."""
        self._client.connection_pool.disconnect()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({self.address})"

    def _check(self, connection: Any) -> None:
        """Check a new connection before it carries a command."""
        connection.on_connect()
        connection.send_command("INFO", check_health=False)
        reply = connection.read_response()
        try:
            server = self._checked(reply)
            self._compare(server)
        except GcsError:
            connection.disconnect()  # redis-py does so only for errors of its own
            raise
        self._server = self._server or server

    def _checked(self, reply: object) -> GcsServer:
        try:
            return _checked_server(reply, self.address)
        except GcsError as error:
            if self._expected is None and self._server is None:
                raise
            # It was suitable when the engine attached, and has been demoted or reconfigured since.
            raise _lost(self.address, f"is not the store it was: {error.what.rstrip('.')}") from error

    def _compare(self, server: GcsServer) -> None:
        expected = self._expected or (self._server.incarnation if self._server is not None else None)
        why = expected.difference(server.incarnation) if expected is not None else ""
        if why:
            raise _lost(self.address, f"was restarted or replaced: {why}")

    def _failed(self, error: redis.exceptions.RedisError, action: str) -> GcsError:
        failure = _call_failed(error, self.address, action)
        if self._is_gone is None or not isinstance(failure, GcsUnavailableError):
            return failure
        # Our own server never closes its port while it lives, and its watcher learns of its end a little later.
        closed = _was_refused(error) or self._is_gone() or _refuses(self.address, self._connect_seconds)
        return _lost(self.address, "has ended") if closed else failure


def _was_refused(error: BaseException | None) -> bool:
    """Was the connection refused because nobody listens at the address?"""
    while error is not None and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None


def _refuses(address: GcsAddress, timeout_seconds: float) -> bool:
    """Is nothing listening at the address? A server that dies breaks its connections first."""
    if address.path:
        return False
    try:
        socket.create_connection((address.host, address.port), timeout_seconds).close()
    except OSError as error:
        return isinstance(error, ConnectionRefusedError)
    return False


def _lost(address: GcsAddress, what: str) -> GcsLostError:
    return GcsLostError(
        f"Redis at {address} {what}. What it held about running queries can no longer be trusted.",
        fix="Run the query again, or set spark.wallaby.retryOnGcsLoss=true to have Wallaby do so.",
        address=str(address),
    )


def _pool(address: GcsAddress, limits: ConnectionLimits, tls: TlsFiles | None, check: Any) -> Any:
    """redis-py's pool, with explicit values for everything that its versions set differently."""
    settings: dict[str, Any] = {
        "username": address.username,
        "password": address.password,
        "db": address.database,
        "socket_connect_timeout": limits.connect_seconds,
        "socket_timeout": limits.read_seconds,
        "retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        "retry_on_timeout": False,
        "retry_on_error": [],
        "health_check_interval": 0,
        "protocol": 2,
        "decode_responses": False,
        "driver_info": None,
        "redis_connect_func": check,
        "max_connections": limits.connections,
        "timeout": limits.pool_seconds,
    }
    if address.path:
        kind: Any = redis.connection.UnixDomainSocketConnection
        settings |= {"path": address.path}
    else:
        kind = redis.connection.Connection
        settings |= {"host": address.host, "port": address.port, "socket_keepalive": True}
    if address.tls:
        kind = redis.connection.SSLConnection
        files = tls or TlsFiles()
        settings |= {
            "ssl_cert_reqs": "required",
            "ssl_check_hostname": True,
            "ssl_ca_certs": str(files.ca) if files.ca else None,
            "ssl_certfile": str(files.certificate) if files.certificate else None,
            "ssl_keyfile": str(files.key) if files.key else None,
        }
    pool: Any = redis.connection.BlockingConnectionPool
    return pool(connection_class=kind, **settings)


def _checked_server(reply: object, address: GcsAddress) -> GcsServer:
    """The server from its answer to INFO; an error if it cannot be the GCS."""
    if not isinstance(reply, bytes):
        raise _no_redis(address, "its answer to INFO is not that of a Redis")
    text = reply.decode(errors="replace")
    info = dict(line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith("#"))
    version = info.get("redis_version", "")
    if _as_numbers(version) < OLDEST_VERSION:
        raise GcsVersionError(
            f"Redis at {address} is version {version or 'unknown'}; Wallaby's scripts need 6.2 or newer.",
            fix="Upgrade it, or unset spark.wallaby.gcs.url to use the embedded one.",
            address=str(address),
            found=version,
            needed="6.2",
        )
    mode = info.get("redis_mode", "standalone")
    if mode != "standalone":
        raise GcsError(
            f"Redis at {address} runs as a {mode}; Wallaby's queries need one primary that holds all keys.",
            fix="Set spark.wallaby.gcs.url to the primary itself, or unset it to use the embedded one.",
            address=str(address),
            mode=mode,
        )
    if info.get("role", "master") != "master":
        raise GcsError(
            f"Redis at {address} is a replica and takes no writes.",
            fix="Set spark.wallaby.gcs.url to its primary.",
            address=str(address),
        )
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise GcsError(
            f"Redis at {address} has maxmemory-policy {policy}: short of memory, it would delete lineage.",
            fix="Put the line `maxmemory-policy noeviction` into its redis.conf and restart it.",
            address=str(address),
            policy=policy,
        )
    for name, what in (("run_id", "a restart"), ("master_replid", "a promotion")):
        if not info.get(name, "").isalnum():
            raise GcsError(
                f"Redis at {address} does not report its {name}, so {what} could go unnoticed.",
                fix=f"Use one whose INFO reports {name}, or unset spark.wallaby.gcs.url to use the embedded one.",
                address=str(address),
            )
    return GcsServer(Incarnation.of(info), version, int(info.get("process_id", "0")))


def _as_numbers(version: str) -> tuple[int, ...]:
    """Parse `6.2.14` as (6, 2, 14); parts that are not numbers are ignored."""
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def _could_not_connect(error: redis.exceptions.RedisError, address: GcsAddress) -> GcsError:
    """What a failure of the first connect means."""
    match error:
        case redis.exceptions.AuthenticationError() | redis.exceptions.NoPermissionError():
            return _not_let_in(error, address)
        case redis.exceptions.BusyLoadingError():
            return GcsUnavailableError(
                f"Redis at {address} is still loading its data.", fix="Try again.", address=str(address)
            )
        case _:
            return _no_redis(address, str(error))


def _no_redis(address: GcsAddress, why: str) -> GcsUnreachableError:
    return GcsUnreachableError(
        f"No Redis answers at {address}: {why.rstrip('.')}.", fix=_RUNNING_FIX, address=str(address)
    )


def _not_let_in(error: redis.exceptions.RedisError, address: GcsAddress) -> GcsAuthenticationError:
    if isinstance(error, redis.exceptions.NoPermissionError):
        user = address.username or "default"
        what = f"Redis at {address} does not let user {user!r} run what Wallaby needs: {error}."
        fix = "Grant +@all -@admin -@dangerous +info and the keys ~wallaby:*, or give another user."
    elif address.password is None:
        what, fix = f"Redis at {address} needs a password and none was given.", _PASSWORD_FIX
    else:
        what, fix = f"Redis at {address} refused the password.", _PASSWORD_FIX
    return GcsAuthenticationError(what, fix=fix, address=str(address))


def _call_failed(error: redis.exceptions.RedisError, address: GcsAddress, action: str) -> GcsError:
    """What a failure of a call on a checked server means."""
    match error:
        case redis.exceptions.AuthenticationError() | redis.exceptions.NoPermissionError():
            return _not_let_in(error, address)
        case redis.exceptions.ConnectionError() | redis.exceptions.TimeoutError():
            return GcsUnavailableError(
                f"Redis at {address} did not answer {action}: {error}", address=str(address), action=action
            )
        case _ if str(error).startswith(LOST_WORD):
            return _lost(address, f"is not the store it was: {str(error).removeprefix(LOST_WORD).strip()}")
        case _ if isinstance(error, redis.exceptions.ReadOnlyError) or str(error).startswith("MASTERDOWN"):
            return _lost(address, "is a replica now")
        case _ if isinstance(error, redis.exceptions.OutOfMemoryError) or "-OOM " in str(
            error
        ):  # in a script
            fix = "Raise its maxmemory. Nothing was written."
        case _ if str(error).startswith("BUSY"):
            return GcsUnavailableError(
                f"Redis at {address} is busy with another script.", address=str(address), action=action
            )
        case _:
            fix = ""
    return GcsError(
        f"Redis at {address} refused {action}: {error}", fix=fix, address=str(address), action=action
    )
