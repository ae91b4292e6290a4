"""Partitioned tables: Spark's types and values; what conditions and joins exclude is not read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engine.outcome import natively, outcome

from wallaby.engine import Engine
from wallaby.errors import CorruptFileError
from wallaby.plan.physical import ScanFragment
from wallaby_lab.compare import require_same

#: Texts that are escaped in directory names, NULL, and an empty text, which Spark writes as NULL.
WORDS = "array('a/b=1', 'ü %', ' x ', '2024-01-01', null, 'NULL', '', 'a\\'b\"c', '10')"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("partitioned")
    rows = spark.range(300).selectExpr(
        "id v",
        "cast(id % 5 as int) k",
        f"{WORDS}[cast(id % 9 as int)] word",
        "date'2023-12-31' + cast(id % 2 as int) day",
        "case when id % 4 > 0 then cast(id % 4 as decimal(6,2)) / 10 end price",
        "timestamp'2024-03-31 01:30:00.5' + make_interval(0, 0, 0, 0, cast(id % 3 as int)) at",
        "id % 2 = 0 even",
    )
    spark.sql("create database parts")
    rows.coalesce(1).write.partitionBy("k").saveAsTable("parts.by_k")
    rows.coalesce(1).write.partitionBy("word", "day").saveAsTable("parts.by_word_and_day")
    rows.coalesce(1).write.partitionBy("price", "at", "even").saveAsTable("parts.by_odd_types")
    rows.where("k < 3").coalesce(1).write.partitionBy("k", "word").parquet(str(root / "inferred"))
    rows.coalesce(1).write.bucketBy(3, "v").sortBy("v").saveAsTable("parts.bucketed")
    spark.read.parquet(str(root / "inferred")).createOrReplaceTempView("inferred")
    yield root
    spark.sql("drop database parts cascade")


def compare(engine: Engine, df: DataFrame) -> None:
    require_same(engine.to_arrow(df), df.toArrow())


def compare_native(engine: Engine, df: DataFrame) -> None:
    require_same(natively(engine, df).arrow(), df.toArrow())


QUERIES = [
    "select * from parts.by_k",
    "select * from parts.by_word_and_day",
    "select * from parts.by_odd_types",
    "select * from inferred",
    "select * from parts.bucketed where v > 7",
    "select k, count(*) from parts.by_k group by k",
    "select distinct word, day from parts.by_word_and_day",
    "select max(k) from parts.by_k",
    "select count(*) from parts.by_word_and_day",
    "select word, count(*), sum(v) from parts.by_word_and_day where word is null or word like '%a%' group by word",
    "select day, count(*) from parts.by_word_and_day where year(day) = 2024 and v < 100 group by day",
    "select price, at, even, count(*) from parts.by_odd_types where price > 0.15 and not even group by 1, 2, 3",
    "select even, sum(price) from parts.by_odd_types where at > timestamp'2024-03-31 02:00:00' group by even",
    "select count(*), sum(v) from inferred where k = 100",
    "select k, word from inferred where k in (1, 2, 99) and word = 'a/b=1'",
    "select a.k, count(*) from parts.by_k a join inferred b on a.k = b.k and a.v = b.v group by a.k",
    "select word, count(*) over (partition by word) n from inferred where k = 2",
    "select count(*) from parts.by_k where k = (select min(n_regionkey) from nation)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_partitioned_table_is_read_natively(
    engine: Engine, spark: SparkSession, tables: Path, query: str
) -> None:
    df = spark.sql(query)
    compare_native(engine, df)


@pytest.mark.parametrize("kind", ["string", "tinyint", "bigint", "double", "decimal(9,0)"])
def test_partition_columns_have_the_type_that_the_reader_gives(
    engine: Engine, spark: SparkSession, tables: Path, kind: str
) -> None:
    df = spark.read.schema(f"v bigint, k {kind}").parquet(str(tables / "inferred")).groupBy("k").count()
    compare_native(engine, df)


def test_decimals_that_spark_reads_with_another_scale_are_left_to_it(
    engine: Engine, spark: SparkSession, tables: Path
) -> None:
    df = spark.read.schema("v bigint, k decimal(5,1)").parquet(str(tables / "inferred")).groupBy("k").count()
    assert any("not a decimal(5,1)" in reason for reason in engine.fallback_reasons(df))
    compare(engine, df)


def test_the_directory_wins_over_a_column_of_the_file(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    for number in (1, 2):
        (tmp_path / f"k={number}").mkdir()
        pq.write_table(pa.table({"k": [98, 99], "v": [number, 3]}), tmp_path / f"k={number}" / "a.parquet")
    table = spark.read.parquet(str(tmp_path))
    for df in (table, table.where("k = 1"), table.where("k = 99")):
        compare_native(engine, df)


def splits(engine: Engine, df: DataFrame) -> int:
    physical = engine._plan(df).physical
    assert physical is not None
    return sum(len(each.splits) for each in physical.fragments if isinstance(each, ScanFragment))


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("k = 3", 1),
        ("k >= 3 and v < 50", 2),
        ("k % 2 = 0 and word = 'x'", 3),
        ("k is null", 0),
        ("k = 3 or v = 1", 5),
        ("k < 100", 5),
    ],
)
def test_files_that_a_condition_excludes_are_not_part_of_the_plan(
    engine: Engine, spark: SparkSession, tables: Path, condition: str, left: int
) -> None:
    df = spark.table("parts.by_k").where(condition).groupBy("word").count()
    assert splits(engine, df) == left
    compare(engine, df)


def spoil(directory: Path, *spared: str) -> None:
    """Garbage in place of the data of all files but some, with neither size, time nor footer changed."""
    for path in directory.glob("*/*.parquet"):
        if path.parent.name in spared:
            continue
        content, times = path.read_bytes(), path.stat()
        end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        path.write_bytes(content[:4] + b"\xa5" * (end - 4) + content[end:])
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def facts(spark: SparkSession, tmp_path: Path) -> Path:
    """Twenty partitions, of which only two can be read."""
    numbers = range(20)
    for directory in (
        f"by_{key}={prefix}{n}" for key, prefix in (("k/k", ""), ("day/day", "day ")) for n in numbers
    ):
        (tmp_path / directory).mkdir(parents=True)
        pq.write_table(pa.table({"v": list(range(100))}), tmp_path / directory / "a.parquet")
    (tmp_path / "names").mkdir()
    names = {"day": [f"day {n}" for n in numbers], "name": [f"n{n}" for n in numbers]}
    pq.write_table(pa.table({"k": pa.array(numbers, pa.int32()), **names}), tmp_path / "names" / "a.parquet")
    spoil(tmp_path / "by_k", "k=3", "k=4")
    spoil(tmp_path / "by_day", "day=day 3", "day=day 4")
    for name in ("by_k", "by_day", "names"):
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    return tmp_path


def optimized(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().optimizedPlan().toString()).lower()


@pytest.mark.parametrize("key", ["k", "day"])
def test_a_join_with_few_keys_reads_only_their_partitions(
    engine: Engine, spark: SparkSession, facts: Path, key: str
) -> None:
    """Spark prunes by a subquery of its own, which is not computed here: the keys that come beside the reads do it."""
    query = f"select f.{key}, count(*), sum(v) from by_{key} f join names n on f.{key} = n.{key}"
    few = spark.sql(f"{query} where name in ('n3', 'n4') group by f.{key}")
    assert "dynamicpruning" in optimized(few)
    assert engine.fallback_reasons(few) == []
    assert splits(engine, few) == 21
    compare(engine, few)
    with pytest.raises(CorruptFileError):
        engine.collect(spark.sql(f"{query} group by f.{key}"))


def test_bloom_filters_that_catalyst_injects_are_not_needed(
    engine: Engine, spark: SparkSession, tables: Path
) -> None:
    settings = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "1",
        "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false",
    }
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        for query in (
            "select count(*), sum(l_quantity) from lineitem join part on l_partkey = p_partkey where p_size = 7",
            "select count(*) from orders join lineitem on o_orderkey = l_orderkey where o_totalprice < 2000",
        ):
            df = spark.sql(query)
            assert "might_contain" in optimized(df)
            compare_native(engine, df)
    finally:
        for name in settings:
            spark.conf.unset(name)


def test_a_leaf_may_have_pruning_subqueries_in_it(engine: Engine, spark: SparkSession, facts: Path) -> None:
    rows = spark.range(100).selectExpr("id v", "cast(id % 5 as int) k")
    rows.write.partitionBy("k").json(str(facts / "json"))
    # An option that is not known here leaves the table to Spark.
    lines = spark.read.schema("v bigint, k int").option("lineSep", "\n").json(str(facts / "json"))
    lines.createOrReplaceTempView("lines")
    df = spark.sql("select l.k, sum(v) from lines l join names n on l.k = n.k where name = 'n3' group by l.k")
    assert "dynamicpruning" in optimized(df)
    assert engine._plan(df).leaves
    compare(engine, df)


def test_columns_that_came_later_are_null_in_older_files(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("create table grown (a int, p string) using parquet partitioned by (p)")
    try:
        spark.sql("insert into grown partition (p = 'x') values (1), (2)")
        spark.sql("alter table grown add columns (z bigint)")
        spark.sql("insert into grown partition (p = 'y') values (3, 4), (5, null)")
        for query in (
            "select * from grown",
            "select p, count(z), count(*) from grown where z is not null group by p",
            "select p, count(*) from grown where z is null group by p",
        ):
            df = spark.sql(query)
            compare_native(engine, df)
        spark.sql("alter table grown add columns (w int default 7)")
        defaults = spark.sql("select p, sum(w) from grown group by p")
        assert outcome(lambda: engine.collect(defaults)) == outcome(defaults.collect)
    finally:
        spark.sql("drop table grown")
