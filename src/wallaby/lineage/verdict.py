"""The answers of the GCS: verdicts on actions, and replies that carry more than a verdict.

They are here, beside the algorithms that use them, because `lineage` imports nothing of the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from wallaby.lineage.names import Edge, TaskName


class Verdict(Enum):
    """How the store answered an action of a query."""

    #: Applied now.
    DONE = "done"
    #: It had been applied before.
    ALREADY = "already"
    #: There is no such query, or it has ended.
    GONE = "gone"
    #: The gate is closed: a recovery is under way.
    FROZEN = "frozen"
    #: The action carries another epoch than the query's.
    STALE = "stale"
    #: The worker no longer belongs to the query.
    EXPELLED = "expelled"
    #: The worker does not host the channel.
    NOT_HOST = "not host"
    #: The record differs from the one committed under the same name.
    DIVERGED = "diverged"
    #: Earlier records of the channel are missing, or it has ended.
    OUT_OF_ORDER = "out of order"
    #: The channel has been closed: nobody will draw from it again.
    CLOSED = "closed"
    #: The state has changed since the snapshot that a plan was made from.
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class CommitReply:
    """The verdict on one commit and, for a reader, the split of the task that follows."""

    verdict: Verdict
    split: int | None = None


class RecordsReply(NamedTuple):
    """The verdict on a request for a channel's records, and the records; none if it was refused."""

    verdict: Verdict
    records: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """The re-read that a worker's slot holds until it is completed, or none."""

    verdict: Verdict
    task: TaskName | None = None
    record: bytes = b""
    edges: tuple[Edge, ...] = ()
