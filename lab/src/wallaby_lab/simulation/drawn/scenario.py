"""What a seed draws beside its faults."""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.node.session import QuerySessionSettings
from wallaby_lab.simulation.drawn.schedules import EVEN, Schedule
from wallaby_lab.simulation.drawn.workload import ToyWorkload
from wallaby_lab.simulation.world.flow import FREE, PLENTY_BYTES, Flow

__all__ = ["PLENTY_BYTES", "Scenario"]

#: How long a complaint stands that is not renewed.
COMPLAINT_MS = 3_000


@dataclass(frozen=True)
class Scenario:
    """All that a seed draws but its faults."""

    workloads: tuple[ToyWorkload, ...]
    session: QuerySessionSettings
    coordinator: CoordinatorSettings
    workers: int
    renew_every_ms: int
    room_bytes: int
    slow_worker: bool
    #: Do crashed workers come back, each as a new incarnation?
    restarts: bool
    random_seed: int
    schedule: Schedule = EVEN
    flow: Flow = FREE
    #: Of the states of a stage that could be saved, one of these: one stage goes on from where another begins anew.
    saved_shares: tuple[float, ...] = (0.1, 0.4, 0.9)
