"""Compare predictions with real runs: times with other numbers of workers, and ratios of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Final, NamedTuple

from wallaby.lineage.tolerance import POLICIES
from wallaby.observe.history import History
from wallaby_lab.simulation.predict.known import (
    CHECKPOINT,
    HALF,
    PIPELINED,
    SPOOL,
    STAGEWISE,
    STAGEWISE_HALF,
    Known,
)
from wallaby_lab.simulation.predict.pace import PredictedCluster

#: A prediction that is further off does not count as validated.
TOLERATED: Final = 0.25
#: Policies are measured on one machine: a killed process is noticed by broken connections after this many seconds, and
#: the durable store is a directory, which takes this many bytes per second.
ONE_MACHINE_DETECTION: Final = 0.25
ONE_MACHINE_STORE: Final = 1e9


@dataclass(frozen=True, slots=True)
class Check:
    """A prediction beside a measurement: seconds of a query, or a ratio, the geometric mean over some queries."""

    query: str
    workers: int
    predicted: float
    measured: float
    what: str = PIPELINED

    @property
    def off(self) -> float:
        """The error of the prediction as a share of the measurement."""
        return abs(self.predicted - self.measured) / self.measured

    @property
    def holds(self) -> bool:
        """Is the prediction near enough to the measurement?"""
        return self.off <= TOLERATED


def worst(checks: Sequence[Check]) -> dict[str, float]:
    """The largest error, by what was checked."""
    return {
        what: max(check.off for check in checks if check.what == what)
        for what in dict.fromkeys(check.what for check in checks)
    }


def checked(name: str, known: Known, run: History, cluster: PredictedCluster) -> Check:
    """Check a prediction for the cluster of another run of the same query. Its log may lack workers without work."""
    return Check(name, cluster.workers, known.predict(cluster).seconds + known.beside, run.seconds)


class Measured(NamedTuple):
    """Seconds of a query under a policy: undisturbed, and with a worker lost halfway, if it was lost in time."""

    undisturbed: float
    lost: float | None = None


def checked_policies(
    known: Mapping[str, Known], measured: Mapping[str, Mapping[str, Measured]], cluster: PredictedCluster
) -> list[Check]:
    """Check ratios against measured ones: of stages, spooling and checkpoints, and of losing a worker.

    By query, then by policy. A ratio of one query is hardly more than noise, so their means are compared. `cluster` is
    that of the measurement.
    """
    here = replace(
        cluster,
        detection_seconds=ONE_MACHINE_DETECTION,
        store_bytes_per_second=ONE_MACHINE_STORE,
        store_seconds=0.001,
    )
    names = [name for name in known if name in measured]
    predicted: dict[str, list[float]] = {}
    found: dict[str, list[float]] = {}
    for name in names:
        one, ran = known[name], measured[name]
        calm = {
            policy: one.predict(here, POLICIES[policy]).seconds
            for policy in ("lineage", "stagewise", SPOOL, CHECKPOINT)
        }
        for what, policy in ((STAGEWISE, "stagewise"), (SPOOL, SPOOL), (CHECKPOINT, CHECKPOINT)):
            predicted.setdefault(what, []).append(_ratio(calm[policy], calm["lineage"], one.beside))
            found.setdefault(what, []).append(ran[policy].undisturbed / ran["lineage"].undisturbed)
        for what, policy in ((HALF, "lineage"), (STAGEWISE_HALF, "stagewise")):
            struck = ran[policy].lost
            if struck is not None:
                lost = one.predict(here, POLICIES[policy], kill_at_seconds=calm[policy] / 2).seconds
                predicted.setdefault(what, []).append(_ratio(lost, calm[policy], one.beside))
                found.setdefault(what, []).append(struck / ran[policy].undisturbed)
    return [
        Check(", ".join(names), here.workers, geometric_mean(predicted[what]), geometric_mean(each), what)
        for what, each in found.items()
    ]


def _ratio(one: float, other: float, beside: float) -> float:
    return (one + beside) / (other + beside)
