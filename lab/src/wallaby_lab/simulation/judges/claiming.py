"""A slot says that it has completed a re-read only if it got just this one, in the same epoch (invariant 3)."""

from __future__ import annotations

from typing import Any

from wallaby.lineage.effects import ClaimReRead
from wallaby.lineage.names import TaskName
from wallaby.lineage.verdict import Verdict
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.world.process import SimulatedActor


class Claiming:
    """The last re-read that each slot was given, and its epoch."""

    def __init__(self) -> None:
        self._given: dict[SimulatedActor, tuple[int, TaskName]] = {}

    def answers(self, actor: SimulatedActor, asked: ClaimReRead, claim: Any) -> None:
        """The store answers a slot."""
        if claim is not None and claim.verdict is Verdict.DONE and claim.task is not None:
            self._given[actor] = asked.epoch, claim.task

    def yields(self, actor: SimulatedActor, effect: ClaimReRead) -> None:
        """A slot asks for a re-read, and may say which one it has completed."""
        if effect.completed is not None and self._given.get(actor) != (effect.epoch, effect.completed):
            raise InvariantViolation(
                3, f"{actor.name} at {actor.process.id} completes {effect.completed} in epoch {effect.epoch}"
            )
