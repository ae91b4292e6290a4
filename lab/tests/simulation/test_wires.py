"""Wires in trouble: whatever is cut, one way or both, for good or now and then, every query comes to its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wallaby.lineage.effects import FailPoint
from wallaby.lineage.names import WorkerId
from wallaby_lab.simulation.drawn.faults import OF_WIRES, FaultKind, SimulatedFault
from wallaby_lab.simulation.run import NEVER_MS, RunResult, draw, run
from wallaby_lab.simulation.world.wires import FOR_GOOD_US, SimulatedWires, Trouble

A, B = WorkerId("a"), WorkerId("b")
#: Under these, a reader's host is lost with outputs that others lack, so that there are re-reads.
LOST = SimulatedFault(FaultKind.CRASH, FailPoint.ADVANCE, 2, after=False)


def ran(seed: int, *faults: SimulatedFault) -> RunResult:
    scenario, _ = draw(seed, workers=4)
    patient = replace(scenario.coordinator, no_workers_ms=NEVER_MS, submit_ms=NEVER_MS)
    return run(seed, replace(scenario, coordinator=patient), faults)


def test_a_wire_is_in_trouble_in_the_given_ways_and_for_good_only_if_it_says_so() -> None:
    now = [0]
    wires = SimulatedWires(lambda: now[0])
    wires.spoil(A, B, Trouble(100), one_way=True)
    assert (wires.is_cut(A, B), wires.is_cut(B, A)) == (True, False)
    wires.spoil(A, B, Trouble(FOR_GOOD_US, period_us=10))
    assert [wires.is_cut(B, A) for now[0] in range(10)] == [True] * 5 + [False] * 5
    wires.spoil(A, B, Trouble(200, late_us=7))
    assert (wires.is_cut(A, B), wires.late_us(A, B)) == (False, 7)
    wires.heal()
    assert wires.late_us(A, B) == 0
    wires.spoil(A, B, Trouble(FOR_GOOD_US))
    wires.heal()
    assert wires.is_cut(B, A)


@pytest.mark.parametrize("kind", OF_WIRES)
def test_re_reads_and_deliveries_over_a_wire_in_trouble_come_to_an_end(kind: FaultKind) -> None:
    struck = 0
    for seed in range(5):
        for point in (FailPoint.REREAD_DELIVER, FailPoint.RESUME):
            result = ran(seed, LOST, SimulatedFault(kind, point, 1, after=False))
            assert result.failure is None, (seed, point)
            struck += (point, kind) in result.tally.fired
    assert struck > 1


@pytest.mark.parametrize(
    "kind", [FaultKind.REPLY_LOST, FaultKind.REFUSED, FaultKind.REORDER, FaultKind.STORE_PAUSE]
)
@pytest.mark.parametrize("submit_ms", [300, NEVER_MS])
def test_a_submission_that_is_not_answered_runs_or_leaves_nothing(kind: FaultKind, submit_ms: int) -> None:
    outcomes = set()
    for seed in range(4):
        scenario, _ = draw(seed, workers=2)
        impatient = replace(scenario.coordinator, submit_ms=submit_ms)
        fault = SimulatedFault(kind, FailPoint.SUBMIT, 1, after=False)
        result = run(seed, replace(scenario, coordinator=impatient), (fault,))
        assert result.failure is None, seed
        assert (FailPoint.SUBMIT, kind) in result.tally.fired
        outcomes |= set(result.tally.outcomes)
    if submit_ms == NEVER_MS:
        assert "GcsUnavailableError" not in outcomes
