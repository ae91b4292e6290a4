"""What `wallaby tpch exchange` counts, on the engine and on Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession

from wallaby.engine import Engine
from wallaby_lab.commands.exchange import on_spark, on_wallaby

GROUPED = "select l_orderkey, count(*) as n from lineitem group by l_orderkey"
BROADCAST = (
    "select /*+ broadcast(nation) */ c_custkey, n_name from customer join nation on c_nationkey = n_nationkey"
)


def test_what_an_aggregation_and_a_join_move_is_counted_on_both(engine: Engine, spark: SparkSession) -> None:
    ours, answer = on_wallaby(engine, spark.sql(GROUPED))
    theirs, expected = on_spark(spark, spark.sql(GROUPED))
    assert answer.num_rows == expected.num_rows
    least = 8 * expected.num_rows
    assert ours.exchanged >= least
    assert theirs.uncompressed >= theirs.shuffled > 0
    assert theirs.broadcast == 0
    ours, _ = on_wallaby(engine, spark.sql(BROADCAST))
    theirs, _ = on_spark(spark, spark.sql(BROADCAST))
    assert (ours.broadcast_joins, ours.partitioned_joins) == (1, 0)
    assert theirs.shuffled == 0
    assert theirs.broadcast > 0


def test_only_a_query_that_is_observed_says_what_it_exchanged(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.sql(GROUPED))
    result.arrow()
    assert result.stats.detail is None
