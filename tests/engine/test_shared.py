"""Stages that feed several others: the same answers as Spark's, with small windows, and after a loss."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.engine.losses.test_losses import kill_while_it_runs, wait_for
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby_lab.compare import require_same

#: One view on both sides of a join: it is built and probed from the same stage.
VIEW_TWICE = """
    with v as (select l_orderkey as k, sum(l_quantity) as q, count(*) as n from lineitem group by l_orderkey)
    select count(*) as pairs, sum(a.q) as q, sum(b.n) as n from v a join v b on a.k = b.k + 1 where b.n > 2
"""
#: A filtered table that is joined with what is computed from itself.
FILTERED_TWICE = """
    with o as (select o_custkey as c, o_orderkey as k from orders where o_orderpriority = '1-URGENT')
    select count(*) as n, sum(o.k) as s from o join (select c, max(k) as last from o group by c) m
    on o.c = m.c and o.k = m.last
"""
#: The same over a thousand splits, so that there is time to lose a worker.
LONG_VIEW = """
    with v as (select v % 1000 as g, sum(v) as s, count(*) as n from short group by v % 1000)
    select count(*) as pairs, sum(a.s) as s from v a join v b on a.g = b.g + 1 where b.n > 1
"""


@pytest.fixture
def cramped(engines: Engines) -> Engine:
    """No broadcasts, and small windows: probe rows must wait while the build side is consumed."""
    return engines.get(workers=2, threads=1, split=1, broadcast=0, window=1 << 14, channels=4)


@pytest.mark.parametrize("query", [VIEW_TWICE, FILTERED_TWICE], ids=["a view", "a filtered table"])
def test_a_shared_stage_may_feed_both_sides_of_a_join(
    cramped: Engine, spark: SparkSession, query: str
) -> None:
    df = spark.sql(query)
    result = cramped.run(df)
    require_same(result.arrow(), df.toArrow())
    assert result.plan is not None
    producers = [link.producer for link in result.plan.graph.links]
    assert len(set(producers)) < len(producers), "some stage feeds several others"


def test_a_lost_worker_of_a_shared_stage_costs_time_and_nothing_else(
    cramped: Engine, spark: SparkSession
) -> None:
    wait_for(cramped, 2, set())
    expected = spark.sql(LONG_VIEW).toArrow()
    result = cramped.run(spark.sql(LONG_VIEW))
    kill_while_it_runs(cramped, result)
    require_same(result.arrow(), expected)
    assert result.stats.recoveries >= 1, "the loss must have been noticed by this query"
