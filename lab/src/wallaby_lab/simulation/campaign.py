"""Run a range of seeds on all cores, and summarize them.

A campaign stops after a few failures; each is reported by its seed, which is enough to reproduce it. The summary shows
what the seeds covered: the policies, steps, faults that really struck, recoveries, and for every fail point and kind of
fault how often it struck there.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TextIO

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.effects import FailPoint
from wallaby_lab.simulation.drawn.faults import FaultKind
from wallaby_lab.simulation.drawn.policies import MIXED, simulated
from wallaby_lab.simulation.run import RunResult, check_workers, quiet_logs, run_seed

SEED_MAX = 1 << 48
#: The seeds that one process takes at a time.
CHUNK_SEEDS = 25
#: A campaign stops after this many failures.
FAILURES_MAX = 5
_NO_NUMBERS = ("policies", "outcomes", "struck", "failures")


@dataclass(slots=True)
class Summary:
    """The summary of many seeds."""

    seeds: int = 0
    seconds: float = 0.0
    steps: int = 0
    faults: int = 0
    recoveries: int = 0
    nested_recoveries: int = 0
    #: Seeds in which a worker was lost while an earlier recovery was under way.
    seeds_nested: int = 0
    commits: int = 0
    lineage_bytes: int = 0
    rewound: int = 0
    #: Those of them that stayed at their worker.
    rewound_in_place: int = 0
    retraced: int = 0
    restored: int = 0
    fetched: int = 0
    reread: int = 0
    #: Runs of queries that were rolled back, and those of them that had no complete snapshot.
    rolled_back: int = 0
    rolled_back_to_start: int = 0
    workers_lost: int = 0
    #: The seeds of each policy.
    policies: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    struck: Counter[tuple[FailPoint, FaultKind]] = field(default_factory=Counter)
    #: The seed and the message of every failure.
    failures: list[tuple[int, str]] = field(default_factory=list)

    def add(self, result: RunResult) -> None:
        """Count one run."""
        tally = result.tally
        self.seeds += 1
        self.steps += tally.steps
        self.faults += len(tally.fired)
        self.recoveries += tally.recoveries
        self.nested_recoveries += tally.nested_recoveries
        self.seeds_nested += tally.nested_recoveries > 0
        self.commits += tally.commits
        self.lineage_bytes += tally.lineage_bytes
        self.rewound += tally.rewound
        self.rewound_in_place += tally.rewound_in_place
        self.retraced += tally.retraced
        self.restored += tally.restored
        self.fetched += tally.fetched
        self.reread += tally.reread
        self.rolled_back += tally.rolled_back
        self.rolled_back_to_start += tally.rolled_back_to_start
        self.workers_lost += tally.workers_lost
        self.policies[result.policy] += 1
        self.outcomes.update(tally.outcomes)
        self.struck.update(tally.fired)
        if result.failure is not None:
            self.failures.append((result.seed, str(result.failure)))

    def empty_cells(self) -> list[tuple[FailPoint, FaultKind]]:
        """The pairs of fail point and kind of fault that never occurred."""
        return [(point, kind) for point in FailPoint for kind in FaultKind if not self.struck[point, kind]]

    def absorb(self, other: Summary) -> None:
        """Add another summary."""
        for name in self._numbers():
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.policies.update(other.policies)
        self.outcomes.update(other.outcomes)
        self.struck.update(other.struck)
        self.failures += other.failures

    @classmethod
    def of_json(cls, said: dict[str, Any]) -> Summary:
        """Load a saved summary."""
        summary = cls(**{name: said.get(name, 0) for name in cls._numbers()})
        summary.policies.update(said.get("policies_drawn", {}))
        summary.outcomes.update(said["outcomes"])
        for point, kinds in said["struck"].items():
            summary.struck.update({(FailPoint(point), FaultKind(kind)): n for kind, n in kinds.items()})
        summary.failures = [(each["seed"], each["what"]) for each in said["failures"]]
        return summary

    @classmethod
    def _numbers(cls) -> list[str]:
        return [name for name in cls.__slots__ if name not in _NO_NUMBERS]

    def as_json(self) -> dict[str, Any]:
        """The summary as plain values, to be saved."""
        return {
            **{name: getattr(self, name) for name in self._numbers()},
            "policies_drawn": dict(sorted(self.policies.items())),
            "outcomes": dict(sorted(self.outcomes.items())),
            "struck": {
                point.value: {kind.value: self.struck[point, kind] for kind in FaultKind}
                for point in FailPoint
            },
            "failures": [{"seed": seed, "what": what} for seed, what in sorted(self.failures)],
        }


def run_campaign(
    first: int,
    seeds: int,
    processes: int,
    workers: int | None = None,
    log: TextIO | None = None,
    progress: Callable[[Summary], None] | None = None,
    policy: str = MIXED,
) -> Summary:
    """Run seeds `first` to `first + seeds - 1`; `log` gets a line of JSON for each, in any order.

    `workers` overrides how many workers a seed starts with.
    """
    check_range(first, seeds)
    check_workers(workers)
    simulated(policy)
    if processes < 1:
        raise InvalidArgumentError(f"Cannot run on {processes} processes.", fix="Use 1 or more.")
    summary, started = Summary(), time.monotonic()
    for result in _results(first, seeds, processes, workers, policy):
        summary.add(result)
        if log is not None:
            log.write(json.dumps(_line(result)) + "\n")
        summary.seconds = time.monotonic() - started
        if progress is not None:
            progress(summary)
        if len(summary.failures) >= FAILURES_MAX:
            break
    return summary


def check_range(first: int, seeds: int) -> None:
    """Refuse a range of seeds that is empty or out of bounds."""
    if seeds < 1:
        raise InvalidArgumentError(f"There is nothing to run in {seeds} seeds.", fix="Ask for at least 1.")
    if not 0 <= first <= first + seeds <= SEED_MAX:
        raise InvalidArgumentError(
            f"Seeds {first} to {first + seeds - 1} are unknown.", fix=f"They go from 0 to {SEED_MAX - 1}."
        )


def _results(first: int, seeds: int, processes: int, workers: int | None, policy: str) -> Iterator[RunResult]:
    if processes == 1:
        yield from (run_seed(seed, workers, policy) for seed in range(first, first + seeds))
        return
    starts = iter(range(first, first + seeds, CHUNK_SEEDS))
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=quiet_logs) as pool:
        waiting: set[Future[list[RunResult]]] = set()

        def ask(chunks: int) -> None:
            for start in islice(starts, chunks):
                end = min(start + CHUNK_SEEDS, first + seeds)
                waiting.add(pool.submit(_run_chunk, start, end, workers, policy))

        ask(3 * processes)
        try:
            while waiting:
                done = next(as_completed(waiting))
                waiting.remove(done)
                ask(1)
                yield from done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _run_chunk(start: int, end: int, workers: int | None, policy: str) -> list[RunResult]:
    return [run_seed(seed, workers, policy) for seed in range(start, end)]


def _line(result: RunResult) -> dict[str, Any]:
    tally = result.tally
    return {
        "seed": result.seed,
        "policy": result.policy,
        "steps": tally.steps,
        "faults": [f"{kind.value} at {point.value}" for point, kind in tally.fired],
        "recoveries": tally.recoveries,
        "nested_recoveries": tally.nested_recoveries,
        "virtual_ms": tally.virtual_ms,
        "outcomes": tally.outcomes,
        "failure": str(result.failure) if result.failure else None,
    }
