"""The durable store: a directory in which what is written outlives the worker that wrote it.

It is any directory that pyarrow's file systems can open: a path that all hosts share, `s3://bucket/path`, and so on.
Every engine has a folder of its own in it and every query a folder in that, which goes when the query ends. An object
is there as a whole or not at all, and two writers of one name write the same content.

Whatever goes wrong with it is a `DurableStoreError`: the query ends with an error that names the store.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
from pyarrow import fs

from wallaby.errors import ConfigurationError, DurableStoreError

_KEY = "spark.wallaby.faultTolerance.store"
_PROBE = b"wallaby"


class DurableStore:
    """One engine's folder in the durable store. From any thread; every call may wait."""

    def __init__(self, address: str, folder: str) -> None:
        self._address = without_credentials(address)
        try:
            self._files, root = fs.FileSystem.from_uri(address)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise ConfigurationError(
                f"{_KEY} = {self._address!r} is no address of a directory: {error}",
                fix="Use an absolute path, or an address like s3://bucket/path.",
                key=_KEY,
            ) from error
        self._root = f"{root.rstrip('/')}/{folder}"
        self._is_local = isinstance(self._files, fs.LocalFileSystem)

    def require_writable(self) -> None:
        """Write something, read it back and remove it, or say why that cannot be done."""
        try:
            self.write("probe", [pa.py_buffer(_PROBE)])
            found = self.read("probe").to_pybytes()
            self._files.delete_file(f"{self._root}/probe")
        except (DurableStoreError, OSError) as error:
            raise ConfigurationError(
                f"The durable store {self._address} cannot be used: {error}",
                fix=f"Check {_KEY}, and who may write there.",
                key=_KEY,
            ) from error
        if found != _PROBE:
            raise ConfigurationError(
                f"The durable store {self._address} gives back other bytes than it was given.", key=_KEY
            )

    def write(self, name: str, parts: Sequence[pa.Buffer]) -> int:
        """Write an object, all of it or nothing; how many bytes it has."""
        path = f"{self._root}/{name}"
        with self._told("write", name):
            # On S3 an object is there when its stream is closed; in a directory, when it has its name.
            written = f"{path}.{uuid.uuid4().hex[:8]}.unfinished" if self._is_local else path
            if self._is_local:
                self._files.create_dir(path.rpartition("/")[0], recursive=True)
            with self._files.open_output_stream(written, compression=None) as stream:
                for part in parts:
                    stream.write(part)
            if self._is_local:
                self._files.move(written, path)
        return sum(part.size for part in parts)

    def read(self, name: str, offset_bytes: int = 0, length_bytes: int | None = None) -> pa.Buffer:
        """An object, or a part of it."""
        with self._told("read", name), self._files.open_input_file(f"{self._root}/{name}") as file:
            length = file.size() - offset_bytes if length_bytes is None else length_bytes
            data = file.read_at(length, offset_bytes)
            if len(data) != length:
                raise OSError(f"it has {file.size()} bytes, and {offset_bytes + length} were expected")
            return pa.py_buffer(data)

    def remove(self, folder: str = "") -> None:
        """Remove a query's folder, or the whole of the engine's. What is not there, or not to be reached, stays."""
        with contextlib.suppress(OSError):
            self._files.delete_dir(f"{self._root}/{folder}".rstrip("/"))

    @contextlib.contextmanager
    def _told(self, what: str, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise DurableStoreError(
                f"The durable store {self._address} failed to {what} {name}: {error}",
                fix=f"Check {_KEY}: is it there, and is there room?",
                store=self._address,
            ) from error


def without_credentials(address: str) -> str:
    """An address as it may be shown."""
    parts = urlsplit(address)
    return (
        urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else address
    )
