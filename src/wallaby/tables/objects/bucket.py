"""A bucket of S3: objects, listings, and uploads in parts, which nobody sees until they are completed.

Every request is repeated if its answer is lost, and every method knows what a lost answer may have done: a second
completion or removal finds nothing to do, and an object that must be new may be there because the first request made
it. An error that stays is an OSError, as of a disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from wallaby.relations.storage import S3_ATTEMPTS, S3Storage
from wallaby.tables.objects.transport import HttpTransport, Request, Response, Transport

#: Answers of a server that is busy or broken, or that meets another request for the same object.
_PASSING: Final = frozenset({409, 429, 500, 502, 503, 504})
_PAUSE_SECONDS: Final = 0.2
_NOT_FOUND: Final = 404
_DIFFERS: Final = 412


@dataclass(frozen=True, slots=True)
class FoundObject:
    """The content of an object, and how many seconds ago, by the server's clock, it was written."""

    body: bytes
    age_seconds: float


class Bucket:
    """One bucket. Any thread may use it; every call may wait."""

    def __init__(self, name: str, transport: Transport, sleep: Callable[[float], None] = time.sleep) -> None:
        self.name = name
        self._transport = transport
        self._sleep = sleep

    # --- objects -------------------------------------------------------------------------------------

    def get(self, key: str) -> FoundObject | None:
        """The content of an object; None if there is none."""
        answer = self._ask(Request("GET", key), missing=True)
        if answer.status == _NOT_FOUND:
            return None
        return FoundObject(answer.body, _age_seconds(answer))

    def size(self, key: str) -> int | None:
        """The bytes of an object; None if there is none."""
        answer = self._ask(Request("HEAD", key), missing=True)
        return None if answer.status == _NOT_FOUND else int(answer.headers["content-length"])

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""
        self._ask(Request("PUT", key, body=body))

    def put_new(self, key: str, body: bytes) -> bool:
        """Write an object unless it exists; False if it does. Every caller must give another content."""
        answer = self._ask(Request("PUT", key, headers={"if-none-match": "*"}, body=body), differs=True)
        if answer.status != _DIFFERS:
            return True
        found = self.get(key)  # ours, if the answer to our first request was lost
        return found is not None and found.body == body

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""
        self._ask(Request("DELETE", key), missing=True)

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys of all objects that begin with a prefix."""
        query = {"list-type": "2", "prefix": prefix}
        while True:
            page = _parsed(self._ask(Request("GET", query=query)))
            yield from (_text(each, "Key") for each in page.findall("Contents"))
            if _text(page, "IsTruncated") != "true":
                return
            query["continuation-token"] = _text(page, "NextContinuationToken")

    # --- uploads in parts ----------------------------------------------------------------------------

    def begin_upload(self, key: str) -> str:
        """Begin an upload and return its id."""
        return _text(_parsed(self._ask(Request("POST", key, {"uploads": ""}))), "UploadId")

    def put_part(self, key: str, upload: str, number: int, data: bytes) -> str:
        """Send a part, numbered from 1, and return its tag."""
        query = {"partNumber": str(number), "uploadId": upload}
        return self._ask(Request("PUT", key, query, body=data)).headers["etag"]

    def complete(self, key: str, upload: str, tags: Sequence[str]) -> bool:
        """Make an upload an object; False if there is no such upload, perhaps because it was completed before."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
            for number, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        answer = self._ask(Request("POST", key, {"uploadId": upload}, body=body), missing=True)
        return answer.status != _NOT_FOUND

    def abort(self, key: str, upload: str) -> None:
        """Give up an upload, if it exists, and free its parts."""
        self._ask(Request("DELETE", key, {"uploadId": upload}), missing=True)

    def uploads(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Keys and ids of the uploads that are neither completed nor given up, by a prefix of their keys."""
        query = {"uploads": "", "prefix": prefix}
        while True:
            page = _parsed(self._ask(Request("GET", query=query)))
            yield from ((_text(each, "Key"), _text(each, "UploadId")) for each in page.findall("Upload"))
            if _text(page, "IsTruncated") != "true":
                return
            query["key-marker"] = _text(page, "NextKeyMarker")
            query["upload-id-marker"] = _text(page, "NextUploadIdMarker")

    # --- requests ------------------------------------------------------------------------------------

    def _ask(self, request: Request, *, missing: bool = False, differs: bool = False) -> Response:
        """Send a request until it is answered; with `missing` or `differs`, those errors count as answers."""
        for attempt in range(S3_ATTEMPTS):
            last = attempt == S3_ATTEMPTS - 1
            try:
                answer = self._transport.send(request)
            except OSError:
                if last:
                    raise
            else:
                if answer.status < 300 and not _failed_late(answer):
                    return answer
                if (missing and answer.status == _NOT_FOUND) or (differs and answer.status == _DIFFERS):
                    return answer
                if last or not (answer.status in _PASSING or _failed_late(answer)):
                    raise OSError(f"{self.name}: {request.method} {request.key}: {_refusal(answer)}")
            self._sleep(_PAUSE_SECONDS * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


def _failed_late(answer: Response) -> bool:
    """Has a completion failed after the server had begun its answer, which then says that it succeeded?"""
    return b"<Error>" in answer.body[:200] and answer.status < 300


def _refusal(answer: Response) -> str:
    try:
        page = _parsed(answer)
        return f"{answer.status} {_text(page, 'Code')}: {_text(page, 'Message')}"
    except ElementTree.ParseError:
        return f"status {answer.status}"


def _parsed(answer: Response) -> ElementTree.Element:
    """The XML of an answer, without its namespace."""
    page = ElementTree.fromstring(answer.body)  # noqa: S314 - from the user's own storage
    for each in page.iter():
        each.tag = each.tag.rpartition("}")[2]
    return page


def _text(page: ElementTree.Element, name: str) -> str:
    return page.findtext(name) or ""


def _age_seconds(answer: Response) -> float:
    times = [answer.headers.get(name) for name in ("date", "last-modified")]
    if None in times:
        return 0.0
    now, then = (parsedate_to_datetime(str(time)) for time in times)
    return (now - then).total_seconds()


@lru_cache(maxsize=64)
def bucket_of(storage: S3Storage, name: str) -> Bucket:
    """A bucket of a storage; its connections are kept."""
    return Bucket(name, HttpTransport(storage, name))
