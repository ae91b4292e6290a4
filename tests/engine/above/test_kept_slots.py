"""Slots under `local[n]`: tasks that read rows which stay never take the slots of lost TaskManagers."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.above.test_kept import QUERY, rows
from tests.engine.losses.test_losses import wait_for
from tests.engine.test_ends import nothing_is_left_of_queries, until

from wallaby.above import partitions
from wallaby.engine import Engine

#: Five slots, of which two are the TaskManagers'.
FREE_SLOTS = 3
LIMIT_SECONDS = 240.0


def test_two_results_read_at_once_wait_for_no_slot_of_a_lost_taskmanager(
    engine: Engine, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More tasks are ready to read than there are slots when both TaskManagers are lost, with all they held.

    Each result alone leaves two slots free; both together want all five.
    """
    wait_for(engine, 2, set())
    monkeypatch.setattr(partitions, "TASK_BYTES_MIN", 1)
    expected = rows(spark.sql(QUERY))
    results = [engine.persist(spark.sql(QUERY)) for _ in range(2)]
    assert [kept.rdd.getNumPartitions() for kept in results] == [FREE_SLOTS, FREE_SLOTS]
    lost = [worker for worker in engine.workers() if worker.is_live]
    go = tmp_path / "go"
    found: dict[int, list[tuple[int, ...]]] = {}

    def occupy(_: object) -> None:
        limit = time.monotonic() + LIMIT_SECONDS
        while not go.exists() and time.monotonic() < limit:
            time.sleep(0.05)

    def read(number: int) -> None:
        found[number] = rows(results[number])

    occupying = threading.Thread(
        target=lambda: spark.sparkContext.parallelize(range(FREE_SLOTS), FREE_SLOTS).foreach(occupy)
    )
    reading = [threading.Thread(target=read, args=(number,)) for number in range(len(results))]
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getActiveJobsIds())
    occupying.start()
    until(lambda: len(tracker.getActiveJobsIds()) == before + 1)
    for thread in reading:
        thread.start()
    until(lambda: len(tracker.getActiveJobsIds()) == before + 1 + len(reading))
    for worker in lost:
        os.kill(worker.pid, signal.SIGKILL)
    until(lambda: not {worker.id for worker in lost} & {worker.id for worker in engine.workers()})
    go.touch()
    limit = time.monotonic() + LIMIT_SECONDS
    for thread in (occupying, *reading):
        thread.join(max(limit - time.monotonic(), 0.0))
    assert found == dict.fromkeys(range(len(results)), expected)
    assert all(kept.collected and kept.collected.figures.recoveries for kept in engine.subplans.kept.values())
    for kept in results:
        kept.unpersist()
    until(lambda: nothing_is_left_of_queries(engine))
