"""Predictions for several clusters, as a table; and how near they come to runs that were made.

A run also takes time that is not simulated: to plan, to start, to hand the result over. It is what runs with few
workers took beyond their own predictions, and is added to every prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any, Final

from wallaby.lineage.choose import Static
from wallaby.lineage.tolerance import LINEAGE, POLICIES
from wallaby.observe.history import History
from wallaby.simulation.predict.pace import Cluster
from wallaby.simulation.predict.run import Prediction, predict

#: A prediction that is further from the run is not to be believed.
TOLERATED: Final = 0.25
#: The figures of the paper that can be predicted; (g) is what the others are compared with, on each cluster.
FIGURES: Final = ("b", "c", "d", "e", "f", "g")
USUAL: Final = ("b", "d", "e", "g")
STATIC: Final = (8, 128)
SHARES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, slots=True)
class Line:
    """What is predicted of one query on one cluster, in seconds; stagewise stands for Spark's way of recovery."""

    query: str
    workers: int
    seconds: Mapping[str, float]
    #: Channels, with a worker killed at half of the time; None where that was not asked for.
    rewound: int | None


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


def unsimulated(history: History, runs: Iterable[tuple[Cluster, History]]) -> float:
    """Seconds that runs of a query, each on its cluster, took beyond what is predicted for them."""
    return max(0.0, mean(run.seconds - predict(history, cluster).seconds for cluster, run in runs))


def line(
    name: str,
    history: History,
    cluster: Cluster,
    figures: Sequence[str] = USUAL,
    beside: float = 0.0,
) -> Line:
    """All that is predicted of one query on one cluster; `beside` is what takes time and is not simulated."""
    staged = POLICIES["stagewise"]
    pipelined = predict(history, cluster)
    stagewise = predict(history, cluster, staged) if "b" in figures or "e" in figures else pipelined
    found: dict[str, Prediction] = {"pipelined": pipelined}
    if "b" in figures:
        found["stagewise"] = stagewise
    if "c" in figures:
        found |= {f"static {k}": predict(history, cluster, policy=Static(k)) for k in STATIC}
    if "d" in figures:
        found["spool"] = predict(history, cluster, POLICIES["spool"])
    if "e" in figures:
        killed = stagewise.seconds / 2
        found["stagewise, killed at 50 %"] = predict(history, cluster, staged, kill_at_seconds=killed)
    for share in SHARES if "f" in figures else (0.5,) if "e" in figures else ():
        killed = share * pipelined.seconds
        found[f"killed at {share:.0%}".replace("%", " %")] = predict(
            history, cluster, LINEAGE, kill_at_seconds=killed
        )
    half = found.get("killed at 50 %")
    seconds = {what: round(each.seconds + beside, 4) for what, each in found.items()}
    return Line(name, cluster.workers, seconds, half.rewound if half is not None else None)


def checked(name: str, learned_from: History, run: History, cluster: Cluster, beside: float = 0.0) -> Check:
    """A prediction for the cluster of another run of the same query. Its log need not name workers without work."""
    return Check(name, cluster.workers, predict(learned_from, cluster).seconds + beside, run.seconds)


def to_json(
    data: str, lines: Sequence[Line], checks: Sequence[Check], cluster: Cluster, beside: Mapping[str, float]
) -> dict[str, Any]:
    """Everything, as plain values."""
    return {
        "data": data,
        "network_bytes_per_second": cluster.network_bytes_per_second,
        "store_bytes_per_second": cluster.store_bytes_per_second,
        "threads": cluster.threads,
        "shared_cores": cluster.shared_cores,
        "unsimulated_seconds": dict(beside),
        "validated": bool(checks) and all(check.holds for check in checks),
        "lines": [asdict(each) for each in lines],
        "checks": [{**asdict(check), "off": check.off} for check in checks],
    }
