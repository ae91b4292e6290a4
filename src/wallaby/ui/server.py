"""A small HTTP server for the live page: loopback only, a token for every request, nothing but GET.

The standard library's threading server is enough: one person looks at it, pages are a few hundred kilobytes, and it
must not add a dependency to every driver. It never touches a query; it reads what the head has, on its own threads.

What is refused: requests without the token, requests under another host name (a page elsewhere could point a name of
its own at 127.0.0.1), requests that another site makes, methods other than GET, and more than a few at a time. The port
of a request may be any: that of a tunnel, for one.

All pages are in a folder with a random name. Browsers send a cookie to every port of a host, so a server of somebody
else's on 127.0.0.1 would be given the token; they do so only below the cookie's path, which that server does not know.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

_log = logging.getLogger(__name__)
LOOPBACK: Final = "127.0.0.1"
REQUESTS_MAX: Final = 8
#: So many connections may be open at once, each with a thread of its own.
CONNECTIONS_MAX: Final = 32
SOCKET_SECONDS: Final = 10.0
#: How often the server looks whether it is to end.
POLL_SECONDS: Final = 0.1
#: The largest share of time that answering may take: a page that took a second to make is asked for again much later.
ANSWER_SHARE: Final = 0.01
POLL_MS: Final = 1000
POLL_MS_MAX: Final = 15_000
#: What Prometheus asks for, with the token in a header, so that it need not know the folder.
METRICS: Final = "/metrics"
_NAVIGATION: Final = frozenset({"", "none", "same-origin", "same-site"})


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """The answer to a request: its body, type and status."""

    body: str
    kind: str = "text/html; charset=utf-8"
    status: int = 200


class PageSite(Protocol):
    """The pages that a server answers requests with."""

    def answer(self, path: str, nonce: str, folder: str) -> PageAnswer | None:
        """The answer for a path in the folder; None if there is no such page.

        Scripts and styles of a page carry the nonce, and its links begin with the folder.
        """
        ...


class PageServer:
    """An HTTP server on this host. It ends with `close`, or with the process."""

    def __init__(self, site: PageSite, port: int = 0, token: str | None = None) -> None:
        """Start the server; port 0 is any free one.

        Raises:
            OSError: the port is taken.
        """
        self.token = token or secrets.token_urlsafe(24)
        #: The folder that the pages are in, on every server another.
        self.folder = f"/{secrets.token_urlsafe(9)}/"
        self._site = site
        self._room = threading.BoundedSemaphore(REQUESTS_MAX)
        server = self
        handler = type("Handler", (_Handler,), {"page_server": server})
        self._http = _Server((LOOPBACK, port), handler)
        self.port = int(self._http.server_address[1])
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(POLL_SECONDS,), name="wallaby-ui", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address with the token. Anyone who has it can see the pages."""
        return f"{self.address}?token={self.token}"

    @property
    def address(self) -> str:
        """The address without the token."""
        return f"http://{LOOPBACK}:{self.port}{self.folder}"

    def close(self) -> None:
        """End the server."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(SOCKET_SECONDS)

    # --- requests ------------------------------------------------------------------------------------

    @property
    def cookie(self) -> str:
        """The name of its cookie. Cookies of one host are shared by all its ports."""
        return f"wallaby-{self.port}"

    def refusal(self, headers: Mapping[str, str], query: str) -> PageAnswer | None:
        """Why a request is refused, if it is."""
        if headers.get("Host", "").partition(":")[0] not in (LOOPBACK, "localhost"):
            return _plain(421, "This page is at another address.")
        given = _token_in(headers, query, self.cookie)
        if given is None or not hmac.compare_digest(given.encode(), self.token.encode()):
            return _plain(403, "Open the link that engine.ui shows: it carries the token for this page.")
        by_link = "token=" in query  # the link was followed, wherever it stood
        if headers.get("Sec-Fetch-Site", "") not in _NAVIGATION and not (
            by_link and headers.get("Sec-Fetch-Mode", "") == "navigate"
        ):
            return _plain(403, "Another site may not read this page.")
        return None

    def answered(self, path: str, nonce: str) -> tuple[PageAnswer, int]:
        """The answer, and in how many milliseconds to ask for it again. Outside the folder are no pages."""
        if path != METRICS:
            if not path.startswith(self.folder):
                return _plain(404, "There is no such page."), 0
            path = path[len(self.folder) - 1 :]
        if not self._room.acquire(blocking=False):
            return _plain(503, "Too many requests at once."), POLL_MS_MAX
        began = time.monotonic()
        try:
            found = self._site.answer(path, nonce, self.folder)
        except Exception:  # noqa: BLE001 - whatever it is, the page must not end with it
            _log.exception("the page %s could not be made", path)
            found = _plain(500, "The page could not be made; the driver's log says why.")
        finally:
            self._room.release()
        pause_ms = int((time.monotonic() - began) * 1000 / ANSWER_SHARE)
        return found or _plain(404, "There is no such page."), min(max(pause_ms, POLL_MS), POLL_MS_MAX)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._connections = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__(address, handler)

    def verify_request(self, request: object, client_address: object) -> bool:  # noqa: ARG002 - the base's signature
        """Is there room for another connection?"""
        return self._connections.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the base's signature
        _log.debug("a request ended early", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    page_server: PageServer
    timeout = SOCKET_SECONDS
    server_version = "wallaby"
    sys_version = ""

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        nonce = secrets.token_urlsafe(12)
        refused = self.page_server.refusal(dict(self.headers.items()), asked.query)
        answer, pause_ms = (refused, 0) if refused else self.page_server.answered(asked.path, nonce)
        body = answer.body.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Wallaby-Again", str(pause_ms))
        for name, value in _headers(nonce).items():
            self.send_header(name, value)
        if refused is None:
            cookie = f"{self.page_server.cookie}={self.page_server.token}"
            path = self.page_server.folder
            self.send_header("Set-Cookie", f"{cookie}; Path={path}; HttpOnly; SameSite=Strict")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base's name
        """Log nothing: the line would have the token in it."""


def _headers(nonce: str) -> dict[str, str]:
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def _token_in(headers: Mapping[str, str], query: str, cookie: str) -> str | None:
    bearer = headers.get("Authorization", "")
    if bearer.startswith("Bearer "):
        return bearer.removeprefix("Bearer ")
    if given := parse_qs(query).get("token"):
        return given[0]
    try:
        found = SimpleCookie(headers.get("Cookie", "")).get(cookie)
    except CookieError:
        return None
    return None if found is None else found.value


def _plain(status: int, text: str) -> PageAnswer:
    return PageAnswer(text + "\n", "text/plain; charset=utf-8", status)
