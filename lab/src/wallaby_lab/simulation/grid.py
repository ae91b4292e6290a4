"""Every kind of fault at every fail point, systematically; random seeds reach each pair only by chance.

For each pair, seeds are run with that fault in addition to their own, until it has struck in a few of them. If a query
reaches a point only after another event, the seeds get that event too: a task with an error, a worker that is asked to
leave, a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from wallaby.lineage.effects import FailPoint
from wallaby.lineage.names import TaskName
from wallaby_lab.simulation.drawn.faults import RECOVERY_POINTS, FaultKind, SimulatedFault
from wallaby_lab.simulation.drawn.scenario import Scenario
from wallaby_lab.simulation.run import draw, run

#: The most seeds for a pair, and in how many of them it has to strike.
SEEDS_MAX = 120
STRIKES = 2
_LOST = SimulatedFault(FaultKind.CRASH, FailPoint.ADVANCE, 2, after=False)
_ASKED = SimulatedFault(FaultKind.DRAIN, FailPoint.DELIVER, 1, after=False)
_CUT = SimulatedFault(FaultKind.CUT_FOR_GOOD, FailPoint.DELIVER, 1, after=False)

Pair = tuple[FailPoint, FaultKind]


@dataclass(frozen=True, slots=True)
class FaultGrid:
    """For each pair, in how many of how many seeds it struck; and the failures."""

    struck: Mapping[Pair, tuple[int, int]]
    failures: tuple[tuple[int, Pair, str], ...]

    @property
    def empty(self) -> list[Pair]:
        """The pairs that did not occur."""
        return [pair for pair, (struck, _) in self.struck.items() if not struck]


def run_grid(progress: Callable[[int, int], None] | None = None) -> FaultGrid:
    """Run all pairs."""
    struck: dict[Pair, tuple[int, int]] = {}
    failures: list[tuple[int, Pair, str]] = []
    pairs = [(point, kind) for point in FailPoint for kind in FaultKind]
    for at, pair in enumerate(pairs):
        seed = hits = 0
        while hits < STRIKES and seed < SEEDS_MAX:
            scenario, faults = prepared(seed, *pair)
            result = run(seed, scenario, faults)
            hits += pair in result.tally.fired
            if result.failure is not None:
                failures.append((seed, pair, str(result.failure)))
            seed += 1
        struck[pair] = hits, seed
        if progress is not None:
            progress(at + 1, len(pairs))
    return FaultGrid(struck, tuple(failures))


def prepared(seed: int, point: FailPoint, kind: FaultKind) -> tuple[Scenario, tuple[SimulatedFault, ...]]:
    """What a seed draws, with a fault of this kind at this point, and with the events that lead there."""
    scenario, _ = draw(seed)
    first: tuple[SimulatedFault, ...] = ()
    if point in RECOVERY_POINTS:
        first = (_CUT,) if point is FailPoint.COMPLAIN else (_LOST,)
        scenario = replace(scenario, workers=3)
    if point is FailPoint.DRAIN:
        first = (_ASKED,)
    if point is FailPoint.FAIL:
        spoiled = replace(scenario.workloads[0], error=TaskName(0, 0, 0))
        scenario = replace(scenario, workloads=(spoiled, *scenario.workloads[1:]))
    return scenario, (*first, SimulatedFault(kind, point, 1, after=False))


def as_markdown(grid: FaultGrid) -> str:
    """The table: a row for each fail point, a column for each kind of fault, numbered; and the numbers."""
    kinds = list(FaultKind)
    lines = [f"{at}: {kind.value}" for at, kind in enumerate(kinds, 1)]
    table = [
        "| fail point | " + " | ".join(str(at) for at in range(1, len(kinds) + 1)) + " |",
        "|---|" + "---|" * len(kinds),
    ]
    for point in FailPoint:
        cells = (f"{grid.struck[point, kind][0]}/{grid.struck[point, kind][1]}" for kind in kinds)
        table.append(f"| {point.value} | " + " | ".join(cells) + " |")
    return "; ".join(lines) + ".\n\n" + "\n".join(table) + "\n"
