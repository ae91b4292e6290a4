"""Answers that are lost by mistake: whoever waits for one waits for ever, unless its driver goes on without it.

The mistake may lose the effect, which is then never performed, or its answer only. The actors of a process as a whole,
and sessions, are told after a while that no answer came; an answer that comes later must have no effect. For all others
the stall watch must end their query.
"""

from __future__ import annotations

from typing import Any

from wallaby.lineage.effects import Await, BackUp, Effect, Pause, RestoreState, SaveState
from wallaby.node.effects import Spawn, Stop
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.world.brief import brief
from wallaby_lab.simulation.world.process import SimulatedActor
from wallaby_lab.simulation.world.world import World

#: When an answer counts as lost. In production this is longer than any call takes, and so it is here.
LOST_MS = 2_000
#: Such an answer comes this much after the actor should have had it.
LATE_US = 3_000_000
#: How long an effect that writes or reads excuses a standstill.
STORAGE_US = 15_000_000


class LostAnswers:
    """Loses the answer that a seed has drawn."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: The lost answer of a query, once there is one, and the questions of the stall watch since then.
        self._answer: tuple[SimulatedActor, Effect[Any], Any] | None = None
        self._rounds = 0

    def loses(self, actor: SimulatedActor, effect: Effect[Any]) -> bool:
        """Lose this effect or its answer, if it is the one; True: it is not even performed."""
        world, again = self._world, actor.name.kind.asks_again
        if again and isinstance(effect, (Await, Pause)):
            return False  # a timer of its own ends the wait
        if not world.lapses.forgets(effect.point):
            return False
        actor.lost, actor.lost_us = effect, world.agenda.now_us
        # A generator that is not begun, or goes on, is not noticed by the session that asked for it.
        world.lapses.stalls = not again or isinstance(effect, (Spawn, Stop))
        if again:
            world.silence.paused(LOST_MS)
            world.agenda.after(LOST_MS * 1000, self._give_up, actor, effect)
        return not world.lapses.performs

    def delays(self, actor: SimulatedActor, effect: Effect[Any], value: Any) -> bool:
        """Is this the answer that is lost? It may still come, when its actor must have gone on.

        Then it must have no effect: the actor has asked for something else since (invariant 7).
        """
        if actor.effect is not effect:
            raise InvariantViolation(7, f"{actor.name} takes a late answer to {brief(effect)}")
        if actor.lost is not effect:
            return False
        if actor.name.kind.asks_again:
            self._world.agenda.after(LATE_US, self._world.answer, actor, effect, value)
        else:
            self._answer = actor, effect, value
        return True

    def inquired(self) -> None:
        """The stall watch has asked everybody: the answer may come before theirs are judged."""
        if self._answer is None:
            return
        self._rounds += 1
        if self._rounds == self._world.scenario.flow.comes_in_round:
            actor, effect, value = self._answer
            actor.lost = None
            self._world.agenda.after(0, self._world.answer, actor, effect, value)

    def _give_up(self, actor: SimulatedActor, effect: Effect[Any]) -> None:
        if actor.awaits(effect) and actor.gives_up(effect.answered_within_seconds + 1):
            self._world.resume(actor, None)


def is_under_way(actor: SimulatedActor, now_us: int) -> bool:
    """Does the effect of an actor excuse a standstill, as far as its process can tell?

    It knows which steps have been executed and which rows the client has taken, but not what became of a write.
    """
    if actor.lost is None or actor.lost is not actor.effect:
        return True
    writes = isinstance(actor.effect, (BackUp, SaveState, RestoreState))
    return writes and now_us - actor.lost_us < STORAGE_US
