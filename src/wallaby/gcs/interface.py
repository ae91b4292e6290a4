"""The interface of the GCS: whole protocol actions, each of them one transaction.

Rules that every implementation keeps:

- all checks come before the first write; an action that is refused changes nothing;
- every action may be repeated after a lost reply, with the same effect as once;
- a worker's write carries the epoch that it knows and is refused if the query's differs, if the gate is
  closed, or if the worker is not a member of the query (invariant 6);
- an action on a query that has ended, or never existed, answers `GONE` and recreates nothing;
- a store that restarted since the query was submitted raises `GcsLostError`; one that does not answer
  raises `GcsUnavailableError`, and then the action may or may not have been applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, Edge, QueryId, TaskName, WorkerId
from wallaby.lineage.snapshot import RecoveryPlan, Snapshot
from wallaby.lineage.verdict import Claim, CommitReply, RecordsReply, Verdict

__all__ = [
    "ANY_QUERY",
    "COMPLAINT_MS",
    "Assignment",
    "Claim",
    "Commit",
    "CommitReply",
    "Gcs",
    "QueryStatus",
    "QueryView",
    "Verdict",
    "WorkerLease",
]

#: How long a complaint lasts without renewal: longer than a large push takes to fail.
COMPLAINT_MS = 60_000
#: For complaints that concern no particular query.
ANY_QUERY = QueryId("")


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker needs to know about a channel that it hosts."""

    channel: ChannelName
    base: int
    length: int
    final: bool
    closed: bool
    #: The split of the next task, for a reader that has one.
    split: int | None
    #: The epoch of its present channel run: in which it came to the worker, or was rewound there.
    since_epoch: int = 1


@dataclass(frozen=True, slots=True)
class QueryView:
    """What a worker sees of a query. Unless the verdict is DONE, only `verdict` and `epoch` are meaningful."""

    verdict: Verdict
    epoch: int = 0
    assignments: tuple[Assignment, ...] = ()
    #: The host of every channel, including the collector's, unless that host is gone: then the channel has ended and is
    #: not needed. Constant within an epoch.
    routes: Mapping[ChannelName, WorkerId] | None = None
    #: For the edges that leave this worker's channels.
    delivered: Mapping[Edge, int] | None = None
    #: Are there re-reads waiting that this worker could claim?
    rereads_waiting: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """One task's record, with the channel's deliveries so far."""

    task: TaskName
    record: bytes
    #: Does the record end the channel? The store does not decode records.
    final: bool
    delivered: tuple[tuple[Edge, int], ...] = ()
    #: The epoch of the channel run that attempted it; a channel that was rewound since has a later one.
    since_epoch: int = 1
    #: The rest of a reader's split: its next task reads that, and no other split is claimed.
    next_split: int | None = None


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """The state of a query that the coordinator watches."""

    verdict: Verdict
    epoch: int = 0
    gate_open: bool = False
    members: tuple[WorkerId, ...] = ()
    draining: tuple[WorkerId, ...] = ()
    #: A task's own error, as reported by its worker; empty if there is none.
    error: str = ""
    #: The total number of committed records.
    commits: int = 0


@dataclass(frozen=True, slots=True)
class WorkerLease:
    """One worker as the store sees it. `remaining_ms` is by the store's clock; 0 or less means expired."""

    worker: WorkerId
    address: str
    remaining_ms: int
    #: It has asked to leave.
    draining: bool = False
    #: Workers that report that they cannot reach it, each with the time from the first report to the latest. A single
    #: report has lasted no time at all.
    complaints: tuple[tuple[WorkerId, int], ...] = ()


class Gcs(Protocol):
    """The control store; see the rules of the module."""

    # --- workers -------------------------------------------------------------------------------------

    def register(self, worker: WorkerId, address: str, lease_ms: int) -> bool:
        """Announce a new worker. False if the id was ever used by another address or has been expelled."""
        ...

    def renew(self, worker: WorkerId, lease_ms: int) -> bool:
        """Renew a worker's lease. False: it is expelled or unknown, and must end itself."""
        ...

    def expel(self, worker: WorkerId) -> None:
        """Remove a worker for good; its id never becomes valid again."""
        ...

    def ask_to_drain(self, worker: WorkerId) -> None:
        """Note that a worker is about to leave."""
        ...

    def complain(
        self,
        reporter: WorkerId,
        accused: WorkerId,
        reachable: bool,
        query: QueryId = ANY_QUERY,
        lasts_ms: int = COMPLAINT_MS,
    ) -> bool:
        """Note that one worker cannot reach another for a query, or withdraw such a complaint.

        A complaint lasts for `lasts_ms`, unless it is renewed or withdrawn before. False: one of the two workers is
        gone.
        """
        ...

    def workers(self) -> tuple[WorkerLease, ...]:
        """Every registered worker, in the order of registration."""
        ...

    # --- a query, by the coordinator -----------------------------------------------------------------

    def submit(
        self, query: QueryId, graph: StageGraph, hosts: Mapping[ChannelName, WorkerId], payload: bytes = b""
    ) -> Verdict:
        """Create a query: its members are the hosts, its epoch 1, its gate open. GONE if it has been barred.

        Each reader channel is given its first split, in the order of stages and channels. The payload is what workers,
        but not the store, need to know about the query.
        """
        ...

    def payload(self, query: QueryId) -> bytes | None:
        """The payload that was submitted with a query; None if it has ended."""
        ...

    def join(self, query: QueryId, worker: WorkerId) -> Verdict:
        """Make a worker a member, so that the next plan may give it channels."""
        ...

    def status(self, query: QueryId) -> QueryStatus:
        """The state of a query that the coordinator watches."""
        ...

    def freeze(self, query: QueryId, lost: tuple[WorkerId, ...], draining: tuple[WorkerId, ...]) -> Verdict:
        """Remove lost members, set members draining, raise the epoch and close the gate.

        A lost worker that had been draining counts as announced.
        """
        ...

    def snapshot(self, query: QueryId) -> Snapshot | None:
        """The state of a query without its records; None if it has ended."""
        ...

    def history(self, query: QueryId) -> Mapping[ChannelName, tuple[bytes, ...]]:
        """All committed records of a query, by channel; nothing if it has ended."""
        ...

    def resume(self, query: QueryId, plan: RecoveryPlan, version: int) -> Verdict:
        """Apply a plan made from this version, raise the epoch and open the gate; or CONFLICT."""
        ...

    def remove(self, query: QueryId, *, barred: bool = False) -> None:
        """End a query and delete its keys. With `barred`, a later submit creates nothing, for an hour.

        Otherwise a submit that its sender has given up could arrive when nobody knows of the query any more.
        """
        ...

    # --- a query, by a worker ------------------------------------------------------------------------

    def look(self, query: QueryId, worker: WorkerId) -> QueryView:
        """The worker's channels and routes, if the gate is open.

        A worker that is not a member is EXPELLED if it has been one, otherwise NOT_HOST: it may still join.
        """
        ...

    def records(self, query: QueryId, worker: WorkerId, epoch: int, channel: ChannelName) -> RecordsReply:
        """The committed records of a channel that the worker hosts, for its retrace."""
        ...

    def commit(
        self, query: QueryId, worker: WorkerId, epoch: int, commits: tuple[Commit, ...]
    ) -> tuple[CommitReply, ...]:
        """Append records, each independently: a refused one does not affect the others.

        Order of checks for each: GONE, EXPELLED, FROZEN, STALE; NOT_HOST if the channel is another worker's, or
        was rewound in place since the attempt began; then a `seq` below the committed
        length is ALREADY or DIVERGED; a closed channel is CLOSED; a final one, or a `seq` beyond the length,
        OUT_OF_ORDER. A commit that is DONE or ALREADY also raises `delivered` (it never falls within an
        epoch). A reader's record that is not final claims the stage's next split, unless there is a rest of its own
        split.
        """
        ...

    def acknowledge(
        self, query: QueryId, worker: WorkerId, epoch: int, delivered: tuple[tuple[Edge, int], ...]
    ) -> Verdict:
        """Raise `delivered` of edges whose producer channels the worker hosts; others are NOT_HOST, all or none."""
        ...

    def claim(
        self, query: QueryId, worker: WorkerId, epoch: int, slot: int, completed: TaskName | None
    ) -> Claim:
        """Complete a slot's re-read, if it is still held, and take the next one of a stage that the worker hosts.

        A slot that holds another re-read than `completed` gets the one that it holds.
        """
        ...

    def close_early(
        self,
        query: QueryId,
        worker: WorkerId,
        epoch: int,
        candidates: tuple[tuple[ChannelName, tuple[ChannelName, ...]], ...],
    ) -> Verdict:
        """Close, in this order, every candidate that has not ended and whose consumers all have."""
        ...

    def fail(self, query: QueryId, worker: WorkerId, epoch: int, error: str) -> Verdict:
        """Report a task's own error, which ends the query. The first one stays."""
        ...

    def strain(self, query: QueryId, worker: WorkerId, strained: bool) -> Verdict:
        """Note that a worker is short of memory, most of which this query takes; or withdraw the note.

        If such a worker is lost unannounced, the query's snapshot says so from then on.
        """
        ...

    # --- for tests and repair ------------------------------------------------------------------------

    def dump(self, query: QueryId) -> Mapping[str, object] | None:
        """Everything the store holds of a query, as plain values; None if it holds nothing."""
        ...

    def queries(self) -> tuple[QueryId, ...]:
        """The queries that the store holds, sorted."""
        ...
