"""What the simulation requires of requests, slots and a silent store: each check fails where it should."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from wallaby.coordinator.effects import AskToDrain, Expel, ReadNeed
from wallaby.lineage.effects import ClaimReRead, FailPoint, Pause
from wallaby.lineage.names import TaskName, WorkerId
from wallaby.lineage.verdict import Claim, Verdict
from wallaby.node.actors import ActorKind, ActorName
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.drawn.aims import AIMS, OF_RESULTS_THAT_STAY
from wallaby_lab.simulation.judges.claiming import Claiming
from wallaby_lab.simulation.judges.leaving import Leaving
from wallaby_lab.simulation.judges.watching import SLACK_MS, Silence
from wallaby_lab.simulation.run import draw, run
from wallaby_lab.simulation.world.lost import LostAnswers
from wallaby_lab.simulation.world.process import Process, SimulatedActor

W = WorkerId("w1")
ASK, NEED, EXPEL = AskToDrain(W), ReadNeed(W), Expel(W)
PAUSE = Pause(50, FailPoint.DRAIN)
T0, T1 = TaskName(0, 0, 0), TaskName(0, 0, 1)


def actor(kind: ActorKind = ActorKind.DRAIN) -> SimulatedActor:
    process = Process(W, None)  # type: ignore[arg-type]
    return SimulatedActor(ActorName(kind, "w1"), None, process)  # type: ignore[arg-type]


def judge(*steps: tuple[Any, Any], alive: bool = True) -> None:
    """Judge a request to let a worker go by its effects and their answers; after the last one it ends."""
    leaving, who = Leaving(), actor()
    asked = answer = None
    for effect, then in steps:
        leaving.steps(who, asked, answer, effect, alive=True)
        asked, answer = effect, then
    leaving.steps(who, asked, answer, None, alive=alive)


def test_a_worker_is_let_go_when_the_store_has_answered_everything() -> None:
    judge((ASK, None), (PAUSE, None), (ASK, True), (NEED, None), (PAUSE, True), (NEED, False), (EXPEL, True))


@pytest.mark.parametrize(
    "steps",
    [
        ((ASK, None), (PAUSE, None), (NEED, False), (EXPEL, True)),
        ((ASK, True), (NEED, None), (EXPEL, True)),
        ((ASK, True), (NEED, True), (PAUSE, None), (EXPEL, True)),
        ((ASK, True), (NEED, False), (EXPEL, None), (PAUSE, None)),
        ((ASK, True), (NEED, True)),
    ],
    ids=["not asked again", "no answer", "still needed", "not dismissed again", "given up"],
)
def test_a_request_that_takes_silence_for_an_answer_is_noticed(steps: tuple[tuple[Any, Any], ...]) -> None:
    with pytest.raises(InvariantViolation):
        judge(*steps)


def test_nothing_is_due_once_the_worker_is_dead() -> None:
    judge((ASK, True), (NEED, True), (PAUSE, None), alive=False)


def test_a_slot_completes_what_it_was_given_in_the_same_epoch_and_nothing_else() -> None:
    claiming, slot = Claiming(), actor(ActorKind.RE_READ)
    claiming.yields(slot, ClaimReRead(0, None, 3))
    claiming.answers(slot, ClaimReRead(0, None, 3), Claim(Verdict.DONE, T0, b"", ()))
    claiming.yields(slot, ClaimReRead(0, T0, 3))
    for wrong in (ClaimReRead(0, T1, 3), ClaimReRead(0, T0, 5)):
        with pytest.raises(InvariantViolation, match="completes"):
            claiming.yields(slot, wrong)


def test_a_silent_store_is_given_up_after_its_limit_and_an_answer_ends_the_silence() -> None:
    silence = Silence(100)
    silence.answers(None, 0)
    assert not silence.is_too_long(100)
    assert silence.is_too_long(101)
    silence.answers((), 150)
    silence.answers(None, 200)
    assert not silence.is_too_long(250)
    with pytest.raises(InvariantViolation, match="waited for"):
        silence.answers(None, 301 + SLACK_MS)


def test_an_answer_that_was_given_up_must_not_be_taken_for_one_to_a_later_question() -> None:
    lost, who = LostAnswers(None), actor()  # type: ignore[arg-type]
    who.effect = NEED
    assert not lost.delays(who, NEED, True)
    with pytest.raises(InvariantViolation, match="takes a late answer"):
        lost.delays(who, ASK, True)


@pytest.mark.parametrize("aim", [*AIMS, *OF_RESULTS_THAT_STAY], ids=lambda aim: aim.__name__)
def test_what_an_aim_leads_to_breaks_no_invariant(aim: Any) -> None:
    story: list[str] = []
    for seed in range(3):
        scenario, faults = aim(Random(seed), draw(2 * seed)[0])
        result = run(seed, scenario, faults, story)
        assert result.failure is None, seed
    assert any("*** " in line for line in story)
