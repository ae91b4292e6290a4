"""The ports of a world: performing its effects, applying its faults, and losing answers."""

from __future__ import annotations

from typing import Any, Protocol

from wallaby.lineage.effects import Effect
from wallaby_lab.simulation.drawn.faults import SimulatedFault
from wallaby_lab.simulation.world.process import SimulatedActor


class PerformsSimulated(Protocol):
    """Performs effects; see `perform`."""

    def perform(self, actor: SimulatedActor, effect: Effect[Any]) -> None:
        """Perform an effect; its answer arrives later."""


class Strikes(Protocol):
    """Applies faults; see `strike`."""

    def strike(self, fault: SimulatedFault, actor: SimulatedActor) -> bool:
        """Apply one fault at an actor; False if there was nothing that it could strike."""

    def heal(self) -> None:
        """End all faults."""


class LosesAnswers(Protocol):
    """Loses answers by mistake; see `lost`."""

    def loses(self, actor: SimulatedActor, effect: Effect[Any]) -> bool:
        """Lose this effect or its answer, if it is the one; True: it is not even performed."""

    def delays(self, actor: SimulatedActor, effect: Effect[Any], value: Any) -> bool:
        """Is this the answer that is lost?"""

    def inquired(self) -> None:
        """The stall watch has asked everybody."""
