"""Repairs are compared with what must be repaired: each plan with the snapshot that it was made from, once."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import W, at, pipeline, snapshot

from wallaby.coordinator.effects import Resume, SnapshotReply, TakeSnapshot
from wallaby.lineage.names import HEAD, QueryId
from wallaby.lineage.reconcile import reconcile
from wallaby.lineage.snapshot import RecoveryPlan, Snapshot
from wallaby.lineage.verdict import Verdict
from wallaby_lab.chaos.repairs import Repairs

QUERY, OTHER = QueryId("q-1"), QueryId("q-2")
GRAPH = pipeline()
S0, S1, SINK = GRAPH.channels
A, B = W[:2]


def lost(version: int = 7) -> Snapshot:
    """The executing channel's host is gone; the reader's is there."""
    channels = {S0: at(A, 2), S1: at(B, 1), SINK: at(HEAD)}
    return replace(snapshot(GRAPH, channels, members=(A,)), version=version, gate_open=False)


def repaired(plan: RecoveryPlan, before: Snapshot) -> Repairs:
    repairs = Repairs()
    repairs.noticed(TakeSnapshot(QUERY), SnapshotReply(before))
    repairs.noticed(
        TakeSnapshot(QUERY), SnapshotReply(replace(before, version=before.version + 1, members=()))
    )
    repairs.noticed(Resume(QUERY, plan, before.version), Verdict.DONE)
    return repairs


def test_a_plan_that_does_what_must_be_is_counted_once() -> None:
    before = lost()
    repairs = repaired(reconcile(GRAPH, before), before)
    assert repairs.check(QUERY, GRAPH) == (1, "")
    assert repairs.check(QUERY, GRAPH) == (0, "")


def test_a_plan_that_rewinds_one_channel_more_is_told() -> None:
    before = lost()
    plan = reconcile(GRAPH, before)
    assert plan.rewound == (S1,)
    checked, violation = repaired(replace(plan, hosts={**plan.hosts, S0: A}), before).check(QUERY, GRAPH)
    assert checked == 1
    assert "Invariant 8" in violation


def test_a_plan_that_the_store_refused_changes_nothing_and_is_not_checked() -> None:
    before, repairs = lost(), Repairs()
    repairs.noticed(TakeSnapshot(QUERY), SnapshotReply(before))
    repairs.noticed(Resume(QUERY, RecoveryPlan(), before.version), Verdict.STALE)
    repairs.noticed(Resume(OTHER, RecoveryPlan(), before.version), Verdict.DONE)
    assert repairs.check(QUERY, GRAPH) == (0, "")
