"""Predictions for several clusters, as a table; and how near they come to runs that were made.

A run also takes time that is not simulated: to plan, to start, to hand the result over. It is what the run that is
predicted from took beyond its own prediction, and is added to every prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from wallaby.lineage.choose import Policy, Static
from wallaby.lineage.tolerance import LINEAGE, POLICIES, Tolerance
from wallaby.observe.history import History
from wallaby.simulation.predict.costs import starts
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
class Known:
    """What is known of a query: the log of a run, and what runs with other numbers of workers taught."""

    history: History
    #: By stage: what each channel takes once.
    start_seconds: tuple[float, ...] = ()
    #: What takes time and is not simulated.
    beside: float = 0.0
    #: Predictions are for data so many times as large as that of the run.
    times: int = 1

    def predict(
        self,
        cluster: Cluster,
        tolerance: Tolerance = LINEAGE,
        policy: Policy | None = None,
        kill_at_seconds: float | None = None,
    ) -> Prediction:
        """The query on a cluster, without what is not simulated."""
        return predict(
            self.history,
            cluster,
            tolerance,
            policy,
            kill_at_seconds,
            start_seconds=self.start_seconds,
            times=self.times,
        )


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


def taught(history: History, cluster: Cluster, fewer: History) -> Known:
    """What two runs of a query teach: the one that is predicted from, on its cluster, and one with fewer workers."""
    known = Known(history, starts(history, fewer))
    return replace(known, beside=max(0.0, history.seconds - known.predict(cluster).seconds))


def line(name: str, known: Known, cluster: Cluster, figures: Sequence[str] = USUAL) -> Line:
    """All that is predicted of one query on one cluster."""
    staged = POLICIES["stagewise"]
    pipelined = known.predict(cluster)
    stagewise = known.predict(cluster, staged) if "b" in figures or "e" in figures else pipelined
    found: dict[str, Prediction] = {"pipelined": pipelined}
    if "b" in figures:
        found["stagewise"] = stagewise
    if "c" in figures:
        found |= {f"static {k}": known.predict(cluster, policy=Static(k)) for k in STATIC}
    if "d" in figures:
        found["spool"] = known.predict(cluster, POLICIES["spool"])
    if "e" in figures:
        killed = stagewise.seconds / 2
        found["stagewise, killed at 50 %"] = known.predict(cluster, staged, kill_at_seconds=killed)
    for share in SHARES if "f" in figures else (0.5,) if "e" in figures else ():
        what = f"killed at {share:.0%}".replace("%", " %")
        found[what] = known.predict(cluster, kill_at_seconds=share * pipelined.seconds)
    half = found.get("killed at 50 %")
    seconds = {what: round(each.seconds + known.beside, 4) for what, each in found.items()}
    return Line(name, cluster.workers, seconds, half.rewound if half is not None else None)


def checked(name: str, known: Known, run: History, cluster: Cluster) -> Check:
    """A prediction for the cluster of another run of the same query. Its log need not name workers without work."""
    return Check(name, cluster.workers, known.predict(cluster).seconds + known.beside, run.seconds)


def to_json(
    data: str,
    known: Mapping[str, Known],
    times: int,
    lines: Sequence[Line],
    checks: Sequence[Check],
    cluster: Cluster,
) -> dict[str, Any]:
    """Everything, as plain values."""
    return {
        "data": data,
        "network_bytes_per_second": cluster.network_bytes_per_second,
        "store_bytes_per_second": cluster.store_bytes_per_second,
        "threads": cluster.threads,
        "shared_cores": cluster.shared_cores,
        "unsimulated_seconds": {name: each.beside for name, each in known.items()},
        "start_seconds": {name: each.start_seconds for name, each in known.items()},
        "times": times,
        "validated": bool(checks) and all(check.holds for check in checks),
        "lines": [asdict(each) for each in lines],
        "checks": [{**asdict(check), "off": check.off} for check in checks],
    }
