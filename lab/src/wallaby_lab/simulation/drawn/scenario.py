"""What a seed draws besides its faults."""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.node.session import QuerySessionSettings
from wallaby_lab.simulation.drawn.schedules import EVEN, Schedule
from wallaby_lab.simulation.drawn.stay import Stay
from wallaby_lab.simulation.drawn.workload import ToyWorkload
from wallaby_lab.simulation.world.flow import FREE, PLENTY_BYTES, Flow

__all__ = ["PLENTY_BYTES", "Scenario"]

#: How long a complaint lasts without renewal, in most seeds.
COMPLAINT_MS = 3_000


@dataclass(frozen=True)
class Scenario:
    """Everything that a seed draws except its faults."""

    workloads: tuple[ToyWorkload, ...]
    session: QuerySessionSettings
    coordinator: CoordinatorSettings
    workers: int
    renew_every_ms: int
    room_bytes: int
    slow_worker: bool
    #: Are crashed workers replaced, each by a new incarnation?
    restarts: bool
    random_seed: int
    schedule: Schedule = EVEN
    flow: Flow = FREE
    #: Each stage saves one of these shares of its states, so that one continues from where another has to start again.
    saved_shares: tuple[float, ...] = (0.1, 0.4, 0.9)
    #: How long a complaint lasts without renewal.
    complaint_ms: int = COMPLAINT_MS
    #: How the results of queries are read that keep theirs, by the number of the query.
    stays: tuple[Stay, ...] = ()
    #: The time between coordinated snapshots; 0: one before every read.
    snapshot_ms: int = 0
