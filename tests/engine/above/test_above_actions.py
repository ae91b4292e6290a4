"""Spark above: checkpoints, tables, caches, machine learning, streams and the like, each with a part that runs here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.ml import Pipeline
from pyspark.ml.feature import StringIndexer, VectorAssembler
from pyspark.ml.regression import LinearRegression
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage
from pyspark.sql.functions import count, expr, lit, udf
from pyspark.sql.types import StructType
from tests.engine.above.test_above import QUERY, rows
from tests.engine.conftest import Counted, kept_after_collecting, on_spark
from tests.engine.test_ends import until

from wallaby.engine import Engine

Query = Callable[[], DataFrame]
NATIONS = 25
GROUPS = 125


@pytest.fixture
def query(spark: SparkSession) -> Callable[[], DataFrame]:
    """The query as a new DataFrame each time: one that has acted itself keeps its rows as long as it lives."""
    return lambda: spark.sql(QUERY)


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """The name of a table that goes with the test."""
    yield "acted"
    spark.sql("drop table if exists acted")


def of_spark(spark: SparkSession, name: str) -> list[Any]:
    """The rows of a table, as Spark alone reads them."""
    found: list[Any] = on_spark(spark, lambda: rows(spark.table(name)))
    return found


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("reliable", [True, False])
def test_a_checkpoint_has_the_rows_of_its_query(
    eager: bool, reliable: bool, counted: Counted, spark: SparkSession, query: Query, tmp_path: Path
) -> None:
    spark.sparkContext.setCheckpointDir(str(tmp_path))
    made = query().checkpoint(eager) if reliable else query().localCheckpoint(eager)
    assert counted.runs == int(eager)
    assert rows(made) == on_spark(spark, lambda: rows(query()))
    assert made.count() == GROUPS
    assert counted.runs == 1, "what was made once is read again"


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_partitions_are_overwritten_as_spark_does_it(
    mode: str, counted: Counted, spark: SparkSession, query: Query, table: str
) -> None:
    spark.sql(
        f"create table {table} (n_name string, n bigint, seg string) using parquet partitioned by (seg)"
    )
    query().select("n_name", "n", "seg").write.insertInto(table)
    some = query().where("seg = 'BUILDING'").selectExpr("n_name", "n + 1 as n", "seg")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", mode)
    try:
        some.write.insertInto(table, overwrite=True)
        assert counted.runs == 2
        left = GROUPS if mode == "dynamic" else NATIONS
        assert len(of_spark(spark, table)) == left
        some.createOrReplaceTempView("some")
        spark.sql(f"insert overwrite {table} partition (seg = 'BUILDING') select n_name, n from some")
        assert counted.runs == 3
        expected = on_spark(spark, lambda: sorted(row.n for row in some.collect()))
        found = [row for row in of_spark(spark, table) if row.seg == "BUILDING"]
        assert sorted(row.n for row in found) == expected
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
        spark.catalog.dropTempView("some")


def test_a_directory_is_overwritten_by_sql(counted: Counted, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"insert overwrite directory '{tmp_path / 'out'}' using json {QUERY}")
    assert counted.runs == 1
    assert on_spark(spark, lambda: spark.read.json(str(tmp_path / "out")).count()) == GROUPS


@pytest.mark.parametrize("lazy", ["", "lazy"])
def test_a_table_is_cached_until_it_is_uncached(
    lazy: str, above: Engine, counted: Counted, spark: SparkSession, query: Query
) -> None:
    spark.sql(f"cache {lazy} table held options ('storageLevel' 'DISK_ONLY') as {QUERY}")
    assert counted.runs == (0 if lazy else 1)
    assert of_spark(spark, "held") == on_spark(spark, lambda: rows(query()))
    spark.sql("uncache table held")
    spark.catalog.dropTempView("held")
    until(lambda: not kept_after_collecting(above))


def test_tables_are_made_by_the_newer_writer(
    counted: Counted, spark: SparkSession, query: Query, table: str
) -> None:
    """Of Spark's own tables `writeTo` only makes new ones; `append` and `overwrite` are for other catalogs."""
    query().writeTo(table).using("parquet").create()
    assert counted.runs == 1
    assert of_spark(spark, table) == on_spark(spark, lambda: rows(query()))
    for act in (query().writeTo(table).append, query().writeTo(table).overwritePartitions):
        with pytest.raises(PySparkException) as ours:
            act()
        with pytest.raises(PySparkException) as sparks:
            on_spark(spark, act)
        assert ours.value.getCondition() == sparks.value.getCondition()


def test_merge_is_refused_as_spark_refuses_it(above: Engine, spark: SparkSession, table: str) -> None:
    """No catalog that comes with Spark has tables that rows can be merged into."""
    spark.sql(f"create table {table} (n_name string, n bigint) using parquet")
    merge = (
        f"merge into {table} t using ({QUERY}) s on t.n_name = s.n_name "
        "when not matched then insert (n_name, n) values (s.n_name, s.n)"
    )
    with pytest.raises(PySparkException) as ours:
        spark.sql(merge)
    with pytest.raises(PySparkException) as sparks:
        on_spark(spark, lambda: spark.sql(merge))
    assert ours.value.getCondition() == sparks.value.getCondition()


class Lines(DataSource):
    """A data source of Python's, which writes each row as a line."""

    @classmethod
    def name(cls) -> str:
        return "lines"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return LineWriter(self.options["path"])


class LineWriter(DataSourceWriter):
    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        lines = [f"{row['n_name']}/{row['seg']}/{row['n']}\n" for row in iterator]
        Path(f"{self._path}-{context.partitionId()}").write_text("".join(lines), encoding="utf-8")
        return WriterCommitMessage()


def test_data_sources_of_the_newer_kind_take_rows_too(
    counted: Counted, spark: SparkSession, query: Query, tmp_path: Path
) -> None:
    query().write.format("noop").mode("overwrite").save()
    assert counted.runs == 1
    spark.dataSource.register(Lines)
    query().write.format("lines").mode("append").save(str(tmp_path / "lines"))
    assert counted.runs == 2
    found = sorted(line for path in tmp_path.glob("lines-*") for line in path.read_text().splitlines())
    assert found == on_spark(spark, lambda: sorted(f"{r.n_name}/{r.seg}/{r.n}" for r in query().collect()))


def test_a_model_is_fitted_to_the_rows_of_a_join(counted: Counted, spark: SparkSession) -> None:
    joined = spark.sql(
        "select c_mktsegment, double(c_acctbal) b, double(o_totalprice) y from orders join customer "
        "on o_custkey = c_custkey"
    )
    steps: list[Any] = [
        StringIndexer(inputCol="c_mktsegment", outputCol="i"),
        VectorAssembler(inputCols=["i", "b"], outputCol="x"),
        LinearRegression(featuresCol="x", labelCol="y", regParam=0.1, solver="normal"),
    ]

    def fitted() -> tuple[list[str], list[float]]:
        model: Any = Pipeline(stages=steps).fit(joined)
        labels, line = model.stages[0].labels, model.stages[2]
        return labels, [*line.coefficients, line.intercept, model.transform(joined).count()]

    labels, numbers = fitted()
    assert counted.queries >= 2
    ran = counted.queries
    assert on_spark(spark, fitted) == (labels, pytest.approx(numbers, rel=1e-9))
    assert counted.queries == ran


def test_a_notebook_shows_a_query_by_its_name(counted: Counted, spark: SparkSession, query: Query) -> None:
    def shown() -> tuple[str, str | None]:
        ordered = query().orderBy("n_name", "seg")
        return repr(ordered), ordered._repr_html_()

    spark.conf.set("spark.sql.repl.eagerEval.enabled", "true")
    try:
        ours = shown()
        assert counted.runs == 2
        assert ours == on_spark(spark, shown)
        assert "ALGERIA" in ours[0]
    finally:
        spark.conf.unset("spark.sql.repl.eagerEval.enabled")


@pytest.mark.parametrize("act", ["localCheckpoint", "persist", "toLocalIterator"])
def test_a_limit_at_the_top_of_a_query_runs_here_too(act: str, counted: Counted, query: Query) -> None:
    """Spark plans it together with the root of the query, without asking for the limit alone."""
    limited = query().orderBy("n_name", "seg").limit(3)
    made = getattr(limited, act)()
    found = list(made if act == "toLocalIterator" else made.toLocalIterator())
    assert [row.seg for row in found] == ["AUTOMOBILE", "BUILDING", "FURNITURE"]
    assert counted.runs == 1
    limited.unpersist(blocking=True)


def test_a_limit_above_a_sort_takes_what_is_below_the_sort(counted: Counted, query: Query) -> None:
    """Spark plans both as one node, so that nothing would read a part that begins with the sort."""
    named = query().orderBy("n_name", "seg").select(udf(lambda name: name)("n_name").alias("u"), "seg")
    assert [row.seg for row in named.limit(3).collect()] == ["AUTOMOBILE", "BUILDING", "FURNITURE"]
    assert counted.runs == 1


def test_a_plan_that_spark_adapts_is_offered_once(
    above: Engine, counted: Counted, spark: SparkSession, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = above.subplans._chosen
    offered: list[Any] = []

    def choosing(plan: Any, facts: Any) -> Any:
        offered.append(plan)
        return choose(plan, facts)

    monkeypatch.setattr(above.subplans, "_chosen", choosing)
    named = query().select(udf(lambda name: name)("n_name").alias("u"), "n")
    sums = named.groupBy("u").sum("n").join(named.groupBy("u").count(), "u").orderBy("u")
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    assert len(list(sums.toLocalIterator())) == NATIONS
    assert counted.runs >= 1
    assert len(offered) == 1


def test_a_batch_of_a_stream_brings_its_rows_straight_to_the_driver(
    counted: Counted, spark: SparkSession, tmp_path: Path
) -> None:
    spark.table("orders").write.parquet(str(tmp_path / "in"))
    found: list[Any] = []
    queries: list[int] = []

    def each(batch: DataFrame, _: int) -> None:
        found.extend(batch.groupBy("o_orderpriority").count().collect())
        queries.append(counted.queries)

    stream = spark.readStream.schema(spark.table("orders").schema).parquet(str(tmp_path / "in"))
    started = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "state"))
    query = started.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert queries[-1] >= 1
    expected = on_spark(spark, lambda: rows(spark.table("orders").groupBy("o_orderpriority").count()))
    assert sorted(found, key=str) == expected


def test_observed_metrics_are_told(
    counted: Counted, spark: SparkSession, query: Query, tmp_path: Path
) -> None:
    seen = Observation("groups")
    query().observe(seen, count(lit(1)).alias("n"), expr("max(seg) as seg")).write.parquet(
        str(tmp_path / "out")
    )
    assert counted.runs == 1
    assert seen.get == {"n": GROUPS, "seg": "MACHINERY"}
    again = Observation("collected")
    query().observe(again, count(lit(1)).alias("n")).collect()
    assert again.get == {"n": GROUPS}


@pytest.mark.parametrize(
    "act",
    [
        lambda df: df.approxQuantile("n", [0.25, 0.5], 0.0),
        lambda df: df.crosstab("seg", "n_name").orderBy("seg_n_name").collect(),
        lambda df: sorted(df.freqItems(["seg"], 0.1).collect()[0][0]),
        lambda df: round(df.stat.corr("n", "total") + df.stat.cov("n", "n"), 6),
        lambda df: [part.count() for part in df.randomSplit([1.0, 1.0], 7)],
        lambda df: df.sampleBy("seg", {"BUILDING": 1.0}, 7).count(),
        lambda df: df.toPandas().to_dict(),
        lambda df: df.foreach(lambda row: None),
        lambda df: df.pandas_api().describe().loc["count"].tolist(),
        lambda df: df.drop("latest").groupBy("n_name").pivot("seg").sum("n").orderBy("n_name").collect(),
        lambda df: df.dropDuplicates(["seg"]).count(),
        lambda df: df.replace("CHINA", "china").orderBy("n_name", "seg").collect(),
    ],
    ids=[
        "approxQuantile",
        "crosstab",
        "freqItems",
        "corr and cov",
        "randomSplit",
        "sampleBy",
        "toPandas",
        "foreach",
        "pandas on Spark",
        "pivot",
        "dropDuplicates",
        "replace",
    ],
)
@pytest.mark.filterwarnings("ignore:`to_pandas` loads all data", "ignore:If `index_col` is not")
def test_other_actions_give_what_spark_gives(
    act: Callable[[DataFrame], Any], counted: Counted, spark: SparkSession, query: Query
) -> None:
    ordered = query().orderBy("n_name", "seg")
    ours = act(ordered)
    assert counted.queries >= 1
    ran = counted.queries
    assert on_spark(spark, lambda: act(ordered)) == ours
    assert counted.queries == ran


def test_an_error_of_a_python_function_above_is_sparks_own(
    counted: Counted, spark: SparkSession, query: Query, tmp_path: Path
) -> None:
    def fail(_: Any) -> None:
        raise ValueError("a bad row")

    with pytest.raises((PySparkException, Py4JJavaError), match="a bad row"):
        query().rdd.foreach(fail)
    assert counted.runs == 1
