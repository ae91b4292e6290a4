"""Queries over small tables full of odd values, each run here and by Spark: the same schema, the same rows.

A query is written with its ORDER BY columns, if it has any. Whatever stands here must run natively.
"""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wallaby.compare import require_same
from wallaby.engine import Engine

#: Rows with NULLs, NaN, both zeros, ties and keys without partner.
A_ROWS = """
    select * from values
      (1, 10L, 1.5D, cast(1.25 as decimal(7,2)), 'x', date'2020-01-31', true),
      (1, 20L, double('NaN'), cast(-3.10 as decimal(7,2)), 'y', date'2020-02-29', false),
      (2, null, -0.0D, cast(0 as decimal(7,2)), 'X', null, null),
      (3, 30L, 0.0D, null, null, date'1999-12-31', true),
      (null, 40L, double('Infinity'), cast(99999.99 as decimal(7,2)), 'ab', date'2020-01-31', false),
      (5, 50L, null, cast(-99999.99 as decimal(7,2)), '', date'1970-01-01', true),
      (5, -50L, 2.5D, cast(7.77 as decimal(7,2)), 'ab', date'2020-01-31', null)
    as t(k, n, d, m, s, day, f)
"""
B_ROWS = """
    select * from values
      (1, 100L, 'one', -0.0D), (1, 101L, 'eins', 1.5D), (2, 200L, null, double('NaN')), (4, 400L, 'four', 9.0D),
      (null, 500L, 'none', null), (3, null, 'three', 0.0D)
    as t(k, v, name, d)
"""


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("tables")
    for name, rows in (("a", A_ROWS), ("b", B_ROWS)):
        path = directory / name
        spark.sql(rows).repartition(2).write.parquet(str(path))
        spark.read.parquet(str(path)).createOrReplaceTempView(name)


def same_as_spark(engine: Engine, spark: SparkSession, sql: str, order: tuple[str, ...] = ()) -> None:
    df = spark.sql(sql)
    assert engine.fallback_reasons(df) == []
    require_same(engine.to_arrow(df), df.toArrow(), order=order)


JOINS = {
    "full outer": "select a.k, n, b.k as other, v from a full join b on a.k = b.k",
    "full outer, with a residual": "select n, v from a full join b on a.k = b.k and n * 10 <= v",
    "full outer, by inequality": "select n, v from a full join b on a.n > b.v - 80",
    "full outer, of no rows": "select n, v from a full join (select * from b where v < 0) c on a.k = c.k",
    "full outer, counted": "select count(*) as c, count(n) as l, count(v) as r from a full join b using (k)",
    "cross": "select n, v from a cross join b",
    "cross, with a condition": "select n, v from a, b where n + v > 140",
    "cross with itself": "select x.n, y.n as m from a x, a y",
    "left outer, by inequality": "select n, v from a left join b on a.n * 11 > b.v",
    "right outer, by inequality": "select n, v from a right join b on a.n * 11 > b.v",
    "left outer, on true": "select n, v from a left join (select * from b where v > 400) c on true",
    "semi, by inequality": "select n from a where exists (select 1 from b where a.n * 11 > b.v)",
    "anti, by inequality": "select n from a where not exists (select 1 from b where a.n * 11 > b.v)",
    "semi, with a residual": "select n from a left semi join b on a.k = b.k and b.v > a.n * 5",
    "existence": "select n from a where k in (select k from b) or n > 30",
    "existence, with a residual": """
        select n from a where f or exists (select 1 from b where b.k = a.k and b.v > a.n * 6)""",
    "existence, without a key": "select n from a where f or exists (select 1 from b where b.v > a.n * 11)",
    "existence, twice": "select n from a where k in (select k from b) or n in (select v / 10 from b)",
    "not in, with a null": "select n from a where k not in (select k from b)",
    "not in, without nulls": "select n from a where k not in (select k from b where k is not null)",
    "not in nothing": "select n from a where k not in (select k from b where v < 0)",
    "not in only null": "select n from a where k not in (select k from b where v = 500)",
    "not in, two columns": "select n from a where (k, n) not in (select k, v / 10 from b where v > 100)",
    "not in, under a condition": "select n from a where f and k not in (select k from b where v > 200)",
    "null-safe": "select n, v from a join b on a.k <=> b.k",
    "null-safe, full outer": "select n, v from a full join b on a.k <=> b.k",
    "null-safe, of texts": "select n, v from a left join b on a.s <=> b.name",
    "floating-point keys": "select n, v from a join b on a.d = b.d",
    "floating-point keys, full outer": "select n, v from a full join b on a.d = b.d",
    "floating-point keys, null-safe": "select n, v from a left join b on a.d <=> b.d",
    "intersect": "select k from a intersect select k from b",
    "except": "select k from a except select k from b",
}

SUBQUERIES = {
    "in a condition": "select n from a where n > (select avg(n) from a)",
    "of no row": "select n, (select v from b where v < 0) as x from a",
    "compared with null": "select n from a where n > (select v from b where v < 0)",
    "in a projection": "select n + (select max(v) from b) as x, (select min(name) from b) as y from a",
    "of one plain row": "select n from a where n < (select v / 10 + 20 from b where v = 200)",
    "of the same table": "select n from a where n >= (select n from a where k = 3)",
    "in an aggregation": "select k, sum(n - (select min(v) from b)) + (select max(v) from b) as x from a group by k",
    "in having": "select k, sum(n) as total from a group by k having sum(n) > (select min(n) from a)",
    "in a join condition": "select n, v from a left join b on a.k = b.k and v > (select min(v) from b)",
    "in a branch": "select n, case when n > 20 then (select max(v) from b) else 0 end as x from a",
    "nested": "select n from a where n > (select avg(v) from b where v < (select max(v) from b)) / 10",
    "exists, uncorrelated": "select n from a where exists (select 1 from b where v > 400)",
    "several, merged": """
        select (select max(n) from a) as high, (select min(n) from a) as low, (select count(*) from a) as c from b""",
    "correlated": "select n, (select max(v) from b where b.k = a.k) as x from a",
    "correlated count": "select n, (select count(*) from b where b.k = a.k) as x from a",
}


GROUPS = {
    "by floating-point numbers": "select d, count(*) as c, sum(n) as t from a group by d",
    "distinct floating-point numbers": "select distinct d from a",
    "counted distinct floating-point numbers": "select count(distinct d) as c, sum(distinct d) as t from a where d < 9",
    "by floating-point numbers of two tables": """
        select d, count(*) c from (select d from a union all select d from b) group by d""",
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, GROUPS[name])


@pytest.mark.parametrize("name", JOINS)
def test_joins(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, JOINS[name])


@pytest.mark.parametrize("name", SUBQUERIES)
def test_subqueries(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, SUBQUERIES[name])


ERRORS = {
    "a subquery of several rows": "select n from a where n > (select v from b)",
    "a subquery of several rows that nobody needs": "select n, (select v from b) as x from a where n < -1000",
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_sparks_condition(engine: Engine, spark: SparkSession, name: str) -> None:
    df = spark.sql(ERRORS[name])
    assert engine.fallback_reasons(df) == []
    with pytest.raises((PySparkException, Py4JJavaError)) as wanted:
        df.collect()
    with pytest.raises(PySparkException) as found:
        engine.to_arrow(df)
    assert f"[{found.value.getCondition()}]" in str(wanted.value)
