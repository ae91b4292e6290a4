"""Predictions for several clusters as a table: the requested figures of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from wallaby.lineage.choose import Static
from wallaby.lineage.tolerance import POLICIES
from wallaby_lab.simulation.predict.checks import Check, worst
from wallaby_lab.simulation.predict.known import (
    AGAIN,
    CHECKPOINT,
    HALF,
    ONE_CHANNEL,
    ONE_CHANNEL_HALF,
    PIPELINED,
    SPOOL,
    STAGEWISE,
    STAGEWISE_HALF,
    UNRECORDED,
    Known,
)
from wallaby_lab.simulation.predict.pace import PredictedCluster
from wallaby_lab.simulation.predict.run import WHOLE_MAX, Prediction

#: The figures of the paper that can be predicted; (g) is what the others are compared with, on each cluster.
FIGURES: Final = ("b", "c", "d", "e", "f", "g")
USUAL: Final = ("b", "d", "e", "g")
STATIC: Final = (8, 128)
#: With more channels in a stage than outputs per draw, the number of tasks multiplies from stage to stage: millions, in
#: a chain of joins.
CHANNELS_PER_OUTPUT_MAX: Final = 4
SHARES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, slots=True)
class Line:
    """The predictions for one query on one cluster, in seconds."""

    query: str
    workers: int
    seconds: Mapping[str, float]
    #: Rewound channels, with a worker killed halfway; None if that was not requested.
    rewound: int | None


def line(name: str, known: Known, cluster: PredictedCluster, figures: Sequence[str] = USUAL) -> Line:
    """All predictions for one query on one cluster."""
    staged = POLICIES["stagewise"]
    pipelined = known.predict(cluster)
    found: dict[str, Prediction] = {PIPELINED: pipelined}
    if "b" in figures or "e" in figures:
        found[STAGEWISE] = known.predict(cluster, staged)
    if "c" in figures:
        found |= {
            f"static {outputs}": known.predict(cluster, policy=Static(outputs))
            for outputs in STATIC
            if _holds_still(outputs, cluster)
        }
    if "d" in figures:
        found |= {policy: known.predict(cluster, POLICIES[policy]) for policy in (SPOOL, CHECKPOINT)}
        found[UNRECORDED] = known.predict(replace(cluster, gcs_calls_per_second=math.inf, gcs_seconds=0.0))
    if "e" in figures:
        killed = found[STAGEWISE].seconds / 2
        found[STAGEWISE_HALF] = known.predict(cluster, staged, kill_at_seconds=killed)
        alone = replace(cluster, channels=1)
        found[ONE_CHANNEL] = known.predict(alone)
        killed = found[ONE_CHANNEL].seconds / 2
        found[ONE_CHANNEL_HALF] = known.predict(alone, kill_at_seconds=killed)
    for share in SHARES if "f" in figures else (0.5,) if "e" in figures else ():
        what = f"killed at {share:.0%}".replace("%", " %")
        found[what] = known.predict(cluster, kill_at_seconds=share * pipelined.seconds)
    half = found.get(HALF)
    seconds = {what: each.seconds + known.beside for what, each in found.items()}
    if "e" in figures:
        seconds[AGAIN] = 1.5 * seconds[PIPELINED] + cluster.detection_seconds
    rounded = {what: round(each, 4) for what, each in seconds.items()}
    return Line(name, cluster.workers, rounded, half.rewound if half is not None else None)


def _holds_still(outputs: int, cluster: PredictedCluster) -> bool:
    """Can static dependencies be predicted? Not for a part of a cluster, because draws are from all channels."""
    return (
        cluster.workers <= WHOLE_MAX and cluster.workers * cluster.slots <= CHANNELS_PER_OUTPUT_MAX * outputs
    )


def to_json(
    data: str,
    known: Mapping[str, Known],
    times: int,
    lines: Sequence[Line],
    checks: Sequence[Check],
    cluster: PredictedCluster,
) -> dict[str, Any]:
    """All predictions as plain values."""
    return {
        "data": data,
        "network_bytes_per_second": cluster.network_bytes_per_second,
        "store_bytes_per_second": cluster.store_bytes_per_second,
        "gcs_calls_per_second": cluster.gcs_calls_per_second,
        "detection_seconds": cluster.detection_seconds,
        "snapshot_seconds": cluster.checkpoint_seconds,
        "threads": cluster.threads,
        "shared_cores": cluster.shared_cores,
        "unsimulated_seconds": {name: each.beside for name, each in known.items()},
        "start_seconds": {name: each.start_seconds for name, each in known.items()},
        "times": times,
        "lines": [asdict(each) for each in lines],
        "checks": [{**asdict(check), "off": check.off} for check in checks],
        "off": worst(checks),
    }
