"""Spark leaves: what the engine cannot read at the bottom of a plan, Spark runs, and the engine does the rest."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException, PythonException
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.functions import pandas_udf
from tests.engine.losses.test_losses import kill_while_it_runs, wait_for
from tests.engine.test_ends import nothing_is_left_of_queries, until

import wallaby
from wallaby.engine import Engine
from wallaby.errors import QueryCancelledError, QueryTimeoutError
from wallaby.results.leaves import LeafResult
from wallaby.results.result import Result
from wallaby.spark.cluster import Cluster
from wallaby.spark.leaves.directory import LeafDirectory
from wallaby.worker.scratch import LEAF_PREFIX
from wallaby_lab.compare import require_same

backwards = F.udf(lambda text: text[::-1])


def plain_function(spark: SparkSession, _: Path) -> DataFrame:
    return spark.table("nation").select(backwards("n_name").alias("b")).groupBy("b").count()


def pandas_function(spark: SparkSession, _: Path) -> DataFrame:
    def double(numbers: pd.Series) -> pd.Series:
        return numbers * 2

    doubled = pandas_udf(double, "long")  # type: ignore[call-overload]  # pandas ships no types
    return spark.table("orders").groupBy(doubled("o_custkey").alias("k")).agg(F.max("o_orderdate"))


def function_in_a_filter(spark: SparkSession, _: Path) -> DataFrame:
    return spark.table("nation").where(backwards("n_name").startswith("A")).groupBy().count()


def map_in_arrow(spark: SparkSession, _: Path) -> DataFrame:
    def twice(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            yield batch

    nation = spark.table("nation")
    return nation.mapInArrow(twice, nation.schema).groupBy("n_regionkey").agg(F.count("*"), F.min("n_name"))


def map_in_pandas(spark: SparkSession, _: Path) -> DataFrame:
    nation = spark.table("nation")
    return nation.mapInPandas(lambda frames: frames, nation.schema).orderBy("n_comment")


def json_files(spark: SparkSession, directory: Path) -> DataFrame:
    (directory / "rows.json").write_text('{"k": 1, "v": 1.5}\n{"k": 2}\n{"k": 1, "v": -0.0}\n')
    # An option that is not known here leaves the table to Spark.
    rows = spark.read.option("lineSep", "\n").json(str(directory / "rows.json"))
    return rows.groupBy("k").agg(F.max("v"), F.count("v"))


def csv_files(spark: SparkSession, directory: Path) -> DataFrame:
    (directory / "rows.csv").write_text("k;v\n1;x\n2;\n1;ÿ\n")
    reader = spark.read.option("sep", ";").option("lineSep", "\n")
    rows = reader.csv(str(directory / "rows.csv"), header=True, inferSchema=True)
    return rows.join(spark.table("nation"), rows.k == F.col("n_nationkey"), "left").orderBy("v", "n_name")


def rdd(spark: SparkSession, _: Path) -> DataFrame:
    pairs = spark.sparkContext.parallelize(range(100), 3).map(lambda i: Row(k=i % 3, v=str(i)))
    return spark.createDataFrame(pairs).groupBy("k").agg(F.max("v"))


def local_rows(spark: SparkSession, _: Path) -> DataFrame:
    keys = spark.createDataFrame([(1, "one"), (3, "three")], "k long, word string")
    return keys.join(spark.table("nation"), F.col("k") == F.col("n_regionkey")).groupBy("word").count()


def cached(spark: SparkSession, _: Path) -> DataFrame:
    kept = spark.sql("select r_regionkey as k, r_name from region").cache()
    return kept.join(spark.table("nation"), F.col("k") == F.col("n_regionkey")).groupBy("r_name").count()


def generated(spark: SparkSession, _: Path) -> DataFrame:
    return (
        spark.sql("select json_tuple(n_name, n_comment) part, n_regionkey from nation")
        .groupBy("part")
        .count()
    )


def sampled(spark: SparkSession, _: Path) -> DataFrame:
    return spark.table("lineitem").sample(0.1, 7).groupBy("l_linenumber").agg(F.sum("l_quantity"))


def no_rows(spark: SparkSession, _: Path) -> DataFrame:
    return spark.table("nation").where(backwards("n_name") == "").groupBy("n_name").count()


def nested_columns_below(spark: SparkSession, _: Path) -> DataFrame:
    halves = spark.table("nation").select("n_regionkey", F.split("n_name", "A+").alias("parts"))
    return halves.where(F.size("parts") > 1).groupBy("n_regionkey").count()


def one_name_twice(spark: SparkSession, _: Path) -> DataFrame:
    rows = spark.createDataFrame([(1, 2), (3, 4)], "x int, x int")
    return rows.toDF("x", "y").withColumnRenamed("y", "x").groupBy().count()


def two_leaves(spark: SparkSession, _: Path) -> DataFrame:
    left = spark.table("nation").select("n_nationkey", backwards("n_name").alias("b"))
    right = spark.createDataFrame([(i, f"{i}") for i in range(10)], "k int, word string")
    return left.join(right, F.col("n_nationkey") == F.col("k")).orderBy("b")


def times_and_decimals(spark: SparkSession, _: Path) -> DataFrame:
    rows = spark.sql(
        "select * from values (timestamp'1582-10-04 12:00:00.000001', timestamp_ntz'0001-01-01 00:00:00',"
        " date'0001-01-01', 12345678901234567890.123456789012345678, double('nan'), float('-0'), X'00ff'),"
        " (null, null, null, null, null, null, null) as t(a, b, c, d, e, f, g)"
    )
    return rows.mapInArrow(lambda batches: batches, rows.schema).orderBy("a")


CASES: dict[str, tuple[Callable[[SparkSession, Path], DataFrame], str]] = {
    "a plain Python function": (plain_function, "Python functions"),
    "a pandas function": (pandas_function, "Python functions"),
    "a Python function in a filter": (function_in_a_filter, "Python functions"),
    "mapInArrow": (map_in_arrow, "MapInArrow"),
    "mapInPandas": (map_in_pandas, "MapInPandas"),
    "JSON": (json_files, "use Parquet"),
    "CSV": (csv_files, "use Parquet"),
    "an RDD": (rdd, "RDD"),
    "local rows": (local_rows, "LogicalRDD"),
    "a cached table": (cached, "unpersist the table"),
    "a generator": (generated, "this generator is not supported"),
    "a sample": (sampled, "partitions"),
    "a leaf without rows": (no_rows, "Python functions"),
    "nested columns inside the leaf": (nested_columns_below, "StringSplit"),
    "a name that stands twice": (one_name_twice, "LogicalRDD"),
    "two leaves": (two_leaves, "Python functions"),
    "values at the edges of their types": (times_and_decimals, ""),
}


def left_behind(spark: SparkSession) -> list[Path]:
    """What there is of leaves' files."""
    local = Path(spark.sparkContext.getConf().get("spark.local.dir") or "")
    return [path for path in local.glob("wallaby-leaves-*/**/*") if path.is_file()]


@pytest.mark.parametrize("case", CASES)
def test_spark_runs_the_leaf_and_the_engine_the_rest(
    engine: Engine, spark: SparkSession, tmp_path: Path, case: str
) -> None:
    make, reason = CASES[case]
    df = make(spark, tmp_path)
    try:
        reasons = engine.fallback_reasons(df)
        assert any(reason in why for why in reasons), reasons
        explained = engine.explain(df)
        assert "Spark leaf 0" in explained
        assert reason in explained
        result = engine.run(df)
        assert isinstance(result, LeafResult)
        require_same(result.arrow(), df.toArrow())
        assert result.native
        assert result.stats.native is True
        assert result.stats.leaves == (2 if case == "two leaves" else 1)
        until(lambda: not left_behind(spark))
    finally:
        spark.catalog.clearCache()


def test_what_is_asked_of_a_cached_table_is_answered_where_it_is(engine: Engine, spark: SparkSession) -> None:
    kept = spark.table("orders").cache()
    by_date = Window.partitionBy("o_orderdate").orderBy("o_orderkey")
    try:
        for df in (
            kept.groupBy().count(),
            kept.where("o_orderkey > 5").groupBy("o_orderpriority").count().orderBy("count"),
            kept.select("o_custkey").distinct(),
            kept.orderBy("o_comment"),
            kept.orderBy("o_comment").limit(1000).groupBy("o_orderpriority").count(),
            kept.withColumn("n", F.row_number().over(by_date)),
            kept.select(backwards("o_comment").alias("b")).orderBy("b"),
            kept.join(spark.table("nation"), F.col("o_custkey") == F.col("n_nationkey")),
        ):
            assert "in memory" in engine.fallback_reasons(df)[-1]
        larger = kept.join(spark.table("lineitem"), F.col("o_orderkey") == F.col("l_orderkey"))
        assert "in memory" not in engine.fallback_reasons(larger)[-1]
    finally:
        spark.catalog.clearCache()


def test_a_leaf_asks_spark_for_what_the_query_needs_only(engine: Engine, spark: SparkSession) -> None:
    df = spark.table("lineitem").select("*", backwards("l_comment").alias("b")).groupBy("b").count()
    planned = engine._plan(df)
    assert planned.relation is not None
    (scan,) = wallaby.plan.leaf.scans_in(planned.relation)
    assert [column.name for column in scan.columns] == ["b"]


def test_too_little_work_is_left_to_spark_as_a_whole(
    engine: Engine, spark: SparkSession, setting: Callable[[str, str], None]
) -> None:
    only_a_function = spark.table("nation").select(backwards("n_name"))
    assert "no join, aggregation or sort" in engine.fallback_reasons(only_a_function)[-1]
    assert not engine.run(only_a_function).native
    setting("leaf.minimum", "1m")
    assert "spark.wallaby.leaf.minimum" in engine.fallback_reasons(plain_function(spark, Path()))[-1]
    large = spark.table("lineitem").select(backwards("l_comment").alias("b")).groupBy("b").count()
    assert "rows to hand over: saves" in engine.fallback_reasons(large)[-1]
    setting("leaf.minimum", "0")
    assert engine.run(large).native


def test_enabled_sessions_have_leaves_too(engine: Engine, spark: SparkSession) -> None:
    df = plain_function(spark, Path())
    expected = {tuple(row) for row in df.collect()}
    wallaby.enable(spark)
    try:
        assert {tuple(row) for row in df.collect()} == expected
        assert set(wallaby.enable(spark).to_pandas(df)["b"]) == {b for b, _ in expected}
        assert df.count() == len(expected)
    finally:
        wallaby.disable(spark)


def test_a_worker_killed_while_the_leaf_is_read_costs_time_only(engine: Engine, spark: SparkSession) -> None:
    wait_for(engine, 2, set())
    names = spark.table("nation").select("n_nationkey", backwards("n_name").alias("name")).repartition(5)
    df = spark.table("short").join(names, F.col("k") == F.col("n_nationkey")).groupBy("name").count()
    expected = df.toArrow()
    result = engine.run(df)
    assert isinstance(result, LeafResult)
    decided = result.decided()
    victim = engine.workers()[0].id
    kill_while_it_runs(engine, decided)
    require_same(decided.arrow(), expected)
    assert decided.stats.recoveries >= 1
    until(lambda: not left_behind(spark))
    wait_for(engine, 2, {victim})


def test_an_error_in_a_python_function_is_sparks_own(engine: Engine, spark: SparkSession) -> None:
    failing = F.udf(lambda number: [1, 2, 3][number], "int")
    df = spark.table("nation").groupBy(failing("n_nationkey").alias("k")).count()
    with pytest.raises(PythonException, match="IndexError: list index out of range"):
        engine.collect(df)
    assert not left_behind(spark)


def test_an_error_in_the_leafs_data_is_sparks_own(engine: Engine, spark: SparkSession) -> None:
    df = spark.table("nation").select(
        (100 / F.size(F.split("n_name", "A+")) - F.lit(0)).alias("x"), "n_regionkey"
    )
    failing = (
        df.select(F.expr("1 / (n_regionkey - 2)").alias("k"), "x").where("x > 0").groupBy("x").agg(F.max("k"))
    )
    with pytest.raises(ArithmeticException) as error:
        engine.collect(failing)
    assert error.value.getCondition() == "DIVIDE_BY_ZERO"
    assert not left_behind(spark)


def slow_leaf(spark: SparkSession) -> DataFrame:
    slow = F.expr("java_method('java.lang.Thread', 'sleep', 60000L + id)").alias("x")
    return spark.range(4).select(slow).groupBy("x").count()


def test_cancelling_ends_the_job_of_a_leaf(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(slow_leaf(spark))
    assert isinstance(result, LeafResult)
    tracker = spark.sparkContext.statusTracker()
    until(lambda: bool(set(tracker.getJobIdsForGroup(result._run._group)) & set(tracker.getActiveJobsIds())))
    result.cancel()
    with pytest.raises(QueryCancelledError):
        result.rows()
    until(lambda: not set(tracker.getJobIdsForGroup(result._run._group)) & set(tracker.getActiveJobsIds()))
    until(lambda: not left_behind(spark))


def test_a_query_cancelled_before_its_leaf_has_begun_never_begins(
    engine: Engine, spark: SparkSession
) -> None:
    result = engine.run(slow_leaf(spark))
    result.cancel()
    with pytest.raises(QueryCancelledError):
        result.rows()


def test_ctrl_c_ends_the_leaf_and_no_worker(engine: Engine, spark: SparkSession) -> None:
    before = engine.workers()
    result = engine.run(slow_leaf(spark))
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        result.arrow()
    until(lambda: nothing_is_left_of_queries(engine))
    assert [worker.pid for worker in engine.workers()] == [worker.pid for worker in before]


def test_the_time_limit_counts_the_leaf(
    engine: Engine, spark: SparkSession, setting: Callable[[str, str], None]
) -> None:
    setting("timeout", "1s")
    with pytest.raises(QueryTimeoutError, match=r"spark\.wallaby\.timeout"):
        engine.collect(slow_leaf(spark))


def test_text_that_is_not_utf8_goes_to_spark_as_a_whole(engine: Engine, spark: SparkSession) -> None:
    df = spark.range(3).select(F.expr("cast(X'ff61' as string)").alias("s")).groupBy("s").count()
    result = engine.run(df.selectExpr("hex(s) as h", "count"))
    assert [tuple(row) for row in result.rows()] == [("FF61", 3)]
    assert not result.native


def test_a_part_that_spark_does_not_plan_by_itself_leaves_the_query_to_spark(
    engine: Engine, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = plain_function(spark, tmp_path)
    planned = engine._plan(df)
    lost = tuple(replace(leaf, path=(0, 0, 0, 0, 0, 7)) for leaf in planned.leaves)
    monkeypatch.setattr(engine._parts.site.planner, "plan", lambda *_: replace(planned, leaves=lost))
    result = engine.run(df)
    require_same(result.arrow(), df.toArrow())
    assert not result.native


def test_a_directory_that_cannot_be_written_leaves_the_query_to_spark(
    engine: Engine, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "leaves"
    settings = replace(engine.settings, leaf_dir=str(there))
    monkeypatch.setattr(
        engine._parts.runner, "leaf_directory", LeafDirectory(Cluster(spark.sparkContext), settings)
    )
    df = plain_function(spark, tmp_path)
    result = engine.run(df)
    require_same(result.arrow(), df.toArrow())
    assert result.native
    assert there.is_dir()
    engine._parts.runner.leaf_directory.close()
    there.rmdir()
    there.write_text("a file")
    result = engine.run(df)
    require_same(result.arrow(), df.toArrow())
    assert not result.native


def test_several_hosts_without_a_shared_directory_have_no_leaves(
    engine: Engine, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = plain_function(spark, tmp_path)
    cluster = Cluster(spark.sparkContext)
    cluster._local, cluster.master = None, "spark://elsewhere:7077"
    monkeypatch.setattr(engine._parts.runner, "leaf_directory", LeafDirectory(cluster, engine.settings))
    assert "set spark.wallaby.leaf.dir" in engine.fallback_reasons(df)[-1]
    assert not engine.run(df).native
    settings = replace(engine.settings, leaf_dir=str(tmp_path))
    monkeypatch.setattr(engine._parts.runner, "leaf_directory", LeafDirectory(cluster, settings))
    result = engine.run(df)
    assert result.arrow().num_rows == 25
    assert result.native
    engine._parts.runner.leaf_directory.close()


def test_what_a_killed_driver_left_is_swept(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    dead = tmp_path / f"{LEAF_PREFIX}{socket.gethostname()}-4194304-1-abc"
    dead.mkdir()
    (dead / "part-00000.parquet").write_text("rows")
    LeafDirectory(Cluster(spark.sparkContext), replace(engine.settings, leaf_dir=str(tmp_path)))
    assert not dead.exists()


def test_a_python_data_source_is_a_leaf(engine: Engine, spark: SparkSession) -> None:
    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(0), InputPartition(1)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int, str]]:
            return ((number, f"{partition.value}") for number in range(5))

    class Numbers(DataSource):
        @classmethod
        def name(cls) -> str:
            return "numbers"

        def schema(self) -> str:
            return "n int, word string"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Numbers)
    df = spark.read.format("numbers").load().groupBy("word").agg(F.sum("n"))
    result: Result = engine.run(df)
    assert isinstance(result, LeafResult)
    require_same(result.arrow(), df.toArrow())


def test_closing_ends_leaves(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(slow_leaf(spark))
    engine.close()
    with pytest.raises(QueryCancelledError):
        result.rows()
    local = Path(spark.sparkContext.getConf().get("spark.local.dir") or "")
    assert not list(local.glob("wallaby-leaves-*"))
