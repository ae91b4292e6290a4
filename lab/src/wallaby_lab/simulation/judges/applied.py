"""What the store must hold after an action, computed from what it held before, independently of the store's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wallaby.coordinator.effects import Freeze
from wallaby.gcs.memory import MemoryGcs, MemoryStore, StoredQuery
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.lineage.snapshot import RecoveryPlan, Snapshot
from wallaby.lineage.verdict import Verdict
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.invariants.resumed import resumed


def require_frozen(before: Snapshot | None, after: Snapshot | None, effect: Freeze) -> None:
    """A freeze removes the lost, keeps whether they had announced it, and who of them was short of memory."""
    if before is None or after is None:
        return
    announced, members = set(before.draining), {*before.members, *before.draining}
    lost = members & set(effect.lost)
    left = (announced | (members & set(effect.draining))) - lost
    strained = {worker for worker in lost - announced if worker in before.strained}
    found = (dict(after.departed), {*after.members}, {*after.draining}, {*after.lost_strained})
    expected = (
        {**before.departed, **{worker: worker in announced for worker in lost}},
        members - lost - left,
        left,
        {*before.lost_strained} | strained,
    )
    if found != expected or after.gate_open or after.epoch != before.epoch + 1:
        raise InvariantViolation(6, f"after a freeze there are {found}, not {expected}")


def require_resumed(before: Snapshot, plan: RecoveryPlan, after: Snapshot | None) -> None:
    """A resume applies the whole plan and nothing else."""
    expected = resumed(before, plan)
    if after != expected:
        raise InvariantViolation(9, f"after a resume the store holds {after}, not {expected}")


def failing(gcs: MemoryGcs, query: QueryId, worker: WorkerId, epoch: int, error: str) -> Verdict:
    """Report an error; the first one stays, whatever is reported later (invariant 2)."""
    state: StoredQuery | None = gcs.server.queries.get(query)
    before = state.error if state is not None else ""
    verdict = gcs.fail(query, worker, epoch, error)
    if state is not None and before and (state.error != before or verdict is Verdict.DONE):
        raise InvariantViolation(2, f"{query} had failed with {before}, and fails with {state.error}")
    return verdict


def registering(
    worker: WorkerId, act: Callable[[MemoryGcs], Any], *, renews: bool = False
) -> Callable[[MemoryGcs], Any]:
    """Register a worker, or renew its lease; one that was expelled never comes back (invariant 6).

    Only a worker whose registration was answered renews, so that no lost answer costs a worker (invariant 8).
    """

    def checked(gcs: MemoryGcs) -> Any:
        answer = act(gcs)
        if worker in gcs.server.expelled and (answer or worker in gcs.server.workers):
            raise InvariantViolation(6, f"{worker} was expelled, and is back")
        if renews and worker not in gcs.server.workers and worker not in gcs.server.expelled:
            raise InvariantViolation(8, f"{worker} renews a lease that it never had")
        return answer

    return checked


def require_need(store: MemoryStore, worker: WorkerId, *, is_needed: bool) -> None:
    """Whether a worker is needed: as long as any query has it as a member (invariant 8)."""
    if is_needed != any(worker in state.members for state in store.queries.values()):
        raise InvariantViolation(8, f"that a query needs {worker} is said to be {is_needed}")
