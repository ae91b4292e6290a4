"""The state of a query after a resume, for checks."""

from __future__ import annotations

from dataclasses import replace

from wallaby.lineage.snapshot import ChannelState, RecoveryPlan, Snapshot


def resumed(snapshot: Snapshot, plan: RecoveryPlan) -> Snapshot:
    """The snapshot after a resume with this plan."""
    channels = dict(snapshot.channels)
    for name in {*plan.hosts, *plan.bases, *plan.losses, *plan.closed}:
        old: ChannelState = channels[name]
        channels[name] = replace(
            old,
            host=plan.hosts.get(name, old.host),
            base=plan.bases.get(name, old.base),
            losses=plan.losses.get(name, old.losses),
            closed=old.closed or name in plan.closed,
            since_epoch=snapshot.epoch + 1 if name in plan.hosts else old.since_epoch,
        )
    return replace(
        snapshot,
        version=snapshot.version + 1,
        epoch=snapshot.epoch + 1,
        gate_open=True,
        channels=channels,
        delivered={**snapshot.delivered, **plan.delivered},
        rereads=plan.rereads,
    )
