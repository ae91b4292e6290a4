"""File systems: the local one, and those of a query's storages.

Before a query runs, its storages are registered under the names that its files use. They stay registered, because their
footers and connections are cached. Nothing about them is ever logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from wallaby.plan.physical import Fragment, ScanFragment, WriteFragment
from wallaby.relations.relation import DataFile, Scan
from wallaby.relations.storage import (
    S3_ATTEMPTS,
    S3_CONNECT_SECONDS,
    S3_REQUEST_SECONDS,
    HdfsStorage,
    S3Storage,
    Storage,
)
from wallaby.tables.objects.bucket import bucket_of
from wallaby.tables.objects.layout import WriteFolder

_storages: dict[str, Storage] = {}


def make_known(storages: Mapping[str, Storage]) -> None:
    """Register storages, so that files may name them."""
    _storages.update(storages)


def storages_of(fragments: Iterable[Fragment]) -> dict[str, Storage]:
    """The storages that the files of a plan name."""
    names = {name for fragment in fragments for name in _named_by(fragment)}
    return {name: _storages[name] for name in sorted(names - {""})}


def _named_by(fragment: Fragment) -> Iterable[str]:
    match fragment:
        case ScanFragment(scan=Scan(files=files)):
            return (file.storage for file in files)
        case WriteFragment(target=target):
            return (target.storage,)
        case _:
            return ()


def write_folder(storage: str, path: str) -> WriteFolder:
    """The folder of a write in a storage."""
    known = _storages[storage]
    assert isinstance(known, S3Storage), "no other storage has uploads in parts"
    return WriteFolder.of(bucket_of(known, path.partition("/")[0]), path)


def is_local(file: DataFile) -> bool:
    """Is a file on a local disk?"""
    return not file.storage


def local_path(file: DataFile) -> Path:
    """The path of a local file, given as a path or as a `file:` address."""
    if file.path.startswith("file:"):
        return Path(unquote(urlsplit(file.path).path))
    return Path(file.path)


def remote_info(file: DataFile) -> fs.FileInfo:
    """The present description of a file by its storage."""
    return _opened(file.storage).get_file_info(_inner_path(file))


def open_remote(file: DataFile) -> pa.NativeFile:
    """Open a remote file for random access; the caller closes it."""
    return _opened(file.storage).open_input_file(_inner_path(file))


def _inner_path(file: DataFile) -> str:
    """The path in the form that the file system expects: bucket and key for S3, the path for Hadoop."""
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
