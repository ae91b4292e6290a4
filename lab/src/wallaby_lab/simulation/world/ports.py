"""Who does what for a world: performs its effects, and applies its faults."""

from __future__ import annotations

from typing import Any, Protocol

from wallaby.lineage.effects import Effect
from wallaby_lab.simulation.drawn.faults import SimulatedFault
from wallaby_lab.simulation.world.process import SimulatedActor


class PerformsSimulated(Protocol):
    """Whoever performs effects; see `perform`."""

    def perform(self, actor: SimulatedActor, effect: Effect[Any]) -> None:
        """Perform an effect; its answer comes in later."""


class Strikes(Protocol):
    """Whoever applies faults; see `strike`."""

    def strike(self, fault: SimulatedFault, actor: SimulatedActor) -> bool:
        """Apply one fault where an actor stands; False if there was nothing it could befall."""

    def heal(self) -> None:
        """End all faults."""
