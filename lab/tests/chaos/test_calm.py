"""A loss that nobody caused is found, and times that were measured are ranked."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wallaby import QueryEvent, RunStats, WorkerInfo
from wallaby_lab.chaos.calm import run_calmly
from wallaby_lab.chaos.frozen import Frozen


class _Result:
    def __init__(self, lost: list[str]) -> None:
        self.events = [
            QueryEvent("froze", 0.0, fields={"lost": [{"id": w} for w in lost], "draining": []}),
            QueryEvent("end", 1.0),
        ]
        self.stats = RunStats(native=True, rows=1, tasks=5, seconds=1.0)

    def arrow(self) -> pa.Table:
        return pa.table({"a": [1]})


class _Engine:
    """An engine whose queries lose these workers, and that has these at the end."""

    def __init__(self, losses: list[list[str]], after: list[str]) -> None:
        self._losses = losses
        self._workers = [["w0-a", "w1-b"], after]

    def workers(self) -> list[WorkerInfo]:
        return [WorkerInfo(worker, "here", 1, "grpc://here:1", "live") for worker in self._workers.pop(0)]

    def run(self, _: object) -> _Result:
        return _Result(self._losses.pop(0))


class _Spark:
    def sql(self, text: str) -> str:
        return text


@pytest.mark.parametrize(
    ("losses", "after", "alarms"),
    [
        ([[], []], ["w0-a", "w1-b"], []),
        ([[], ["w1-b"]], ["w0-a", "w1-c"], ["q6 lost w1-b"]),
        ([[], []], ["w0-a", "w1-c"], ["w1-b was lost between queries"]),
    ],
)
def test_every_loss_that_nobody_caused_is_a_false_alarm(
    losses: list[list[str]], after: list[str], alarms: list[str]
) -> None:
    engine: Any = _Engine(losses, after)
    spark: Any = _Spark()
    found = run_calmly(engine, spark, [1, 6], lambda _line: None)
    assert (found.queries, found.tasks, found.workers) == (2, 10, 2)
    assert found.false_alarms == alarms


def test_quantiles_are_of_what_was_measured() -> None:
    found = Frozen(frozen_seconds=[0.004, 0.002, 0.1, 0.003])
    assert (found.quantile(0.5), found.quantile(0.95), found.quantile(1.0)) == (0.004, 0.1, 0.1)
