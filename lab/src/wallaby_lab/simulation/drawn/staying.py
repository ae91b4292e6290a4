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
KEPT_SHARE = 0.22
#: Those of them whose result is released at any step.
RELEASED_SHARE = 0.3
#: Where, in most of them.
_RELEASED_AT = (
    *3 * (FailPoint.KEEP,),
    FailPoint.COMMIT,
    FailPoint.ADVANCE,
    FailPoint.DELIVER,
    FailPoint.ACKNOWLEDGE,
    FailPoint.LOOK,
    FailPoint.STATUS,
    FailPoint.RESUME,
    FailPoint.LOCATE,
    *2 * (FailPoint.FETCH,),
)
#: What may happen while they are read.
_AT_READERS = (
    *2 * (FaultKind.CRASH,),
    FaultKind.CRASH_TWO,
    *3 * (FaultKind.DRAIN,),
    *2 * (FaultKind.CUT_FOR_GOOD,),
    FaultKind.ONE_WAY,
    *2 * (FaultKind.FLAPPING,),
    *2 * (FaultKind.PARTITION,),
    FaultKind.PAUSE,
    *2 * (FaultKind.DROP,),
    FaultKind.CANCEL,
    *2 * (FaultKind.RELEASE,),
)


def with_results_kept(seed: int, scenario: Scenario) -> Scenario:
    """The same queries; in some seeds their results stay, where what makes them can be rewound."""
    random = Random(f"kept {seed}")
    tolerance = scenario.session.tolerance
    if random.random() >= KEPT_SHARE or tolerance.durable or scenario.flow.forgotten is not None:
        return scenario
    return replace(
        scenario, workloads=tuple(map(kept_result, scenario.workloads)), stays=(stay_of(seed), stay_of(~seed))
    )


def with_faults_at_readers(
    seed: int, scenario: Scenario, faults: tuple[SimulatedFault, ...]
) -> tuple[SimulatedFault, ...]:
    """Most of the seeds whose results stay have something happen to workers while they are read, or just before."""
    random = Random(f"readers {seed}")
    if not any(workload.graph.keeps for workload in scenario.workloads) or random.random() < 0.3:
        return faults
    if random.random() < RELEASED_SHARE:
        points = _RELEASED_AT if random.random() < 0.7 else tuple(FailPoint)
        point, nth = random.choice(points), random.randint(1, 6)
        return (SimulatedFault(FaultKind.RELEASE, point, nth, random.random() < 0.5), *faults[:2])
    point = random.choice((*4 * (FailPoint.FETCH,), FailPoint.LOCATE, *2 * (FailPoint.KEEP,)))
    aimed = [
        SimulatedFault(random.choice(_AT_READERS), point, random.choice((1, 1, 2, 4)), random.random() < 0.5)
    ]
    if random.random() < 0.4:  # and then again, to those that make lost outputs again or look for them
        again = random.choice((FailPoint.LOCATE, FailPoint.LOCATE, FailPoint.FETCH, FailPoint.RETRACE))
        aimed.append(
            SimulatedFault(random.choice(_AT_READERS), again, random.choice((1, 2, 3)), random.random() < 0.5)
        )
    return (*aimed, *faults[: random.choice((0, 0, 1, 2))])


def kept_result(workload: ToyWorkload) -> ToyWorkload:
    """The same query, whose result stays, unless readers make it."""
    graph = workload.graph
    makers = {graph.producer(edge).stage for edge in graph.edges_into(graph.collector)}
    if any(graph.is_reader(stage) for stage in makers):
        return workload
    stages = (*graph.stages[:-1], Stage(StageKind.KEEP, 1))
    return replace(workload, graph=StageGraph(stages, graph.links))
