"""The failure detector: whom to suspect, and whom to expel. Pure; time is passed in.

A missed lease or a hint (Spark says that an executor is gone) is a suspicion, not a verdict: the store itself
may have been away, so nobody is suspected of a missed lease until it has answered for a whole lease period,
and the accused is asked directly. One that does not answer is expelled; one that answers but cannot renew is
excused for a while. Two live workers that cannot reach each other for long: the one with more wires out of order
goes, whichever of their ends complains, since a query that spans both can never end. One that cannot reach the head
accuses itself, and goes too, unless the head has not been watching all that time: then the reason may be that the head
itself stood still.

Whoever judges may be the one that is slow: if the coordinator itself wakes late from its pauses, the machine that it
shares with workers, or its own process, is short of time. A lease that has run out is then excused for some times as
long as the coordinator was late.

Leases end by the store's clock, which may jump. After a jump forwards all have run out at once: those who live answer,
and renew. After a jump backwards one that nobody renews would last for as long as the clock jumped; but no lease is
longer than it was when it was renewed, so one that is counts as run out too. A complaint that stands at
the moment of a jump forwards is old at once, and may cost a worker.

Being wrong is safe, only wasteful: an expelled worker's writes are refused, whether it is alive or not.
"""

from __future__ import annotations

from wallaby.gcs.interface import WorkerLease
from wallaby.lineage.names import WorkerId

#: How many lease periods a worker that answers may go without renewing.
EXCUSED_LEASES = 3
#: A lease may be late by so many times what the coordinator itself was late, up to so many lease periods.
LATE_TIMES = 4
LATE_LEASES_MAX = 3


class Detector:
    """The memory of one coordinator about who seems to be alive."""

    def __init__(self, lease_ms: int, unreachable_ms: int) -> None:
        self._lease_ms = lease_ms
        self._unreachable_ms = unreachable_ms
        self._answering_since_ms: int | None = None
        self._hinted: set[WorkerId] = set()
        self._excused_since_ms: dict[WorkerId, int] = {}
        #: Since when the coordinator has looked without a gap, and when it looked last.
        self._watching_since_ms = 0
        self._watched_ms: int | None = None
        #: How late the coordinator woke, by when that was; only the last lease periods count.
        self._late: list[tuple[int, int]] = []

    def woke(self, now_ms: int, late_ms: int) -> None:
        """The coordinator has woken from a pause, so much later than it should have."""
        recent_ms = now_ms - EXCUSED_LEASES * self._lease_ms
        self._late = [(at_ms, late) for at_ms, late in self._late if at_ms >= recent_ms and late > late_ms]
        self._late.append((now_ms, max(late_ms, 0)))

    def _grace_ms(self) -> int:
        """How long a lease may have run out before anybody is suspected: nothing, unless the coordinator was late."""
        late_ms = max((late for _, late in self._late), default=0)
        return min(LATE_TIMES * late_ms, LATE_LEASES_MAX * self._lease_ms)

    def is_current(self, lease: WorkerLease) -> bool:
        """Has this lease been renewed as it should have been? One of the future has not: the clock was set back."""
        return 0 < lease.remaining_ms <= self._lease_ms

    def store_silent(self) -> None:
        """The store did not answer: leases may have run out for no fault of the workers."""
        self._answering_since_ms = None
        self._excused_since_ms.clear()

    def hint(self, worker: WorkerId) -> None:
        """Somebody else says that this worker is gone."""
        self._hinted.add(worker)

    def suspects(self, now_ms: int, leases: tuple[WorkerLease, ...]) -> tuple[WorkerId, ...]:
        """Whom to ask whether they are alive."""
        if self._watched_ms is None or now_ms - self._watched_ms > self._lease_ms:
            self._watching_since_ms = now_ms
        self._watched_ms = now_ms
        if self._answering_since_ms is None:
            self._answering_since_ms = now_ms
        trusted = now_ms - self._answering_since_ms >= self._lease_ms
        grace_ms = self._grace_ms()
        missed = {
            lease.worker
            for lease in leases
            if lease.remaining_ms <= -grace_ms or lease.remaining_ms > self._lease_ms
        }
        for worker in [w for w in self._excused_since_ms if w not in missed]:
            del self._excused_since_ms[worker]
        suspects = {w.worker for w in leases if w.worker in self._hinted or (trusted and w.worker in missed)}
        self._hinted.clear()
        return tuple(sorted(suspects))

    def must_go(self, worker: WorkerId, answered: bool, now_ms: int) -> bool:
        """After a suspect has been asked: is it expelled?"""
        if not answered:
            return True
        since_ms = self._excused_since_ms.setdefault(worker, now_ms)
        return now_ms - since_ms > EXCUSED_LEASES * self._lease_ms

    def unreachable(self, leases: tuple[WorkerLease, ...]) -> WorkerId | None:
        """The live worker to give up because a wire to it, or from it, has been cut for long.

        The one with most wires that somebody complains of, then most complaints against it, then latest to join. A
        worker that reaches nobody is complained about by nobody: it is the one that complains of everybody.
        """
        live = {lease.worker for lease in leases}
        watched_ms = (self._watched_ms or 0) - self._watching_since_ms
        wires: dict[WorkerId, set[WorkerId]] = {worker: set() for worker in live}
        against: dict[WorkerId, int] = {}
        candidates: set[WorkerId] = set()
        for lease in leases:
            for reporter, lasted_ms in lease.complaints:
                if reporter not in live:
                    continue
                wires[lease.worker].add(reporter)
                wires[reporter].add(lease.worker)
                if lasted_ms >= self._unreachable_ms and (
                    reporter != lease.worker or watched_ms >= self._unreachable_ms
                ):
                    against[lease.worker] = against.get(lease.worker, 0) + 1
                    candidates |= {lease.worker, reporter}
        ranks = [
            (len(wires[lease.worker]), against.get(lease.worker, 0), at)
            for at, lease in enumerate(leases)
            if lease.worker in candidates
        ]
        return leases[max(ranks)[2]].worker if ranks else None
