"""TPC-H from its SQL text, with different numbers of TaskManagers: always Spark's answer."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.engine.conftest import Engines

from wallaby import tpch
from wallaby.compare import require_same


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_tpch_is_answered_as_by_spark(
    spark: SparkSession, engines: Engines, answers: dict[int, pa.Table], workers: int
) -> None:
    engine = engines.get(workers=workers, threads=1)
    for number, order in tpch.ORDERS.items():
        df = spark.sql(tpch.query(number))
        assert engine.fallback_reasons(df) == []
        result = engine.run(df)
        require_same(result.arrow(), answers[number], order=order)
        assert result.native
        assert result.stats["rows"] == answers[number].num_rows
