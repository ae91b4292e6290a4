"""Shrink a failing seed to the fewest faults that make it fail, and tell the story of that run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wallaby_lab.simulation.drawn.faults import SimulatedFault
from wallaby_lab.simulation.drawn.policies import MIXED
from wallaby_lab.simulation.drawn.scenario import Scenario
from wallaby_lab.simulation.run import Failure, RunResult, draw, run

#: The most runs for one shrinking.
RUNS_MAX = 200


@dataclass(frozen=True)
class Shrunk:
    """The smallest failing run found, with its story line by line."""

    seed: int
    scenario: Scenario
    faults: tuple[SimulatedFault, ...]
    result: RunResult
    story: tuple[str, ...]
    runs: int


def tell(
    seed: int, scenario: Scenario, faults: tuple[SimulatedFault, ...]
) -> tuple[RunResult, tuple[str, ...]]:
    """Run once more and record the story."""
    story: list[str] = []
    return run(seed, scenario, faults, story), tuple(story)


def shrink(seed: int, workers: int | None = None, policy: str = MIXED) -> Shrunk:
    """Remove everything that the failure does not need: faults, the other query, the slow worker."""
    scenario, faults = draw(seed, workers, policy)
    failure = run(seed, scenario, faults).failure
    runs = 1

    def fails(scenario: Scenario, faults: tuple[SimulatedFault, ...]) -> bool:
        nonlocal runs
        runs += 1
        return _same(failure, run(seed, scenario, faults).failure)

    if failure is not None:
        for simpler in _simpler(scenario):
            if fails(simpler, faults):
                scenario = simpler
        again = True
        while again and runs < RUNS_MAX:
            again = False
            for at in range(len(faults)):
                fewer = faults[:at] + faults[at + 1 :]
                if fails(scenario, fewer):
                    faults, again = fewer, True
                    break
    result, story = tell(seed, scenario, faults)
    return Shrunk(seed, scenario, faults, result, story, runs)


def _simpler(scenario: Scenario) -> list[Scenario]:
    return [
        replace(scenario, workloads=scenario.workloads[:1], slow_worker=False),
        replace(scenario, workloads=scenario.workloads[:1]),
    ]


def _same(one: Failure | None, other: Failure | None) -> bool:
    return one is not None and other is not None and one.number == other.number
