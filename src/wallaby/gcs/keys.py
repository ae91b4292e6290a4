"""The names of the keys that Wallaby holds in Redis.

All keys of a query share its hash tag, so that on a Redis Cluster they lie in one slot and one script may
touch them all; different queries spread. The query's id is quoted: whatever is in it, it ends no hash tag and
forges no other query's key. The workers' keys belong to no query.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from wallaby.lineage.names import ChannelName, QueryId

if TYPE_CHECKING:
    from collections.abc import Iterable

_QUERY = "wallaby:q:{"
_HEAD = "}:query"
#: Matches the first key of every query and nothing else.
EVERY_QUERY = f"{_QUERY}*{_HEAD}"


@dataclass(frozen=True, slots=True)
class QueryKeys:
    """The keys of one query."""

    #: Hash: epoch, gate, run, graph, version, commits, error, order. Without it the query is gone.
    query: bytes
    #: String: what was submitted with the query for its workers.
    payload: bytes
    #: Hash: worker → order of joining, draining.
    members: bytes
    #: Hash: worker → was its leaving announced?
    departed: bytes
    #: Hash: channel → its state.
    channels: bytes
    #: Hash: link → stage of its producers, number of consumers, passes through?
    links: bytes
    #: Hash: reader stage → next split, number of splits.
    splits: bytes
    #: Hash: edge → how many outputs are delivered; absent means none.
    delivered: bytes
    #: List: re-reads that wait.
    rereads: bytes
    #: Hash: worker's slot → the re-read that it holds.
    claims: bytes
    #: The beginning of the keys of the channels' records.
    records: bytes

    @staticmethod
    @lru_cache(maxsize=256)
    def of(query: QueryId) -> QueryKeys:
        """The keys of a query."""
        prefix = f"{_QUERY}{quote(query, safe='')}}}:"
        return QueryKeys(*(f"{prefix}{each.name}".encode() for each in fields(QueryKeys)))

    def records_of(self, channel: ChannelName) -> bytes:
        """List: a channel's records, in order."""
        return b"%s:%d.%d" % (self.records, *channel)


@dataclass(frozen=True, slots=True)
class WorkerKeys:
    """The keys about workers, whichever queries they work for."""

    #: Hash: worker → order of registration, draining, address.
    workers: bytes = b"wallaby:{workers}:workers"
    #: Hash: worker → when its lease ends, in milliseconds of the store's clock.
    leases: bytes = b"wallaby:{workers}:leases"
    #: Set: workers that never come back.
    expelled: bytes = b"wallaby:{workers}:expelled"
    #: Hash: accused and reporter → since when, in milliseconds of the store's clock.
    complaints: bytes = b"wallaby:{workers}:complaints"
    #: Counts registrations.
    order: bytes = b"wallaby:{workers}:order"


def queries_of(keys: Iterable[bytes]) -> tuple[QueryId, ...]:
    """The queries that these keys, found by `EVERY_QUERY`, belong to, sorted."""
    names = {key.decode().removeprefix(_QUERY).removesuffix(_HEAD) for key in keys}
    return tuple(sorted(QueryId(unquote(name)) for name in names))
