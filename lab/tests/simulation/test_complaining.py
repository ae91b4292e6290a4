"""What the simulation requires of complaints and runs: each check fails where it should, and only there."""

from __future__ import annotations

import pytest

from wallaby.gcs.interface import WorkerLease
from wallaby.lineage.effects import FailPoint, Output
from wallaby.lineage.names import QueryId, TaskName, WorkerId
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.judges.complaining import Complaining
from wallaby_lab.simulation.run import draw, run_seed
from wallaby_lab.simulation.world.process import SimulatedQuery
from wallaby_lab.simulation.world.wires import FOR_GOOD_US, SimulatedWires, Trouble

A, B, Q = WorkerId("a"), WorkerId("b"), QueryId("q")
TASK = TaskName(0, 0, 1)


def lease(worker: WorkerId, *complaints: tuple[WorkerId, int]) -> WorkerLease:
    return WorkerLease(worker, "", 100, False, complaints)


def test_a_complaint_lasts_from_its_first_word_to_its_latest_and_goes_when_nobody_renews_it() -> None:
    complaining = Complaining(lasts_ms=50)
    complaining.said(A, B, Q, False, 10)
    complaining.check((lease(A), lease(B, (A, 0))), 40)
    complaining.said(A, B, Q, False, 40)
    complaining.check((lease(A), lease(B, (A, 30))), 90)
    complaining.check((lease(A), lease(B)), 91)
    complaining.said(A, B, Q, False, 100)
    complaining.check((lease(B, (A, 0)),), 100)
    complaining.said(A, B, Q, True, 101)
    complaining.check((lease(B),), 101)


@pytest.mark.parametrize("told", [(), ((A, 31),), ((A, 30), (B, 0))])
def test_a_store_that_tells_otherwise_of_complaints_is_noticed(
    told: tuple[tuple[WorkerId, int], ...],
) -> None:
    complaining = Complaining(lasts_ms=50)
    complaining.said(A, B, Q, False, 10)
    complaining.said(A, B, Q, False, 40)
    with pytest.raises(InvariantViolation, match="the store tells of b"):
        complaining.check((lease(A), lease(B, *told)), 41)


def test_an_expelled_worker_has_said_nothing() -> None:
    complaining = Complaining(lasts_ms=50)
    complaining.said(A, B, Q, False, 10)
    complaining.said(B, A, Q, False, 10)
    complaining.expelled(A)
    complaining.check((lease(B),), 11)


def test_a_backup_must_hold_what_the_latest_run_has_made() -> None:
    worker_query = SimulatedQuery(None, None)  # type: ignore[arg-type]
    output = Output(1, {})
    worker_query.backups[TASK] = (output, False, 3)
    worker_query.require_latest(TASK, 3)
    worker_query.backups[TASK] = (output, False, 5)
    worker_query.require_latest(TASK, 5)
    worker_query.require_latest(TASK, 3)
    worker_query.backups[TASK] = (output, False, 3)
    with pytest.raises(InvariantViolation, match="as the run of epoch 3 made it, not that of 5"):
        worker_query.require_latest(TASK, 3)


def test_a_picky_wire_loses_one_kind_of_push_or_large_ones_and_nothing_else() -> None:
    wires = SimulatedWires(lambda: 0)
    wires.spoil(A, B, Trouble(FOR_GOOD_US, only=FailPoint.REREAD_DELIVER))
    assert wires.loses(A, B, FailPoint.REREAD_DELIVER, 0)
    assert not wires.loses(A, B, FailPoint.DELIVER, 1_000)
    wires.spoil(A, B, Trouble(FOR_GOOD_US, only_bytes=16))
    assert [wires.loses(A, B, FailPoint.DELIVER, size) for size in (0, 15, 16)] == [False, False, True]
    assert not wires.is_cut(A, B)


def test_some_seeds_aim_at_channels_that_go_on_from_a_state_and_at_wires() -> None:
    drawn = [draw(seed, policy="checkpoint+lineage") for seed in range(60)]
    holds = [hold for scenario, _ in drawn for hold in scenario.schedule.holds if hold.aimed]
    assert any(hold.keeps_late for hold in holds)
    assert any(not hold.keeps_late for hold in holds)
    assert not any(
        hold.aimed for seed in range(60) for hold in draw(seed, policy="lineage")[0].schedule.holds
    )
    results = [run_seed(seed, policy="checkpoint+lineage") for seed in range(40)]
    assert [result.failure for result in results if result.failure] == []
    assert sum(result.tally.rewound_in_place for result in results) > 2
