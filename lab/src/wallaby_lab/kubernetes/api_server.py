"""A small Kubernetes API server on the loopback, for clients that manage pods: Spark's driver is one.

It serves what is in an `ObjectStore`: create, get, list, watch, replace, patch, delete, deletion of collections, and
the eviction of pods. Watches stream over a WebSocket or in chunks, whichever the client asks for. With accounts, a
request needs a token, and may do what the token's Role says.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from wallaby_lab.kubernetes.access import Access, Account, access
from wallaby_lab.kubernetes.objects import KINDS, PODS, Json, ObjectKind, ObjectStore
from wallaby_lab.kubernetes.patches import APPLY, patched
from wallaby_lab.kubernetes.selectors import Selection
from wallaby_lab.kubernetes.status import StatusError
from wallaby_lab.kubernetes.web_sockets import WebSocket, accepted_key

HOST: Final = "127.0.0.1"
#: How often a watch without changes looks whether its client is still there.
WATCH_SECONDS: Final = 0.5
_PATH: Final = re.compile(
    r"/(?:api/v1|apis/(?P<group>[\w.]+)/v1)(?:/namespaces/(?P<namespace>[\w.-]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[\w.-]+))?(?:/(?P<subresource>[a-z]+))?"
)


class ApiServer:
    """The server. Close it, or leave its `with` block, to end its connections."""

    def __init__(
        self,
        objects: ObjectStore,
        accounts: Iterable[Account] = (),
        logs: Callable[[str, str], Path] | None = None,
    ) -> None:
        """Start to serve; without accounts, everybody may do everything. `logs` finds what a pod has printed."""
        self.objects, self.logs = objects, logs
        self.accounts = {account.token: account for account in accounts}
        #: What was asked for and allowed, and what was refused for lack of a rule.
        self.allowed: set[Access] = set()
        self.refused: set[Access] = set()
        server = self

        class Handler(_Handler):
            serves = server

        self._http = _Connections((HOST, 0), Handler)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.1,), name="api-server", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Its address. Spark's master is `k8s://` before it."""
        return f"http://{HOST}:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the store's waits, and with them the watches, and all connections."""
        self.objects.close()
        self._http.shutdown()
        self._http.hang_up()
        self._http.server_close()
        self._thread.join()

    def check(self, asked: Access, token: str) -> None:
        """Refuse who may not do this."""
        account = self.accounts.get(token)
        if self.accounts and account is None:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        if account is not None and not account.may(asked):
            self.refused.add(asked)
            group = f' in API group "{asked.group}"'
            raise StatusError(403, "Forbidden", f'cannot {asked.verb} resource "{asked.resource}"{group}')
        self.allowed.add(asked)


class _Connections(ThreadingHTTPServer):
    """Serves each connection on a thread. Clients keep their connections, so the end of the server ends them."""

    daemon_threads = False

    def __init__(self, *of: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*of)

    def get_request(self) -> tuple[socket.socket, Any]:
        link, peer = super().get_request()
        self._open.add(link)
        return link, peer

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the connections that are open, so that their threads end."""
        for link in list(self._open):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body of an answer are written one after the other
    serves: ApiServer

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

    # --- one request ---------------------------------------------------------------------------------

    def _serve(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        try:
            self._answer(json.loads(body) if body else None)
        except StatusError as refused:
            self._send(refused.code, refused.as_status())
        except ValueError as error:
            self._send(400, StatusError(400, "BadRequest", str(error)).as_status())
        except OSError:
            self.close_connection = True

    def _answer(self, body: Any) -> None:
        parts = urlsplit(self.path)
        match = _PATH.fullmatch(parts.path)
        kind = None if match is None else _kind(match["group"] or "", match["plural"])
        if match is None or kind is None:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        namespace, name, subresource = (match[key] or "" for key in ("namespace", "name", "subresource"))
        watches = self.command == "GET" and options.get("watch") in ("true", "1")
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        self.serves.check(access(self.command, kind, name, subresource, watches=watches), token)
        selection = Selection.parse(options.get("labelSelector", ""), options.get("fieldSelector", ""))
        if watches:
            self._watch(kind, namespace, selection, options.get("resourceVersion", ""))
        elif subresource:
            self._of_pod(namespace, name, subresource, body)
        elif name:
            self._send(200, self._of_one(kind, namespace, name, body, options))
        else:
            self._of_many(kind, namespace, selection, body, options)

    def _of_many(
        self, kind: ObjectKind, namespace: str, selection: Selection, body: Any, options: dict[str, str]
    ) -> None:
        objects = self.serves.objects
        if self.command == "POST":
            self._send(201, objects.create(kind, namespace, body))
            return
        found, version = objects.select(kind, namespace, selection)
        if self.command == "DELETE":
            found = [self._delete(kind, each["metadata"], body, options) for each in found]
        self._send(
            200,
            {
                "kind": f"{kind.name}List",
                "apiVersion": kind.version,
                "metadata": {"resourceVersion": str(version)},
                "items": found,
            },
        )

    def _of_one(
        self, kind: ObjectKind, namespace: str, name: str, body: Any, options: dict[str, str]
    ) -> Json:
        objects = self.serves.objects
        match self.command:
            case "GET":
                return objects.get(kind, namespace, name)
            case "PUT":
                return objects.replace(kind, namespace, name, body)
            case "PATCH":
                media = self.headers.get("Content-Type") or ""
                if media.startswith(APPLY) and not objects.has(kind, namespace, name):
                    return objects.create(kind, namespace, body)
                return objects.replace(
                    kind, namespace, name, patched(objects.get(kind, namespace, name), body, media)
                )
            case "DELETE":
                return self._delete(kind, {"namespace": namespace, "name": name}, body, options)
            case other:
                raise StatusError(405, "MethodNotAllowed", f"{other} of an object")

    def _delete(self, kind: ObjectKind, of: Json, body: Any, options: dict[str, str]) -> Json:
        asked = (body or {}).get("gracePeriodSeconds", options.get("gracePeriodSeconds"))
        grace = None if asked is None else int(asked)
        return self.serves.objects.delete(kind, of["namespace"], of["name"], grace)

    def _of_pod(self, namespace: str, name: str, subresource: str, body: Any) -> None:
        objects = self.serves.objects
        objects.get(PODS, namespace, name)
        match self.command, subresource:
            case "POST", "eviction":
                options = (body or {}).get("deleteOptions") or {}
                objects.delete(PODS, namespace, name, options.get("gracePeriodSeconds"))
                self._send(201, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
            case "GET", "log" if self.serves.logs is not None:
                self._send_bytes(200, "text/plain", self.serves.logs(namespace, name).read_bytes())
            case _:
                raise StatusError(404, "NotFound", f"no {subresource} of pods")

    # --- watches -------------------------------------------------------------------------------------

    def _watch(self, kind: ObjectKind, namespace: str, selection: Selection, version: str) -> None:
        self.close_connection = True
        if (self.headers.get("Upgrade") or "").lower() == "websocket":
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", accepted_key(self.headers["Sec-WebSocket-Key"]))
            self.end_headers()
            # http.server types its files as buffered, which these are; reads and writes go to one socket
            link = WebSocket(self.rfile, self.wfile)  # type: ignore[arg-type]
            reader = threading.Thread(target=link.read_to_end, name="watch-reader", daemon=True)
            reader.start()
            with contextlib.suppress(OSError):
                for event in self._events(kind, namespace, selection, version, link.over.is_set):
                    link.send(event)
                link.close()
                self.connection.shutdown(socket.SHUT_RDWR)  # or the reader would go on
            reader.join()
        else:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in self._events(kind, namespace, selection, version, lambda: False):
                self.wfile.write(f"{len(event) + 1:x}\r\n".encode() + event + b"\n\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

    def _events(
        self,
        kind: ObjectKind,
        namespace: str,
        selection: Selection,
        version: str,
        is_over: Callable[[], bool],
    ) -> Iterator[bytes]:
        """What there is, unless the client knows it, and then every change."""
        objects = self.serves.objects
        at = int(version or 0)
        if not at:
            found, at = objects.select(kind, namespace, selection)
            yield from (_encoded({"type": "ADDED", "object": each}) for each in found)
        while not is_over():
            try:
                changes = objects.changes(at, WATCH_SECONDS)
            except StatusError as expired:
                yield _encoded({"type": "ERROR", "object": expired.as_status()})
                return
            for change in changes:
                at = change.version
                if change.kind == kind and namespace in ("", change.namespace):
                    event = change.event(selection)
                    if event is not None:
                        yield _encoded(event)
            if objects.is_closed:
                return

    # --- answers -------------------------------------------------------------------------------------

    def _send(self, code: int, body: object) -> None:
        self._send_bytes(code, "application/json", _encoded(body))

    def _send_bytes(self, code: int, media: str, content: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _kind(group: str, plural: str) -> ObjectKind | None:
    return next((kind for kind in KINDS if (kind.group, kind.plural) == (group, plural)), None)


def _encoded(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
