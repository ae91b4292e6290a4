"""Predictions for several clusters, as a table; and how near they come to runs that were made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from wallaby.lineage.tolerance import LINEAGE, POLICIES
from wallaby.observe.history import History
from wallaby.simulation.predict.pace import Cluster
from wallaby.simulation.predict.run import predict

#: A prediction that is further from the run is not to be believed.
TOLERATED: Final = 0.25


@dataclass(frozen=True, slots=True)
class Line:
    """What is predicted of one query on one cluster, in seconds; stagewise stands for Spark's way of recovery."""

    query: str
    workers: int
    pipelined: float
    stagewise: float
    spool: float
    #: With a worker killed at half of the time, over the time without.
    loss: float
    stagewise_loss: float
    rewound: int


@dataclass(frozen=True, slots=True)
class Check:
    """A prediction beside the run that it is for."""

    query: str
    workers: int
    predicted: float
    measured: float

    @property
    def off(self) -> float:
        """By which part of the measured time the prediction is wrong."""
        return abs(self.predicted - self.measured) / self.measured

    @property
    def holds(self) -> bool:
        """Is it near enough?"""
        return self.off <= TOLERATED


def line(name: str, history: History, cluster: Cluster) -> Line:
    """All that is predicted of one query on one cluster."""
    staged = POLICIES["stagewise"]
    pipelined, stagewise = predict(history, cluster), predict(history, cluster, staged)
    lost = predict(history, cluster, LINEAGE, kill_at_seconds=pipelined.seconds / 2)
    staged_lost = predict(history, cluster, staged, kill_at_seconds=stagewise.seconds / 2)
    return Line(
        name,
        cluster.workers,
        pipelined.seconds,
        stagewise.seconds,
        predict(history, cluster, POLICIES["spool"]).seconds,
        lost.seconds / pipelined.seconds,
        staged_lost.seconds / stagewise.seconds,
        lost.rewound,
    )


def checked(name: str, learned_from: History, run: History, cluster: Callable[[int], Cluster]) -> Check:
    """A prediction for the workers of another run of the same query."""
    workers = len(run.workers)
    return Check(name, workers, predict(learned_from, cluster(workers)).seconds, run.seconds)


def to_json(lines: Sequence[Line], checks: Sequence[Check], cluster: Cluster) -> dict[str, Any]:
    """Everything, as plain values."""
    return {
        "network_bytes_per_second": cluster.network_bytes_per_second,
        "store_bytes_per_second": cluster.store_bytes_per_second,
        "threads": cluster.threads,
        "shared_cores": cluster.shared_cores,
        "validated": bool(checks) and all(check.holds for check in checks),
        "lines": [asdict(each) for each in lines],
        "checks": [{**asdict(check), "off": check.off} for check in checks],
    }
