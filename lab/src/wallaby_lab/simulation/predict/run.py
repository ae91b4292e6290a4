"""One prediction: a query on a cluster, undisturbed or with a worker that is lost while it runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.errors import InternalError
from wallaby.lineage.choose import DrawPolicy, Dynamic
from wallaby.lineage.tolerance import LINEAGE, Tolerance
from wallaby.node.session import QuerySessionSettings
from wallaby.observe.history import History
from wallaby_lab.simulation.drawn.scenario import PLENTY_BYTES, Scenario
from wallaby_lab.simulation.predict.costs import learned
from wallaby_lab.simulation.predict.pace import PacedPerformer, PacedWorld, PredictedCluster
from wallaby_lab.simulation.world.strike import Striker

NEVER_MS = 10_000_000
STEPS_MAX = 20_000_000
#: `PredictedCluster.detection_seconds` determines when a loss is noticed, not leases; but those are renewed as always.
LEASE_MS = NEVER_MS
RENEW_MS = 400
TARGET_BYTES = 32 << 20
WINDOW_BYTES = 128 << 20
#: Clusters up to this size are simulated as a whole. The edges of a stage grow with the square of its channels, so for
#: larger clusters this many workers are simulated, with their part of the query.
WHOLE_MAX = 128
PART_OF_MORE = 64


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted time of a query."""

    seconds: float
    rewound: int
    retraced: int
    reread: int
    steps: int


class _NoAudit:
    """Replaces the audit of the simulation of faults."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_arguments, **_named: None


def predict(
    history: History,
    cluster: PredictedCluster,
    tolerance: Tolerance = LINEAGE,
    policy: DrawPolicy | None = None,
    kill_at_seconds: float | None = None,
    seed: int = 1,
    start_seconds: Sequence[float] = (),
    times: int = 1,
) -> Prediction:
    """Run the query of a log on a simulated cluster; optionally kill one worker while it runs.

    `start_seconds`, by stage, is the one-time cost of each channel; the data is `times` times as large.
    """
    simulated = cluster.workers if cluster.workers <= WHOLE_MAX else PART_OF_MORE
    costed: Any = learned(
        history, simulated * cluster.slots, simulated / cluster.workers, start_seconds, times
    )
    scenario = Scenario(
        workloads=(costed,),
        session=QuerySessionSettings(policy or Dynamic(TARGET_BYTES), WINDOW_BYTES, tolerance),
        coordinator=CoordinatorSettings(
            lease_ms=LEASE_MS, no_workers_ms=NEVER_MS, frozen_ms=NEVER_MS, stall_ms=0
        ),
        workers=simulated,
        renew_every_ms=RENEW_MS,
        room_bytes=PLENTY_BYTES,
        slow_worker=False,
        restarts=False,
        random_seed=seed,
    )
    # All workers share one control store, including those that are not simulated.
    shared = cluster.gcs_calls_per_second * simulated / cluster.workers
    with _without_collector():
        world = PacedWorld(scenario, (), PacedPerformer, Striker)
        return _run(history, world, replace(cluster, gcs_calls_per_second=shared), kill_at_seconds)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Switch garbage collection off: millions of objects live to the end, and scanning them would dominate."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _run(
    history: History, world: PacedWorld, cluster: PredictedCluster, kill_at_seconds: float | None
) -> Prediction:
    world.cluster = cluster
    world.healed = True  # no faults but the one below
    workers = world.scenario.workers
    world.run_until(lambda: len(world.store.workers) == workers, 10_000, STEPS_MAX)
    began_us = world.agenda.now_us
    world.submit(0)
    (running,) = world.running.values()
    running.audit = running.scrutiny = _NoAudit()  # type: ignore[assignment]
    if kill_at_seconds is not None:
        victim = world.live_workers()[0]
        world.agenda.after(int(kill_at_seconds * 1e6), world.crash, victim, "killed")
    if not world.run_until(lambda: running.query.is_taken, NEVER_MS, STEPS_MAX):
        raise InternalError(f"The prediction for {history.query} did not come to an end.")
    seconds = (world.agenda.now_us - began_us) / 1e6
    tally = world.tally
    return Prediction(seconds, tally.rewound, tally.retraced, tally.reread, tally.steps)
