"""Queries over small tables full of odd values, each run here and by Spark: the same schema, the same rows.

A query is written with its ORDER BY columns, if it has any. Whatever stands here must run natively.
"""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.engine.outcome import natively

from wallaby.engine import Engine
from wallaby_lab.compare import require_same

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
    require_same(natively(engine, df).arrow(), df.toArrow(), order=order)


JOINS = {
    "full outer": "select a.k, n, b.k as other, v from a full join b on a.k = b.k",
    "full outer, with a residual": "select n, v from a full join b on a.k = b.k and n * 10 <= v",
    "full outer, by inequality": "select n, v from a full join b on a.n > b.v - 80",
    "full outer, of no rows": "select n, v from a full join (select * from b where v < 0) c on a.k = c.k",
    "full outer, counted": "select count(*) as c, count(n) as l, count(v) as r from a full join b using (k)",
    "intersect all": "select k from a intersect select k from a where n > 10",
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
    "the first rows of each, in an order": """
        select a.n, t.v from a, lateral (select v from b where b.k = a.k order by v desc nulls last limit 1) t""",
    "the first rows of each, in an order of another column": """
        select a.n, t.v from a, lateral (select v from b where b.k = a.k order by name desc limit 1) t""",
    "the first rows of each, in an order of expressions": """
        select a.n, t.v from a, lateral (select v from b where b.k >= a.k order by abs(v - 150), v limit 2) t""",
    "all but the first rows of each": """
        select a.n, t.v from a, lateral (select v from b where b.k >= a.k order by v limit 5 offset 1) t""",
    "a row at all, with a limit": """
        select n from a where exists (select v from b where b.k > a.k order by v limit 1)""",
    "no second row": "select n from a where not exists (select v from b where b.k = a.k limit 1 offset 1)",
    "in a condition": "select n from a where n > (select avg(n) from a)",
    "a struct": "select n, (select named_struct('x', max(n), 'y', min(v)) from b join a using (k)) as s from a",
    "a struct with one field": "select n, (select named_struct('x', max(v)) from b) as s from a",
    "a field of a struct": "select n, (select struct(max(v), min(v)) from b).col2 as x from a",
    "a field of a struct in a row": """
        select n, (select max(struct(v, name)) from b).v as x, (select max(struct(v, name)) from b) as y from a""",
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
    "correlated, one row by its key": "select n, (select v from b where b.k = a.k and b.v <> 100) as x from a",
    "correlated, by more than its key": "select n, (select name from b where b.k = a.k and v > n * 10) as x from a",
    "correlated, in a condition": "select n from a where n < (select v from b where b.k = a.k and v > n * 10)",
    "correlated, by a range": "select n, (select v from b where v between n + 401 and n + 470) as x from a",
    "correlated, null-safe": "select n, (select v from b where b.k <=> a.k and v > n * 10) as x from a",
    "correlated, of a map": "select n, (select map(v, name) from b where b.k = a.k and v <> 100) as x from a",
    "correlated, of a struct": "select n, (select struct(v, d) from b where b.k = a.k and v > n * 10) as x from a",
    "correlated, among others": """
        select n, (select name from b where b.k = a.k and v > n * 10) as x, (select max(v) from b) as y, c.name
        from a join b c on a.k = c.k and c.v = 100 where n > 5""",
    "correlated count": "select n, (select count(*) from b where b.k = a.k) as x from a",
}


GROUPS = {
    "by floating-point numbers": "select d, count(*) as c, sum(n) as t from a group by d",
    "distinct floating-point numbers": "select distinct d from a",
    "counted distinct floating-point numbers": "select count(distinct d) as c, sum(distinct d) as t from a where d < 9",
    "several distincts": "select k, count(distinct s) as c, count(distinct day) as e, sum(n) as t from a group by k",
    "several distincts of all rows": "select count(distinct s), sum(distinct n), avg(m), max(d), count(*) from a",
    "distincts with filters": """
        select k, count(distinct s) filter (where n > 0) as c, sum(n) filter (where f) as t, count(distinct n) as e
        from a group by k""",
    "rollup": "select k, s, sum(n) as t, grouping(k) as gk, grouping_id() as g from a group by rollup(k, s)",
    "cube": "select k, f, count(*) as c, max(day) as e from a group by cube(k, f)",
    "grouping sets": "select k, f, sum(m) as t from a group by grouping sets ((k), (f), (k, f), ())",
    "rollup, of distinct": "select k, count(distinct s) as c, count(distinct day) as e from a group by rollup(k)",
    "by floating-point numbers of two tables": """
        select d, count(*) c from (select d from a union all select d from b) group by d""",
}


SOURCES = {
    "rows joined": "select n, w from a join values (1, 'w1'), (2, 'w2'), (null, 'w3') as t(k, w) on a.k <=> t.k",
    "rows of every type": """
        select a.k, t.* from a cross join values
          (1Y, 2S, 3L, 1.5F, double('NaN'), 1.25, 'é', X'00ff', date'0001-01-01', timestamp'2020-01-01 12:34:56.789',
           timestamp_ntz'1960-01-01 00:00:00', true),
          (null, null, null, null, null, null, null, null, null, null, null, null)
        as t(c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12)""",
    "union of which nothing is used": """with u as (select 1 as one from
        ((select 'x', k, s from a) union all (select distinct 'y', k + 1, 'z' from b)) t(x, y, z) where y <= y + 1)
        select 4 as four from u join u as v on u.one = v.one""",
    "union with rows": "select k, s from a union all select 7, 'seven' union all select 8, null",
    "union of different types": "select k, m from a union all select n, d from a union all select k, v from b",
    "range": "select id, id * 2 as x from range(2000000) where id % 99999 = 7",
    "range backwards": "select id, n from a, range(10, -10, -3)",
    "range of nothing": "select id, n from a left join range(5, 5) on id = k",
    "range joined": "select id, n from range(0, 6) left join a on id = k",
    "range counted": "select count(*) as c, sum(id) as t, min(id) as l from range(0, 3000000, 2)",
    "range at the ends": "select id, n from a, range(9223372036854775805, 9223372036854775807)",
    "repartitioned": "select /*+ REPARTITION(7, k) */ n from a",
    "coalesced": "select /*+ COALESCE(1) */ n from a",
    "rebalanced": "select /*+ REBALANCE(k) */ k, n from a",
    "broadcast hint": "select /*+ BROADCAST(a) */ n, v from a join b on a.k = b.k",
    "merge hint": "select /*+ MERGE(a, b) */ n, v from a join b on a.k = b.k",
}
ORDERED = {
    "offset": ("select n from a order by n offset 2", ("n",)),
    "offset and limit": ("select n from a order by n desc limit 3 offset 2", ("n",)),
    "offset beyond the end": ("select n from a order by n offset 20", ("n",)),
    "nulls last": ("select n from a order by n nulls last limit 4", ("n",)),
    "of floating-point numbers": ("select d from a order by d desc", ("d",)),
    "by a subquery": ("select n from a order by n > (select avg(v) / 10 from b), n", ()),
    "of a union": ("select k from a union all select k from b order by k desc nulls first limit 5", ("k",)),
}


GENERATORS = {
    "explode": "select k, e from a lateral view explode(array(k, 7, null)) t as e",
    "explode of constants": "select explode(array(1, 2, null)) as e, n from a",
    "explode of texts and dates": "select s, e, e2 from a lateral view explode(array('x', s)) t as e "
    "lateral view outer explode(array(day, date'2020-01-01')) u as e2",
    "position": "select n, p, e from a lateral view posexplode(array(n, k)) t as p, e where p = 1 or e > 2",
    "map": "select n, key, value from a lateral view explode(map('a', n, 'b', 2L)) t",
    "rows": """
        select x, y, count(*) as c from a lateral view inline(array(struct(k as x, 'a' as y), struct(7 as x, s as y))) t
        group by x, y""",
    "stack": "select x, y from a lateral view stack(2, k, s, 5) t as x, y",
    "above a filter and below a join": "select e, v from (select explode(array(k, k + 1)) as e from a where n > 0) x "
    "join b on e = b.k",
    "in a union": "select e from (select explode(array(k, 9)) as e from a) union all select k from b",
    "counted": "select count(*) as c from (select explode(array(1, k, 3)) from a)",
    "rows as often as in both": "select k from a intersect all select k from b",
    "rows as often as in one and not the other": "select k, s from a except all select k, 'x' from b",
    "of a constant": "select 5 as x from (select count(*) as c from a)",
    "unpivot": "select * from (select n, m from a) unpivot include nulls (v for name in (n, m))",
}
WINDOWS = {
    "ranks": """
        select k, n, row_number() over w as x, rank() over w as y, dense_rank() over w as z, percent_rank() over w as u,
               cume_dist() over w as v, ntile(2) over w as t from a window w as (partition by k order by n)""",
    "ranks with ties": """
        select n, rank() over (order by k desc) as x, dense_rank() over (order by k nulls last) as y from a""",
    "offsets": """
        select n, lag(s) over w as x, lead(n, 2) over w as y, lag(n, 1, -1L) over w as z, lead(s, -1) over w as u,
               lag(s, 1, 'none') ignore nulls over w as v from a window w as (order by n)""",
    "values": """
        select n, first_value(s) over w as x, last_value(s) over w as y, nth_value(n, 2) over w as z,
               first_value(s) ignore nulls over w as u, last_value(d) ignore nulls over w as v
        from a window w as (order by n rows between 2 preceding and 1 following)""",
    "running sums": """
        select k, n, sum(n) over w as x, avg(n) over w as y, count(d) over w as z, min(s) over w as u,
               max(day) over w as v
        from a window w as (partition by k order by n)""",
    "frames of rows": """
        select n, sum(n) over (order by n rows between 1 preceding and 1 following) as x,
               sum(m) over (order by n rows between unbounded preceding and 1 preceding) as y,
               avg(m) over (order by n rows between current row and unbounded following) as z,
               count(*) over (order by n rows between 3 following and 5 following) as u from a""",
    "frames of values": """
        select n, k, day, sum(n) over (order by n range between 10 preceding and 20 following) as x,
               count(*) over (order by n desc range between 10 preceding and 1 preceding) as y,
               max(s) over (order by k nulls last range between 1 following and unbounded following) as z,
               min(n) over (partition by f order by k desc range between unbounded preceding and 2 following) as u,
               count(n) over (order by day range between 29 preceding and current row) as v,
               first_value(n) over (order by day desc range between 30 preceding and 1 following) is null as w
        from a""",
    "frames of values at the ends of their type": """
        select l, count(*) over (order by l range between 10 preceding and 10 preceding) as x from
        (select cast(k as tinyint) as l from a union all select tinyint(127) - 10Y union all select tinyint(-118))""",
    "peers": "select k, n, sum(n) over (order by k) as x, count(*) over (order by f desc) as y from a",
    "whole partitions": "select k, n, sum(m) over (partition by k) as x, max(n) over () as y from a",
    "by floating-point numbers": "select d, count(*) over (partition by d) as c from a",
    "above groups": "select k, sum(n) as t, rank() over (order by sum(n) desc) as r from a group by k",
    "top of each group": """
        select k, v from (select k, v, row_number() over (partition by k order by v desc) as r from b) where r = 1""",
    "computed with": "select n, n - avg(n) over () as x, m / sum(m) over (partition by k) as y from a where m <> 0",
    "two orders": "select n, rank() over (order by n) as x, rank() over (partition by f order by n desc) as y from a",
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, WINDOWS[name])


@pytest.mark.parametrize("name", GENERATORS)
def test_generators(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, GENERATORS[name])


@pytest.mark.parametrize("name", SOURCES)
def test_sources(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, SOURCES[name])


@pytest.mark.parametrize("name", ORDERED)
def test_orders(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, *ORDERED[name])


@pytest.mark.parametrize("name", GROUPS)
def test_groups(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, GROUPS[name])


@pytest.mark.parametrize("name", JOINS)
def test_joins(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, JOINS[name])


@pytest.mark.parametrize("name", SUBQUERIES)
def test_subqueries(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, SUBQUERIES[name])


NUMBERS = {
    "averages of short decimals": "select k, avg(m) as x, avg(distinct m) as y, avg(m + 1) as z from a group by k",
    "try": """
        select try_add(k, 2147483647) as x, try_divide(n, k - 1) as y, try_cast(n * 10 as tinyint) as z,
               try_subtract(m, m) as u, try_cast(d as int) as v, try_multiply(m, 2) as w from a""",
    "try aggregates": "select k, try_sum(n) as x, try_avg(m) as y, try_sum(m) as z from a group by k",
    "doubles as decimals": """
        select cast(d * 1.005 as decimal(10,2)) as x, cast(d as decimal(9,4)) as y from a where k = 1""",
    "guarded branches": """
        select case when k = 1 then 0 else n / (k - 1) end as x, coalesce(n, 1 / (k - k)) as y,
               if(k > 1, 6 % (k - 1), -1) as z from a where n is not null""",
    "filters that fail behind what is not true": """
        select k from a where n > element_at(map(100, 1L), k) and 1 / (k - k) > 0""",
    "constants that fail where nobody comes": """
        select case when k > 100 then if(2147483647 + cast('1' as int) is null, 1, 2) end as x,
               case when k > 100 then concat(array(1.5D), cast(array('a') as array<double>)) end as y,
               case when k > 100 then if(transform(array(2147483647), e -> e + 1) is null, 1, 2) end as z,
               coalesce(k, case when element_at(array(), 3) is null then 1 else 2 end) as u
        from a where k is not null""",
}
LEGACY = {
    "wraps around": """
        select k + 2147483647 as x, n * 9223372036854775807 as y, -(n - 50 - 9223372036854775807 - 1) as z,
               cast(n * 100 as tinyint) as u, cast(n * 1000000000000 as int) as v from a""",
    "by zero": "select n / (k - 1) as x, k % (k - 1) as y, m / 0 as z, m % 0 as u, d / 0.0D as v from a",
    "decimals": """
        select m * m as x, cast(m as decimal(3,1)) as y, cast(m as decimal(38,6)) * cast(n as decimal(38,6)) as z,
               cast(n as decimal(2,0)) as u from a""",
    "sums": "select k, sum(n) as x, sum(m) as y, avg(m) as z, avg(n) as u, sum(d) as v from a group by k",
    "sums that wrap around": "select sum(n * 300000000000000000) as x, count(*) as c from a",
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, NUMBERS[name])


@pytest.mark.parametrize("name", LEGACY)
def test_legacy_mode(engine: Engine, spark: SparkSession, name: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        same_as_spark(engine, spark, LEGACY[name])
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


PATTERNS = {
    "of a column": "select s, s like concat(left(s, 1), '%') as x, s like s as y, s not like upper(s) as z from a",
    "with escapes": "select s, concat(s, '%') like concat(s, '/%') escape '/' as x, "
    "concat(s, '_') like concat(s, '\\\\', '_') as y from a",
    "in a condition": "select a.n, b.name from a join b on b.name like concat('%', left(a.s, 1), '%')",
    "that nobody looks at": "select n, s like if(s = 'ab', '\\\\x', s) as x from a where s <> 'ab'",
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_come_with_the_rows(engine: Engine, spark: SparkSession, name: str) -> None:
    same_as_spark(engine, spark, PATTERNS[name])


CHARS = {
    "all": "select c, v, length(c) as l, n from padded",
    "compared": "select n from padded where c = 'ab' or c > v",
    "grouped": "select c, count(*) as n, max(v) as m from padded group by c",
    "joined": "select x.n, y.n as m from padded x join padded y on x.c = y.v",
}


@pytest.mark.parametrize("name", CHARS)
def test_columns_that_are_declared_as_char_are_padded(engine: Engine, spark: SparkSession, name: str) -> None:
    spark.sql("create table padded (c char(4), v varchar(9), n int) using parquet")
    try:
        spark.sql(
            "insert into padded values ('ab', 'ab', 1), ('äöü', 'äöü ', 2), ('', 'abcd', 3), (null, null, 4)"
        )
        spark.sql("insert into padded values ('abcd', 'ab  ', 5)")
        same_as_spark(engine, spark, CHARS[name])
    finally:
        spark.sql("drop table padded")


ERRORS = {
    "a subquery of several rows": "select n from a where n > (select v from b)",
    "a subquery of several rows that nobody needs": "select n, (select v from b) as x from a where n < -1000",
    "a correlated subquery of several rows": "select n, (select v from b where b.k = a.k and v > n) as x from a",
    "a correlated subquery of several rows, by a range": "select n, (select v from b where v > n) as x from a",
    "a pattern that escapes a letter": "select n, s like concat('\\\\', s) as x from a where s = 'ab'",
    "a pattern that ends with an escape": "select n from a where s like concat(s, '\\\\')",
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
