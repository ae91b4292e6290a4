"""Results that stay: which seeds keep theirs.

Draws come from a generator of their own, so they change nothing else that a seed draws.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from wallaby.lineage.effects import FailPoint
from wallaby.lineage.graph import Stage, StageGraph, StageKind
from wallaby_lab.simulation.drawn.faults import FaultKind, SimulatedFault
from wallaby_lab.simulation.drawn.scenario import Scenario
from wallaby_lab.simulation.drawn.stay import stay_of
from wallaby_lab.simulation.drawn.workload import ToyWorkload

#: The seeds whose results stay with the workers.
KEPT_SHARE = 0.15
#: What may happen while they are read.
_AT_READERS = (
    *2 * (FaultKind.CRASH,),
    FaultKind.CRASH_TWO,
    *3 * (FaultKind.DRAIN,),
    *2 * (FaultKind.CUT_FOR_GOOD,),
    FaultKind.ONE_WAY,
    FaultKind.FLAPPING,
    FaultKind.PARTITION,
    FaultKind.PAUSE,
)


def with_results_kept(seed: int, scenario: Scenario) -> Scenario:
    """The same queries; in some seeds their results stay, where what makes them can be rewound."""
    random = Random(f"kept {seed}")
    tolerance = scenario.session.tolerance
    if random.random() >= KEPT_SHARE or tolerance.durable or scenario.flow.forgotten is not None:
        return scenario
    return replace(
        scenario, workloads=tuple(map(_kept, scenario.workloads)), stays=(stay_of(seed), stay_of(~seed))
    )


def with_faults_at_readers(
    seed: int, scenario: Scenario, faults: tuple[SimulatedFault, ...]
) -> tuple[SimulatedFault, ...]:
    """Half of the seeds whose results stay have something happen to workers while they are read, or just before."""
    random = Random(f"readers {seed}")
    if not any(workload.graph.keeps for workload in scenario.workloads) or random.random() < 0.5:
        return faults
    point = random.choice((FailPoint.FETCH, FailPoint.FETCH, FailPoint.LOCATE, FailPoint.KEEP))
    aimed = SimulatedFault(
        random.choice(_AT_READERS), point, random.choice((1, 1, 2, 4)), random.random() < 0.5
    )
    return (aimed, *faults[: random.choice((0, 1, 2))])


def _kept(workload: ToyWorkload) -> ToyWorkload:
    graph = workload.graph
    makers = {graph.producer(edge).stage for edge in graph.edges_into(graph.collector)}
    if any(graph.is_reader(stage) for stage in makers):
        return workload
    stages = (*graph.stages[:-1], Stage(StageKind.KEEP, 1))
    return replace(workload, graph=StageGraph(stages, graph.links))
