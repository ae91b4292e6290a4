"""Approximate counts of distinct values: Spark's own sketch, so its very numbers, from none to many."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from wallaby.engine import Engine

QUERIES = (
    "select "
    + ", ".join(f"approx_count_distinct(l_orderkey % {n}) c{n}" for n in range(100, 4100, 200))
    + " from lineitem",
    (
        "select approx_count_distinct(l_orderkey) a, approx_count_distinct(l_comment) b,"
        " approx_count_distinct(l_extendedprice) c, approx_count_distinct(l_shipdate) d from lineitem"
    ),
    (
        "select l_linenumber, l_returnflag, approx_count_distinct(l_partkey, 0.01) a,"
        " approx_count_distinct(l_suppkey) b, count(*) n from lineitem group by 1, 2"
    ),
    (
        "select l_suppkey, approx_count_distinct(l_partkey) a, approx_count_distinct(l_orderkey, 0.2) b from lineitem"
        " group by 1"
    ),
    (
        "select approx_count_distinct(o_custkey) filter (where o_orderkey < 0) a,"
        " approx_count_distinct(if(o_custkey % 2 = 0, null, cast(o_custkey as double))) b from orders"
    ),
)


@pytest.mark.parametrize("sql", QUERIES)
def test_an_approximate_count_is_sparks(engine: Engine, spark: SparkSession, sql: str) -> None:
    query = spark.sql(sql)
    assert engine.fallback_reasons(query) == []
    assert sorted(engine.collect(query)) == sorted(query.collect())
