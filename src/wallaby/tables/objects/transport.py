"""Send requests to the server of a bucket, over connections that are used again. Nothing is repeated here."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, Protocol

from wallaby.relations.storage import S3_CONNECT_SECONDS, S3_REQUEST_SECONDS, S3Storage
from wallaby.tables.objects.signing import path_text, query_text, signed

#: A connection that was idle for longer is not used again: servers close them after 5 seconds and more.
IDLE_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request; its key is not escaped, and empty for the bucket itself."""

    method: str
    key: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """The answer of a server; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """What carries requests to a bucket."""

    def send(self, request: Request) -> Response:
        """Send a request and wait for its answer.

        Raises:
            OSError: no answer came. The server may or may not have done what it was asked.
        """


class HttpTransport:
    """Requests over HTTP."""

    def __init__(self, storage: S3Storage, bucket: str) -> None:
        self._storage = storage
        virtual = storage.virtual_addressing if storage.endpoint else "." not in bucket
        self._base = "/" if virtual else f"/{bucket}/"
        host = storage.endpoint or _amazon(storage.region)
        self._host = f"{bucket}.{host}" if virtual else host
        #: Idle connections, and since when; the last one was used last.
        self._idle: list[tuple[float, HTTPConnection]] = []
        self._lock = threading.Lock()

    def send(self, request: Request) -> Response:
        """Send a request over a connection of its own."""
        path = f"{self._base}{request.key}"
        headers = {"host": self._host, **request.headers}
        now = datetime.now(UTC)
        headers = signed(self._storage, request.method, path, request.query, headers, request.body, now)
        query = query_text(request.query)
        address = f"{path_text(path)}?{query}" if query else path_text(path)
        connection = self._connection()
        can_stay = False
        try:
            connection.request(request.method, address, request.body, headers)
            answer = connection.getresponse()
            body = answer.read()
            can_stay = not answer.will_close
        except (OSError, HTTPException) as error:
            raise _lost(self._host, error) from error
        finally:  # the next request must not be given the rest of this one's answer
            self._keep(connection) if can_stay else connection.close()
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)

    def _keep(self, connection: HTTPConnection) -> None:
        with self._lock:
            self._idle.append((time.monotonic(), connection))

    def _connection(self) -> HTTPConnection:
        oldest = time.monotonic() - IDLE_SECONDS
        with self._lock:
            stale = [each for since, each in self._idle if since < oldest]
            self._idle = [(since, each) for since, each in self._idle if since >= oldest]
            known = self._idle.pop()[1] if self._idle else None
        for each in stale:
            each.close()
        return known or self._new_connection()

    def _new_connection(self) -> HTTPConnection:
        name, _, port = self._host.partition(":")
        number = int(port) if port else None
        made = (
            HTTPSConnection(name, number, timeout=S3_CONNECT_SECONDS, context=ssl.create_default_context())
            if self._storage.encrypted
            else HTTPConnection(name, number, timeout=S3_CONNECT_SECONDS)
        )
        try:
            made.connect()
        except OSError as error:
            raise _lost(self._host, error) from error
        made.sock.settimeout(S3_REQUEST_SECONDS)
        return made


_CHINA: Final = "cn-"


def _amazon(region: str) -> str:
    """The host of Amazon's own service in a region."""
    return f"s3.{region}.amazonaws.com{'.cn' if region.startswith(_CHINA) else ''}"


def _lost(host: str, error: Exception) -> OSError:
    return OSError(f"{host} did not answer: {str(error) or type(error).__name__}")
