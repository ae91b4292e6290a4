"""The exhaustive sweep: one small query, one fault, at every single step.

The query is run once undisturbed to count how often each fail point is visited. Then it is run again for
every visit, with one fault at just that visit, before its effect and after it. Unlike random seeds, it cannot miss a
step by chance.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.lineage.choose import Dynamic
from wallaby.lineage.effects import FailPoint
from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.node.session import QuerySessionSettings
from wallaby_lab.simulation.drawn.faults import FaultKind, SimulatedFault
from wallaby_lab.simulation.drawn.policies import simulated
from wallaby_lab.simulation.drawn.scenario import PLENTY_BYTES, Scenario
from wallaby_lab.simulation.drawn.workload import Operator, Rows, ToyWorkload
from wallaby_lab.simulation.run import NEVER_MS, RunResult, quiet_logs, run

KINDS = (
    FaultKind.CRASH,
    FaultKind.CRASH_TWO,
    FaultKind.PAUSE,
    FaultKind.DRAIN,
    FaultKind.DROP,
    FaultKind.REPLY_LOST,
    FaultKind.STORE_PAUSE,
    FaultKind.COORDINATOR_RESTART,
)
#: The number of visits that are tried at points of polling; at all other points every visit is.
POLLS_MAX = 6
POLLED = (
    FailPoint.CHOOSE,
    FailPoint.LOOK,
    FailPoint.RENEW,
    FailPoint.DISCOVER,
    FailPoint.WATCH,
    FailPoint.STATUS,
)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The number of faults that were tried and that struck, and the failures."""

    tried: int
    struck: int
    failures: tuple[tuple[SimulatedFault, str], ...]


def small_scenario(policy: str = "lineage") -> Scenario:
    """Two tables, one filtered by the other, a join on two channels, a distinct: on three workers."""
    tables: dict[int, tuple[Rows, ...]] = {
        0: (((0, 1), (1, 2)), ((2, 3),), ()),
        1: (((0, 5), (3, 6)), ((1, 7), (1, 8)), ((2, 9),), ((0, 4),)),
    }
    graph = StageGraph(
        (
            Stage(StageKind.READ, 2, splits=3),
            Stage(StageKind.READ, 2, splits=4),
            Stage(StageKind.EXECUTE, 2),
            Stage(StageKind.EXECUTE, 2),
            Stage(StageKind.COLLECT, 1),
        ),
        (
            Link(0, 1, kind=LinkKind.SIDE, required=False, routing=Routing.BROADCAST),
            Link(0, 2, phase=0),
            Link(1, 2, phase=1),
            Link(2, 3),
            Link(3, 4),
        ),
    )
    operators = (
        Operator.SCAN,
        Operator.SCAN_FILTERED,
        Operator.JOIN,
        Operator.DISTINCT,
        Operator.COLLECT,
    )
    return Scenario(
        workloads=(ToyWorkload(graph, operators, tables, limit=1),),
        session=QuerySessionSettings(
            Dynamic(16),
            window_bytes=24,
            tolerance=simulated(policy),
            outputs_per_push=2,
            look_every_ms=100,
        ),
        coordinator=CoordinatorSettings(300, 40, 600, NEVER_MS, NEVER_MS, 1_000),
        workers=3,
        renew_every_ms=100,
        room_bytes=PLENTY_BYTES,
        slow_worker=False,
        restarts=True,
        random_seed=11,
    )


def sweep_faults(policy: str = "lineage", kinds: tuple[FaultKind, ...] = KINDS) -> list[SimulatedFault]:
    """Every single fault of these kinds at every visit of every fail point of the small query."""
    visits: Counter[tuple[FailPoint, bool]] = Counter()
    run(0, small_scenario(policy), (), visits=visits)
    return [
        SimulatedFault(kind, point, nth, after)
        for (point, after), count in sorted(visits.items(), key=lambda item: (item[0][0].value, item[0][1]))
        for nth in range(1, 1 + (min(count, POLLS_MAX) if point in POLLED else count))
        for kind in kinds
    ]


def run_sweep(
    processes: int,
    progress: Callable[[int, int], None] | None = None,
    policy: str = "lineage",
    kinds: tuple[FaultKind, ...] = KINDS,
) -> SweepResult:
    """Run the small query once with every single fault."""
    faults = sweep_faults(policy, kinds)
    struck, failures = 0, []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=quiet_logs) as pool:
        for at, result in enumerate(pool.map(partial(_run_one, policy), faults, chunksize=20)):
            struck += len(result.tally.fired)
            if result.failure is not None:
                failures.append((result.faults[0], str(result.failure)))
            if progress is not None:
                progress(at + 1, len(faults))
    return SweepResult(len(faults), struck, tuple(failures))


def _run_one(policy: str, fault: SimulatedFault) -> RunResult:
    return run(0, small_scenario(policy), (fault,))
