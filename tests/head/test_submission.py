"""What becomes of a query after a run of it has ended: another run or none, from where, and what is forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from wallaby.coordinator.query import Query
from wallaby.errors import GcsLostError, QueryError, WorkerLostError
from wallaby.head.submission import Submission
from wallaby.lineage.barriers import Start
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.names import QueryId
from wallaby.lineage.tolerance import POLICIES, Tolerance

GRAPH = StageGraph((Stage(StageKind.READ, 1, splits=1), Stage(StageKind.COLLECT, 1)), (Link(0, 1),))
LOST = WorkerLostError("w1 is gone.")


@dataclass(frozen=True)
class Plan:
    graph: StageGraph = GRAPH


@dataclass(frozen=True)
class Payload:
    tolerance: Tolerance
    start: Start | None = field(default=None)


def submission(policy: str = "checkpoint", **more: Any) -> Submission:
    tolerance = POLICIES[policy]
    plan: Any = Plan()
    payload: Any = Payload(tolerance)
    return Submission(plan, payload, Query(QueryId("q"), GRAPH), begins_again=tolerance.run_again, **more)


def test_the_next_run_goes_on_from_the_last_complete_snapshot() -> None:
    found = submission()
    assert found.runs_again_after(LOST, 0, 4)
    assert found.goes_on
    found.run_next()
    starts = [found.payload.start]
    start = Start(found.query.id, 3)
    found.covers(Start(found.query.id, 2), 1)
    found.covers(start, 1)
    assert found.runs_again_after(LOST, 1, 4)
    found.run_next()
    assert [*starts, found.payload.start] == [None, start]
    assert found.query.id != start.query


def test_only_losses_without_another_snapshot_in_between_count() -> None:
    found = submission()
    assert [found.runs_again_after(LOST, restarts, 3) for restarts in range(3)] == [True, True, False]
    found.covers(Start(QueryId("q"), 1), 2)
    assert [found.runs_again_after(LOST, restarts, 3) for restarts in range(2, 5)] == [True, True, False]


def test_a_query_that_failed_by_itself_or_is_not_wanted_is_not_run_again() -> None:
    found = submission()
    assert not found.runs_again_after(QueryError("a reason"), 0, 4)
    assert not found.runs_again_after(None, 0, 4)
    found.query.cancel()
    assert not found.runs_again_after(LOST, 0, 4)


@pytest.mark.parametrize("whole", [False, True])
def test_a_loss_after_the_last_rows_were_given_out_is_none(whole: bool) -> None:
    found = submission()
    if whole:
        found.query.becomes_whole()
    assert found.ends_with(LOST, 2) is (None if whole else LOST)
    assert found.ends_with(None, 2) is None


def test_a_query_that_was_lost_with_its_store_starts_over() -> None:
    found = submission(store_losses_left=1)
    found.covers(Start(QueryId("q"), 1), 0)
    assert found.runs_again_after(GcsLostError("gone"), 0, 4)
    assert not found.goes_on
    found.run_next()
    assert found.payload.start is None
    assert not found.runs_again_after(GcsLostError("gone"), 0, 4), "once only"


@pytest.mark.parametrize("policy", ["checkpoint", "restart"])
def test_what_a_run_has_saved_is_kept_until_nothing_goes_on_from_it(policy: str) -> None:
    found = submission(policy)
    assert found.runs_again_after(LOST, 0, 4)
    goes_on = policy == "checkpoint"
    assert found.goes_on is goes_on
    assert found.forgettable(goes_on=found.goes_on) == (() if goes_on else ("q",))
    found.run_next()
    second = found.query.id
    assert found.forgettable(goes_on=False) == (("q", second) if goes_on else (second,))
