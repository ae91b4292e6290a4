"""What a seed draws for a query under coordinated snapshots, from a generator of its own."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from wallaby.lineage.effects import FailPoint
from wallaby_lab.simulation.drawn.chain import draw_chain
from wallaby_lab.simulation.drawn.faults import LOSING, FaultKind, SimulatedFault
from wallaby_lab.simulation.drawn.scenario import Scenario

#: The time between snapshots; 0: one before every read.
_PERIODS_MS = (0, 0, 0, 3, 10, 30)
#: Where workers are lost: not only at the beginning, so that there is a snapshot to go back to.
_LOST_AT = (
    FailPoint.COLLECT,
    FailPoint.COLLECT,
    FailPoint.COLLECT,
    FailPoint.SAVE_STATE,
    FailPoint.RESTORE_STATE,
    FailPoint.BACK_UP,
    FailPoint.EXECUTE,
    FailPoint.DELIVER,
)
#: The seeds with a long chain of operators, and without a join.
CHAINS_SHARE = 0.4
_KINDS = (*4 * (FaultKind.CRASH,), *LOSING, FaultKind.REORDER, FaultKind.DUPLICATE, FaultKind.STALL)


def with_snapshots(
    seed: int, scenario: Scenario, faults: tuple[SimulatedFault, ...]
) -> tuple[Scenario, tuple[SimulatedFault, ...]]:
    """The scenario of a seed, with the time between snapshots, and losses after some. No task kills whoever runs it."""
    random = Random(f"snapshots {seed}")
    workloads = tuple(replace(workload, poison=None) for workload in scenario.workloads)
    if random.random() < CHAINS_SHARE:  # it has many reads, and aligns all its snapshots
        workloads = (draw_chain(random), *workloads[1:])
    period_ms = random.choice(_PERIODS_MS)
    kept = faults if random.random() < 0.4 else ()
    return (
        replace(scenario, workloads=workloads, snapshot_ms=period_ms),
        (*kept, *(_loss(random) for _ in range(random.choice((1, 1, 2, 3, 4))))),
    )


def _loss(random: Random) -> SimulatedFault:
    point = random.choice(_LOST_AT)
    often = 6 if point in (FailPoint.COLLECT, FailPoint.RESTORE_STATE) else 120
    return SimulatedFault(
        random.choice(_KINDS), point, 1 + int(random.random() * often), random.random() < 0.5
    )
