"""A TaskManager is killed in the middle of a query: same answer, and the engine is as good as new."""

from __future__ import annotations

import os
import signal
import time

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.engine.test_ends import LONG, until
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import InvalidArgumentError
from wallaby.results.result import Result
from wallaby_lab import tpch
from wallaby_lab.compare import require_same

JOINED = """
    select n_name, count(*) as n, sum(v) as s
    from short join nation on k = n_nationkey
    group by n_name
"""


def kill_while_it_runs(engine: Engine, result: Result, victims: int = 1) -> None:
    """Kill TaskManagers once the query has committed something, and before it is over."""
    query = result._collected.query
    until(lambda: engine._parts.gcs.status(query).commits > 20)
    for worker in engine.workers()[:victims]:
        os.kill(worker.pid, signal.SIGKILL)
    assert not result._collected.is_over, "the query was over before the kill"


def wait_for(engine: Engine, workers: int, without: set[str]) -> None:
    """Until there are so many TaskManagers, none of them one of the old."""

    def are_there() -> bool:
        live = [worker.id for worker in engine.workers() if worker.is_live]
        return len(live) == workers and not without & set(live)

    until(are_there, 90)


@pytest.mark.parametrize("query", [LONG, JOINED], ids=["an aggregation", "a join"])
def test_a_killed_worker_costs_time_and_nothing_else(engine: Engine, spark: SparkSession, query: str) -> None:
    wait_for(engine, 2, set())
    expected = spark.sql(query).toArrow()
    victim = engine.workers()[0].id
    result = engine.run(spark.sql(query))
    kill_while_it_runs(engine, result)
    require_same(result.arrow(), expected)
    assert result.stats.recoveries >= 1, "the loss must have been noticed by this query"
    wait_for(engine, 2, {victim})
    again = engine.run(spark.sql(tpch.query(6)))
    assert again.arrow().num_rows == 1
    assert again.stats.recoveries == 0


def test_all_workers_killed_at_once(engine: Engine, spark: SparkSession) -> None:
    wait_for(engine, 2, set())
    expected = spark.sql(LONG).toArrow()
    victims = {worker.id for worker in engine.workers()}
    result = engine.run(spark.sql(LONG))
    kill_while_it_runs(engine, result, victims=2)
    require_same(result.arrow(), expected)
    assert result.stats.recoveries >= 1
    wait_for(engine, 2, victims)


def test_a_query_asked_right_after_a_loss_waits_for_a_worker(
    engines: Engines, spark: SparkSession, answers: dict[int, pa.Table]
) -> None:
    engine = engines.get(workers=1, threads=1, split=1)
    os.kill(engine.workers()[0].pid, signal.SIGKILL)
    time.sleep(0.1)
    require_same(engine.to_arrow(spark.sql(tpch.query(6))), answers[6])


def test_a_drained_worker_leaves_without_a_loss(engine: Engine, spark: SparkSession) -> None:
    wait_for(engine, 2, set())
    expected = spark.sql(LONG).toArrow()
    worker = engine.workers()[0]
    leaving = worker.id
    result = engine.run(spark.sql(LONG))
    until(lambda: engine._parts.gcs.status(result._collected.query).commits > 20)
    assert engine.drain(worker)
    assert not result._collected.is_over, "it left while the query ran"
    require_same(result.arrow(), expected)
    stats = result.stats
    assert stats.recoveries >= 1
    assert stats.lost_workers == ()
    wait_for(engine, 2, {leaving})
    with pytest.raises(InvalidArgumentError, match=leaving):
        engine.drain(leaving)
    with pytest.raises(InvalidArgumentError, match="negative"):
        engine.drain(engine.workers()[0], timeout=-1.0)
