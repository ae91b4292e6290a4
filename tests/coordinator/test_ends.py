"""How a query ends: with its result, cancelled, by its own error or without its store; once, and leaving nothing."""

from __future__ import annotations

import pytest
from tests.builders import Driven
from tests.coordinator.cluster import GRAPH, S0, S1, SETTINGS, SINK, A, B, Cluster, Q, is_a

from wallaby.coordinator.coordinator import Coordinator, CoordinatorSettings
from wallaby.coordinator.effects import ReadStatus, Remove, Watch
from wallaby.coordinator.query import Query, QueryPhase, ResultState
from wallaby.errors import GcsLostError, QueryCancelledError, QueryError, WorkerLostError
from wallaby.lineage.names import HEAD, QueryId


def test_a_collected_query_is_removed_and_then_ended() -> None:
    cluster = Cluster(A)
    cluster.query.becomes_whole()
    assert cluster.round() == [Watch(), ReadStatus(Q), Remove(Q)]
    assert (cluster.query.ended, cluster.query.error) == (True, None)
    assert cluster.round() == [Watch()]


def test_a_cancelled_query_is_removed_and_says_so() -> None:
    cluster = Cluster(A)
    cluster.query.cancel()
    cluster.round()
    assert isinstance(cluster.query.error, QueryCancelledError)
    assert cluster.gcs.queries() == ()


def test_a_frozen_query_can_be_cancelled() -> None:
    cluster = Cluster(A)
    cluster.kill(A)
    cluster.round()
    cluster.query.cancel()
    cluster.round()
    assert isinstance(cluster.query.error, QueryCancelledError)


def test_a_tasks_own_error_ends_the_query() -> None:
    cluster = Cluster(A)
    cluster.gcs.fail(Q, A, 1, "divided by zero")
    cluster.round()
    assert isinstance(cluster.query.error, QueryError)
    assert cluster.query.error.what == "divided by zero"
    assert cluster.query.ended


def test_without_fault_tolerance_a_lost_worker_ends_the_query() -> None:
    cluster = Cluster(A, B)
    cluster.restart(CoordinatorSettings(recovers=False))
    cluster.round()
    assert not cluster.query.ended
    cluster.kill(B)
    cluster.round()
    assert isinstance(cluster.query.error, WorkerLostError)
    assert cluster.query.error.fields["workers"] == (B,)
    assert not cluster.query.error.fields["strained"]
    assert cluster.gcs.queries() == ()


def test_without_records_the_error_says_which_lost_workers_were_short_of_memory() -> None:
    cluster = Cluster(A, B)
    cluster.restart(CoordinatorSettings(recovers=False))
    for worker in (A, B):
        cluster.gcs.strain(Q, worker, True)
    cluster.kill(B)
    cluster.round()
    assert isinstance(cluster.query.error, WorkerLostError)
    assert cluster.query.error.fields["strained"] == (B,)


def test_without_fault_tolerance_a_worker_that_asks_to_leave_stays_until_the_end() -> None:
    cluster = Cluster(A, B)
    cluster.restart(CoordinatorSettings(recovers=False))
    cluster.gcs.ask_to_drain(B)
    cluster.round()
    assert (cluster.status.members, cluster.status.gate_open) == ((A, B), True)


def test_a_query_that_the_store_has_forgotten_has_lost_its_store() -> None:
    cluster = Cluster(A)
    cluster.gcs.remove(Q)
    cluster.round()
    assert isinstance(cluster.query.error, GcsLostError)
    assert cluster.query.ended


@pytest.mark.parametrize("how", ["unsent", "unanswered"])
def test_how_a_query_ends_is_decided_once_whatever_happens_to_its_removal(how: str) -> None:
    cluster = Cluster(A)
    cluster.query.cancel()
    cluster.round(**{how: is_a(Remove)})
    assert cluster.query.phase is QueryPhase.ENDING
    cluster.query.becomes_whole()
    cluster.restart()
    cluster.round()
    assert cluster.query.ended
    assert isinstance(cluster.query.error, QueryCancelledError)
    assert cluster.gcs.queries() == ()


def test_a_store_that_stays_silent_for_too_long_is_lost() -> None:
    cluster = Cluster(A)
    for _ in range(3):
        assert cluster.round(unsent=is_a(Watch)) == [Watch()]
        assert not cluster.query.ended
        cluster.now_ms += SETTINGS.silent_ms // 2
    cluster.round(unsent=is_a(Watch))
    assert isinstance(cluster.query.error, GcsLostError)
    assert "has not answered for" in cluster.query.error.what
    assert cluster.query.ended
    assert cluster.coordinator.lost is cluster.query.error


def test_a_store_that_answers_now_and_then_is_not_lost() -> None:
    cluster = Cluster(A)
    for _ in range(4):
        cluster.round(unsent=is_a(Watch))
        cluster.now_ms += SETTINGS.silent_ms // 2 + 1
        cluster.round()
    assert not cluster.query.ended


def test_a_store_that_restarted_ends_every_query() -> None:
    cluster = Cluster(A)
    run = Driven(cluster.coordinator.run())
    cluster.store.run_id = "2"
    with pytest.raises(GcsLostError) as caught:
        cluster.perform(run.now)
    assert run.throw(caught.value) is None
    assert cluster.query.error is caught.value
    assert cluster.query.ended


def test_one_query_that_ends_does_not_disturb_another() -> None:
    cluster = Cluster(A)
    other = Query(QueryId("p"), GRAPH, result=ResultState.TAKEN)
    cluster.gcs.submit(other.id, GRAPH, {S0: A, S1: A, SINK: HEAD})
    cluster.coordinator = Coordinator(SETTINGS, {other.id: other, Q: cluster.query}, lambda: cluster.now_ms)
    assert cluster.round() == [Watch(), ReadStatus(other.id), Remove(other.id), ReadStatus(Q)]
    assert cluster.gcs.queries() == (Q,)
    assert (other.ended, cluster.query.ended) == (True, False)
