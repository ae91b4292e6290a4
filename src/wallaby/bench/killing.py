"""Killing one of four executors in the middle of a query, in the same way whoever runs it.

SIGKILL goes to the executor's JVM and to every process below it, a TaskManager included, at once: what is lost is a
machine, as far as one machine can show it. Spark starts another executor in its place, as it does by default.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import psutil
import pyarrow as pa

EXECUTORS: Final = 4
#: Timeouts as tight as is sensible, so that nobody waits for a lost executor. Printed with the report.
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
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"


def cluster_master(executor_megabytes: int) -> str:
    """Four executors of one core."""
    return f"local-cluster[{EXECUTORS},1,{executor_megabytes}]"


def cluster_conf(executor_megabytes: int) -> dict[str, str]:
    """What sessions on it are given beside the usual settings."""
    return {**CLUSTER_SETTINGS, "spark.executor.memory": f"{executor_megabytes}m"}


def executors() -> list[psutil.Process]:
    """The executors below this process, the oldest first."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.name() == "java" and any(_EXECUTOR in part for part in process.cmdline()):
                found.append(process)
    return sorted(found, key=lambda process: process.create_time())


def kill_one() -> float:
    """End the oldest executor and what is below it; when that was."""
    victim = executors()[0]
    doomed = [victim, *victim.children(recursive=True)]
    at = time.time()
    for process in doomed:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    return at


def killed_during(run: Callable[[], tuple[pa.Table, dict[str, Any]]], after_seconds: float) -> dict[str, Any]:
    """Run something and kill an executor after so long; 0: do not."""
    killed: list[float] = []
    timer = threading.Timer(after_seconds, lambda: killed.append(kill_one()))
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
    """The rows as text, sorted: an answer after a loss must be the one before."""
    return sorted([str(value) for value in row.values()] for row in answer.to_pylist())


def settled(also: Callable[[], bool]) -> float:
    """Wait until all executors are there and something else holds; how long that took."""
    began = time.monotonic()
    while not (len(executors()) == EXECUTORS and also()):
        if time.monotonic() - began > SETTLE_SECONDS:
            raise TimeoutError(f"{len(executors())} of {EXECUTORS} executors are there.")
        time.sleep(_POLL_SECONDS)
    return time.monotonic() - began
