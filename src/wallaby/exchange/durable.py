"""The durable store: a directory whose objects outlive the worker that wrote them.

It is any directory that pyarrow's file systems can open: a path that all hosts share, `s3://bucket/path`, and so on.
Every engine has its own folder in it, which is removed with the engine (`spark.durable_registration`), and every query
has a folder in that, which is removed when the query ends. An object exists completely or not at all, and two writers
of one name write the same content.

Every failure is a `DurableStoreError`: the query ends with an error that names the store.
"""

from __future__ import annotations

import contextlib
import copy
import re
import uuid
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
from pyarrow import fs

from wallaby.errors import ConfigurationError, DurableStoreError
from wallaby.relations.storage import S3_ATTEMPTS, S3_CONNECT_SECONDS, S3_REQUEST_SECONDS

_KEY = "spark.wallaby.faultTolerance.store"
_PROBE = b"wallaby"
_FOLDER = re.compile(r"wallaby-[0-9a-f]{12}")


def new_folder() -> str:
    """A unique name for an engine's folder."""
    return f"wallaby-{uuid.uuid4().hex[:12]}"


class DurableStore:
    """One engine's folder in the durable store. Any thread may use it; every call may wait."""

    def __init__(self, address: str, folder: str) -> None:
        self._address = without_credentials(address)
        try:
            files, root = fs.FileSystem.from_uri(address)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise ConfigurationError(
                f"{_KEY} = {self._address!r} is not the address of a directory: {error}",
                fix="Use an absolute path, or an address like s3://bucket/path.",
                key=_KEY,
            ) from error
        self._files = _with_limits(files)
        self._base = root.rstrip("/")
        self.folder = folder
        self._is_local = isinstance(self._files, fs.LocalFileSystem)

    @property
    def _root(self) -> str:
        return f"{self._base}/{self.folder}"

    def require_writable(self) -> None:
        """Write, read back and remove a test object; raise an error that says why if that fails."""
        try:
            self.write("probe", [pa.py_buffer(_PROBE)])
            found = self.read("probe").to_pybytes()
            self._files.delete_file(f"{self._root}/probe")
        except (DurableStoreError, OSError) as error:
            raise ConfigurationError(
                f"The durable store {self._address} cannot be used: {error}",
                fix=f"Check {_KEY} and its write permissions.",
                key=_KEY,
            ) from error
        if found != _PROBE:
            raise ConfigurationError(
                f"The durable store {self._address} returned bytes that differ from those written to it.",
                key=_KEY,
            )

    def write(self, name: str, parts: Sequence[pa.Buffer]) -> int:
        """Write an object completely or not at all; returns its bytes."""
        path = f"{self._root}/{name}"
        with self._told("write", name):
            # On S3 an object exists once its stream is closed; in a directory, once it is renamed.
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
        """Read an object, or a part of it."""
        with self._told("read", name), self._files.open_input_file(f"{self._root}/{name}") as file:
            there = file.size() - offset_bytes
            length = there if length_bytes is None else length_bytes
            if length > there:  # before memory is allocated for it
                raise OSError(f"it has {file.size()} bytes, and {offset_bytes + length} were expected")
            data = file.read_at(length, offset_bytes)
            if len(data) != length:
                raise OSError(f"{len(data)} of {length} bytes were read")
            return pa.py_buffer(data)

    def foreign(self, name: str, why: str) -> DurableStoreError:
        """The error of an object that is not what was written."""
        return DurableStoreError(
            f"The durable store {self._address} does not hold what was written as {name}: {why}.",
            fix=f"Check {_KEY}: does anyone else write there, or is its storage damaged? Then run the query again.",
            store=self._address,
        )

    def remove(self, folder: str = "") -> None:
        """Remove a query's folder, or the engine's. Folders that are missing or unreachable are ignored."""
        with contextlib.suppress(OSError, pa.ArrowException):
            self._files.delete_dir(f"{self._root}/{folder}".rstrip("/"))

    def engines(self) -> tuple[DurableStore, ...]:
        """The folders of all engines in this store, including this one's."""
        with self._told("list", self._base):
            found = self._files.get_file_info(fs.FileSelector(self._base or "/"))
        names = (info.base_name for info in found if info.type is fs.FileType.Directory)
        return tuple(self._of(name) for name in sorted(names) if _FOLDER.fullmatch(name))

    def _of(self, folder: str) -> DurableStore:
        other = copy.copy(self)
        other.folder = folder
        return other

    def written_at(self, name: str) -> float | None:
        """When an object was written, in seconds of the durable store's own clock; None if there is none."""
        with self._told("look at", name):
            return _seconds(self._files.get_file_info(f"{self._root}/{name}"))

    def last_written_at(self) -> float | None:
        """When the newest object was written; None if that is unknown."""
        with self._told("list", self.folder):
            found = self._files.get_file_info(
                fs.FileSelector(self._root, allow_not_found=True, recursive=True)
            )
            times = [_seconds(info) for info in (*found, self._files.get_file_info(self._root))]
        return max((time for time in times if time is not None), default=None)

    @contextlib.contextmanager
    def _told(self, what: str, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise DurableStoreError(
                f"The durable store {self._address} failed to {what} {name}: {error}",
                fix=f"Check that {_KEY} exists and has free space.",
                store=self._address,
            ) from error


def _seconds(info: fs.FileInfo) -> float | None:
    return None if info.mtime_ns is None else info.mtime_ns / 1e9


def _with_limits(files: fs.FileSystem) -> fs.FileSystem:
    """The same file system, with time limits for an S3 server that does not answer.

    An address cannot contain limits, so it is opened once more, with the options that pickling it would keep.
    """
    if not isinstance(files, fs.S3FileSystem):
        return files
    _, (options,) = files.__reduce__()
    limits = {
        "connect_timeout": S3_CONNECT_SECONDS,
        "request_timeout": S3_REQUEST_SECONDS,
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=S3_ATTEMPTS),
    }
    return fs.S3FileSystem(**{**options, **limits})


def without_credentials(address: str) -> str:
    """An address without credentials, which may be shown."""
    parts = urlsplit(address)
    return (
        urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else address
    )
