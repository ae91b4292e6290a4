"""Sixty odd queries: whatever they contain, the answer is Spark's, natively, with a Spark leaf or on Spark.

None may end in an error of the engine's own. An error of Spark's must come with its condition.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from tests.engine.outcome import outcome

from wallaby.engine import Engine

SQL = [
    # Catalyst numbers the rows of a sort without saying by what
    "select * from region, lateral (select n_name from nation where n_regionkey = r_regionkey order by 1 desc limit 1)",
    # functions of all sorts, below and above what is run here
    "select n_regionkey, collect_list(n_name) from (select * from nation order by n_name) group by 1",
    "select sort_array(collect_set(n_regionkey)) from nation",
    "select n_regionkey, percentile(n_nationkey, 0.5), approx_count_distinct(n_name) from nation group by 1",
    "select regexp_replace(n_name, '(A)(?=N)', '<$1>') r, count(*) from nation group by r",
    "select to_json(named_struct('a', n_regionkey)) j, count(*) from nation group by j",
    "select from_json('{\"a\": 1}', 'a int').a + n_regionkey s, count(*) from nation group by s",
    "select map(n_name, n_regionkey)['CHINA'] m, count(*) from nation group by m",
    "select transform(array(1, 2), x -> x + n_regionkey) t, count(*) from nation group by t",
    "select aggregate(sequence(1L, n_nationkey), 0L, (a, x) -> a + x) s, n_name from nation order by n_name",
    "select date_trunc('month', o_orderdate) m, count(*) from orders group by m",
    "select date_format(o_orderdate, 'yyyy-MM') m, sum(o_totalprice) from orders group by m",
    "select window(cast(o_orderdate as timestamp), '30 days').start w, count(*) from orders group by w",
    "select session_window(o_orderdate, '1 day') w, count(*) from orders group by session_window(o_orderdate, '1 day')",
    "select interval '1' day * n_regionkey i, count(*) from nation group by i",
    "select make_interval(1, n_regionkey) i from nation where n_nationkey < 3",
    "select cast(n_name as binary) b, md5(n_name), sha2(n_name, 256), crc32(n_name) from nation order by b",
    "select xpath_string('<a><b>x</b></a>', 'a/b') x, count(*) from nation group by x",
    "select n_name collate utf8_lcase c, count(*) from nation group by n_name collate utf8_lcase",
    "select parse_json('{\"a\": 1}') v from nation limit 2",
    "select format_number(sum(o_totalprice), 2), bit_xor(o_orderkey), bool_and(o_orderkey > 0) from orders",
    "select histogram_numeric(n_nationkey, 3) h from nation",
    "select cast(array(n_nationkey, null) as string) a, cast(map(n_name, 1.5d) as string) m from nation order by a",
    "select n_regionkey k, any_value(n_regionkey) a, first(n_regionkey + 1) f, last('x') l from nation group by k",
    "select n_name, levenshtein(n_name, 'CHINA', 4) l from nation order by n_name",
    "select soundex(n_name) s, levenshtein(n_name, 'CHINA') l, n_regionkey from nation order by n_name",
    "select max_by(n_name, n_nationkey), min_by(n_name, n_nationkey), mode(n_regionkey) from nation",
    "select corr(n_nationkey, n_regionkey) is null from nation",
    "select try_divide(n_nationkey, n_regionkey - 1) d, count(*) from nation group by d",
    "select input_file_name() = '' f, count(*) from nation group by f",
    "select current_user() = '' u, count(*) from nation group by u",
    "select /*+ repartition(3) */ n_regionkey, count(*) from nation group by n_regionkey",
    # shapes of queries
    "select n_name, rank() over (partition by n_regionkey order by n_name) r from nation",
    "select n_regionkey, n_name, sum(n_nationkey) over (order by n_name rows 2 preceding) s from nation",
    "select * from (select n_name, n_regionkey, row_number() over (order by n_name) r from nation) where r < 4",
    "select n_regionkey, grouping(n_name), count(*) from nation group by rollup(n_regionkey, n_name)",
    "select n_regionkey, n_name, count(*) from nation group by cube(n_regionkey, n_name)",
    "select 1 from (select 2 from nation group by cube('c')) group by 'k'",
    "select n_regionkey, n_name, count(*) from nation group by grouping sets ((n_regionkey), (n_name), ())",
    # keys that repeat: rows are aggregated before they are multiplied
    "select n_regionkey r, sum(n_nationkey) s, avg(n_nationkey) a from nation group by rollup(n_regionkey)",
    "select k, count(*) filter (where k > 1) n from (select nullif(n_regionkey, 1) k from nation) group by cube(k)",
    "select * from (select n_regionkey r, n_nationkey k from nation) pivot (sum(k) for r in (0, 1, 2))",
    "select * from nation unpivot (v for c in (n_nationkey, n_regionkey)) where v > 3",
    "select n_name, e from nation lateral view explode(split(n_name, 'A')) t as e where n_regionkey = 1",
    "select n_name, pos, e from nation lateral view outer posexplode(array()) t as pos, e",
    "select n_regionkey, count(distinct n_name), count(distinct n_nationkey) from nation group by n_regionkey",
    "select r_name, t.n from region, lateral (select count(*) n from nation where n_regionkey = r_regionkey) t",
    "select n_name from nation where n_regionkey not in (select r_regionkey from region where r_name like 'A%')",
    "select n_name from nation n where exists (select 1 from region where r_regionkey < n.n_regionkey - 2)",
    "select n_name, (select max(r_name) from region where r_regionkey = n_regionkey) m from nation",
    "select n_regionkey from nation intersect all select r_regionkey from region",
    "select n_regionkey from nation except all select r_regionkey from region",
    "select a.n_name from nation a full outer join nation b on a.n_nationkey = b.n_nationkey + 20",
    "select count(*) from nation a cross join nation b where a.n_nationkey < b.n_nationkey",
    "select a.n_name from nation a join nation b on a.n_name > b.n_name and b.n_nationkey = 0",
    "select count(*) from nation tablesample (50 percent) repeatable (3)",
    "with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) select sum(n) from t",
    "with c as (select n_regionkey k, rand(5) r from nation) select count(*) from c a join c b on a.k = b.k",
    "from nation |> where n_regionkey = 1 |> aggregate count(*) as n group by n_regionkey",
    "select sum(id) from range(1000)",
    "select count(*) from values (1), (null) t(x) where x is null",
    "select 1",
    "select * from nation where false",
    "select nullif(n_regionkey, 1) k, null, count(*) from nation group by k",
    "select n_name from nation order by n_regionkey desc nulls first, n_name limit 3 offset 2",
    "select n_name from nation order by n_name offset 22",
    "select max(struct(n_regionkey, n_name)).n_name from nation",
    "select named_struct('a', array(map('k', n_name))) s from nation where n_nationkey = 1",
    # errors of the data
    "select sum(1 / (n_regionkey - 1)) from nation where regexp_like(n_name, 'A')",
    "select max(cast(split(n_name, 'A')[0] as int)) from nation",
    "select max(element_at(split(n_name, 'A'), 9)) from nation",
    "select raise_error(n_name) e, count(*) from nation group by e",
    "select (select n_name from nation) x, count(*) from region group by x",
    # commands
    "show tables",
    "describe nation",
    "explain select * from nation",
    "show functions like 'abs'",
    "set spark.sql.ansi.enabled",
]  # fmt: skip


def compare(engine: Engine, df: DataFrame) -> None:
    """Spark's rows, or its error with its condition."""
    assert outcome(lambda: engine.collect(df)) == outcome(df.collect)
    assert isinstance(engine.explain(df), str)


@pytest.mark.parametrize("query", SQL)
def test_an_odd_query_gives_sparks_answer(engine: Engine, spark: SparkSession, query: str) -> None:
    compare(engine, spark.sql(query))


def _observed(spark: SparkSession) -> DataFrame:
    return spark.table("nation").observe("seen", F.count("*")).groupBy("n_regionkey").count()


def _grouped_in_pandas(spark: SparkSession) -> DataFrame:
    nation = spark.table("nation").select("n_regionkey", "n_name")
    first = nation.groupBy("n_regionkey").applyInPandas(lambda frame: frame.head(1), nation.schema)
    return first.groupBy().count()


def _cogrouped(spark: SparkSession) -> DataFrame:
    nation, region = spark.table("nation"), spark.table("region")
    pair = nation.groupBy("n_regionkey").cogroup(region.groupBy("r_regionkey"))
    return pair.applyInArrow(lambda left, _: left.select([0]).slice(0, 1), "k long").groupBy().count()


def _typed_rdd(spark: SparkSession) -> DataFrame:
    return (
        spark.table("nation")
        .rdd.map(lambda row: (row[2], len(row[1])))
        .toDF(["k", "n"])
        .groupBy("k")
        .sum("n")
    )


def _arrow_table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(pa.table({"k": [1, 2, 2], "l": [[1], None, [2, 3]]})).groupBy("k").count()


def _checkpointed(spark: SparkSession) -> DataFrame:
    return spark.table("nation").localCheckpoint().groupBy("n_regionkey").count()


def _random_split(spark: SparkSession) -> DataFrame:
    return spark.table("orders").randomSplit([0.3, 0.7], 11)[0].groupBy("o_orderstatus").count()


def _window_over_a_function(spark: SparkSession) -> DataFrame:
    lengths = spark.table("nation").select("n_regionkey", F.udf(len, "int")("n_name").alias("n"))
    return lengths.select("n", F.sum("n").over(Window.partitionBy("n_regionkey")).alias("s"))


def _unioned(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame([(7, "x")], "k long, word string")
    nation = spark.table("nation").select("n_nationkey", "n_name")
    return nation.union(rows).groupBy("n_name").agg(F.max("n_nationkey"))


def _deduplicated(spark: SparkSession) -> DataFrame:
    return spark.table("nation").dropDuplicates(["n_regionkey"]).groupBy().count()


def _metadata_column(spark: SparkSession) -> DataFrame:
    files = spark.table("nation").inputFiles()
    return spark.read.parquet(*files).groupBy(F.col("_metadata.file_name")).count()


def _persisted_function(spark: SparkSession) -> DataFrame:
    kept = spark.table("nation").select(F.udf(lambda n: n * 2, "int")("n_regionkey").alias("k")).persist()
    return kept.alias("a").join(kept.alias("b"), "k").groupBy("k").count()


def _variant_path(spark: SparkSession) -> DataFrame:
    return (
        spark.table("nation")
        .selectExpr("variant_get(parse_json('{\"a\":' || n_regionkey || '}'), '$.a', 'int') v")
        .groupBy("v")
        .count()
    )


FRAMES: list[Callable[[SparkSession], DataFrame]] = [
    _observed,
    _grouped_in_pandas,
    _cogrouped,
    _typed_rdd,
    _arrow_table,
    _checkpointed,
    _random_split,
    _window_over_a_function,
    _unioned,
    _deduplicated,
    _metadata_column,
    _persisted_function,
    _variant_path,
]


@pytest.mark.parametrize("make", FRAMES, ids=lambda make: make.__name__.strip("_"))
def test_an_odd_frame_gives_sparks_answer(
    engine: Engine, spark: SparkSession, make: Callable[[SparkSession], DataFrame]
) -> None:
    try:
        compare(engine, make(spark))
    finally:
        spark.catalog.clearCache()


def test_a_stream_is_refused_as_spark_refuses_it(engine: Engine, spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().groupBy("value").count()
    with pytest.raises(PySparkException, match="writeStream"):
        engine.collect(stream)
    assert any("stream" in reason for reason in engine.fallback_reasons(stream))
