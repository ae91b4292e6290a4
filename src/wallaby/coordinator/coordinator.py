"""The coordinator's loop: watch the workers, check the queries, and recover those that lost a worker.

Recovery is freeze, reconcile, resume. The freeze is one transaction in the store after which no commit
succeeds, so the coordinator owns the query's state without waiting for anyone; the plan is a pure function of
a snapshot; the resume applies it as one transaction, only if nothing has changed since the snapshot. If anything dies
or restarts in between, the next look at the store finds either a closed gate, and reconciles again, or an open one
(invariants 6 and 9). The gate never opens by a timeout: past its limit the query fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wallaby.coordinator.detector import Detector
from wallaby.coordinator.effects import (
    AddMember,
    Expel,
    Freeze,
    Ping,
    ReadStatus,
    Remove,
    Resume,
    TakeSnapshot,
    Watch,
)
from wallaby.coordinator.query import Query, QueryPhase
from wallaby.errors import (
    GcsLostError,
    MemoryLimitError,
    NoWorkersError,
    PoisonTaskError,
    RecoveryTimeoutError,
    WallabyError,
    WorkerLostError,
)
from wallaby.errors.text import read_error
from wallaby.gcs.interface import QueryStatus, WorkerLease
from wallaby.lineage.effects import Effects, FailPoint, Pause, ask
from wallaby.lineage.names import QueryId, TaskName, WorkerId
from wallaby.lineage.reconcile import drained, reconcile
from wallaby.lineage.recoverable import recoverable
from wallaby.lineage.snapshot import Snapshot
from wallaby.lineage.verdict import Verdict


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """Periods and limits, in milliseconds where they are times."""

    lease_ms: int = 1250
    poll_ms: int = 100
    unreachable_ms: int = 5000
    no_workers_ms: int = 60_000
    frozen_ms: int = 60_000
    #: How long a submission may stay without an answer.
    submit_ms: int = 10_000
    task_worker_losses_max: int = 4
    #: Workers lost while they were short of memory because of one query, before it ends.
    strained_losses_max: int = 2
    #: False: a query that loses a member fails.
    recovers: bool = True
    #: A store that has been silent for longer is lost.
    silent_ms: int = 60_000
    #: How long a query may stall although nobody is busy; 0: for ever. See `stalls`.
    stall_ms: int = 60_000


class Coordinator:
    """One incarnation of the coordinator. It holds nothing that is not also in the store or in `queries`."""

    def __init__(
        self, settings: CoordinatorSettings, queries: dict[QueryId, Query], now_ms: Callable[[], int]
    ) -> None:
        self._settings = settings
        self._queries = queries
        self._now_ms = now_ms
        self.detector = Detector(settings.lease_ms, settings.unreachable_ms)
        #: Why the store is lost, if it is; this coordinator has then ended.
        self.lost: GcsLostError | None = None
        self._silent_since_ms: int | None = None

    def run(self) -> Effects[None]:
        """Watch workers and tend queries for ever; if the store is lost, so are the queries."""
        try:
            while True:
                leases = yield from self._watch()
                if leases is not None:
                    for query in [q for q in self._queries.values() if _is_tended(q)]:
                        yield from self._tend(query, leases)
                began_ms = self._now_ms()
                yield Pause(self._settings.poll_ms, FailPoint.WATCH)
                now_ms = self._now_ms()
                self.detector.woke(now_ms, now_ms - began_ms - self._settings.poll_ms)
        except GcsLostError as lost:
            self.lost = lost
            for query in self._queries.values():
                if not query.ended:
                    query.end(lost, QueryPhase.ENDED)

    def _watch(self) -> Effects[tuple[WorkerLease, ...] | None]:
        """Read the leases, ask suspects, and expel lost workers; returns the leases of the others."""
        leases = yield from ask(Watch())
        if leases is None:
            self.detector.store_silent()
            self._require_answer()
            return None
        self._silent_since_ms = None
        gone: set[WorkerId] = set()
        for worker in self.detector.suspects(self._now_ms(), leases):
            answered = yield from ask(Ping(worker))
            if self.detector.must_go(worker, bool(answered), self._now_ms()):
                gone.add(worker)
        current = self.detector.is_current
        silent = {lease.worker for lease in leases if lease.worker in gone and not current(lease)}
        if silent:
            # A worker that was too busy to answer may have renewed its lease meanwhile.
            younger = yield from ask(Watch())
            if younger is None:
                self.detector.store_silent()
                return None
            gone -= {lease.worker for lease in younger if lease.worker in silent and current(lease)}
        unreachable = self.detector.unreachable(tuple(lease for lease in leases if lease.worker not in gone))
        if unreachable is not None:
            gone.add(unreachable)
        for worker in sorted(gone):
            if (yield from ask(Expel(worker, unreachable=worker == unreachable))) is None:
                return None
        return tuple(lease for lease in leases if lease.worker not in gone)

    def _require_answer(self) -> None:
        """Treat a store that has not answered for long as lost: a query must not wait for it for ever."""
        now_ms = self._now_ms()
        since_ms = self._silent_since_ms = now_ms if self._silent_since_ms is None else self._silent_since_ms
        if now_ms - since_ms > self._settings.silent_ms:
            raise GcsLostError(
                f"Redis has not answered for {(now_ms - since_ms) / 1000:.1f} s.",
                fix="Check that it is running, or raise spark.wallaby.gcs.timeout.",
            )

    def _tend(self, query: Query, leases: tuple[WorkerLease, ...]) -> Effects[None]:
        """One round for one query: has it ended, has it lost or gained a worker, is it frozen?"""
        status = yield from ask(ReadStatus(query.id))
        if status is None:
            return
        if query.phase is QueryPhase.ENDING:
            yield from self._end(query, query.error)
        elif status.verdict is Verdict.GONE:
            yield from self._end(
                query, GcsLostError(f"The store no longer knows query {query.id}.", query=query.id)
            )
        elif query.cancelled:
            yield from self._end(query, query.cancelled_error)
        elif status.error:
            yield from self._end(query, read_error(status.error, query=query.id))
        elif query.is_taken:
            yield from self._end(query, None)
        else:
            yield from self._tend_members(query, status, leases)

    def _tend_members(
        self, query: Query, status: QueryStatus, leases: tuple[WorkerLease, ...]
    ) -> Effects[None]:
        live = {lease.worker: lease for lease in leases}
        known = {*status.members, *status.draining}
        for worker, lease in live.items() if self._settings.recovers else ():
            if worker not in known and not lease.draining:
                yield AddMember(query.id, worker)
        lost = tuple(worker for worker in (*status.members, *status.draining) if worker not in live)
        if lost:
            # The leases are older than the status, so a missing worker may just have joined. A worker that is missing
            # in newer leases has been expelled, because members are registered before they join.
            younger = yield from ask(Watch())
            if younger is None:
                return
            lost = tuple(worker for worker in lost if worker not in {lease.worker for lease in younger})
        if lost and not self._settings.recovers:
            answer = yield from ask(TakeSnapshot(query.id))
            if answer is not None:
                strained = answer.snapshot.strained if answer.snapshot is not None else ()
                yield from self._end(query, _lost(query, lost, tuple(sorted({*lost} & {*strained}))))
            return
        leaving = tuple(worker for worker in status.members if worker in live and live[worker].draining)
        if set(status.members) == {*lost, *leaving}:
            leaving = ()  # nobody can take their work over: they continue as long as they can
        if not self._settings.recovers:
            leaving = ()  # work without records cannot be taken over: they leave when the query has ended
        if lost or leaving or not status.gate_open:
            yield from self._recover(query, lost, leaving, status.gate_open)
        elif status.draining:
            yield from self._release_drained(query, status.draining)

    def _recover(
        self, query: Query, lost: tuple[WorkerId, ...], leaving: tuple[WorkerId, ...], gate_open: bool
    ) -> Effects[None]:
        """Algorithm 2: freeze, reconcile, resume. It may be abandoned and started again at any point."""
        if (lost or leaving or gate_open) and (yield from ask(Freeze(query.id, lost, leaving))) is None:
            return
        if query.frozen_since_ms is None:
            query.frozen_since_ms = self._now_ms()
        while True:
            answer = yield from ask(TakeSnapshot(query.id, query.tolerance.needs_records))
            if answer is None:
                return
            snapshot = answer.snapshot
            if snapshot is None or snapshot.gate_open:
                break
            if (problem := self._problem(query, snapshot)) is not None:
                yield from self._end(query, problem)
                return
            if not snapshot.members:
                return
            if len(snapshot.lost_strained) >= self._settings.strained_losses_max:
                yield from self._end(query, too_large(query.id, len(snapshot.lost_strained)))
                return
            plan = reconcile(query.graph, snapshot, recoverable(query.tolerance, answer.records))
            # The first among equals, because later tasks may only have waited for it.
            worst = min(plan.losses, key=lambda name: (-plan.losses[name], name), default=None)
            if worst is not None and plan.losses[worst] >= self._settings.task_worker_losses_max:
                task = TaskName(*worst, snapshot.channels[worst].length)
                yield from self._end(query, _poison(task, plan.losses[worst]))
                return
            if (yield from ask(Resume(query.id, plan, snapshot.version))) is Verdict.DONE:
                break
        query.frozen_since_ms = None

    def _problem(self, query: Query, snapshot: Snapshot) -> WallabyError | None:
        """Has the query been frozen, or without workers, for too long?"""
        assert query.frozen_since_ms is not None
        frozen_ms = self._now_ms() - query.frozen_since_ms
        if not snapshot.members and frozen_ms > self._settings.no_workers_ms:
            gone = ", ".join(sorted(snapshot.departed)) or "none ever came"
            return NoWorkersError(
                f"Query {query.id} has had no worker for {frozen_ms / 1000:.1f} s (lost: {gone}).",
                fix="Give the cluster executors, or raise spark.wallaby.noWorkersTimeout.",
                query=query.id,
            )
        if frozen_ms > max(self._settings.frozen_ms, self._settings.no_workers_ms):
            return RecoveryTimeoutError(
                f"Query {query.id} has been frozen for {frozen_ms / 1000:.1f} s.", query=query.id
            )
        return None

    def _release_drained(self, query: Query, draining: tuple[WorkerId, ...]) -> Effects[None]:
        """Release workers that have asked to leave and that are no longer needed."""
        answer = yield from ask(TakeSnapshot(query.id, query.tolerance.needs_records))
        if answer is not None and answer.snapshot is not None:
            snapshot, left = answer.snapshot, recoverable(query.tolerance, answer.records)
            free = tuple(worker for worker in draining if drained(query.graph, snapshot, worker, left))
            if free:
                yield from self._recover(query, free, (), gate_open=True)

    def _end(self, query: Query, error: WallabyError | None) -> Effects[None]:
        """The query has ended: delete its keys, then tell its user."""
        query.end(error)
        if (yield from ask(Remove(query.id, barred=query.doubtful))) is not None:
            query.advance(QueryPhase.ENDED)


def _is_tended(query: Query) -> bool:
    """Does the store hold the query, as far as is known?"""
    return query.phase in (QueryPhase.RUNNING, QueryPhase.ENDING)


def _lost(
    query: Query, workers: tuple[WorkerId, ...], strained: tuple[WorkerId, ...] = ()
) -> WorkerLostError:
    return WorkerLostError(
        f"Query {query.id} lost {', '.join(workers)}.",
        fix="Run it again, or choose a spark.wallaby.faultTolerance.policy that survives a loss.",
        query=query.id,
        workers=workers,
        strained=strained,
    )


def too_large(query: QueryId, losses: int) -> MemoryLimitError:
    """The error of a query that has cost TaskManagers for lack of memory."""
    return MemoryLimitError(
        f"{losses} TaskManagers were lost, one after the other, while they were short of memory. Query {query} took "
        "most of it, and would probably cost the next one too.",
        fix="Raise spark.wallaby.memory, lower spark.wallaby.threads, or give executors more memory outside the JVM's "
        "heap.",
        query=query,
        losses=losses,
        setting="spark.wallaby.memory",
    )


def _poison(task: TaskName, losses: int) -> PoisonTaskError:
    return PoisonTaskError(
        f"{losses} TaskManagers were lost in a row while the same task of stage {task.stage} was running.",
        fix="The task probably kills them: look for a crash in native code, too little memory or a full disk.",
        task=task,
        losses=losses,
    )
