"""Requests to the world outside a simulated process."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from wallaby.lineage.effects import Effect
from wallaby_lab.simulation.world.process import SimulatedActor
from wallaby_lab.simulation.world.world import World

EffectT = TypeVar("EffectT", bound=Effect[Any])


class Ticket(Generic[EffectT]):
    """One request to the world outside a process: the first answer counts, later ones are dropped."""

    def __init__(self, world: World, actor: SimulatedActor, effect: EffectT) -> None:
        self._world = world
        self.actor = actor
        self.effect = effect
        self._settled = False

    @property
    def is_settled(self) -> bool:
        """Has it been answered?"""
        return self._settled

    def settle(self, value: Any) -> None:
        """Answer, unless that has been done."""
        if not self._settled:
            self._settled = True
            self._world.answer(self.actor, self.effect, value)
