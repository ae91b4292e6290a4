"""The file systems that files lie in: the local one, and those that a query's storages name.

Who runs a query makes its storages known first, under the names that its files have; they stay known, since footers
and connections of theirs are kept. Nothing of them is ever logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from wallaby.plan.physical import Fragment, ScanFragment
from wallaby.relations.relation import DataFile, Scan
from wallaby.relations.storage import (
    S3_ATTEMPTS,
    S3_CONNECT_SECONDS,
    S3_REQUEST_SECONDS,
    HdfsStorage,
    S3Storage,
    Storage,
)

_storages: dict[str, Storage] = {}


def make_known(storages: Mapping[str, Storage]) -> None:
    """From now on files may name these."""
    _storages.update(storages)


def storages_of(fragments: Iterable[Fragment]) -> dict[str, Storage]:
    """The storages that the files of a plan name."""
    names = {
        file.storage
        for fragment in fragments
        if isinstance(fragment, ScanFragment) and isinstance(fragment.scan, Scan)
        for file in fragment.scan.files
    }
    return {name: _storages[name] for name in sorted(names - {""})}


def is_local(file: DataFile) -> bool:
    """Is a file on a local disk?"""
    return not file.storage


def local_path(file: DataFile) -> Path:
    """Where a local file lies: its path, or its `file:` address."""
    if file.path.startswith("file:"):
        return Path(unquote(urlsplit(file.path).path))
    return Path(file.path)


def remote_info(file: DataFile) -> fs.FileInfo:
    """What its storage says of a file now."""
    return _opened(file.storage).get_file_info(_inner_path(file))


def open_remote(file: DataFile) -> pa.NativeFile:
    """A file to read from at any place, which has to be closed."""
    return _opened(file.storage).open_input_file(_inner_path(file))


def _inner_path(file: DataFile) -> str:
    """S3's file system wants the bucket and the key, Hadoop's the path."""
    _, _, rest = file.path.partition("://")
    return rest if isinstance(_storages[file.storage], S3Storage) else "/" + rest.partition("/")[2]


@lru_cache(maxsize=64)
def _opened(name: str) -> fs.FileSystem:
    match _storages[name]:
        case S3Storage() as storage:
            return fs.S3FileSystem(
                access_key=storage.access_key or None,
                secret_key=storage.secret_key or None,
                session_token=storage.session_token or None,
                anonymous=storage.anonymous,
                region=storage.region,
                scheme="https" if storage.encrypted else "http",
                endpoint_override=storage.endpoint or None,
                force_virtual_addressing=bool(storage.endpoint) and storage.virtual_addressing,
                connect_timeout=S3_CONNECT_SECONDS,
                request_timeout=S3_REQUEST_SECONDS,
                retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=S3_ATTEMPTS),
            )
        case HdfsStorage() as storage:
            host, _, port = storage.address.partition(":")
            return fs.HadoopFileSystem(
                host, int(port or 0), user=storage.user or None, extra_conf=dict(storage.settings)
            )
