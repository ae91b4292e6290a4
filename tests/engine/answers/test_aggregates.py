"""Aggregate functions of groups, of no rows and over windows, and frames by values: the same as Spark's."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.outcome import natively, outcome

from wallaby.engine import Engine
from wallaby_lab.compare import require_same

ROWS = 400

STATISTICS = """
    stddev(e) as a, variance(e) as b, stddev_pop(i) as c, var_pop(m) as d, covar_pop(e, i) as f, covar_samp(e, i) as h,
    corr(e, i) as j, corr(e, 1) as k, skewness(e) as l, kurtosis(e) as n, var_samp(i + 1000) as o,
    var_pop(i - 1000) as p, regr_sxx(e, i) as q, regr_sxy(e, i) as r, regr_slope(e, i) as s,
    regr_intercept(e, i) as t, regr_r2(e, i) as u, regr_r2(1, i) as v, regr_slope(e, 1) as w
"""
ORDERED = """
    median(i) as a, percentile(e, 0.3) as b, percentile_cont(0.75) within group (order by m desc) as c,
    percentile_disc(0.07) within group (order by i) as d, percentile_disc(0.5) within group (order by e desc) as e,
    mode() within group (order by i) as f, mode() within group (order by i desc) as h, min_by(s, id) as j,
    max_by(m, id) as k, max_by(s, id, 3) as p, min_by(i, struct(m, id), 2) as q,
    sort_array(collect_list(s)) as m, size(collect_set(i)) as n,
    listagg(s, ', ') within group (order by id) as l, percentile(i, array(0.9, 0.1)) as o
"""
OTHERS = """
    bit_and(i) as a, bit_or(id) as b, bit_xor(i) as c, count_if(p) as d, bool_and(p) as e, bool_or(p) as f,
    count(i, s) as h, sum(dt) as j, max(dt) as k, min(day) as l
"""
DISTINCT = """
    count(distinct i, s) as a, bit_xor(distinct i) as b, count(distinct s) as c
"""
SHAPES = {
    "groups": "select g, {} from many group by g",
    "all rows": "select {} from many",
    "no rows": "select {} from many where id < 0",
    "single rows": "select id, {} from many group by id",
}
WINDOWS = {
    "statistics": "select id, stddev(e) over (w) as a, corr(e, i) over (w) as b, kurtosis(e) over (w) as c, "
    "bit_xor(i) over (w) as d, max_by(s, id) over (w) as f, min_by(s, id, 2) over (w) as j, "
    "count_if(p) over (w) as h from many "
    "window w as (partition by g order by id rows between 3 preceding and 1 following)",
    "percentiles": "select id, median(i) over (partition by g) as a, percentile(e, 0.9) over (partition by g) as b, "
    "percentile_disc(0.2) within group (order by i) over (partition by g) as c from many",
    "nulls are ignored": "select id, lag(i) ignore nulls over (order by id) as a, lead(i, 2, 7) ignore nulls over "
    "(order by id) as b, nth_value(i, 2) ignore nulls over (order by id) as c, last_value(i) ignore nulls over "
    "(order by id rows between 2 preceding and 1 following) as d from many",
    "filtered": "select id, first(i) filter (where p) over (order by id) as a, last(i, true) filter (where p) "
    "over (order by id) as b, sum(i) filter (where p) over (order by id) as c from many",
    "by decimals": "select id, sum(i) over (order by m range between 1.5 preceding and current row) as a, "
    "sum(i) over (order by m desc range between 0.25 preceding and 30 following) as b from many",
    "by floating-point numbers": "select id, sum(i) over (order by e range between 1.5 preceding and current row) "
    "as a, count(*) over (order by cast(e as float) desc range between 0.1 preceding and 30.7 following) as b, "
    "count(*) over (order by e / 0.1D range between 2 following and 9.5 following) as c from many",
    "by timestamps": "select id, sum(i) over (order by at range between interval 3 hours preceding and current row) "
    "as a, sum(i) over (order by at_ntz desc range between interval 2 days preceding and interval 1 day following) "
    "as b, sum(i) over (order by at_ntz range between interval 1 month preceding and current row) as c from many",
    "by dates": "select id, sum(i) over (order by day range between interval 1 month preceding and current row) as a, "
    "sum(i) over (order by day desc range between interval 3 days preceding and interval 1 day following) as b "
    "from many",
    "by intervals": "select id, sum(i) over (order by dt range between interval 1 hour preceding and current row) "
    "as a from many",
}


@pytest.fixture(scope="module", autouse=True)
def many(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("many")
    chance = random.Random(3)

    def column(values: list[object], type_: pa.DataType) -> pa.Array:
        return pa.array([None if chance.random() < 0.1 else value for value in values], type_)

    numbers = range(ROWS)
    times = [chance.randrange(0, 40 * 86400) * 1_000_000 for _ in numbers]
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "g": column([chance.randrange(5) for _ in numbers], pa.int32()),
            "i": column([chance.randrange(-9, 10) for _ in numbers], pa.int32()),
            "e": column([chance.uniform(-50, 50) for _ in numbers], pa.float64()),
            "c": column([chance.randrange(-3000, 3000) for _ in numbers], pa.int32()),
            "s": column([chance.choice(("a", "b", "", "ä")) for _ in numbers], pa.string()),
            "p": column([chance.random() < 0.5 for _ in numbers], pa.bool_()),
            "day": column([chance.randrange(60) for _ in numbers], pa.date32()),
            "at": column(list(times), pa.timestamp("us", "UTC")),
            "at_ntz": column(list(times), pa.timestamp("us")),
        }
    )
    pq.write_table(table, directory / "raw.parquet")
    made = spark.read.parquet(str(directory / "raw.parquet")).selectExpr(
        "*", "cast(c as decimal(7,2)) / 100 as m", "make_dt_interval(0, 0, 0, c) as dt"
    )
    made.repartition(3).write.parquet(str(directory / "many"))
    spark.read.parquet(str(directory / "many")).createOrReplaceTempView("many")


def same_as_spark(engine: Engine, spark: SparkSession, sql: str) -> None:
    df = spark.sql(sql)
    require_same(natively(engine, df).arrow(), df.toArrow())


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("functions", [STATISTICS, ORDERED, OTHERS, DISTINCT], ids=["a", "b", "c", "d"])
def test_aggregates_are_sparks(engine: Engine, spark: SparkSession, functions: str, shape: str) -> None:
    same_as_spark(engine, spark, shape.format(functions))


def test_a_mean_far_from_zero_leaves_as_many_digits_as_on_spark(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    """Milliseconds since 1970: neither order of additions is exact, and each is off by its own last digits."""
    chance = random.Random(1)
    values = [1.7e12 + chance.random() * 1000 for _ in range(5000)]
    pq.write_table(pa.table({"x": values}), tmp_path / "x.parquet", row_group_size=500)
    df = spark.read.parquet(str(tmp_path / "x.parquet")).selectExpr("variance(x) v", "stddev_pop(x) s")
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    squares = sum((value - mean) ** 2 for value in exact)
    for found in (engine.collect(df)[0], df.collect()[0]):
        assert found.v == pytest.approx(float(squares / (len(exact) - 1)), rel=1e-6)
        assert found.s == pytest.approx(float(squares / len(exact)) ** 0.5, rel=1e-6)


def test_aggregates_take_filters_and_distinct_values(engine: Engine, spark: SparkSession) -> None:
    same_as_spark(
        engine,
        spark,
        """select g, stddev(e) filter (where p) as a, median(i) filter (where p) as b, bit_or(i) filter (where p) as c,
                  max_by(s, id) filter (where p) as d, max_by(i, id, 9) filter (where p) as h,
                  listagg(s, '') within group (order by id) filter (where p) as f
           from many group by g""",
    )
    same_as_spark(
        engine, spark, "select g, median(distinct i) as a, kurtosis(distinct i) as b from many group by g"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "select sum(interval '40000000' day) as x from many",
        "select sum(interval '178956970' year) > interval '1' year as x from many",
        "select make_ym_interval(178956970 + id, 7) > interval '1' year as x from many where id < 9",
        "select make_ym_interval(178956971 + id, -12) > interval '1' year as x from many where id = 0",
        "select make_ym_interval(id, 7) > interval '1' year as x from many where id < 9",
    ],
)
def test_an_interval_that_does_not_fit_is_sparks_error(engine: Engine, spark: SparkSession, sql: str) -> None:
    df = spark.sql(sql)
    assert outcome(lambda: natively(engine, df).rows()) == outcome(df.collect)


def test_percentiles_between_two_values_are_sparks(engine: Engine, spark: SparkSession) -> None:
    same_as_spark(
        engine,
        spark,
        """select percentile(if(id < 1, -6, 14), 0.3) as a, median(if(id < 1, double('-infinity'), 1D)) as b,
                  percentile_cont(0.3) within group (order by if(id < 1, -14, 6) desc) as c
           from many where id < 2""",
    )


PIVOTS = {
    "by whole numbers": "select * from (select g, id % 4 as q, i from many) "
    "pivot (sum(i) as a, count(i) as n for q in (0, 1, 7))",
    "by text and NULL": "select * from (select g, if(p, s, null) as q, e from many) "
    "pivot (max(e) for q in ('a', null))",
    "by two columns": "select * from (select g, p, id % 2 as q, m from many) "
    "pivot (min(m) for (p, q) in ((true, 0), (false, 1), (null, 1)))",
    "without groups": "select * from (select day, i from many) "
    "pivot (avg(i) for day in (date'1970-01-05', date'1970-02-01'))",
    "no rows": "select * from (select p, i from many where id < 0) pivot (sum(i) for p in (true, false))",
}


@pytest.mark.parametrize("sql", PIVOTS.values(), ids=PIVOTS)
def test_pivots_are_sparks(engine: Engine, spark: SparkSession, sql: str) -> None:
    same_as_spark(engine, spark, sql)


@pytest.mark.parametrize("sql", WINDOWS.values(), ids=WINDOWS)
def test_windows_are_sparks(engine: Engine, spark: SparkSession, sql: str) -> None:
    same_as_spark(engine, spark, sql)


@pytest.mark.parametrize(("text", "key"), [("i", "i desc"), ("string(day)", "day"), ("s", "s"), ("m", "m")])
def test_distinct_texts_are_joined_in_the_order_of_what_they_were_made_of(
    engine: Engine, spark: SparkSession, text: str, key: str
) -> None:
    joined = f"listagg(distinct {text}, ', ') within group (order by {key})"
    same_as_spark(engine, spark, f"select g, {joined} as a, count(*) as n from many group by g")


def test_days_over_timestamps_are_left_to_spark_where_clocks_change(
    engine: Engine, spark: SparkSession
) -> None:
    sql = "select sum(i) over (order by at range between interval 1 day preceding and current row) as x from many"
    assert engine.fallback_reasons(spark.sql(sql)) == []
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        assert any("RANGE frame" in reason for reason in engine.fallback_reasons(spark.sql(sql)))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


#: Sales by attributes of what was sold: each aggregation begins below the join with the articles.
BELOW_A_JOIN = {
    "by texts": "select name, kind, sum(price) s, count(*) n, max(day) d {sold} group by name, kind",
    "by grouping sets": "select kind, name, avg(amount) a, min(price) p {sold} group by rollup (kind, name)",
    "with a filter": "select name, sum(amount) filter (where amount > 3) f, sum(cents) c {sold} group by name",
    "under a condition": "select name, day, bit_xor(amount) x {sold} and not day <=> size group by name, day",
    "by columns of both sides": "select name, day, sum(amount) s {sold} group by name, day",
}


@pytest.fixture(scope="module")
def sold(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Many sales of 9,000 articles: some are of none, some articles are there twice, others were never sold."""
    directory = tmp_path_factory.mktemp("sold")
    spark.range(1_700_000, numPartitions=2).selectExpr(
        "if(id % 97 = 0, null, id * 7919 % 9000) as article",
        "cast(id % 8 as int) as day",
        "cast(if(id % 31 = 0, null, id % 13) as int) as amount",
        "cast(id % 1009 as decimal(7,2)) / 4 as price",
        "cast(id % 1009 as decimal(7,2)) as cents",
    ).write.parquet(str(directory / "sales"))
    spark.range(9_500).selectExpr(
        "if(id > 9400, id - 9000, if(id < 50, -id, id)) as article",
        "concat('article ', id) as name",
        "concat('kind ', id % 5) as kind",
        "cast(id % 5 as int) as size",
    ).write.parquet(str(directory / "articles"))
    for name in ("sales", "articles"):
        spark.read.parquet(str(directory / name)).createOrReplaceTempView(name)
    return "from sales join articles on sales.article = articles.article"


@pytest.mark.parametrize("sql", BELOW_A_JOIN.values(), ids=BELOW_A_JOIN)
def test_aggregations_that_begin_below_a_join_are_sparks(
    engine: Engine, spark: SparkSession, sold: str, sql: str
) -> None:
    df = spark.sql(sql.format(sold=sold))
    reading = next(part for part in engine.explain(df).split("\ns") if "scan sales" in part)
    assert "aggregate by article#" in reading, f"not before the join: {reading}"
    same_as_spark(engine, spark, sql.format(sold=sold))
