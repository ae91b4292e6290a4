"""The GCS in Redis: each action is one script, hence one transaction and one round trip.

Redis runs one script at a time, which is the only locking. `interface.py` defines what each action must do, and
`scripts/` implements it; this module has only the arguments and answers. Every script gets the incarnation in which the
engine began, and every query stores the one to which it was submitted: if the store was restarted, replaced, demoted or
promoted since, `GcsLostError` is raised wherever that is noticed.

Nothing here retries: an action whose reply was lost raises `GcsUnavailableError`, and its caller repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wallaby.errors import GcsLostError
from wallaby.gcs import scripts
from wallaby.gcs.answers import StoredState, by_draining, channels_of, leases_of, members_of
from wallaby.gcs.arguments import (
    ScriptArgument,
    channel_changes,
    claim_name,
    first_states,
    flat,
    link_values,
    sized,
)
from wallaby.gcs.connection import Connection
from wallaby.gcs.encoding import (
    NONE,
    decode_edge,
    decode_reread,
    decode_split,
    encode_channel,
    encode_edge,
    encode_graph,
    encode_reread,
    pairs,
    to_bytes,
    to_text,
)
from wallaby.gcs.interface import (
    ANY_QUERY,
    COMPLAINT_MS,
    Assignment,
    Claim,
    Commit,
    CommitReply,
    QueryStatus,
    QueryView,
    Verdict,
    WorkerLease,
)
from wallaby.gcs.keys import EVERY_KEY, QueryKeys, WorkerKeys, every_query, queries_of
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import HEAD, ChannelName, Edge, QueryId, TaskName, WorkerId
from wallaby.lineage.snapshot import RecoveryPlan, Snapshot
from wallaby.lineage.verdict import RecordsReply

#: How long a submit that is still under way is refused: longer than any request can take.
BARRED_MS = 3_600_000


class RedisGcs:
    """A client of one engine's keys in a Redis server; threads may share it.

    See `interface.Gcs` for what each action does.
    """

    def __init__(self, connection: Connection, engine: str) -> None:
        self._connection = connection
        self._engine = engine
        #: The incarnation, by which scripts and queries recognize their store.
        self._incarnation = connection.incarnation.encode()
        self._workers = WorkerKeys.of(engine)

    # --- workers -------------------------------------------------------------------------------------

    def register(self, worker: WorkerId, address: str, lease_ms: int) -> bool:
        """Announce a new worker."""
        keys = self._workers
        names = (keys.workers, keys.leases, keys.expelled, keys.order)
        return bool(self._call("register", names, to_bytes(worker), to_bytes(address), lease_ms))

    def renew(self, worker: WorkerId, lease_ms: int) -> bool:
        """Renew a worker's lease."""
        keys = self._workers
        return bool(self._call("renew", (keys.workers, keys.leases), to_bytes(worker), lease_ms))

    def expel(self, worker: WorkerId) -> None:
        """Remove a worker for good."""
        keys = self._workers
        self._call("expel", (keys.workers, keys.leases, keys.expelled, keys.complaints), to_bytes(worker))

    def ask_to_drain(self, worker: WorkerId) -> None:
        """Note that a worker is about to leave."""
        self._call("ask_to_drain", (self._workers.workers,), to_bytes(worker))

    def complain(
        self,
        reporter: WorkerId,
        accused: WorkerId,
        reachable: bool,
        query: QueryId = ANY_QUERY,
        lasts_ms: int = COMPLAINT_MS,
    ) -> bool:
        """Note that one worker cannot reach another, or withdraw such a complaint."""
        keys = self._workers
        names = (keys.workers, keys.complaints)
        who = (to_bytes(reporter), to_bytes(accused), to_bytes(query))
        return bool(self._call("complain", names, *who, int(reachable), lasts_ms))

    def workers(self) -> tuple[WorkerLease, ...]:
        """Every registered worker, in the order of registration."""
        keys = self._workers
        return leases_of(self._call("workers", (keys.workers, keys.leases, keys.complaints)))

    # --- a query, by the coordinator -----------------------------------------------------------------

    def submit(
        self, query: QueryId, graph: StageGraph, hosts: Mapping[ChannelName, WorkerId], payload: bytes = b""
    ) -> Verdict:
        """Create a query."""
        keys = QueryKeys.of(self._engine, query)
        members: list[ScriptArgument] = [
            to_bytes(name) for name in dict.fromkeys(hosts.values()) if name != HEAD
        ]
        channels, splits = first_states(graph, hosts)
        arguments = [
            *sized(members),
            *sized(flat(channels)),
            *sized(flat(link_values(graph))),
            *sized(flat(splits)),
        ]
        names = (
            *(keys.query, keys.members, keys.channels, keys.links),
            *(keys.splits, keys.payload, keys.barred),
        )
        return self._verdict(
            self._call("submit", names, self._incarnation, encode_graph(graph), payload, *arguments)
        )

    def payload(self, query: QueryId) -> bytes | None:
        """What was submitted with a query; None if it has ended."""
        keys = QueryKeys.of(self._engine, query)
        word, *found = self._call("payload", (keys.query, keys.payload), self._incarnation)
        if self._verdict(word) is not Verdict.DONE:
            return None
        (payload,) = found
        return bytes(payload)

    def join(self, query: QueryId, worker: WorkerId) -> Verdict:
        """Make a worker a member."""
        keys = QueryKeys.of(self._engine, query)
        names = (keys.query, keys.members, keys.departed)
        return self._verdict(self._call("join", names, self._incarnation, to_bytes(worker)))

    def status(self, query: QueryId) -> QueryStatus:
        """What the coordinator watches."""
        keys = QueryKeys.of(self._engine, query)
        word, *answer = self._call("status", (keys.query, keys.members), self._incarnation)
        verdict = self._verdict(word)
        if verdict is not Verdict.DONE:
            return QueryStatus(verdict)
        (epoch, gate, error, commits), flat_members = answer
        members, draining = by_draining(members_of(flat_members))
        return QueryStatus(verdict, int(epoch), gate == b"1", members, draining, to_text(error), int(commits))

    def freeze(self, query: QueryId, lost: tuple[WorkerId, ...], draining: tuple[WorkerId, ...]) -> Verdict:
        """Remove lost members, set members draining, raise the epoch and close the gate."""
        keys = QueryKeys.of(self._engine, query)
        names = (keys.query, keys.members, keys.departed)
        workers = [to_bytes(worker) for worker in (*lost, *draining)]
        return self._verdict(self._call("freeze", names, self._incarnation, len(lost), *workers))

    def snapshot(self, query: QueryId) -> Snapshot | None:
        """All of a query's state but its records; None if it has ended."""
        held = self._held(query, with_records=False)
        if held is None:
            return None
        members, draining = by_draining(held.members)
        return Snapshot(
            version=held.version,
            epoch=held.epoch,
            gate_open=held.gate_open,
            members=members,
            draining=draining,
            departed=held.departed,
            channels=held.channels,
            delivered=held.delivered,
            rereads=tuple(held.claims[key] for key in sorted(held.claims)) + held.rereads,
            strained=held.strained,
            lost_strained=held.lost_strained,
        )

    def history(self, query: QueryId) -> Mapping[ChannelName, tuple[bytes, ...]]:
        """All committed records of a query, by channel; nothing if it has ended."""
        held = self._held(query, with_records=True)
        return {} if held is None else held.records

    def resume(self, query: QueryId, plan: RecoveryPlan, version: int) -> Verdict:
        """Apply a plan made from this version, raise the epoch and open the gate; or CONFLICT."""
        keys = QueryKeys.of(self._engine, query)
        names = (keys.query, keys.channels, keys.delivered, keys.rereads, keys.claims)
        delivered = flat([(encode_edge(edge), count) for edge, count in plan.delivered.items()])
        channels = channel_changes(plan)
        arguments = (
            *(self._incarnation, version, len(channels), *flat(channels)),
            *(len(plan.delivered), *delivered),
            *map(encode_reread, plan.rereads),
        )
        return self._verdict(self._call("resume", names, *arguments))

    def remove(self, query: QueryId, *, barred: bool = False) -> None:
        """End a query and delete its keys, even those of another run."""
        keys = QueryKeys.of(self._engine, query)
        others = (
            keys.payload,
            keys.members,
            keys.departed,
            keys.links,
            keys.splits,
            keys.delivered,
            keys.rereads,
            keys.claims,
        )
        names = (keys.query, keys.barred, keys.channels, keys.records, *others)
        self._call("remove", names, BARRED_MS if barred else 0)

    # --- a query, by a worker ------------------------------------------------------------------------

    def look(self, query: QueryId, worker: WorkerId) -> QueryView:
        """The worker's channels and routes, if the gate is open."""
        keys = QueryKeys.of(self._engine, query)
        names = (
            *(keys.query, keys.members, keys.channels, keys.links),
            *(keys.delivered, keys.rereads, keys.departed),
        )
        word, *answer = self._call("look", names, self._incarnation, to_bytes(worker))
        verdict = self._verdict(word)
        if verdict is not Verdict.DONE:
            (epoch,) = answer or (0,)
            return QueryView(verdict, int(epoch))
        epoch, flat_channels, member_names, edges, counts, waiting = answer
        members = {HEAD, *(to_text(name) for name in member_names)}
        channels = channels_of(flat_channels)
        return QueryView(
            verdict=verdict,
            epoch=int(epoch),
            assignments=tuple(
                Assignment(name, c.base, c.length, c.final, c.closed, c.split, c.since_epoch)
                for name, c in channels.items()
                if c.host == worker
            ),
            routes={name: channel.host for name, channel in channels.items() if channel.host in members},
            delivered={decode_edge(edge): int(count) for edge, count in zip(edges, counts, strict=True)},
            rereads_waiting=bool(waiting),
        )

    def records(self, query: QueryId, worker: WorkerId, epoch: int, channel: ChannelName) -> RecordsReply:
        """The committed records of a channel that the worker hosts, for its retrace."""
        keys = QueryKeys.of(self._engine, query)
        names = (keys.query, keys.members, keys.channels, keys.records_of(channel))
        word, *found = self._call(
            "records", names, self._incarnation, to_bytes(worker), epoch, encode_channel(channel)
        )
        (records,) = found or ((),)
        return RecordsReply(self._verdict(word), tuple(records))

    def commit(
        self, query: QueryId, worker: WorkerId, epoch: int, commits: tuple[Commit, ...]
    ) -> tuple[CommitReply, ...]:
        """Append records, each independently."""
        if not commits:
            return ()
        keys = QueryKeys.of(self._engine, query)
        names = [keys.query, keys.members, keys.channels, keys.delivered, keys.splits]
        arguments: list[ScriptArgument] = [self._incarnation, to_bytes(worker), epoch]
        for commit in commits:
            channel = commit.task.of
            names.append(keys.records_of(channel))
            arguments += (encode_channel(channel), commit.since_epoch, commit.task.seq, int(commit.final))
            left = NONE if commit.next_split is None else str(commit.next_split)
            arguments += (commit.record, left, len(commit.delivered))
            for edge, count in commit.delivered:
                arguments += (encode_edge(edge), count)
        answer = self._call("commit", names, *arguments)
        return tuple(CommitReply(self._verdict(word), decode_split(split)) for word, split in pairs(answer))

    def acknowledge(
        self, query: QueryId, worker: WorkerId, epoch: int, delivered: tuple[tuple[Edge, int], ...]
    ) -> Verdict:
        """Raise `delivered` of edges whose producer channels the worker hosts."""
        keys = QueryKeys.of(self._engine, query)
        names = (keys.query, keys.members, keys.channels, keys.links, keys.delivered)
        edges = flat([(encode_edge(edge), count) for edge, count in delivered])
        return self._verdict(
            self._call("acknowledge", names, self._incarnation, to_bytes(worker), epoch, *edges)
        )

    def claim(
        self, query: QueryId, worker: WorkerId, epoch: int, slot: int, completed: TaskName | None
    ) -> Claim:
        """Complete a slot's re-read, if it is still held, and take the next one."""
        keys = QueryKeys.of(self._engine, query)
        names = (keys.query, keys.members, keys.channels, keys.rereads, keys.claims, keys.records)
        done = b"" if completed is None else b"%s %d" % (encode_channel(completed.of), completed.seq)
        word, *answer = self._call(
            "claim", names, self._incarnation, to_bytes(worker), epoch, claim_name(worker, slot), done
        )
        verdict = self._verdict(word)
        if not answer:
            return Claim(verdict)
        reread, record = answer
        held = decode_reread(reread)
        return Claim(verdict, TaskName(*held.channel, held.first), record, held.edges)

    def close_early(
        self,
        query: QueryId,
        worker: WorkerId,
        epoch: int,
        candidates: tuple[tuple[ChannelName, tuple[ChannelName, ...]], ...],
    ) -> Verdict:
        """Close, in this order, every candidate that has not ended and whose consumers all have."""
        keys = QueryKeys.of(self._engine, query)
        arguments: list[ScriptArgument] = [self._incarnation, to_bytes(worker), epoch]
        for name, consumers in candidates:
            arguments += (encode_channel(name), len(consumers), *map(encode_channel, consumers))
        return self._verdict(self._call("close_early", (keys.query, keys.members, keys.channels), *arguments))

    def fail(self, query: QueryId, worker: WorkerId, epoch: int, error: str) -> Verdict:
        """Report a task's own error, which ends the query."""
        keys = QueryKeys.of(self._engine, query)
        arguments = (self._incarnation, to_bytes(worker), epoch, to_bytes(error))
        return self._verdict(self._call("fail", (keys.query, keys.members), *arguments))

    def strain(self, query: QueryId, worker: WorkerId, strained: bool) -> Verdict:
        """Note that a worker is short of memory because of a query, or no longer is."""
        keys = QueryKeys.of(self._engine, query)
        arguments = (self._incarnation, to_bytes(worker), int(strained))
        return self._verdict(self._call("strain", (keys.query, keys.members), *arguments))

    # --- for tests and repair ------------------------------------------------------------------------

    def dump(self, query: QueryId) -> Mapping[str, object] | None:
        """Everything the store holds of a query, as plain values; None if it holds nothing."""
        held = self._held(query, with_records=True)
        if held is None:
            return None
        return {
            "epoch": held.epoch,
            "gate_open": held.gate_open,
            "version": held.version,
            "commits": held.commits,
            "error": held.error,
            "members": held.members,
            "departed": held.departed,
            "strained": held.strained,
            "lost_strained": held.lost_strained,
            "next_split": held.next_split,
            "channels": held.channels,
            "records": held.records,
            "delivered": held.delivered,
            "rereads": held.rereads,
            "claims": held.claims,
        }

    def queries(self) -> tuple[QueryId, ...]:
        """The queries that the store holds, sorted. One that begins or ends meanwhile may be missed."""
        return queries_of(self._connection.find_keys(every_query(self._engine)))

    def count_keys(self) -> int:
        """The number of Wallaby's keys in the store, of all engines."""
        return len(self._connection.find_keys(EVERY_KEY))

    def replace_address(self, worker: WorkerId, by: Callable[[str], str]) -> None:
        """Replace the address under which a registered worker is found."""
        key = self._workers.workers
        order, draining, address = self._connection.command("HGET", key, worker).decode().split(" ", 2)
        self._connection.command("HSET", key, worker, f"{order} {draining} {by(address)}")

    # -------------------------------------------------------------------------------------------------

    def _call(self, action: str, keys: tuple[bytes, ...] | list[bytes], *arguments: ScriptArgument) -> Any:
        return self._connection.run(scripts.load(action), keys, (self._incarnation, *arguments))

    def _verdict(self, word: bytes) -> Verdict:
        if word == b"lost":
            raise GcsLostError(
                f"Redis at {self._connection.address} was restarted or replaced since the query was submitted.",
                fix="Run the query again.",
                address=str(self._connection.address),
                incarnation=self._incarnation,
            )
        return Verdict(word.decode())

    def _held(self, query: QueryId, *, with_records: bool) -> StoredState | None:
        keys = QueryKeys.of(self._engine, query)
        names = (
            *(keys.query, keys.members, keys.departed, keys.channels, keys.delivered),
            *(keys.rereads, keys.claims, keys.splits, keys.records),
        )
        word, *answer = self._call("snapshot", names, self._incarnation, int(with_records))
        return StoredState.of(answer) if self._verdict(word) is Verdict.DONE else None
