"""The GCS in one process: plain dictionaries, with one transaction per method.

It is the executable specification of the Redis scripts: the contract test (`tests/gcs/test_contract.py`) runs the same
drawn actions on both. The simulation and unit tests run on it. It ships with the engine because it states what the
store must do, in the language in which the protocol is written, and because mutants are edits of the engine; see
decision 33. A `MemoryStore` represents the server and holds the data; a `MemoryGcs` represents a client's connection
to it and refuses to continue once the server is not the one to which it first connected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from wallaby.errors import GcsLostError
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
from wallaby.gcs.stored import MemoryStore, StoredQuery, StoredWorker
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import HEAD, ChannelName, Edge, QueryId, TaskName, WorkerId
from wallaby.lineage.snapshot import ChannelState, RecoveryPlan, ReRead, Snapshot
from wallaby.lineage.verdict import RecordsReply

__all__ = ["MemoryGcs", "MemoryStore", "StoredQuery"]


class MemoryGcs:
    """A client of a `MemoryStore`; see `interface.Gcs` for what each action does.

    It may be given the incarnation that the store must have; the default is the one at the beginning.
    """

    def __init__(self, store: MemoryStore, incarnation: tuple[str, str] | None = None) -> None:
        self._server = store
        self._run_id, self._replication_id = incarnation or store.incarnation

    def lead_to(self, store: MemoryStore) -> None:
        """Let the address lead to another store from now on."""
        self._server = store

    @property
    def server(self) -> MemoryStore:
        """For checks: the store to which the address leads."""
        return self._server

    @property
    def _store(self) -> MemoryStore:
        if self._server.run_id != self._run_id or self._server.replication_id != self._replication_id:
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
            store.workers[worker] = StoredWorker(address, expires_at_ms)
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
            other.complaints.forget(worker)

    def ask_to_drain(self, worker: WorkerId) -> None:
        known = self._store.workers.get(worker)
        if known is not None:
            known.draining = True

    def complain(
        self,
        reporter: WorkerId,
        accused: WorkerId,
        reachable: bool,
        query: QueryId = ANY_QUERY,
        lasts_ms: int = COMPLAINT_MS,
    ) -> bool:
        store = self._store
        known = store.workers.get(accused)
        if known is None or reporter not in store.workers:
            return False
        known.complaints.say(reporter, query, reachable, store.now_ms(), lasts_ms)
        return True

    def workers(self) -> tuple[WorkerLease, ...]:
        store = self._store
        now = store.now_ms()
        return tuple(
            WorkerLease(
                worker,
                known.address,
                known.expires_at_ms - now,
                known.draining,
                known.complaints.lasted_ms(now),
            )
            for worker, known in store.workers.items()
        )

    # --- a query, by the coordinator -----------------------------------------------------------------

    def submit(
        self, query: QueryId, graph: StageGraph, hosts: Mapping[ChannelName, WorkerId], payload: bytes = b""
    ) -> Verdict:
        store = self._store
        if query in store.barred:
            return Verdict.GONE
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
                if worker in state.strained and not state.departed[worker]:
                    state.lost_strained.add(worker)
                state.strained.discard(worker)
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
            strained=tuple(sorted(state.strained)),
            lost_strained=tuple(sorted(state.lost_strained)),
        )

    def history(self, query: QueryId) -> Mapping[ChannelName, tuple[bytes, ...]]:
        state = self._store.queries.get(query)
        return {} if state is None else {name: tuple(of) for name, of in state.records.items()}

    def resume(self, query: QueryId, plan: RecoveryPlan, version: int) -> Verdict:
        state = self._store.queries.get(query)
        if state is None:
            return Verdict.GONE
        if state.version != version or state.gate_open:
            return Verdict.CONFLICT
        for name, host in plan.hosts.items():
            state.channels[name] = replace(state.channels[name], host=host, since_epoch=state.epoch + 1)
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

    def remove(self, query: QueryId, *, barred: bool = False) -> None:
        store = self._store
        store.queries.pop(query, None)
        if barred:
            store.barred.add(query)

    # --- a query, by a worker ------------------------------------------------------------------------

    def look(self, query: QueryId, worker: WorkerId) -> QueryView:
        state = self._store.queries.get(query)
        if state is None:
            return QueryView(Verdict.GONE)
        if not _is_member(state, worker):
            return QueryView(Verdict.EXPELLED if worker in state.departed else Verdict.NOT_HOST)
        if not state.gate_open:
            return QueryView(Verdict.FROZEN, state.epoch)
        mine = [(name, c) for name, c in state.channels.items() if c.host == worker]
        return QueryView(
            verdict=Verdict.DONE,
            epoch=state.epoch,
            assignments=tuple(
                Assignment(n, c.base, c.length, c.final, c.closed, c.split, c.since_epoch) for n, c in mine
            ),
            routes={name: c.host for name, c in state.channels.items() if _is_member(state, c.host)},
            delivered={
                edge: state.delivered[edge] for name, _ in mine for edge in state.graph.edges_from(name)
            },
            rereads_waiting=_first_reread(state, worker) is not None,
        )

    def records(self, query: QueryId, worker: WorkerId, epoch: int, channel: ChannelName) -> RecordsReply:
        state = self._store.queries.get(query)
        refusal = _fence(state, worker, epoch)
        if refusal is not None or state is None:
            return RecordsReply(refusal or Verdict.GONE)
        if state.channels[channel].host != worker:
            return RecordsReply(Verdict.NOT_HOST)
        return RecordsReply(Verdict.DONE, tuple(state.records[channel]))

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

    def strain(self, query: QueryId, worker: WorkerId, strained: bool) -> Verdict:
        state = self._store.queries.get(query)
        if state is None:
            return Verdict.GONE
        if worker not in state.members:
            return Verdict.EXPELLED
        if strained:
            state.strained.add(worker)
        else:
            state.strained.discard(worker)
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
            "strained": tuple(sorted(state.strained)),
            "lost_strained": tuple(sorted(state.lost_strained)),
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
    if channel.host != worker or channel.since_epoch != commit.since_epoch:
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
        split = commit.next_split if commit.next_split is not None else _take_split(state, name.stage)
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
