"""A server of S3 in memory, which answers requests as the real one does; and a way to it on which something happens."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from email.utils import formatdate
from html import escape
from xml.etree import ElementTree

from wallaby.tables.objects.transport import Request, Response


class FakeBucket:
    """The objects and uploads of a bucket."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        #: Key and parts of each upload.
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        self.seconds = 0.0
        self._times: dict[str, float] = {}
        self._count = 0
        #: How many entries a page of a listing has.
        self.page = 1000

    def send(self, request: Request) -> Response:
        """Carry out a request."""
        match request.method:
            case "GET" if not request.key and "uploads" in request.query:
                return self._list_uploads(request)
            case "GET" if not request.key:
                return self._list(request)
            case "GET" | "HEAD":
                return self._get(request)
            case "PUT" if "uploadId" in request.query:
                return self._put_part(request)
            case "PUT":
                return self._put(request)
            case "POST" if "uploads" in request.query:
                return self._begin(request)
            case "POST":
                return self._complete(request)
            case "DELETE" if "uploadId" in request.query:
                found = self.uploads.pop(request.query["uploadId"], None)
                return _no_upload() if found is None else _answer(204)
            case "DELETE":
                self.objects.pop(request.key, None)
                return _answer(204)
            case _:
                raise AssertionError(request)

    def _get(self, request: Request) -> Response:
        body = self.objects.get(request.key)
        if body is None:
            return _error(404, "NoSuchKey")
        headers = {
            "content-length": str(len(body)),
            "date": formatdate(self.seconds, usegmt=True),
            "last-modified": formatdate(self._times[request.key], usegmt=True),
        }
        return Response(200, headers, b"" if request.method == "HEAD" else body)

    def _put(self, request: Request) -> Response:
        if "if-none-match" in request.headers and request.key in self.objects:
            return _error(412, "PreconditionFailed")
        self._keep(request.key, request.body)
        return _answer(200)

    def _keep(self, key: str, body: bytes) -> None:
        self.objects[key] = body
        self._times[key] = self.seconds

    def _begin(self, request: Request) -> Response:
        self._count += 1
        upload = f"u{self._count}"
        self.uploads[upload] = request.key, {}
        return _answer(200, f"<R xmlns='x'><UploadId>{upload}</UploadId></R>")

    def _put_part(self, request: Request) -> Response:
        if request.query["uploadId"] not in self.uploads:
            return _no_upload()
        self.uploads[request.query["uploadId"]][1][int(request.query["partNumber"])] = request.body
        return Response(200, {"etag": _tag(request.body)}, b"")

    def _complete(self, request: Request) -> Response:
        upload = request.query["uploadId"]
        if upload not in self.uploads:
            return _no_upload()
        key, parts = self.uploads[upload]
        assert key == request.key
        wanted = [
            (int(str(part.findtext("PartNumber"))), str(part.findtext("ETag")))
            for part in ElementTree.fromstring(request.body).findall("Part")
        ]
        if not wanted or any(_tag(parts.get(number, b"?")) != tag for number, tag in wanted):
            return _error(400, "InvalidPart")
        self._keep(key, b"".join(parts[number] for number, _ in wanted))
        del self.uploads[upload]
        return _answer(200, "<R/>")

    def _list(self, request: Request) -> Response:
        keys = sorted(key for key in self.objects if key.startswith(request.query["prefix"]))
        keys = [key for key in keys if key > request.query.get("continuation-token", "")]
        rows = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in keys[: self.page])
        more = len(keys) > self.page
        last = escape(keys[self.page - 1]) if more else ""
        flag = str(more).lower()
        return _answer(
            200,
            f"<R><IsTruncated>{flag}</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>{rows}</R>",
        )

    def _list_uploads(self, request: Request) -> Response:
        after = request.query.get("key-marker", ""), request.query.get("upload-id-marker", "")
        found = sorted(
            (key, upload)
            for upload, (key, _) in self.uploads.items()
            if key.startswith(request.query["prefix"])
        )
        found = [each for each in found if each > after]
        rows = "".join(
            f"<Upload><Key>{escape(key)}</Key><UploadId>{upload}</UploadId></Upload>"
            for key, upload in found[: self.page]
        )
        more = len(found) > self.page
        key, upload = found[self.page - 1] if more else ("", "")
        return _answer(
            200,
            f"<R><IsTruncated>{str(more).lower()}</IsTruncated><NextKeyMarker>{escape(key)}</NextKeyMarker>"
            f"<NextUploadIdMarker>{upload}</NextUploadIdMarker>{rows}</R>",
        )


def _tag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _answer(status: int, body: str = "") -> Response:
    return Response(status, {}, body.encode())


def _error(status: int, code: str) -> Response:
    return _answer(status, f"<Error><Code>{code}</Code><Message>it is so</Message></Error>")


def _no_upload() -> Response:
    return _error(404, "NoSuchUpload")


class Killed(BaseException):
    """The process ends here."""


class Struck:
    """A way to a bucket on which something happens once: before a request, by its number, or after it was done."""

    def __init__(
        self, bucket: FakeBucket, at: int | None, strike: Callable[[], None], *, after: bool
    ) -> None:
        self._bucket, self._at, self._strike, self._after = bucket, at, strike, after
        self.count = 0
        self.has_struck = False

    def send(self, request: Request) -> Response:
        """Carry a request there, and perhaps no answer back."""
        strikes = self.count == self._at
        self.count += 1
        if strikes and not self._after:
            self.has_struck = True
            self._strike()
        answer = self._bucket.send(request)
        if strikes and self._after:
            self.has_struck = True
            self._strike()
        return answer
