"""Where files lie that are on no local disk, and how they are reached. What is secret in it never shows in a text.

A file names its storage by a word that says nothing; what the word stands for travels with the query, beside its plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: How long an S3 server may take to be reached, and to go on with an answer, and how often it is asked.
S3_CONNECT_SECONDS: Final = 10.0
S3_REQUEST_SECONDS: Final = 60.0
S3_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class S3Storage:
    """A bucket's server, and who asks it."""

    #: "" is the service of Amazon itself; else a host, perhaps with a port.
    endpoint: str
    region: str
    encrypted: bool
    #: Is the bucket a part of the host's name, instead of the path's first?
    virtual_addressing: bool
    anonymous: bool
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class HdfsStorage:
    """A Hadoop cluster, as its own client library reaches it."""

    #: `host:port`, or what its settings call it.
    address: str
    user: str
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)


Storage = S3Storage | HdfsStorage
