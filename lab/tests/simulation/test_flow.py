"""The flow of outputs in the simulation: what a push sends and a process takes in, and what stands still for long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import piece
from tests.hand import GRAPH, ME, S0, TO_X0, X0, Hand, assigned, view

from wallaby.lineage.effects import FailPoint, PushReply, Slice
from wallaby_lab.simulation.drawn.faults import FaultKind, SimulatedFault
from wallaby_lab.simulation.drawn.pressure import FORGETTABLE, FORGETTABLE_OFTEN, FORGETTABLE_SELDOM
from wallaby_lab.simulation.run import draw, run
from wallaby_lab.simulation.world.flow import FREE, PLENTY_BYTES, Flow

PIECES = tuple(piece(GRAPH, TO_X0, seq, 40) for seq in range(3))


def receiver() -> Hand:
    """A worker with a window of 100 bytes."""
    hand = Hand(GRAPH)
    hand.look(view(assigned(S0, split=0), assigned(X0)))
    return hand


def sent(push_bytes: int) -> tuple[Slice, ...]:
    return Flow(push_bytes=push_bytes).cut(PIECES)


def test_a_push_is_cut_but_never_to_nothing() -> None:
    assert [len(sent(limit)) for limit in (1, 40, 79, 80, 120)] == [1, 1, 1, 2, 3]
    assert FREE.cut(PIECES) == PIECES


@pytest.mark.parametrize(
    ("flow", "held"),
    [
        (FREE, (True, True, False)),
        (Flow(incoming_bytes=40), (True, False, False)),
        (Flow(incoming_bytes=41), (True, True, False)),
        (Flow(ask_bytes=0, incoming_bytes=41), (True, True, False)),
    ],
)
def test_what_comes_in_is_held_if_there_is_room_on_the_way_and_in_the_window(
    flow: Flow, held: tuple[bool, ...]
) -> None:
    reply = flow.receive(receiver().session, 3, ME, PIECES, local=False)
    assert reply == PushReply(True, held)


def test_what_is_asked_first_and_not_wanted_takes_no_room_on_the_way() -> None:
    late = (piece(GRAPH, TO_X0, 1, 200), piece(GRAPH, TO_X0, 0, 40))
    flow = Flow(incoming_bytes=40)
    assert flow.receive(receiver().session, 3, ME, late, local=False).held == (False, False)
    asking = replace(flow, ask_bytes=0)
    assert asking.receive(receiver().session, 3, ME, late, local=False).held == (False, True)


def test_between_channels_of_one_process_nothing_is_on_the_way() -> None:
    flow = Flow(incoming_bytes=1, ask_bytes=PLENTY_BYTES)
    assert flow.receive(receiver().session, 3, ME, PIECES, local=True).held == (True, True, False)


def test_a_push_of_another_epoch_is_refused_as_a_whole_also_if_it_is_only_asked() -> None:
    for flow in (FREE, Flow(ask_bytes=0)):
        assert not flow.receive(receiver().session, 9, ME, PIECES, local=False).accepted


def ending(
    flow: Flow,
    faults: tuple[SimulatedFault, ...] = (),
    story: list[str] | None = None,
    seed: int = 7,
) -> tuple[list[str], int]:
    """How a query of some seed ends under these faults and what its flow says, and after how many milliseconds."""
    scenario, _ = draw(seed)
    workloads = tuple(replace(w, poison=None, error=None, fickle=None) for w in scenario.workloads)
    result = run(seed, replace(scenario, flow=flow, workloads=workloads), faults, story)
    assert result.failure is None, result.failure
    return result.tally.outcomes, result.tally.virtual_ms


@pytest.mark.parametrize("performed", [True, False], ids=["performed", "not performed"])
@pytest.mark.parametrize(
    ("point", "nth"),
    [(FailPoint.COMMIT, 2), (FailPoint.EXECUTE, 2), (FailPoint.BACK_UP, 2), (FailPoint.COLLECT, 1)],
)
def test_an_effect_whose_answer_is_lost_stalls_the_query_and_the_watch_ends_it(
    point: FailPoint, nth: int, performed: bool
) -> None:
    assert point in FORGETTABLE
    outcomes, _ = ending(Flow(forgotten=(point, nth, performed)))
    assert outcomes == ["QueryStalledError"]


def test_a_push_that_is_lost_stalls_the_query_and_the_watch_ends_it() -> None:
    outcomes, _ = ending(Flow(forgotten=(FailPoint.DELIVER, 2, False)))
    assert outcomes == ["QueryStalledError"]


#: Where whoever asks goes on without an answer, how often it has asked by then, and what leads to that place.
GOING_ON = (
    (FailPoint.LOOK, 3, None),
    (FailPoint.REGISTER, 1, None),
    (FailPoint.RENEW, 1, None),
    (FailPoint.DISCOVER, 1, None),
    (FailPoint.WATCH, 2, None),
    (FailPoint.STATUS, 2, None),
    (FailPoint.SUBMIT, 1, None),
    (FailPoint.REMOVE, 1, None),
    (FailPoint.PING, 1, FaultKind.PAUSE),
    (FailPoint.EXPEL, 1, FaultKind.CRASH),
    (FailPoint.FREEZE, 1, FaultKind.CRASH),
    (FailPoint.SNAPSHOT, 1, FaultKind.CRASH),
    (FailPoint.RESUME, 1, FaultKind.CRASH),
    (FailPoint.JOIN, 1, FaultKind.JOIN),
    (FailPoint.DRAIN, 1, FaultKind.DRAIN),
    (FailPoint.DRAIN, 2, FaultKind.DRAIN),
)


@pytest.mark.parametrize("performed", [True, False], ids=["performed", "not performed"])
@pytest.mark.parametrize(("point", "nth", "kind"), GOING_ON)
def test_who_serves_all_queries_goes_on_without_an_answer(
    point: FailPoint, nth: int, kind: FaultKind | None, performed: bool
) -> None:
    assert point in (*FORGETTABLE_OFTEN, *FORGETTABLE_SELDOM)
    faults = () if kind is None else (SimulatedFault(kind, FailPoint.COMMIT, 2, after=True),)
    story: list[str] = []
    outcomes, _ = ending(Flow(forgotten=(point, nth, performed)), faults, story)
    assert outcomes == ["done"]
    assert any("*** forgotten" in line for line in story)


def test_a_query_whose_opening_was_not_answered_is_opened_once() -> None:
    """A second session would lack what the first one has received and acknowledged (seed 24877)."""
    for nth in range(1, 40):
        story: list[str] = []
        outcomes, _ = ending(Flow(slow_execute=2, forgotten=(FailPoint.DISCOVER, nth, True)), story=story)
        lost = next(i for i, line in enumerate(story) if "*** forgotten" in line) + 1
        if "OpenSession(" in story[lost]:
            break
    else:
        pytest.fail("no answer to an opening was lost")
    worker = story[lost].split()[2]
    opened = [line for line in story if f" {worker} discovery: OpenSession(" in line]
    begun = [line for line in story if f" {worker} session: begin re-read 0" in line]
    assert outcomes == ["done"]
    assert (len(opened), len(begun)) == (2, 1)


@pytest.mark.parametrize("flow", [Flow(slow_collect=1), Flow(slow_execute=2)], ids=["client", "task"])
def test_what_is_slow_is_waited_for(flow: Flow) -> None:
    outcomes, virtual_ms = ending(flow)
    assert outcomes == ["done"]
    assert virtual_ms > draw(7)[0].coordinator.stall_ms


def test_seeds_draw_pressure_lapses_and_none() -> None:
    flows = [draw(seed)[0].flow for seed in range(200)]
    assert sum(flow.push_bytes < PLENTY_BYTES for flow in flows) > 60
    assert any(flow.slow_collect for flow in flows)
    assert any(flow.slow_execute for flow in flows)
    assert any(flow.forgotten for flow in flows)
    assert sum(flow == FREE for flow in flows) > 40


def test_some_seeds_have_little_room_for_side_inputs() -> None:
    limits = [draw(seed)[0].session.sides_bytes for seed in range(200)]
    assert 10 < sum(limit is not None for limit in limits) < 60
