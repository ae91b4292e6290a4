"""The names of the keys that Wallaby holds in Redis.

All keys of an engine begin with its name, so that several engines may share a server. All keys of a query share its
hash tag, so that on a Redis Cluster they would be in one slot, where one script may use all of them, while queries
spread over slots. Names are quoted: whatever a name contains, it cannot end a hash tag, forge another key or match a
pattern. The workers' keys belong to no query.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from wallaby.lineage.names import ChannelName, QueryId

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD = "}:query"
#: Matches every key of every engine.
EVERY_KEY = "wallaby:*"


def engine_prefix(engine: str) -> str:
    """The prefix of all keys of an engine."""
    return f"wallaby:{quote(engine, safe='')}:"


def every_query(engine: str) -> str:
    """A pattern that matches the first key of every query of an engine and nothing else."""
    return f"{engine_prefix(engine)}q:{{*{_HEAD}"


def alive_key(engine: str) -> bytes:
    """String that expires: the driver of this engine was alive a short while ago."""
    return f"{engine_prefix(engine)}alive".encode()


def engine_of(key: bytes) -> str:
    """The engine that a key belongs to."""
    return unquote(key.decode().split(":")[1])


@dataclass(frozen=True, slots=True)
class QueryKeys:
    """The keys of one query."""

    #: Hash: epoch, gate, run, graph, version, commits, error, order, `strained` and a worker. Without it the query is
    #: gone.
    query: bytes
    #: String: the payload that was submitted for the workers.
    payload: bytes
    #: Hash: worker → order of joining, draining.
    members: bytes
    #: Hash: worker that left → 1: announced; 0: unannounced; 2: unannounced, and short of memory because of the query.
    departed: bytes
    #: Hash: channel → its state.
    channels: bytes
    #: Hash: link → stage of its producers, number of consumers, passes through?
    links: bytes
    #: Hash: reader stage → next split, number of splits.
    splits: bytes
    #: Hash: edge → number of delivered outputs; absent means none.
    delivered: bytes
    #: List: re-reads that wait.
    rereads: bytes
    #: Hash: worker's slot → the re-read that it holds.
    claims: bytes
    #: The prefix of the keys of the channels' records.
    records: bytes
    #: String that expires: the query has ended, and a late submit is refused.
    barred: bytes

    @staticmethod
    @lru_cache(maxsize=256)
    def of(engine: str, query: QueryId) -> QueryKeys:
        """The keys of a query."""
        prefix = f"{engine_prefix(engine)}q:{{{quote(query, safe='')}}}:"
        return QueryKeys(*(f"{prefix}{each.name}".encode() for each in fields(QueryKeys)))

    def records_of(self, channel: ChannelName) -> bytes:
        """List: a channel's records, in order."""
        return b"%s:%d.%d" % (self.records, *channel)


@dataclass(frozen=True, slots=True)
class WorkerKeys:
    """The keys about an engine's workers, independent of queries."""

    #: Hash: worker → order of registration, draining, address.
    workers: bytes
    #: Hash: worker → when its lease ends, in milliseconds of the store's clock.
    leases: bytes
    #: Set: workers that never come back.
    expelled: bytes
    #: Hash: accused, reporter and query → first report, latest report and expiry, in milliseconds of the store's clock.
    complaints: bytes
    #: Counts registrations.
    order: bytes

    @staticmethod
    def of(engine: str) -> WorkerKeys:
        """The keys of an engine's workers."""
        prefix = f"{engine_prefix(engine)}{{workers}}:"
        return WorkerKeys(*(f"{prefix}{each.name}".encode() for each in fields(WorkerKeys)))


def queries_of(keys: Iterable[bytes]) -> tuple[QueryId, ...]:
    """The queries of keys that `every_query` has found, sorted."""
    names = {key.decode().partition("{")[2].removesuffix(_HEAD) for key in keys}
    return tuple(sorted(QueryId(unquote(name)) for name in names))
