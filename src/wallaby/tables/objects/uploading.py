"""Write a file to a bucket so that nobody sees it until its write is published: in parts, without completing it.

Each attempt at a file has an upload of its own. When all parts are there, a note names the upload; a later attempt
finds the note and does not write again. If two attempts write at the same time, the last note counts: both uploads
have the same bytes. Whoever publishes completes the uploads that are named, and gives up all others.

An attempt may be late: its worker was stopped, and the write has ended meanwhile. So an attempt first leaves its
traces, and then looks whether the write is still in progress. A program that ends a write first removes the sign of it,
and then all traces. So either that program finds the traces, or the attempt finds the sign gone and removes them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from wallaby.tables.objects.layout import UploadNote, WriteFolder

#: The bytes of a part. Only the last one may have fewer than 5 MiB, and there may be 10,000 of them.
PART_BYTES: Final = 8 << 20
PARTS_MAX: Final = 10_000


class Upload(io.RawIOBase):
    """A file that is written to an upload, part by part."""

    def __init__(self, folder: WriteFolder, name: str, part_bytes: int = PART_BYTES) -> None:
        super().__init__()
        self._folder, self._name = folder, name
        self._key = folder.file(name)
        self._part_bytes = part_bytes
        self._upload = folder.bucket.begin_upload(self._key)
        self._tags: list[str] = []
        self._waiting = bytearray()
        self._size_bytes = 0

    def writable(self) -> bool:
        """True: the file can be written."""
        return True

    def tell(self) -> int:
        """The bytes so far."""
        return self._size_bytes

    def write(self, data: object) -> int:
        """Add bytes, and send them when there are enough for a part."""
        view = memoryview(data)  # type: ignore[arg-type]  # whatever has a buffer
        self._waiting += view
        self._size_bytes += view.nbytes
        while len(self._waiting) >= self._part_bytes:
            self._send(bytes(self._waiting[: self._part_bytes]))
            del self._waiting[: self._part_bytes]
        return view.nbytes

    def _send(self, part: bytes) -> None:
        if len(self._tags) == PARTS_MAX:
            raise OSError(f"{self._key} is too large for an upload in parts")
        number = len(self._tags) + 1
        self._tags.append(self._folder.bucket.put_part(self._key, self._upload, number, part))

    def keep(self) -> int:
        """Send what is left, and leave a note of the upload; returns the bytes of the file."""
        if self._waiting:
            self._send(bytes(self._waiting))
        note = UploadNote(self._upload, tuple(self._tags), self._size_bytes)
        self._folder.bucket.put(self._folder.note(self._name), note.encoded())
        if self._folder.bucket.size(self._folder.writer) is None:
            self._folder.bucket.delete(self._folder.note(self._name))
            raise _over(self._folder)
        return self._size_bytes

    def give_up(self) -> None:
        """Free the parts. If that fails, the end of the write frees them."""
        with suppress(OSError):
            self._folder.bucket.abort(self._key, self._upload)


def upload_file(folder: WriteFolder, name: str, fill: Callable[[Upload], None]) -> int:
    """Write a file unless another attempt has; returns its bytes.

    Raises:
        OSError: the server refuses it, or the write has ended.
    """
    known = folder.bucket.get(folder.note(name))
    if known is not None:
        return UploadNote.read(known.body).size_bytes
    if folder.bucket.size(folder.writer) is None:
        raise _over(folder)
    upload = Upload(folder, name)
    try:
        fill(upload)
        return upload.keep()
    except BaseException:
        upload.give_up()
        raise


def _over(folder: WriteFolder) -> OSError:
    return OSError(f"the write {folder.job} has ended")
