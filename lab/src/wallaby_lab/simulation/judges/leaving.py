"""How a worker is let go: asked to leave until the store answers, dismissed only when it is known not to be needed.

A request of the head that gets no answer is repeated, unless the worker has died meanwhile. No answer to the question
whether a worker is needed is not a "no".
"""

from __future__ import annotations

from typing import Any

from wallaby.coordinator.effects import AskToDrain, Expel, ReadNeed
from wallaby.lineage.effects import Pause
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.world.process import SimulatedActor


class Leaving:
    """Remembers, for each request to let a worker go, its last question and the answer."""

    def __init__(self) -> None:
        self._asked: dict[SimulatedActor, tuple[Any, Any]] = {}

    def steps(self, actor: SimulatedActor, asked: Any, answer: Any, effect: Any, *, alive: bool) -> None:
        """A request goes on with an effect after an answer; None: it has ended. `alive`: is the worker there?"""
        if asked is not None and not isinstance(asked, Pause):
            self._asked[actor] = asked, answer
        if isinstance(effect, Pause):
            return
        question, said = self._asked.get(actor, (None, None))
        due = _due(question, said)
        if isinstance(answer, Exception) or (effect is None and not alive):
            return  # the store is lost, or nobody is left to be let go
        if effect is None if due is not None else effect is not None:
            raise InvariantViolation(7, f"{actor.name} ends after {question} was answered with {said}")
        if due is not None and type(effect) is not due:
            raise InvariantViolation(
                8, f"{actor.name} goes on with {effect}, after {question} was answered with {said}"
            )


def _due(question: Any, answer: Any) -> type | None:
    """What comes after a question and its answer; None: nothing more."""
    match question:
        case None:
            return AskToDrain
        case AskToDrain():
            return AskToDrain if answer is None else ReadNeed
        case ReadNeed():
            return Expel if answer is False else ReadNeed
        case _:
            return Expel if answer is None else None
