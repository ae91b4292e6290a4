"""The coordinator recovers: what it does in which order, whatever is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import Driven, W, drawn, final_record, kinds
from tests.coordinator.cluster import DAY_MS, GRAPH, S0, S1, SETTINGS, A, B, C, Cluster, Q, is_a, only_once

from wallaby.coordinator.effects import (
    AddMember,
    Expel,
    Freeze,
    Ping,
    ReadStatus,
    Resume,
    TakeSnapshot,
    Watch,
)
from wallaby.errors import MemoryLimitError, NoWorkersError, PoisonTaskError, RecoveryTimeoutError
from wallaby.gcs.interface import COMPLAINT_MS
from wallaby.lineage.effects import Pause
from wallaby.lineage.lineage import LineageRecord, encode
from wallaby.lineage.names import TaskName
from wallaby.lineage.reconcile import reconcile
from wallaby.lineage.verdict import Verdict

RECOVERY = ["Freeze", "TakeSnapshot", "Resume"]


# --- recovery ----------------------------------------------------------------------------------------------


def test_a_healthy_query_is_only_looked_at() -> None:
    assert Cluster(A, B).round() == [Watch(), ReadStatus(Q)]


def test_a_lost_member_is_frozen_out_reconciled_and_resumed_in_this_order() -> None:
    cluster = Cluster(A, B)
    cluster.kill(B)
    effects = cluster.round()
    assert effects[:5] == [Watch(), ReadStatus(Q), Watch(), Freeze(Q, (B,), ()), TakeSnapshot(Q)]
    assert kinds(effects[5:]) == ["Resume"]
    assert (cluster.status.epoch, cluster.status.gate_open) == (3, True)
    assert cluster.snapshot.channels[S1].host == A
    assert cluster.query.frozen_since_ms is None


def test_the_plan_is_made_from_the_snapshot_and_applied_to_its_version() -> None:
    cluster = Cluster(A, B)
    cluster.kill(B)
    cluster.gcs.freeze(Q, (B,), ())
    before = cluster.snapshot
    assert cluster.round()[-1] == Resume(Q, reconcile(GRAPH, before), before.version)


def test_a_member_that_came_after_the_leases_were_read_is_not_taken_for_lost() -> None:
    cluster = Cluster(A)
    run = Driven(cluster.coordinator.run())
    old = cluster.perform(run.now)
    cluster.gcs.register(B, "b:1", DAY_MS)
    cluster.gcs.join(Q, B)
    run.answer(old)
    run.answer(cluster.perform(run.now))
    assert run.now == Watch()
    assert isinstance(run.answer(cluster.perform(run.now)), Pause)


def test_a_new_worker_joins_and_is_given_nothing_yet() -> None:
    cluster = Cluster(A)
    cluster.gcs.register(B, "b:1", DAY_MS)
    assert cluster.round() == [Watch(), ReadStatus(Q), AddMember(Q, B)]
    assert cluster.status.members == (A, B)
    assert cluster.status.epoch == 1


def test_a_suspect_is_asked_expelled_and_recovered_from_in_one_round() -> None:
    cluster = Cluster(A, B)
    cluster.gcs.renew(B, SETTINGS.lease_ms)
    cluster.coordinator.detector.hint(B)
    cluster.answering.discard(B)
    assert kinds(cluster.round()) == ["Watch", "Ping", "Expel", "ReadStatus", "Watch", *RECOVERY]
    assert cluster.status.members == (A,)


def test_a_suspect_that_answers_stays() -> None:
    cluster = Cluster(A, B)
    cluster.coordinator.detector.hint(B)
    assert kinds(cluster.round()) == ["Watch", "Ping", "ReadStatus"]


@pytest.mark.parametrize("renews", [True, False])
def test_a_silent_worker_that_has_renewed_its_lease_when_it_was_asked_stays(renews: bool) -> None:
    cluster = Cluster(A, B)
    cluster.round()
    cluster.now_ms += SETTINGS.lease_ms
    cluster.answering.discard(B)
    cluster.gcs.renew(A, SETTINGS.lease_ms)
    cluster.gcs.renew(B, 0)
    run = Driven(cluster.coordinator.run())
    assert run.answer(cluster.gcs.workers()) == Ping(B)
    assert run.answer(False) == Watch(), "it may only have been too busy to answer"
    if renews:
        cluster.gcs.renew(B, SETTINGS.lease_ms)
    assert run.answer(cluster.gcs.workers()) == (ReadStatus(Q) if renews else Expel(B))


def test_a_worker_that_others_cannot_reach_is_expelled() -> None:
    cluster = Cluster(A, B)
    cluster.gcs.complain(A, B, reachable=False)
    cluster.now_ms += SETTINGS.unreachable_ms
    assert "Expel" not in kinds(cluster.round()), "said once, and not again"
    cluster.gcs.complain(A, B, reachable=False)
    assert Expel(B, unreachable=True) in cluster.round()


def test_a_complaint_that_is_not_renewed_expels_nobody_ever() -> None:
    cluster = Cluster(A, B)
    cluster.gcs.complain(A, B, reachable=False)
    cluster.now_ms += SETTINGS.unreachable_ms
    cluster.gcs.complain(A, B, reachable=False)
    cluster.now_ms += COMPLAINT_MS + 1
    for _ in range(3):
        assert "Expel" not in kinds(cluster.round())
        cluster.now_ms += SETTINGS.lease_ms


def test_a_silent_store_expels_nobody() -> None:
    cluster = Cluster(A, B)
    cluster.round()
    cluster.answering.clear()
    cluster.now_ms += 2 * DAY_MS
    assert cluster.round(unsent=is_a(Watch)) == [Watch()]
    assert kinds(cluster.round()) == ["Watch", "ReadStatus"]
    cluster.now_ms += SETTINGS.lease_ms
    run = Driven(cluster.coordinator.run())
    assert run.answer(cluster.gcs.workers()) == Ping(A)


@pytest.mark.parametrize("hour_ms", [3_600_000, -3_600_000])
def test_a_store_whose_clock_jumps_costs_nobody_who_renews_and_hides_nobody_who_does_not(
    hour_ms: int,
) -> None:
    cluster = Cluster(A, B)
    store_ms = 1000
    cluster.store.now_ms = lambda: store_ms
    for worker in (A, B):
        cluster.gcs.renew(worker, SETTINGS.lease_ms)
    cluster.round()
    cluster.now_ms += SETTINGS.lease_ms
    store_ms += SETTINGS.lease_ms + hour_ms
    assert kinds(cluster.round()) == ["Watch", "Ping", "Ping", "ReadStatus"], "those who answer are excused"
    cluster.gcs.renew(A, SETTINGS.lease_ms)
    cluster.answering.discard(B)
    assert Expel(B) in cluster.round(), "and who is silent is found, whatever its lease says"
    assert cluster.status.members == (A,)


# --- what is lost on the way ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Watch, ReadStatus, Freeze, TakeSnapshot, Resume])
@pytest.mark.parametrize("how", ["unsent", "unanswered"])
def test_a_recovery_survives_the_loss_of_any_message(kind: type, how: str) -> None:
    cluster = Cluster(A, B)
    cluster.kill(B)
    cluster.round(**{how: only_once(kind)})
    cluster.round()
    assert cluster.status.gate_open
    assert cluster.snapshot.channels[S1].host == A
    assert cluster.query.frozen_since_ms is None
    assert not cluster.query.ended


@pytest.mark.parametrize("steps", range(8))
def test_a_coordinator_that_restarts_at_any_step_comes_to_the_same_plan(steps: int) -> None:
    cluster = Cluster(A, B)
    cluster.kill(B)
    run = Driven(cluster.coordinator.run())
    for _ in range(steps):
        if not isinstance(run.now, Pause):
            run.answer(cluster.perform(run.now))
    cluster.restart()
    cluster.round()
    cluster.rounds_until_open()
    assert cluster.snapshot.channels[S1].host == A
    assert cluster.status.members == (A,)
    cluster.restart()
    assert kinds(cluster.round()) == ["Watch", "ReadStatus"]


def test_a_plan_whose_snapshot_is_out_of_date_is_made_again() -> None:
    """A worker joins between snapshot and resume."""
    cluster = Cluster(A, B)
    cluster.kill(B)

    def joins(effect: Any) -> bool:
        if isinstance(effect, Resume) and C not in cluster.status.members:
            cluster.gcs.register(C, "c:1", DAY_MS)
            cluster.gcs.join(Q, C)
        return False

    assert kinds(cluster.round(unsent=joins))[-5:] == [
        "Freeze",
        "TakeSnapshot",
        "Resume",
        "TakeSnapshot",
        "Resume",
    ]
    assert cluster.snapshot.channels[S1].host == C


def test_a_resume_whose_reply_is_lost_is_not_applied_twice() -> None:
    cluster = Cluster(A, B)
    cluster.kill(B)
    effects = cluster.round(unanswered=is_a(Resume))
    assert kinds(effects)[-2:] == ["Resume", "TakeSnapshot"]
    assert cluster.status.epoch == 3


def test_a_frozen_query_is_not_frozen_again_for_nothing() -> None:
    cluster = Cluster(A, B)
    cluster.gcs.freeze(Q, (), ())
    assert kinds(cluster.round()) == ["Watch", "ReadStatus", "TakeSnapshot", "Resume"]


def test_a_second_loss_while_the_gate_is_closed_is_one_more_freeze() -> None:
    cluster = Cluster(A, B, C)
    cluster.kill(C)
    cluster.round(unsent=is_a(TakeSnapshot))
    cluster.kill(A)
    assert kinds(cluster.round())[-3:] == RECOVERY
    assert (cluster.status.members, cluster.status.gate_open) == ((B,), True)
    assert {cluster.snapshot.channels[name].host for name in (S0, S1)} == {B}


# --- limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start_ms", [0, 1000], ids=["from the first millisecond", "later"])
def test_without_workers_a_query_waits_and_then_fails_by_name(start_ms: int) -> None:
    cluster = Cluster(A, start_ms=start_ms)
    cluster.kill(A)
    cluster.round()
    assert not cluster.status.gate_open
    cluster.now_ms += SETTINGS.no_workers_ms
    assert kinds(cluster.round()) == ["Watch", "ReadStatus", "TakeSnapshot"]
    cluster.now_ms += 1
    cluster.round()
    assert isinstance(cluster.query.error, NoWorkersError)
    assert A in cluster.query.error.what
    assert cluster.query.ended
    assert cluster.gcs.queries() == ()


def test_a_worker_that_comes_in_time_is_given_everything() -> None:
    cluster = Cluster(A)
    cluster.kill(A)
    cluster.round()
    cluster.now_ms += SETTINGS.no_workers_ms
    cluster.gcs.register(B, "b:1", SETTINGS.lease_ms)
    assert kinds(cluster.round()) == ["Watch", "ReadStatus", "AddMember", "TakeSnapshot", "Resume"]
    assert {cluster.snapshot.channels[name].host for name in (S0, S1)} == {B}
    assert cluster.query.frozen_since_ms is None


def test_a_query_that_stays_frozen_beyond_its_limit_fails() -> None:
    cluster = Cluster(A, B)
    cluster.kill(B)
    cluster.round(unsent=is_a(TakeSnapshot))
    cluster.now_ms += max(SETTINGS.frozen_ms, SETTINGS.no_workers_ms) + 1
    cluster.round()
    assert isinstance(cluster.query.error, RecoveryTimeoutError)
    assert cluster.gcs.queries() == ()


def test_a_task_that_outlives_too_many_workers_fails_the_query_and_is_named() -> None:
    cluster = Cluster(A)
    cluster.commit(A, TaskName(*S0, 0), encode(LineageRecord(1, split=0)))
    for at in range(SETTINGS.task_worker_losses_max):
        assert cluster.query.error is None, f"after {at} losses"
        cluster.gcs.register(W[at + 1], "there:1", DAY_MS)
        cluster.gcs.join(Q, W[at + 1])
        cluster.kill(W[at])
        cluster.round()
    assert isinstance(cluster.query.error, PoisonTaskError)
    assert cluster.query.error.fields["task"] == TaskName(*S0, 1), "s1 may only have waited for it"
    assert cluster.gcs.queries() == ()


def lose_with_little_memory(cluster: Cluster, at: int, *, announced: bool = False) -> None:
    """The query takes the memory of the only worker, which is lost; another one comes, and commits."""
    cluster.gcs.register(W[at + 1], "there:1", DAY_MS)
    cluster.gcs.join(Q, W[at + 1])
    assert cluster.gcs.strain(Q, W[at], True) is Verdict.DONE
    if announced:
        cluster.gcs.freeze(Q, (), (W[at],))
    cluster.kill(W[at])
    cluster.round()


def test_a_query_that_costs_a_second_worker_its_memory_ends_whatever_was_committed_between() -> None:
    cluster = Cluster(A)
    lose_with_little_memory(cluster, 0)
    assert not cluster.query.ended
    assert cluster.snapshot.lost_strained == (A,)
    cluster.commit(W[1], TaskName(*S0, 0), encode(LineageRecord(1, split=0)), final=False)
    lose_with_little_memory(cluster, 1)
    assert isinstance(cluster.query.error, MemoryLimitError)
    assert cluster.query.error.fields["losses"] == 2
    assert cluster.gcs.queries() == ()


def test_workers_that_recovered_were_blamed_on_others_or_had_announced_it_do_not_count() -> None:
    cluster = Cluster(A)
    cluster.gcs.strain(Q, A, True)
    cluster.gcs.strain(Q, A, False)
    cluster.gcs.register(B, "b:1", DAY_MS)
    cluster.gcs.join(Q, B)
    cluster.kill(A)
    cluster.round()
    for at in (1, 2):
        lose_with_little_memory(cluster, at, announced=True)
    assert cluster.query.error is None
    assert cluster.snapshot.lost_strained == ()
    assert cluster.gcs.strain(Q, A, True) is Verdict.EXPELLED


def test_a_commit_clears_the_count_of_losses() -> None:
    cluster = Cluster(A)
    for at in range(SETTINGS.task_worker_losses_max + 2):
        cluster.gcs.register(W[at + 1], "there:1", DAY_MS)
        cluster.gcs.join(Q, W[at + 1])
        cluster.kill(W[at])
        cluster.round()
        cluster.commit(W[at + 1], TaskName(*S0, at), encode(LineageRecord(1, split=at)), final=False)
        cluster.commit(W[at + 1], TaskName(*S1, at), drawn(0, c0=1))
    assert cluster.query.error is None


# --- draining ----------------------------------------------------------------------------------------------


def test_a_worker_that_asks_to_leave_is_drained_and_its_work_moved_without_a_loss() -> None:
    cluster = Cluster(A, B)
    cluster.gcs.ask_to_drain(B)
    effects = cluster.round()
    assert effects[2] == Freeze(Q, (), (B,))
    assert (cluster.status.members, cluster.status.draining) == ((A,), (B,))
    assert cluster.snapshot.channels[S1] == replace(cluster.snapshot.channels[S1], host=A, losses=0)


def test_a_worker_that_asks_to_leave_before_it_joined_does_not_join() -> None:
    cluster = Cluster(A)
    cluster.gcs.register(B, "b:1", DAY_MS)
    cluster.gcs.ask_to_drain(B)
    assert cluster.round() == [Watch(), ReadStatus(Q)]


def test_workers_that_all_ask_to_leave_go_on_until_somebody_can_take_over() -> None:
    cluster = Cluster(A, B)
    cluster.gcs.ask_to_drain(A)
    cluster.gcs.ask_to_drain(B)
    assert cluster.round() == [Watch(), ReadStatus(Q)]
    assert list(cluster.status.members) == [A, B]
    cluster.gcs.register(C, "c:1", DAY_MS)
    cluster.round()
    cluster.round()
    assert (cluster.status.members, cluster.status.draining) == ((C,), (A, B))
    assert {cluster.snapshot.channels[name].host for name in (S0, S1)} == {C}


def drained_but_for_a_delivery() -> Cluster:
    """B has ended s1, which the head has not received yet, and is leaving."""
    cluster = Cluster(A, B)
    cluster.commit(A, TaskName(*S0, 0), final_record(), final=True)
    cluster.commit(B, TaskName(*S1, 0), drawn(0, c0=1, final=True), final=True)
    cluster.gcs.ask_to_drain(B)
    cluster.round()
    assert cluster.snapshot.channels[S1].host == B
    return cluster


def test_a_draining_worker_is_kept_while_it_is_needed() -> None:
    cluster = drained_but_for_a_delivery()
    epoch = cluster.status.epoch
    assert kinds(cluster.round()) == ["Watch", "ReadStatus", "TakeSnapshot"]
    assert (cluster.status.draining, cluster.status.epoch) == ((B,), epoch)


def test_a_draining_worker_is_released_once_nobody_needs_it() -> None:
    cluster = drained_but_for_a_delivery()
    edge = GRAPH.edges_from(S1)[0]
    assert cluster.gcs.acknowledge(Q, B, cluster.status.epoch, ((edge, 1),)) is Verdict.DONE
    assert kinds(cluster.round()) == ["Watch", "ReadStatus", "TakeSnapshot", *RECOVERY]
    assert (cluster.status.members, cluster.status.draining) == ((A,), ())
    assert cluster.snapshot.departed == {B: True}
    assert cluster.status.gate_open
