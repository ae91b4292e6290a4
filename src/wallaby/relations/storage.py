"""Remote storages: where files are that are not on a local disk, and how to reach them. Secrets are never shown.

A file refers to its storage by a meaningless name; the query carries the storages themselves beside its plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: How long an S3 server may take to connect and to continue an answer, and how often a request is tried.
S3_CONNECT_SECONDS: Final = 10.0
S3_REQUEST_SECONDS: Final = 60.0
S3_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class S3Storage:
    """The server of a bucket, and the credentials for it."""

    #: "" is Amazon's own service; otherwise a host, perhaps with a port.
    endpoint: str
    region: str
    encrypted: bool
    #: Is the bucket part of the host name instead of the path?
    virtual_addressing: bool
    anonymous: bool
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class HdfsStorage:
    """A Hadoop cluster, reached by its own client library."""

    #: `host:port`, or the cluster's name in Hadoop's settings.
    address: str
    user: str
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)


Storage = S3Storage | HdfsStorage
