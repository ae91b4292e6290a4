"""TPC-H from SQL texts and from DataFrames, with different numbers of TaskManagers: always Spark's answer."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.engine import dataframes
from tests.engine.outcome import natively
from tests.spark_sessions import Engines

from wallaby_lab import tpch
from wallaby_lab.compare import require_same


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_tpch_is_answered_as_by_spark(
    spark: SparkSession, engines: Engines, answers: dict[int, pa.Table], workers: int
) -> None:
    engine = engines.get(workers=workers, threads=1)
    for number, order in tpch.ORDERS.items():
        df = spark.sql(tpch.query(number))
        result = natively(engine, df)
        require_same(result.arrow(), answers[number], order=order)
        assert result.native
        assert result.stats.rows == answers[number].num_rows


def test_tpch_written_with_dataframes_has_the_same_answers(
    spark: SparkSession, engines: Engines, answers: dict[int, pa.Table]
) -> None:
    engine = engines.get(workers=2, threads=1)
    for number, query in enumerate(dataframes.QUERIES, start=1):
        df = query(spark)
        require_same(natively(engine, df).arrow(), answers[number], order=tpch.ORDERS[number])
