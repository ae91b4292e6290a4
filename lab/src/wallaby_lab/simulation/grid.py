"""Every kind of fault at every fail point, systematically; random seeds reach each pair only by chance.

For each pair, seeds are run with that fault in addition to their own, until it has struck in a few of them. If a query
reaches a point only after another event, the seeds get that event too: a task with an error, a worker that is asked to
leave, a loss, a loss while kept rows are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wallaby.lineage.effects import FailPoint
from wallaby.lineage.names import TaskName
from wallaby_lab.simulation.drawn.faults import (
    OF_READERS,
    OF_REREADS,
    OF_STATES,
    RECOVERY_POINTS,
    FaultKind,
    SimulatedFault,
)
from wallaby_lab.simulation.drawn.policies import MIXED, policies_of, simulated
from wallaby_lab.simulation.drawn.scenario import Scenario
from wallaby_lab.simulation.drawn.stay import stay_of
from wallaby_lab.simulation.drawn.staying import kept_result
from wallaby_lab.simulation.run import draw, run

#: The most seeds for a pair, and in how many of them it has to strike.
SEEDS_MAX = 120
STRIKES = 2
_LOST = SimulatedFault(FaultKind.CRASH, FailPoint.ADVANCE, 2, after=False)
_ASKED = SimulatedFault(FaultKind.DRAIN, FailPoint.DELIVER, 1, after=False)
_CUT = SimulatedFault(FaultKind.CUT_FOR_GOOD, FailPoint.DELIVER, 1, after=False)
_LOST_WHEN_READ = SimulatedFault(FaultKind.CRASH, FailPoint.FETCH, 1, after=False)

Pair = tuple[FailPoint, FaultKind]


@dataclass(frozen=True, slots=True)
class FaultGrid:
    """For each pair, in how many of how many seeds it struck; and the failures."""

    struck: Mapping[Pair, tuple[int, int]]
    failures: tuple[tuple[int, Pair, str], ...]

    def as_json(self) -> dict[str, Any]:
        """The grid as plain values, to be saved: for each point and kind, in how many of how many seeds it struck."""
        points = dict.fromkeys(point for point, _ in self.struck)
        return {
            "struck": {
                point.value: {
                    kind.value: list(self.struck[point, kind])
                    for kind in FaultKind
                    if (point, kind) in self.struck
                }
                for point in points
            },
            "failures": [
                {"seed": seed, "point": point.value, "kind": kind.value, "what": what}
                for seed, (point, kind), what in self.failures
            ],
        }

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> FaultGrid:
        """Load a saved grid."""
        struck = {
            (FailPoint(point), FaultKind(kind)): (hits, seeds)
            for point, kinds in said["struck"].items()
            for kind, (hits, seeds) in kinds.items()
        }
        failures = tuple(
            (each["seed"], (FailPoint(each["point"]), FaultKind(each["kind"])), each["what"])
            for each in said["failures"]
        )
        return cls(struck, failures)

    @property
    def empty(self) -> list[Pair]:
        """The pairs that did not occur."""
        return [pair for pair, (struck, _) in self.struck.items() if not struck]


def reached_points(policy: str = MIXED) -> list[FailPoint]:
    """The fail points that queries of a policy can reach."""
    parts = [simulated(each) for each in policies_of(policy)]
    left_out = set() if any(each.checkpoints for each in parts) else set(OF_STATES)
    if all(each.durable for each in parts):
        left_out |= set(OF_REREADS) | set(OF_READERS)
    return [point for point in FailPoint if point not in left_out]


def run_grid(
    progress: Callable[[int, int], None] | None = None,
    policy: str = MIXED,
    before: FaultGrid | None = None,
    keep: Callable[[FaultGrid], None] | None = None,
) -> FaultGrid:
    """Run every pair of a fault and a fail point that the policy can reach.

    Pairs that `before` has are not run again; `keep` gets the grid after every fail point.
    """
    found = before or FaultGrid({}, ())
    points = reached_points(policy)
    for at, point in enumerate(points):
        rest = [(point, kind) for kind in FaultKind if (point, kind) not in found.struck]
        if rest:
            struck, failures = dict(found.struck), list(found.failures)
            for pair in rest:
                struck[pair] = _run_pair(pair, policy, failures)
            found = FaultGrid(struck, tuple(failures))
            if keep is not None:
                keep(found)
        if progress is not None:
            progress(at + 1, len(points))
    return found


def _run_pair(pair: Pair, policy: str, failures: list[tuple[int, Pair, str]]) -> tuple[int, int]:
    """In how many of how many seeds a fault struck at a fail point."""
    seed = hits = 0
    while hits < STRIKES and seed < SEEDS_MAX:
        scenario, faults = prepared(seed, *pair, policy)
        result = run(seed, scenario, faults)
        hits += pair in result.tally.fired
        if result.failure is not None:
            failures.append((seed, pair, str(result.failure)))
        seed += 1
    return hits, seed


def prepared(
    seed: int, point: FailPoint, kind: FaultKind, policy: str = MIXED
) -> tuple[Scenario, tuple[SimulatedFault, ...]]:
    """What a seed draws, with a fault of this kind at this point, and with the events that lead there."""
    if policy == MIXED and point in OF_STATES:
        policy = "checkpoint+lineage"
    elif policy == MIXED and (point in (*OF_REREADS, *OF_READERS) or kind is FaultKind.RELEASE):
        policy = "lineage"
    scenario, _ = draw(seed, policy=policy)
    first: tuple[SimulatedFault, ...] = ()
    if point in RECOVERY_POINTS:
        first = (_CUT,) if point is FailPoint.COMPLAIN else (_LOST,)
        scenario = replace(scenario, workers=3)
    if point is FailPoint.DRAIN:
        first = (_ASKED,)
    if point is FailPoint.LOCATE:
        first = (_LOST_WHEN_READ,)
        scenario = replace(scenario, workers=3)
    if point is FailPoint.FAIL:
        spoiled = replace(scenario.workloads[0], error=TaskName(0, 0, 0))
        scenario = replace(scenario, workloads=(spoiled, *scenario.workloads[1:]))
    if kind is FaultKind.RELEASE:
        beside = point in (FailPoint.COLLECT, FailPoint.REMOVE)
        scenario = _with_a_result_that_stays(seed, scenario, collects=beside)
        if point is FailPoint.REGISTER:  # of a worker that comes when there is a result
            first, scenario = (_LOST,), replace(scenario, restarts=True)
    return scenario, (*first, SimulatedFault(kind, point, 1, after=False))


def _with_a_result_that_stays(seed: int, scenario: Scenario, *, collects: bool) -> Scenario:
    """Let the results stay; with `collects`, there is also a query that collects its own."""
    plain = scenario.workloads[0]
    workloads = (kept_result(plain), *((plain,) if collects else ()))
    return replace(scenario, workloads=workloads, stays=(stay_of(seed), stay_of(~seed)))


def as_markdown(grid: FaultGrid) -> str:
    """The table: a row for each fail point, a column for each kind of fault, numbered; and the numbers."""
    kinds = list(FaultKind)
    lines = [f"{at}: {kind.value}" for at, kind in enumerate(kinds, 1)]
    table = [
        "| fail point | " + " | ".join(str(at) for at in range(1, len(kinds) + 1)) + " |",
        "|---|" + "---|" * len(kinds),
    ]
    for point in [point for point in FailPoint if (point, kinds[0]) in grid.struck]:
        cells = (f"{grid.struck[point, kind][0]}/{grid.struck[point, kind][1]}" for kind in kinds)
        table.append(f"| {point.value} | " + " | ".join(cells) + " |")
    return "; ".join(lines) + ".\n\n" + "\n".join(table) + "\n"
