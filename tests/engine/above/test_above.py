"""Spark above: every action takes its rows from the TaskManagers where that pays, and is Spark's own otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import desc, expr, udf
from pyspark.sql.pandas.functions import pandas_udf
from tests.engine.conftest import Counted, kept_after_collecting, on_spark
from tests.engine.test_ends import nothing_is_left_of_queries, until
from tests.spark_sessions import Engines

import wallaby
from wallaby.engine import Engine
from wallaby.errors import QueryTimeoutError
from wallaby_lab import tpch
from wallaby_lab.compare import require_same

#: Runs here as a whole, and is what the actions below are put on.
QUERY = """
    select n_name, c_mktsegment seg, count(*) n, sum(o_totalprice) total, max(o_orderdate) latest
    from orders join customer on o_custkey = c_custkey join nation on c_nationkey = n_nationkey
    group by n_name, c_mktsegment
"""


def lower(column: str) -> Any:
    """A function of pandas, applied to a column."""
    make: Any = pandas_udf
    return make(lambda texts: texts.str.lower(), "string")(column)


@pytest.fixture
def df(spark: SparkSession) -> DataFrame:
    return spark.sql(QUERY)


def rows(df: DataFrame) -> list[Any]:
    return sorted(df.collect(), key=str)


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "json"])
def test_a_write_takes_its_rows_from_the_engine(
    kind: str, counted: Counted, spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    df.write.format(kind).save(str(tmp_path / "ours"))
    assert counted.runs == 1
    on_spark(spark, lambda: df.write.format(kind).save(str(tmp_path / "sparks")))
    assert counted.runs == 1
    read = spark.read.schema(df.schema).format(kind)
    ours = on_spark(spark, lambda: rows(read.load(str(tmp_path / "ours"))))
    assert ours == on_spark(spark, lambda: rows(read.load(str(tmp_path / "sparks"))))
    assert len(ours) == 125


def test_partitioned_writes_and_modes_are_sparks_own(
    counted: Counted, spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = str(tmp_path / "by segment")
    df.write.partitionBy("seg").parquet(path)
    df.write.mode("append").partitionBy("seg").parquet(path)
    with pytest.raises(PySparkException, match="PATH_ALREADY_EXISTS"):
        df.write.parquet(path)
    df.write.mode("ignore").parquet(path)
    assert counted.runs == 2
    assert on_spark(spark, lambda: spark.read.parquet(path).count()) == 250
    assert sorted(p.name for p in Path(path).iterdir() if p.is_dir())[0] == "seg=AUTOMOBILE"


def test_tables_are_made_and_filled_by_sql(counted: Counted, spark: SparkSession) -> None:
    try:
        spark.sql(f"create table made using parquet as {QUERY}")
        spark.sql(f"insert into made {QUERY}")
        assert counted.runs == 2
        assert on_spark(spark, lambda: spark.table("made").count()) == 250
        spark.sql(f"insert overwrite made {QUERY}")
        spark.sql(QUERY).write.insertInto("made")
        spark.sql(QUERY).write.mode("overwrite").saveAsTable("made")
        assert counted.runs == 5
        assert on_spark(spark, lambda: spark.table("made").count()) == 125
    finally:
        spark.sql("drop table if exists made")


@pytest.mark.parametrize(
    "act",
    [
        lambda df: list(df.toLocalIterator()),
        lambda df: list(df.toLocalIterator(prefetchPartitions=True)),
        lambda df: df.rdd.collect(),
        lambda df: [tuple(row) for row in df.rdd.map(tuple).collect()],
        lambda df: df.toJSON().collect(),
        lambda df: df.tail(3),
        lambda df: df.describe("seg").collect(),
        lambda df: df.summary("count", "min", "max").collect(),
        lambda df: df.localCheckpoint().collect(),
        lambda df: df.select(udf(lambda x: f"<{x}>")("n_name").alias("u"), "n").collect(),
        lambda df: df.select(lower("n_name").alias("u")).collect(),
        lambda df: df.mapInPandas(lambda frames: frames, df.schema).collect(),
        lambda df: df.mapInArrow(lambda batches: batches, df.schema).collect(),
        lambda df: df.groupBy("seg").applyInPandas(lambda f: f.head(1)[["seg"]], "seg string").collect(),
        lambda df: df.join(
            df.sparkSession.createDataFrame([("CHINA",)], "n_name string"), "n_name"
        ).collect(),
        lambda df: df.pandas_api().groupby("seg")["n"].sum().sort_index().to_pandas().tolist(),
        lambda df: df.repartition(3).foreachPartition(lambda part: None),
    ],
    ids=[
        "toLocalIterator",
        "toLocalIterator ahead",
        "rdd",
        "rdd.map",
        "toJSON",
        "tail",
        "describe",
        "summary",
        "localCheckpoint",
        "Python UDF",
        "pandas UDF",
        "mapInPandas",
        "mapInArrow",
        "applyInPandas",
        "join with rows of Python",
        "pandas on Spark",
        "foreachPartition",
    ],
)
@pytest.mark.filterwarnings("ignore:The return type of DataFrame.toJSON", "ignore:`to_pandas` loads all data")
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_whatever_is_on_top_gives_what_spark_gives(
    act: Callable[[DataFrame], Any], adaptive: str, counted: Counted, spark: SparkSession, df: DataFrame
) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        ours = act(df.orderBy("n_name", "seg"))
        assert counted.queries >= 1
        ran = counted.queries
        sparks = on_spark(spark, lambda: act(df.orderBy("n_name", "seg")))
        assert counted.queries == ran
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    if isinstance(ours, list):
        assert sorted(map(str, ours)) == sorted(map(str, sparks))
    else:
        assert ours == sparks


def test_a_plan_is_offered_once_although_spark_adapts_it(
    above: Engine, counted: Counted, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.conf.set("spark.wallaby.below", "auto")
    offered: list[int] = []
    chosen = above.subplans._chosen

    def choosing(plan: Any, facts: Any) -> Any:
        offered.append(len(found := chosen(plan, facts)))
        return found

    monkeypatch.setattr(above.subplans, "_chosen", choosing)
    spark.sql(tpch.query(5)).write.format("noop").mode("overwrite").save()
    assert offered == [0], "Spark broadcasts small tables on the way, and plans the rest again each time"
    assert counted.queries == 0


def test_a_plan_over_little_data_is_not_offered_unless_every_part_is_to_run_here(
    above: Engine, counted: Counted, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: list[Any] = []
    chosen = above.subplans._chosen

    def choosing(plan: Any, facts: Any) -> Any:
        offered.append(plan)
        return chosen(plan, facts)

    monkeypatch.setattr(above.subplans, "_chosen", choosing)
    query = "select n_regionkey, count(*) n from nation group by 1"
    pairs = "select count(*) n from supplier a cross join supplier b where a.s_acctbal + b.s_acctbal > 0"
    for below, text, count in (("auto", query, 0), ("auto", pairs, 1), ("always", query, 1)):
        spark.conf.set("spark.wallaby.below", below)
        offered.clear()
        spark.sql(text).write.format("noop").mode("overwrite").save()
        assert len(offered) == count, (below, text)


def test_a_cached_table_keeps_its_rows_until_it_is_dropped(
    above: Engine, counted: Counted, spark: SparkSession, df: DataFrame
) -> None:
    cached = spark.sql(QUERY).cache()
    try:
        assert counted.runs == 0, "a cache is filled by the first action"
        assert cached.count() == 125
        time.sleep(1.5)
        assert len(above.subplans.kept) == 1, "if a block of the cache is lost, Spark reads the rows again"
        assert rows(cached) == on_spark(spark, lambda: rows(spark.sql(QUERY)))
        assert counted.runs == 1
    finally:
        cached.unpersist(blocking=True)
    del cached
    until(lambda: not kept_after_collecting(above))


def test_the_same_dataframe_may_act_again(
    above: Engine, counted: Counted, df: DataFrame, spark: SparkSession
) -> None:
    top = df.select(udf(lambda x: x)("n_name").alias("u"), "n")
    first = rows(top)
    above.subplans.collect()
    time.sleep(0.5)
    assert rows(top) == first, "its plan reads the same rows again, which stay as long as it does"
    assert len(list(top.toLocalIterator())) == len(first)
    assert counted.runs == 1


def test_sql_caches_a_query_too(counted: Counted, spark: SparkSession) -> None:
    spark.sql(f"cache table kept as {QUERY}")
    assert counted.runs == 1
    assert spark.table("kept").count() == 125
    spark.sql("uncache table kept")
    spark.catalog.dropTempView("kept")


def test_the_same_part_twice_runs_once(counted: Counted, spark: SparkSession) -> None:
    part = spark.sql("select o_custkey k, sum(o_totalprice) t from orders group by o_custkey")
    both = part.select(udf(lambda k: k, "long")("k").alias("a"), "t").union(
        part.select(udf(lambda k: k + 1, "long")("k").alias("a"), "t")
    )
    assert len(both.collect()) == 2 * on_spark(spark, part.count)
    assert counted.runs == 1


def test_equal_parts_leave_nothing_behind_once_nobody_plans_them(above: Engine, spark: SparkSession) -> None:
    def both() -> int:
        part = spark.sql("select o_custkey k, sum(o_totalprice) t from orders group by o_custkey")
        halves = [part.select(udf(lambda k: k, "long")("k").alias("a"), "t") for _ in range(2)]
        return len(halves[0].union(halves[1]).collect())

    assert both() > 0

    def gone() -> bool:
        kept_after_collecting(above)
        above.subplans.collect()
        time.sleep(0.2)
        return not above.subplans._begun

    until(gone)


def test_planning_and_explain_run_nothing(
    above: Engine, counted: Counted, df: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    top = df.select(udf(lambda x: x)("n_name"))
    top.explain()
    text = capsys.readouterr().out
    assert "Wallaby scan nation" in text
    assert counted.runs == 0
    assert "runs in the TaskManagers: scan nation" in above.explain(top)
    assert "rows to hand over" in above.explain(top)


def test_the_choice_is_made_by_cost_and_can_be_forbidden(
    above: Engine, counted: Counted, spark: SparkSession
) -> None:
    def small() -> DataFrame:
        groups = spark.sql("select n_regionkey, count(*) n from nation group by n_regionkey")
        return groups.select(udf(lambda x: x, "long")("n_regionkey"), "n")

    spark.conf.set("spark.wallaby.below", "auto")
    assert len(small().collect()) == 5
    assert counted.runs == 0
    assert "aggregate (it reads so little that handing its rows over would not pay)" in above.explain(small())
    both = spark.sql("select * from lineitem join orders on l_orderkey = o_orderkey order by l_comment")
    sort = both.select(udf(lambda x: x)("l_comment"), "*")
    assert "rows to hand over: saves" in above.explain(sort)
    spark.conf.set("spark.wallaby.below", "never")
    assert len(small().collect()) == 5
    assert counted.runs == 0
    spark.conf.set("spark.wallaby.below", "always")
    assert len(small().collect()) == 5
    assert counted.runs == 1


def test_sorted_rows_arrive_in_order(counted: Counted, spark: SparkSession) -> None:
    ordered = spark.sql(
        "select l_orderkey, l_linenumber from lineitem order by l_orderkey desc, l_linenumber"
    )
    found = [tuple(row) for row in ordered.toLocalIterator()]
    assert counted.runs == 1
    assert found == sorted(found, key=lambda row: (-row[0], row[1]))
    assert len(found) == on_spark(spark, lambda: spark.table("lineitem").count())


def test_every_type_arrives_as_spark_has_it(counted: Counted, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(
        """select cast(id as byte) b, cast(id as short) s, cast(id as int) i, id l, cast(id as float) f,
        cast(id / 3 as double) d, cast(id as decimal(38, 10)) dec, string(id) t, binary(string(id)) bin,
        id % 2 = 0 flag,
        date_add(date'2024-01-01', cast(id as int)) day, timestamp'2024-01-01 00:00:00' + make_dt_interval(0, 0, id) ts,
        cast(timestamp'2024-01-01 00:00:00' as timestamp_ntz) ntz, array(id, null) arr,
        named_struct('a', id, 'b', string(id)) st, map(string(id), id) m, if(id % 3 = 0, null, id) n
        from range(100)"""
    ).write.parquet(str(tmp_path / "types"))
    table = spark.read.parquet(str(tmp_path / "types"))
    query = table.orderBy(desc("l")).limit(50)
    top = query.mapInArrow(lambda batches: batches, query.schema)
    ours = top.toArrow()
    assert counted.runs == 1
    require_same(ours, on_spark(spark, top.toArrow))


def test_an_empty_result_is_empty(counted: Counted, spark: SparkSession, tmp_path: Path) -> None:
    none = spark.sql("select c_nationkey, count(*) n from customer where c_custkey < 0 group by c_nationkey")
    none.write.parquet(str(tmp_path / "none"))
    assert counted.runs == 1
    back = spark.read.parquet(str(tmp_path / "none"))
    assert back.count() == 0
    assert [(c.name, c.dataType) for c in back.schema] == [(c.name, c.dataType) for c in none.schema]


def test_sessions_made_from_an_enabled_one_are_enabled_too(
    counted: Counted, spark: SparkSession, tmp_path: Path
) -> None:
    other = spark.newSession()
    other.conf.set("spark.wallaby.below", "always")
    path = spark.table("orders").inputFiles()[0]
    query = other.read.parquet(path).groupBy("o_orderpriority").count()
    query.write.parquet(str(tmp_path / "new"))
    assert counted.runs == 1
    other.conf.set("spark.wallaby.enabled", "false")
    query.write.parquet(str(tmp_path / "off"))
    assert counted.runs == 1


def test_a_batch_of_a_stream_takes_its_rows_from_the_engine(
    counted: Counted, spark: SparkSession, tmp_path: Path
) -> None:
    orders = spark.table("orders")
    orders.write.parquet(str(tmp_path / "in"))
    before = counted.runs

    def each(batch: DataFrame, number: int) -> None:
        joined = batch.join(spark.table("customer"), expr("o_custkey = c_custkey"))
        joined.groupBy("c_nationkey").count().write.parquet(str(tmp_path / f"out{number}"))

    stream = (
        spark.readStream.schema(orders.schema).parquet(str(tmp_path / "in")).writeStream.foreachBatch(each)
    )
    query = stream.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert counted.runs > before
    assert on_spark(spark, lambda: spark.read.parquet(str(tmp_path / "out0")).count()) == 25


def test_an_error_in_the_data_is_sparks_own(above: Engine, spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.wallaby.sparkErrors", "true")
    try:
        bad = spark.sql("select o_custkey, sum(1 / (o_orderkey - 1)) s from orders group by o_custkey")
        with pytest.raises((PySparkException, Py4JJavaError), match="DIVIDE_BY_ZERO"):
            bad.write.parquet(str(tmp_path / "bad"))
    finally:
        spark.conf.unset("spark.wallaby.sparkErrors")


def test_an_error_of_ours_is_raised_as_such_by_any_action(
    above: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    slow = spark.sql("select k, count(*) n, sum(v) s from tiny group by k")
    spark.conf.set("spark.wallaby.timeout", "200ms")
    try:
        with pytest.raises(QueryTimeoutError, match=r"spark\.wallaby\.timeout") as caught:
            slow.write.parquet(str(tmp_path / "slow"))
        assert caught.value.getCondition() == "WALLABY_QUERY_TIMEOUT"
    finally:
        spark.conf.unset("spark.wallaby.timeout")
    until(lambda: nothing_is_left_of_queries(above))


def test_cancelling_the_spark_job_ends_the_query(above: Engine, spark: SparkSession, tmp_path: Path) -> None:
    slow = spark.sql("select k, count(*) n, sum(v) s from tiny group by k")
    context = spark.sparkContext
    failed: list[BaseException] = []

    def write() -> None:
        context.setJobGroup("slow", "a slow write", interruptOnCancel=True)
        try:
            slow.write.parquet(str(tmp_path / "slow"))
        except (PySparkException, Py4JJavaError) as error:
            failed.append(error)

    writer = InheritableThread(target=write)
    writer.start()
    until(lambda: bool(above._parts.gcs.queries()))
    context.cancelJobGroup("slow")
    writer.join(60)
    assert not writer.is_alive()
    assert failed
    assert "cancel" in str(failed[0]).lower()
    until(lambda: nothing_is_left_of_queries(above))


def test_what_is_in_memory_already_stays_where_it_is(above: Engine, spark: SparkSession) -> None:
    cached = spark.table("orders").cache()
    try:
        cached.count()
        top = cached.groupBy("o_orderpriority").count().select(udf(lambda x: x)("o_orderpriority"))
        assert len(top.collect()) == 5
        assert "Spark has the rows in memory" in above.explain(top)
    finally:
        cached.unpersist(blocking=True)


def test_disable_leaves_spark_alone(
    engines: Engines, spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    engine = engines.get(workers=2, threads=1, split=1, leaf_minimum=0)
    wallaby.enable(spark)
    spark.conf.set("spark.wallaby.below", "always")
    wallaby.disable(spark)
    try:
        df.write.parquet(str(tmp_path / "alone"))
        assert not engine.subplans.kept
        assert not spark._jsparkSession.experimental().extraStrategies().contains(engine.subplans._java)
    finally:
        spark.conf.unset("spark.wallaby.below")


def test_many_actions_at_once_do_not_disturb_each_other(
    above: Engine, counted: Counted, spark: SparkSession, tmp_path: Path
) -> None:
    failed: list[BaseException] = []

    def write(number: int) -> None:
        try:
            query = spark.sql(f"select o_custkey % {number + 2} k, count(*) n from orders group by 1")
            query.write.parquet(str(tmp_path / str(number)))
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed
    assert counted.runs == 6
    expected = on_spark(spark, lambda: spark.table("orders").count())
    for number in range(6):
        back = on_spark(spark, spark.read.parquet(str(tmp_path / str(number))).collect)
        assert sum(row.n for row in back) == expected
