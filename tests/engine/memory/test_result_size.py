"""`spark.driver.maxResultSize` holds for what the driver keeps of a result as a whole."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from tests.engine.test_ends import nothing_is_left_of_queries, until

from wallaby.engine import Engine
from wallaby.errors import ResultSizeError
from wallaby.spark.cluster import Cluster


class FakeContext:
    master = "local[2]"

    def __init__(self, text: str | None) -> None:
        self._text = text

    def getConf(self) -> SparkConf:  # noqa: N802 - the name is PySpark's
        conf = SparkConf(loadDefaults=False)
        return conf if self._text is None else conf.set("spark.driver.maxResultSize", self._text)


@pytest.mark.parametrize(
    ("text", "limit"), [(None, 1 << 30), ("0", 0), ("50m", 50 << 20), ("2g", 2 << 30), ("1000", 1000)]
)
def test_it_is_read_as_spark_reads_it(text: str | None, limit: int, spark: SparkSession) -> None:
    context: SparkContext = FakeContext(text)  # type: ignore[assignment]
    assert Cluster(context).result_bytes_max() == limit


@pytest.fixture
def small(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(engine._parts.runner, "_whole_bytes_max", 10_000)
    return engine


def test_a_result_that_is_too_large_ends_its_query(small: Engine, spark: SparkSession) -> None:
    with pytest.raises(ResultSizeError, match=r"spark\.driver\.maxResultSize") as caught:
        small.to_arrow(spark.table("orders"))
    assert isinstance(caught.value, Py4JJavaError), "as on Spark"
    until(lambda: nothing_is_left_of_queries(small))
    assert small.count(spark.table("orders")) > 0, "which is small"


def test_so_does_one_whose_rows_are_held_back(small: Engine, spark: SparkSession) -> None:
    doubtful = spark.table("orders").selectExpr(
        "*", "get_json_object(concat('{\"a\":', o_orderkey, '}'), '$.a') j"
    )
    with pytest.raises(ResultSizeError):
        small.to_arrow(doubtful)


def test_a_stream_has_no_limit(small: Engine, spark: SparkSession) -> None:
    rows = sum(batch.num_rows for batch in small.run(spark.table("orders")).batches())
    assert rows == spark.table("orders").count()


def test_zero_is_no_limit(engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine._parts.runner, "_whole_bytes_max", 0)
    assert engine.to_arrow(spark.table("orders")).num_rows == spark.table("orders").count()
