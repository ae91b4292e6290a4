"""Without fault tolerance: the same answers, and nothing written down of how they came about."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark_sessions import Engines

from wallaby_lab import tpch
from wallaby_lab.compare import require_same

QUERIES = (1, 3, 9, 13, 18, 21)


@pytest.mark.parametrize("tolerant", [True, False])
def test_answers_are_the_same_and_lineage_is_written_only_with_fault_tolerance(
    engines: Engines, spark: SparkSession, answers: dict[int, pa.Table], tolerant: bool
) -> None:
    engine = engines.get(
        workers=2, threads=1, split=1, fault_tolerance_policy="lineage" if tolerant else "off"
    )
    for number in QUERIES:
        result = engine.run(spark.sql(tpch.query(number)), observed=True)
        require_same(result.arrow(), answers[number], order=tpch.ORDERS[number])
        stats = result.stats.detail
        assert stats is not None
        tasks = sum(stage.tasks for stage in stats.per_stage)
        seconds = sum(stage.checksum_seconds for stage in stats.per_stage)
        # A worker on a busy machine may tell of its last commits when nobody listens any more.
        assert 0 < stats.commits <= tasks if tolerant else stats.commits == 0
        assert stats.lineage_bytes >= 10 * stats.commits
        assert bool(stats.lineage_bytes) is tolerant
        assert stats.store_calls > 0
        if tolerant:
            assert 0 < seconds < sum(stage.seconds for stage in stats.per_stage)


def test_a_limit_gives_its_rows(engines: Engines, spark: SparkSession) -> None:
    engine = engines.get(workers=2, threads=1, split=1, fault_tolerance_policy="off")
    rows = engine.run(spark.sql("select k, v from short limit 700")).rows()
    assert len({row.v for row in rows}) == 700, "each row once"
