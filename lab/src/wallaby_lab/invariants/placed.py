"""Where a plan puts lost channels, and which losses it counts, computed independently of `reconcile`."""

from __future__ import annotations

from collections import Counter

from wallaby.lineage.snapshot import RecoveryPlan, Snapshot
from wallaby_lab.invariants import InvariantViolation


def check_placed(snapshot: Snapshot, plan: RecoveryPlan) -> None:
    """The lost channels of a stage are spread evenly over the members (invariant 8)."""
    counts = Counter((host, name.stage) for name, host in plan.hosts.items())
    for stage in {name.stage for name in plan.hosts}:
        each = [counts[member, stage] for member in snapshot.members]
        if max(each) > min(each) + 1:
            raise InvariantViolation(8, f"the lost channels of stage {stage} are placed {each}")


def check_losses(snapshot: Snapshot, plan: RecoveryPlan) -> None:
    """An outstanding task counts the workers that were lost while it ran and had not announced it (7)."""
    expected = {
        name: channel.losses + 1
        for name, channel in snapshot.channels.items()
        if name in plan.hosts
        and not channel.ended
        and name not in plan.closed
        and snapshot.departed.get(channel.host) is False
    }
    if dict(plan.losses) != expected:
        raise InvariantViolation(7, f"losses {dict(plan.losses)} are counted, not {expected}")
