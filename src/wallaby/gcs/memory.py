"""The GCS in one process: plain dictionaries, each method one transaction.

It serves the simulation and unit tests, and it is the readable statement of what the Redis scripts do. A
`MemoryStore` stands for the server and holds the data; a `MemoryGcs` stands for a client's connection to it
and refuses to go on once the server is not the one that it first spoke to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from wallaby.errors import GcsLostError
from wallaby.gcs.interface import (
    Assignment,
    Claim,
    Commit,
    CommitReply,
    QueryStatus,
    Verdict,
    View,
    WorkerLease,
)
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import HEAD, ChannelName, Edge, QueryId, TaskName, WorkerId
from wallaby.lineage.snapshot import ChannelState, Plan, ReRead, Snapshot


@dataclass(slots=True)
class _Worker:
    address: str
    expires_at_ms: int
    draining: bool = False
    complaints_since_ms: dict[WorkerId, int] = field(default_factory=dict)


@dataclass(slots=True)
class StoredQuery:
    """What the server holds of one query."""

    graph: StageGraph
    channels: dict[ChannelName, ChannelState]
    records: dict[ChannelName, list[bytes]]
    delivered: dict[Edge, int]
    members: dict[WorkerId, bool]
    next_split: dict[int, int]
    payload: bytes = b""
    epoch: int = 1
    gate_open: bool = True
    version: int = 1
    commits: int = 0
    error: str = ""
    departed: dict[WorkerId, bool] = field(default_factory=dict)
    rereads: list[ReRead] = field(default_factory=list)
    claims: dict[tuple[WorkerId, int], ReRead] = field(default_factory=dict)


@dataclass(slots=True)
class MemoryStore:
    """The server's side: what a Redis would hold. `run_id` names one life of it."""

    now_ms: Callable[[], int]
    run_id: str = "1"
    workers: dict[WorkerId, _Worker] = field(default_factory=dict)
    expelled: set[WorkerId] = field(default_factory=set)
    queries: dict[QueryId, StoredQuery] = field(default_factory=dict)


class MemoryGcs:
    """A client of a `MemoryStore`; see `interface.Gcs` for what each action does."""

    def __init__(self, store: MemoryStore) -> None:
        self._server = store
        self._run_id = store.run_id

    @property
    def _store(self) -> MemoryStore:
        if self._server.run_id != self._run_id:
            raise GcsLostError(
                "The control store was restarted and may have lost data.",
                fix="Attach again; running queries are lost.",
                run_id=self._server.run_id,
            )
        return self._server

    # --- workers -------------------------------------------------------------------------------------

    def register(self, worker: WorkerId, address: str, lease_ms: int) -> bool:
        store = self._store
        known = store.workers.get(worker)
        if worker in store.expelled or (known is not None and known.address != address):
            return False
        expires_at_ms = store.now_ms() + lease_ms
        if known is None:
            store.workers[worker] = _Worker(address, expires_at_ms)
        else:
            known.expires_at_ms = expires_at_ms
        return True

    def renew(self, worker: WorkerId, lease_ms: int) -> bool:
        store = self._store
        known = store.workers.get(worker)
        if known is None:
            return False
        known.expires_at_ms = store.now_ms() + lease_ms
        return True

    def expel(self, worker: WorkerId) -> None:
        store = self._store
        store.expelled.add(worker)
        store.workers.pop(worker, None)
        for other in store.workers.values():
            other.complaints_since_ms.pop(worker, None)

    def ask_to_drain(self, worker: WorkerId) -> None:
        known = self._store.workers.get(worker)
        if known is not None:
            known.draining = True

    def complain(self, reporter: WorkerId, accused: WorkerId, reachable: bool) -> None:
        store = self._store
        known = store.workers.get(accused)
        if known is None or reporter not in store.workers:
            return
        if reachable:
            known.complaints_since_ms.pop(reporter, None)
        else:
            known.complaints_since_ms.setdefault(reporter, store.now_ms())

    def workers(self) -> tuple[WorkerLease, ...]:
        store = self._store
        now = store.now_ms()
        return tuple(
            WorkerLease(
                worker,
                known.address,
                known.expires_at_ms - now,
                known.draining,
                tuple(
                    (reporter, now - since) for reporter, since in sorted(known.complaints_since_ms.items())
                ),
            )
            for worker, known in store.workers.items()
        )

    # --- a query, by the coordinator -----------------------------------------------------------------

    def submit(
        self, query: QueryId, graph: StageGraph, hosts: Mapping[ChannelName, WorkerId], payload: bytes = b""
    ) -> Verdict:
        store = self._store
        if query in store.queries:
            return Verdict.ALREADY
        next_split = {s: 0 for s, stage in enumerate(graph.stages) if graph.is_reader(s)}
        state = StoredQuery(
            graph=graph,
            channels={name: ChannelState(hosts[name]) for name in graph.channels},
            records={name: [] for name in graph.channels},
            delivered={edge: 0 for name in graph.channels for edge in graph.edges_from(name)},
            members={worker: False for worker in dict.fromkeys(hosts.values()) if worker != HEAD},
            next_split=next_split,
            payload=payload,
        )
        for name in graph.channels:
            if name.stage in next_split:
                state.channels[name] = replace(state.channels[name], split=_take_split(state, name.stage))
        store.queries[query] = state
        return Verdict.DONE

    def payload(self, query: QueryId) -> bytes | None:
        state = self._store.queries.get(query)
        return state.payload if state is not None else None

    def join(self, query: QueryId, worker: WorkerId) -> Verdict:
        state = self._store.queries.get(query)
        if state is None:
            return Verdict.GONE
        if worker in state.departed:
            return Verdict.EXPELLED
        if worker in state.members:
            return Verdict.ALREADY
        state.members[worker] = False
        state.version += 1
        return Verdict.DONE

    def status(self, query: QueryId) -> QueryStatus:
        state = self._store.queries.get(query)
        if state is None:
            return QueryStatus(Verdict.GONE)
        members, draining = _members(state)
        return QueryStatus(
            Verdict.DONE, state.epoch, state.gate_open, members, draining, state.error, state.commits
        )

    def freeze(self, query: QueryId, lost: tuple[WorkerId, ...], draining: tuple[WorkerId, ...]) -> Verdict:
        state = self._store.queries.get(query)
        if state is None:
            return Verdict.GONE
        for worker in lost:
            if worker in state.members:
                state.departed[worker] = state.members.pop(worker)
        for worker in draining:
            if worker in state.members:
                state.members[worker] = True
        state.epoch += 1
        state.gate_open = False
        state.version += 1
        return Verdict.DONE

    def snapshot(self, query: QueryId) -> Snapshot | None:
        state = self._store.queries.get(query)
        if state is None:
            return None
        members, draining = _members(state)
        claimed = tuple(state.claims[key] for key in sorted(state.claims))
        return Snapshot(
            version=state.version,
            epoch=state.epoch,
            gate_open=state.gate_open,
            members=members,
            draining=draining,
            departed=dict(state.departed),
            channels=dict(state.channels),
            delivered=dict(state.delivered),
            rereads=claimed + tuple(state.rereads),
        )

    def history(self, query: QueryId) -> Mapping[ChannelName, tuple[bytes, ...]]:
        state = self._store.queries.get(query)
        return {} if state is None else {name: tuple(of) for name, of in state.records.items()}

    def resume(self, query: QueryId, plan: Plan, version: int) -> Verdict:
        state = self._store.queries.get(query)
        if state is None:
            return Verdict.GONE
        if state.version != version or state.gate_open:
            return Verdict.CONFLICT
        for name, host in plan.hosts.items():
            state.channels[name] = replace(state.channels[name], host=host)
        for name, base in plan.bases.items():
            state.channels[name] = replace(state.channels[name], base=base)
        for name, losses in plan.losses.items():
            state.channels[name] = replace(state.channels[name], losses=losses)
        for name in plan.closed:
            state.channels[name] = replace(state.channels[name], closed=True)
        state.delivered.update(plan.delivered)
        state.rereads = list(plan.rereads)
        state.claims.clear()
        state.epoch += 1
        state.gate_open = True
        state.version += 1
        return Verdict.DONE

    def remove(self, query: QueryId) -> None:
        self._store.queries.pop(query, None)

    # --- a query, by a worker ------------------------------------------------------------------------

    def look(self, query: QueryId, worker: WorkerId) -> View:
        state = self._store.queries.get(query)
        if state is None:
            return View(Verdict.GONE)
        if not _is_member(state, worker):
            return View(Verdict.EXPELLED if worker in state.departed else Verdict.NOT_HOST)
        if not state.gate_open:
            return View(Verdict.FROZEN, state.epoch)
        mine = [(name, c) for name, c in state.channels.items() if c.host == worker]
        return View(
            verdict=Verdict.DONE,
            epoch=state.epoch,
            assignments=tuple(Assignment(n, c.base, c.length, c.final, c.closed, c.split) for n, c in mine),
            routes={name: c.host for name, c in state.channels.items() if _is_member(state, c.host)},
            delivered={
                edge: state.delivered[edge] for name, _ in mine for edge in state.graph.edges_from(name)
            },
            rereads_waiting=_first_reread(state, worker) is not None,
        )

    def records(
        self, query: QueryId, worker: WorkerId, epoch: int, channel: ChannelName
    ) -> tuple[Verdict, tuple[bytes, ...]]:
        state = self._store.queries.get(query)
        refusal = _fence(state, worker, epoch)
        if refusal is not None or state is None:
            return refusal or Verdict.GONE, ()
        if state.channels[channel].host != worker:
            return Verdict.NOT_HOST, ()
        return Verdict.DONE, tuple(state.records[channel])

    def commit(
        self, query: QueryId, worker: WorkerId, epoch: int, commits: tuple[Commit, ...]
    ) -> tuple[CommitReply, ...]:
        state = self._store.queries.get(query)
        refusal = _fence(state, worker, epoch)
        if refusal is not None or state is None:
            return tuple(CommitReply(refusal or Verdict.GONE) for _ in commits)
        return tuple(_commit_one(state, worker, commit) for commit in commits)

    def acknowledge(
        self, query: QueryId, worker: WorkerId, epoch: int, delivered: tuple[tuple[Edge, int], ...]
    ) -> Verdict:
        state = self._store.queries.get(query)
        refusal = _fence(state, worker, epoch)
        if refusal is not None or state is None:
            return refusal or Verdict.GONE
        if any(state.channels[state.graph.producer(edge)].host != worker for edge, _ in delivered):
            return Verdict.NOT_HOST
        if _raise_delivered(state, delivered):
            state.version += 1
        return Verdict.DONE

    def claim(
        self, query: QueryId, worker: WorkerId, epoch: int, slot: int, completed: TaskName | None
    ) -> Claim:
        state = self._store.queries.get(query)
        refusal = _fence(state, worker, epoch)
        if refusal is not None or state is None:
            return Claim(refusal or Verdict.GONE)
        held = state.claims.get((worker, slot))
        if held is not None and completed != TaskName(*held.channel, held.first):
            return _claim_of(state, held)
        if held is not None:
            del state.claims[worker, slot]
            state.version += 1
        at = _first_reread(state, worker)
        if at is None:
            return Claim(Verdict.DONE)
        waiting = state.rereads[at]
        taken = replace(waiting, end=waiting.first + 1)
        if taken.end == waiting.end:
            del state.rereads[at]
        else:
            state.rereads[at] = replace(waiting, first=taken.end)
        state.claims[worker, slot] = taken
        state.version += 1
        return _claim_of(state, taken)

    def close_early(
        self,
        query: QueryId,
        worker: WorkerId,
        epoch: int,
        candidates: tuple[tuple[ChannelName, tuple[ChannelName, ...]], ...],
    ) -> Verdict:
        state = self._store.queries.get(query)
        refusal = _fence(state, worker, epoch)
        if refusal is not None or state is None:
            return refusal or Verdict.GONE
        for name, consumers in candidates:
            channel = state.channels[name]
            if not channel.ended and all(state.channels[consumer].ended for consumer in consumers):
                state.channels[name] = replace(channel, closed=True)
                state.version += 1
        return Verdict.DONE

    def fail(self, query: QueryId, worker: WorkerId, epoch: int, error: str) -> Verdict:
        state = self._store.queries.get(query)
        refusal = _fence(state, worker, epoch)
        if refusal is not None or state is None:
            return refusal or Verdict.GONE
        if state.error:
            return Verdict.ALREADY
        state.error = error
        state.version += 1
        return Verdict.DONE

    # --- for tests and repair ------------------------------------------------------------------------

    def dump(self, query: QueryId) -> Mapping[str, object] | None:
        state = self._store.queries.get(query)
        if state is None:
            return None
        return {
            "epoch": state.epoch,
            "gate_open": state.gate_open,
            "version": state.version,
            "commits": state.commits,
            "error": state.error,
            "members": dict(state.members),
            "departed": dict(state.departed),
            "next_split": dict(state.next_split),
            "channels": dict(state.channels),
            "records": {name: tuple(records) for name, records in state.records.items()},
            "delivered": dict(state.delivered),
            "rereads": tuple(state.rereads),
            "claims": dict(state.claims),
        }

    def queries(self) -> tuple[QueryId, ...]:
        return tuple(sorted(self._store.queries))


def _is_member(state: StoredQuery, worker: WorkerId) -> bool:
    return worker == HEAD or worker in state.members


def _members(state: StoredQuery) -> tuple[tuple[WorkerId, ...], tuple[WorkerId, ...]]:
    return (
        tuple(worker for worker, draining in state.members.items() if not draining),
        tuple(worker for worker, draining in state.members.items() if draining),
    )


def _fence(state: StoredQuery | None, worker: WorkerId, epoch: int) -> Verdict | None:
    """Why a worker's action must be refused, or None (invariant 6)."""
    if state is None:
        return Verdict.GONE
    if not _is_member(state, worker):
        return Verdict.EXPELLED
    if not state.gate_open:
        return Verdict.FROZEN
    if epoch != state.epoch:
        return Verdict.STALE
    return None


def _commit_one(state: StoredQuery, worker: WorkerId, commit: Commit) -> CommitReply:
    name = commit.task.of
    channel = state.channels[name]
    if channel.host != worker:
        return CommitReply(Verdict.NOT_HOST)
    if commit.task.seq < channel.length:
        if state.records[name][commit.task.seq] != commit.record:
            return CommitReply(Verdict.DIVERGED)
        if _raise_delivered(state, commit.delivered):
            state.version += 1
        return CommitReply(Verdict.ALREADY, channel.split)
    if channel.closed:
        return CommitReply(Verdict.CLOSED)
    if channel.final or commit.task.seq > channel.length:
        return CommitReply(Verdict.OUT_OF_ORDER)
    split = None
    if name.stage in state.next_split and not commit.final:
        split = _take_split(state, name.stage)
    state.records[name].append(commit.record)
    state.channels[name] = replace(
        channel, length=channel.length + 1, final=commit.final, split=split, losses=0
    )
    _raise_delivered(state, commit.delivered)
    state.commits += 1
    state.version += 1
    return CommitReply(Verdict.DONE, split)


def _take_split(state: StoredQuery, stage: int) -> int | None:
    split = state.next_split[stage]
    if split >= state.graph.stages[stage].splits:
        return None
    state.next_split[stage] = split + 1
    return split


def _raise_delivered(state: StoredQuery, delivered: tuple[tuple[Edge, int], ...]) -> bool:
    raised = False
    for edge, count in delivered:
        if count > state.delivered[edge]:
            state.delivered[edge] = count
            raised = True
    return raised


def _first_reread(state: StoredQuery, worker: WorkerId) -> int | None:
    stages = {name.stage for name, channel in state.channels.items() if channel.host == worker}
    for at, reread in enumerate(state.rereads):
        if reread.channel.stage in stages:
            return at
    return None


def _claim_of(state: StoredQuery, held: ReRead) -> Claim:
    task = TaskName(*held.channel, held.first)
    return Claim(Verdict.DONE, task, state.records[held.channel][held.first], held.edges)
