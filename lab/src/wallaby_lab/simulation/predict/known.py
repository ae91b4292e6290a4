"""What runs of a query teach: enough to predict it on any cluster.

A run also takes time that is not simulated: to plan, to start, to hand the result over. This time is what the run that
is learned from took beyond its own prediction, and is added to every prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from wallaby.lineage.choose import DrawPolicy
from wallaby.lineage.tolerance import LINEAGE, Tolerance
from wallaby.observe.history import History
from wallaby_lab.simulation.predict.costs import starts
from wallaby_lab.simulation.predict.pace import PredictedCluster
from wallaby_lab.simulation.predict.run import Prediction, predict

#: The variants that are predicted, by name.
PIPELINED: Final = "pipelined"
STAGEWISE: Final = "stagewise (Spark's way)"
SPOOL: Final = "spool"
CHECKPOINT: Final = "checkpoint+lineage"
#: As if the control store took no time; the difference to it is the cost of recording lineage.
UNRECORDED: Final = "without lineage"
HALF: Final = "killed at 50 %"
STAGEWISE_HALF: Final = f"{STAGEWISE}, {HALF}"
#: As in the paper: one lost channel is rewound on one worker, instead of several on several.
ONE_CHANNEL: Final = "one channel a worker"
ONE_CHANNEL_HALF: Final = f"{ONE_CHANNEL}, {HALF}"
#: Not simulated: half of the time, the time until the loss is noticed, and the whole time again.
AGAIN: Final = f"run again, {HALF}"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a query: the log of a run, and what runs with other numbers of workers have taught."""

    history: History
    #: By stage: what each channel takes once.
    start_seconds: tuple[float, ...] = ()
    #: The time that is not simulated.
    beside: float = 0.0
    #: Predictions are for data this many times as large as that of the run.
    times: int = 1

    def predict(
        self,
        cluster: PredictedCluster,
        tolerance: Tolerance = LINEAGE,
        policy: DrawPolicy | None = None,
        kill_at_seconds: float | None = None,
    ) -> Prediction:
        """Predict the query on a cluster, without the time that is not simulated."""
        return predict(
            self.history,
            cluster,
            tolerance,
            policy,
            kill_at_seconds,
            start_seconds=self.start_seconds,
            times=self.times,
        )


def taught(history: History, cluster: PredictedCluster, fewer: History) -> Known:
    """Learn from two runs of a query: the one to predict from, on its cluster, and one with fewer workers."""
    known = Known(history, starts(history, fewer))
    return replace(known, beside=max(0.0, history.seconds - known.predict(cluster).seconds))
