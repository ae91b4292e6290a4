"""The simulation as a whole: it is deterministic, it strikes, and the protocol withstands it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.effects import FailPoint
from wallaby.lineage.tolerance import POLICIES, tolerance_of
from wallaby_lab.simulation.campaign import SEED_MAX, run_campaign
from wallaby_lab.simulation.drawn.faults import FaultKind
from wallaby_lab.simulation.run import draw, run, run_seed
from wallaby_lab.simulation.shrink import shrink
from wallaby_lab.simulation.sweep import run_sweep, sweep_faults

#: The per-commit run: these seeds, on every change.
SEEDS = 1_000
CORES = os.cpu_count() or 1


@pytest.mark.timeout(600)
def test_a_thousand_random_seeds_break_no_invariant() -> None:
    log = io.StringIO()
    summary = run_campaign(0, SEEDS, CORES, log=log)
    assert summary.failures == []
    assert summary.seeds == SEEDS
    # The run is worth something: steps, faults that struck, and losses in the middle of a recovery.
    assert summary.steps / SEEDS >= 300
    assert summary.faults / SEEDS >= 2
    assert summary.seeds_nested / SEEDS >= 0.15
    assert summary.lineage_bytes / summary.commits <= 64
    assert summary.outcomes["done"] / summary.outcomes.total() > 0.8
    # Every policy is drawn, and channels were rewound in place, which only some of them do.
    assert set(summary.policies) == {name for name, parts in POLICIES.items() if parts.recorded}
    assert summary.policies["lineage"] == SEEDS / 2
    assert min(summary.rewound_in_place, summary.restored, summary.fetched) > 0
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert sorted(line["seed"] for line in lines) == list(range(SEEDS))
    assert sum(line["steps"] for line in lines) == summary.steps


@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", [name for name, parts in POLICIES.items() if parts.recorded][1:])
def test_the_parts_of_other_policies_break_no_invariant(policy: str) -> None:
    summary = run_campaign(SEEDS, 60, CORES, policy=policy)
    assert summary.failures == []
    assert summary.recoveries > 40
    assert summary.policies == {policy: 60}
    tolerance = tolerance_of(policy)
    assert bool(summary.restored) is tolerance.checkpoints, "lost channels went on from saved states"
    assert bool(summary.fetched) is tolerance.durable, "outputs of lost workers were sent again"
    assert bool(summary.reread) is not tolerance.durable, "what is kept is not read again"


@pytest.mark.timeout(600)
def test_queries_that_are_rolled_back_as_a_whole_break_no_invariant() -> None:
    summary = run_campaign(SEEDS, 150, CORES, policy="checkpoint")
    assert summary.failures == []
    assert summary.policies == {"checkpoint": 150}
    # They lost workers, most of them went on from a snapshot, and nothing of lineage was used.
    assert summary.workers_lost > 150
    assert summary.rolled_back - summary.rolled_back_to_start > 30
    assert summary.restored > summary.rolled_back
    assert (summary.commits, summary.rewound, summary.retraced, summary.reread) == (0, 0, 0, 0)
    assert summary.outcomes["done"] / summary.outcomes.total() > 0.8


@pytest.mark.timeout(600)
def test_one_fault_at_every_step_of_a_small_query_breaks_no_invariant() -> None:
    result = run_sweep(CORES)
    assert result.failures == ()
    assert result.struck == result.tried == len(sweep_faults()) > 1_500


@pytest.mark.timeout(600)
def test_nor_does_a_crash_at_every_step_where_states_are_saved() -> None:
    points = {fault.point for fault in sweep_faults("checkpoint+lineage")}
    assert FailPoint.SAVE_STATE in points
    assert FailPoint.SAVE_STATE not in {fault.point for fault in sweep_faults()}
    result = run_sweep(CORES, policy="checkpoint+lineage", kinds=(FaultKind.CRASH,))
    assert result.failures == ()
    assert result.struck == result.tried > 300


def test_the_same_seed_tells_the_same_story() -> None:
    for seed in range(40):
        one: list[str] = []
        other: list[str] = []
        run(seed, *draw(seed), one)
        run(seed, *draw(seed), other)
        assert one == other
        assert len(one) > 20


def test_a_seed_does_the_same_in_another_process_with_another_hash_seed() -> None:
    program = (
        "from wallaby_lab.simulation.run import draw, run\n"
        "import hashlib\n"
        "story = []\n"
        "for seed in range(100, 130):\n"
        "    run(seed, *draw(seed), story)\n"
        "print(hashlib.sha256('\\n'.join(story).encode()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


def test_every_seed_counts_the_same_alone_and_in_a_campaign() -> None:
    summary = run_campaign(50, 10, processes=1)
    alone = [run_seed(seed) for seed in range(50, 60)]
    assert summary.steps == sum(result.tally.steps for result in alone)
    assert summary.faults == sum(len(result.tally.fired) for result in alone)


def test_a_seed_without_failure_shrinks_to_itself() -> None:
    shrunk = shrink(3)
    assert shrunk.result.failure is None
    assert shrunk.faults == draw(3)[1]


@pytest.mark.parametrize(("first", "seeds"), [(-1, 5), (0, 0), (0, -3), (SEED_MAX, 1), (SEED_MAX - 1, 2)])
def test_a_seed_range_that_cannot_be_is_refused(first: int, seeds: int) -> None:
    with pytest.raises(InvalidArgumentError):
        run_campaign(first, seeds, processes=1)


@pytest.mark.parametrize("workers", [0, -1, 65])
def test_a_topology_without_workers_or_with_too_many_is_refused(workers: int) -> None:
    with pytest.raises(InvalidArgumentError, match="Impossible topology"):
        run_campaign(0, 1, processes=1, workers=workers)


def test_a_campaign_on_no_process_is_refused() -> None:
    with pytest.raises(InvalidArgumentError):
        run_campaign(0, 1, processes=0)
