"""The failure detector: which workers to suspect, and which to expel. Pure; time is passed in.

A missed lease or a hint (Spark says that an executor is gone) is a suspicion, not a verdict. The store itself may have
been silent, so a missed lease counts only after the store has answered for a whole lease period, and the suspect is
asked directly. A suspect that does not answer is expelled; one that answers but cannot renew is excused for a while. If
two live workers cannot reach each other for long, the one with more broken wires is expelled, whichever of them
complains, because a query that spans both could never end. A worker that cannot reach the head accuses itself and is
expelled too, unless the head has not been watching all that time, because then the head itself may have been paused.

The coordinator itself may be slow: if it wakes late from its pauses, its process, or the machine that it shares with
workers, is short of CPU time. An expired lease is then excused for several times the delay of the coordinator.

Leases expire by the store's clock, which may jump. After a jump forwards all leases have expired at once; live workers
answer and renew. After a jump backwards a lease that nobody renews would last as long as the clock jumped. But no lease
can last longer than it did when it was renewed, so one that does counts as expired too. A complaint that exists at the
moment of a jump forwards becomes old at once, and may cost a worker.

A wrong verdict is wasteful but safe: an expelled worker's writes are refused, whether it is alive or not.
"""

from __future__ import annotations

from wallaby.gcs.interface import WorkerLease
from wallaby.lineage.names import WorkerId

#: How many lease periods a worker that answers may go without renewing.
EXCUSED_LEASES = 3
#: A lease may be late by this many times the delay of the coordinator, up to this many lease periods.
LATE_TIMES = 4
LATE_LEASES_MAX = 3


class Detector:
    """What one coordinator remembers about which workers seem to be alive."""

    def __init__(self, lease_ms: int, unreachable_ms: int) -> None:
        self._lease_ms = lease_ms
        self._unreachable_ms = unreachable_ms
        self._answering_since_ms: int | None = None
        self._hinted: set[WorkerId] = set()
        self._excused_since_ms: dict[WorkerId, int] = {}
        #: Since when the coordinator has been looking without a gap, and when it last looked.
        self._watching_since_ms = 0
        self._watched_ms: int | None = None
        #: The delays with which the coordinator woke, by time; only the last lease periods count.
        self._late: list[tuple[int, int]] = []

    def woke(self, now_ms: int, late_ms: int) -> None:
        """Note that the coordinator woke this late from a pause."""
        recent_ms = now_ms - EXCUSED_LEASES * self._lease_ms
        self._late = [(at_ms, late) for at_ms, late in self._late if at_ms >= recent_ms and late > late_ms]
        self._late.append((now_ms, max(late_ms, 0)))

    def _grace_ms(self) -> int:
        """How long a lease may have been expired before its worker is suspected: 0 unless the coordinator was late."""
        late_ms = max((late for _, late in self._late), default=0)
        return min(LATE_TIMES * late_ms, LATE_LEASES_MAX * self._lease_ms)

    def is_current(self, lease: WorkerLease) -> bool:
        """Has this lease been renewed in time? One that ends too far in the future has not: the clock was set back."""
        return 0 < lease.remaining_ms <= self._lease_ms

    def store_silent(self) -> None:
        """Note that the store did not answer: leases may have expired through no fault of the workers."""
        self._answering_since_ms = None
        self._excused_since_ms.clear()

    def hint(self, worker: WorkerId) -> None:
        """Note a hint that this worker is gone."""
        self._hinted.add(worker)

    def suspects(self, now_ms: int, leases: tuple[WorkerLease, ...]) -> tuple[WorkerId, ...]:
        """The workers to ask whether they are alive."""
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
        """After a suspect has been asked: must it be expelled?"""
        if not answered:
            return True
        since_ms = self._excused_since_ms.setdefault(worker, now_ms)
        return now_ms - since_ms > EXCUSED_LEASES * self._lease_ms

    def unreachable(self, leases: tuple[WorkerLease, ...]) -> WorkerId | None:
        """The live worker to expel because a wire to it, or from it, has been cut for long.

        It is the one with the most reported wires, then with the most complaints against it, then the latest to join. A
        worker that can reach nobody is not accused by others; it is the one that accuses everybody.
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
