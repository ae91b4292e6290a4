"""A disk without room for a kept result: the query that needs the room fails, and older results stay."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.above.test_kept import QUERY, rows
from tests.engine.test_ends import nothing_is_left_of_queries, until
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import KeptResultError


@contextmanager
def full_disks(engine: Engine) -> Iterator[None]:
    """No file of a TaskManager gets larger than 64 bytes."""
    limits = {worker.pid: resource.prlimit(worker.pid, resource.RLIMIT_FSIZE) for worker in engine.workers()}
    for pid, (_, most) in limits.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (64, most))
    try:
        yield
    finally:
        for pid, limit in limits.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)


def test_a_result_without_room_fails_and_older_ones_stay(
    engines: Engines, spark: SparkSession, tmp_path: Path
) -> None:
    texts = "concat(sha2(cast(id as string), 256), sha2(cast(id + 1 as string), 256)) as t"
    spark.range(600_000, numPartitions=8).selectExpr("id", texts).write.parquet(str(tmp_path / "wide"))
    wide = spark.read.parquet(str(tmp_path / "wide"))
    engine = engines.get(workers=2, threads=1, memory=128 << 20, task_target=1 << 20, leaf_minimum=0)
    expected = rows(spark.sql(QUERY))
    first = engine.persist(spark.sql(QUERY))
    workers = {worker.id for worker in engine.workers()}
    with full_disks(engine):
        with pytest.raises(KeptResultError, match="is full") as caught:
            engine.persist(wide.where("id >= 0"))
        assert rows(first) == expected
    for word in ("unpersist", "spark.wallaby.localDirectory", "wallaby-"):
        assert word in str(caught.value)
    assert {worker.id for worker in engine.workers()} == workers, "no worker was lost"
    second = engine.persist(wide.where("id >= 0"))
    assert second.count() == 600_000
    first.unpersist()
    second.unpersist()
    until(lambda: nothing_is_left_of_queries(engine))
    engines.close()
