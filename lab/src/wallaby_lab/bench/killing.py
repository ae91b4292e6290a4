"""Lose one of four machines during a query, in the same way for every engine.

SIGKILL goes to Spark's worker daemon, its executor and all their descendants, including a TaskManager, at once: the
closest approximation of a lost machine on one host. As in the paper, the remaining machines finish the query; a new
machine joins afterwards.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from wallaby_lab.bench.machines import Machines

EXECUTORS: Final = 4
#: Tight timeouts, so that nothing waits for a lost executor. Printed with the report.
CLUSTER_SETTINGS: Final = {
    "spark.executor.heartbeatInterval": "1s",
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "2s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "10000",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.task.maxFailures": "8",
}
SETTLE_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.05


def four_machines(executor_megabytes: int) -> Machines:
    """Each for an executor of one core."""
    return Machines(EXECUTORS, 1, executor_megabytes)


def cluster_conf(executor_megabytes: int) -> dict[str, str]:
    """The additional settings of sessions on them."""
    return {
        **CLUSTER_SETTINGS,
        "spark.executor.memory": f"{executor_megabytes}m",
        "spark.pyspark.python": sys.executable,
    }


def killed_during(
    run: Callable[[], tuple[pa.Table, dict[str, Any]]], after_seconds: float, kill: Callable[[], float]
) -> dict[str, Any]:
    """Run something, and kill a machine after a time; 0: never."""
    killed: list[float] = []
    timer = threading.Timer(after_seconds, lambda: killed.append(kill()))
    timer.daemon = True
    began = time.perf_counter()
    if after_seconds:
        timer.start()
    try:
        answer, facts = run()
        seconds = time.perf_counter() - began
    finally:
        timer.cancel()
        if after_seconds:
            timer.join()
    return {
        "seconds": round(seconds, 3),
        "rows": answer.num_rows,
        "killed_at": killed[0] if killed else None,
        "sum": _content(answer),
        **facts,
    }


def _content(answer: pa.Table) -> list[list[str]]:
    """The rows as sorted text: an answer after a loss must equal the one before."""
    return sorted([str(value) for value in row.values()] for row in answer.to_pylist())


def settled(machines: Machines, also: Callable[[], bool]) -> float:
    """Replace lost machines; wait until every machine has an executor and a condition holds. Returns the time."""
    began = time.monotonic()
    machines.restore()
    while not (machines.executors() == machines.count and also()):
        if time.monotonic() - began > SETTLE_SECONDS:
            raise TimeoutError(f"{machines.executors()} of {machines.count} executors are there.")
        time.sleep(_POLL_SECONDS)
    return time.monotonic() - began
