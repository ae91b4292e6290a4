"""Writes whose files the TaskManagers write: as Spark writes them, once, whatever is lost on the way."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, ArithmeticException
from pyspark.sql import SparkSession
from tests.engine.chaos import Chaos, require_all_struck
from tests.engine.conftest import on_spark
from tests.engine.losses.test_policies import settings_of
from tests.engine.test_ends import nothing_is_left_of_queries, until

import wallaby
from wallaby.above import writes
from wallaby.engine import Engine
from wallaby.errors import QueryTimeoutError

#: Rows of every channel, enough of them for several small files.
QUERY = """
    select o_orderkey k, o_orderpriority p, o_totalprice v, c_name n
    from orders join customer on o_custkey = c_custkey
"""
#: Some tasks for each channel of the query, instead of hundreds.
LARGER = {"task_target": 20_000}
TYPES = """
    select id, cast(id as tinyint) tiny, cast(id as smallint) small, cast(id as int) whole, cast(id as float) single,
      id / 3e0 double, cast(id as decimal(5, 2)) d5, cast(id as decimal(18, 4)) d18, cast(id as decimal(38, 10)) d38,
      nullif(concat('é', id), 'é3') text, cast(concat('b', id) as binary) bytes, id % 2 = 0 flag,
      date_add(date'1500-01-01', cast(id * 40000 as int)) day, timestamp_micros(id * 1000000007 - 5) moment,
      timestamp'1500-01-01 01:02:03.456789' first, cast(timestamp_micros(id) as timestamp_ntz) local,
      make_dt_interval(id, 1, 2, 3.5) time, array(id, null, 7) numbers,
      map(concat('k', id), id) entries, named_struct('x', id, 'Y z', array('a')) pair,
      array(named_struct('m', map(1, array(id)))) nested, if(id = 4, null, array(id)) maybe
    from range(20)
"""


def enabled(engine: Engine, spark: SparkSession) -> Iterator[Engine]:
    """What the fixture `above` does, for another engine."""
    wallaby.enable(spark)
    spark.conf.set("spark.wallaby.below", "always")
    yield engine
    spark.conf.unset("spark.wallaby.below")
    wallaby.disable(spark)
    until(lambda: nothing_is_left_of_queries(engine))


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files the TaskManagers wrote in each write."""
    found: list[Any] = []
    finished = writes.finished

    def counted(*arguments: Any, **named: Any) -> Any:
        made = finished(*arguments, **named)
        found.append(len(made))
        return made

    monkeypatch.setattr("wallaby.above.writing.finished", counted)
    return found


def read(spark: SparkSession, path: Path | str, *columns: str) -> list[str]:
    """The rows of a table as text: PySpark cannot collect every type."""
    rows = spark.read.parquet(str(path)).select(*columns or ("*",)).selectExpr("to_json(struct(*)) j")
    return on_spark(spark, lambda: sorted(row.j for row in rows.collect()))  # type: ignore[no-any-return]


def listed(path: Path) -> list[Path]:
    """Every file below a folder, without Hadoop's checksums of its own files."""
    found = (Path(folder) / name for folder, _, names in os.walk(path) for name in names)
    return sorted(file for file in found if not file.name.endswith(".crc"))


def is_clean(path: Path) -> bool:
    """Has a table nothing but data files and the sign of success? Staging folders begin with a dot."""
    return all(file.suffix == ".parquet" or file.name == "_SUCCESS" for file in listed(path))


def test_files_are_as_spark_writes_them(
    above: Engine, files: list[int], spark: SparkSession, tmp_path: Path
) -> None:
    on_spark(spark, lambda: spark.sql(TYPES).write.parquet(str(tmp_path / "in")))
    rows = spark.read.parquet(str(tmp_path / "in"))
    every = (
        rows.alias("a")
        .join(spark.table("region"), rows.id >= 0)
        .groupBy("id")
        .count()
        .join(rows, "id")
        .drop("count")
    )
    for form in ("TIMESTAMP_MICROS", "INT96"):
        spark.conf.set("spark.sql.parquet.outputTimestampType", form)
        df = every if form == "TIMESTAMP_MICROS" else every.drop("local")
        try:
            df.write.parquet(str(tmp_path / form))
            on_spark(spark, partial(df.write.parquet, str(tmp_path / f"spark-{form}")))
        finally:
            spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        ours, sparks = tmp_path / form, tmp_path / f"spark-{form}"
        assert read(spark, ours) == read(spark, sparks)
        assert spark.read.parquet(str(ours)).schema == spark.read.parquet(str(sparks)).schema
        mine, theirs = (pq.ParquetFile(listed(path)[-1]) for path in (ours, sparks))
        assert str(mine.schema).splitlines()[2:] == str(theirs.schema).splitlines()[2:]
        assert mine.metadata.metadata == theirs.metadata.metadata
        kind = mine.metadata.row_group(0).column(0)
        assert kind.compression == theirs.metadata.row_group(0).column(0).compression == "SNAPPY"
    query = "select count(*), sum(id), max(text) from read_parquet(?)"
    data = [str(file) for file in listed(tmp_path / "INT96") if file.suffix == ".parquet"]
    assert duckdb.connect().execute(query, [data]).fetchone() == (20, 190, "é9")
    assert len(files) == 2


def test_modes_mean_what_they_mean_on_spark(
    above: Engine, files: list[int], spark: SparkSession, tmp_path: Path
) -> None:
    df = spark.sql(QUERY)
    path = tmp_path / "table"
    df.write.parquet(str(path))
    once = read(spark, path)
    assert len(once) == 30000
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        df.write.parquet(str(path))
    df.write.mode("ignore").parquet(str(path))
    assert read(spark, path) == once
    df.write.mode("append").parquet(str(path))
    assert read(spark, path) == sorted(once * 2)
    df.where("k < 100").write.mode("overwrite").parquet(str(path))
    few = read(spark, path)
    assert 0 < len(few) < 100
    df.where("k < 0").write.mode("overwrite").parquet(str(path))
    assert spark.read.parquet(str(path)).columns == df.columns
    assert read(spark, path) == []
    assert is_clean(path)
    assert len(files) == 4


ODD = ["plain", "a/b", "x=y", "50%", "é ü", "q'uote\"", "tab\there", "[1]^{2}", "#:*?\\", "", None]


def test_partitions_have_sparks_names(
    above: Engine, files: list[int], spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.table(
        {
            "id": pa.array(range(len(ODD) * 3)),
            "odd": pa.array(ODD * 3),
            "day": pa.array([i % 2 or None for i in range(len(ODD) * 3)], pa.int32()).cast(pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    spark.read.parquet(str(tmp_path / "in.parquet")).createOrReplaceTempView("odd")
    df = spark.sql(
        "select sum(id) s, cast(1.50 as decimal(4, 2)) d, odd, day, id % 3 = 0 flag from odd "
        "group by odd, day, id % 3 = 0"
    )
    for by in (["odd"], ["day", "odd"], ["flag", "d"]):
        name = "-".join(by)
        df.write.partitionBy(*by).parquet(str(tmp_path / name))
        on_spark(spark, partial(df.write.partitionBy(*by).parquet, str(tmp_path / f"spark-{name}")))
        ours, sparks = tmp_path / name, tmp_path / f"spark-{name}"
        folders = [{str(file.parent.relative_to(path)) for file in listed(path)} for path in (ours, sparks)]
        assert folders[0] == folders[1]
        assert read(spark, ours) == read(spark, sparks)
        assert is_clean(ours)
    assert len(files) == 3
    spark.catalog.dropTempView("odd")


def test_only_partitions_with_rows_are_overwritten_if_asked(
    above: Engine, files: list[int], spark: SparkSession, tmp_path: Path
) -> None:
    df, path = spark.sql(QUERY), tmp_path / "table"
    df.write.partitionBy("p").parquet(str(path))
    rest = on_spark(spark, lambda: spark.read.parquet(str(path)).where("p <> '5-LOW'").count())
    df.where("p = '5-LOW' and k < 1000").write.mode("overwrite").option(
        "partitionOverwriteMode", "dynamic"
    ).partitionBy("p").parquet(str(path))
    low = spark.read.parquet(str(path)).selectExpr("p = '5-LOW' low").groupBy("low").count()
    counts = on_spark(spark, lambda: dict(low.collect()))
    assert counts[False] == rest
    assert 0 < counts[True] < 1000
    assert is_clean(path)
    assert len(files) == 2


def test_tables_of_the_catalog_are_written_and_known(
    above: Engine, files: list[int], spark: SparkSession
) -> None:
    expected = on_spark(spark, lambda: sorted(map(repr, spark.sql(QUERY).collect())))

    def found() -> list[str]:
        return on_spark(spark, lambda: sorted(map(repr, spark.table("written").collect())))  # type: ignore[no-any-return]

    try:
        spark.sql(f"create table written using parquet as {QUERY}")
        assert found() == expected
        spark.sql(f"insert into written {QUERY}")
        assert found() == sorted(expected * 2)
        spark.sql(f"insert overwrite written {QUERY}")
        assert found() == expected
        spark.sql(QUERY).write.mode("append").insertInto("written")
        assert found() == sorted(expected * 2)
        spark.sql(QUERY).write.mode("overwrite").partitionBy("p").saveAsTable("written")
        names = spark.sql(QUERY).columns
        rows = on_spark(spark, lambda: spark.table("written").select(names).collect())
        assert sorted(map(repr, rows)) == expected
        assert len(spark.sql("show partitions written").collect()) == 5
        assert len(files) == 5
    finally:
        spark.sql("drop table if exists written")


@pytest.mark.parametrize(
    ("codec", "end"), [("zstd", ".zstd.parquet"), ("none", ".parquet"), ("gzip", ".gz.parquet")]
)
def test_files_are_compressed_and_cut_as_asked(
    above: Engine, files: list[int], spark: SparkSession, tmp_path: Path, codec: str, end: str
) -> None:
    spark.sql(QUERY).write.option("compression", codec).option("maxRecordsPerFile", 4000).parquet(
        str(tmp_path / "t")
    )
    data = [file for file in listed(tmp_path / "t") if file.name != "_SUCCESS"]
    found = [pq.ParquetFile(file).metadata for file in data]
    assert all(file.name.endswith(end) for file in data)
    assert max(one.num_rows for one in found) <= 4000
    assert sum(one.num_rows for one in found) == 30000
    assert files == [len(data)]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("parquet.bloom.filter.enabled", "true", "follows parquet.bloom.filter.enabled"),
        (
            "spark.sql.parquet.outputTimestampType",
            "TIMESTAMP_MILLIS",
            "writes such timestamps as TIMESTAMP_MILLIS",
        ),
        ("spark.sql.parquet.writeLegacyFormat", "true", "follows spark.sql.parquet.writeLegacyFormat"),
    ],
)
def test_what_only_spark_can_write_spark_writes(
    above: Engine,
    files: list[int],
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    key: str,
    value: str,
    why: str,
) -> None:
    df = spark.sql("select cast(o_orderdate as timestamp) t, count(*) n from orders group by o_orderdate")
    before = spark.conf.get(key, None)
    if key.startswith("spark"):
        spark.conf.set(key, value)
    try:
        with caplog.at_level("INFO", logger="wallaby"):
            df.write.option(key, value).parquet(str(tmp_path / "t"))
    finally:
        if before is not None:
            spark.conf.set(key, before)
        elif key.startswith("spark"):
            spark.conf.unset(key)
    assert len(read(spark, tmp_path / "t")) == on_spark(spark, df.count)
    assert f"only Spark's writer {why}" in caplog.text
    assert not files


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "FILE_BYTES", 100_000)


def write_through(
    chaos: Chaos, engine: Engine, spark: SparkSession, path: Path, fault: str, by: tuple[str, ...]
) -> int:
    """Write while a fault strikes; check every row, and that nothing is there but files; returns how many."""
    df = spark.sql(QUERY)
    physical = engine._plan(df).physical
    assert physical is not None
    stage = len(physical.graph.stages) - 1
    for _ in enabled(engine, spark):
        name = chaos.order("*:" + fault.format(write=f"s{stage}.c0.t2"))
        df.write.partitionBy(*by).parquet(str(path))
        require_all_struck(chaos, name)
        table = on_spark(spark, lambda: spark.read.parquet(str(path)).select(df.columns).collect())
        assert sorted(map(repr, table)) == on_spark(spark, lambda: sorted(map(repr, df.collect())))
        assert is_clean(path)
    return len([file for file in listed(path) if file.name != "_SUCCESS"])


@pytest.mark.parametrize(
    "fault",
    [
        "execute@{write}:1:kill",
        "back-up@{write}:1:kill",
        "commit@{write}:1:kill",
        "commit@{write}:1:kill:after",
        "commit@{write}:1:stop=8s",
        "execute@{write}:1:kill; *:retrace:2:kill",
    ],
)
@pytest.mark.parametrize("by", [(), ("p",)], ids=["plain", "partitioned"])
@pytest.mark.usefixtures("small_files")
def test_a_lost_worker_costs_time_and_no_row(
    chaos: Chaos, files: list[int], spark: SparkSession, tmp_path: Path, fault: str, by: tuple[str, ...]
) -> None:
    found = write_through(chaos, chaos.engine(**LARGER), spark, tmp_path / "table", fault, by)
    assert files == [found], "nothing is there but what was committed"


@pytest.mark.usefixtures("small_files")
def test_a_worker_that_wakes_after_publishing_publishes_nothing(
    chaos: Chaos, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    write_through(chaos, chaos.engine(**LARGER), spark, path, "execute@{write}:1:stop=20s", ("p",))
    published = listed(tmp_path)
    until(lambda: not stopped_processes(), 60)
    time.sleep(2)  # for what it does when it is awake
    assert listed(tmp_path) == published
    assert not list(tmp_path.glob("**/.*"))


def stopped_processes() -> list[int]:
    """The processes below this one that have been stopped and not yet woken."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_STOPPED:
                found.append(process.pid)
    return found


@pytest.mark.parametrize("policy", ["checkpoint+lineage", "spool", "restart", "checkpoint"])
@pytest.mark.usefixtures("small_files")
def test_writes_survive_a_loss_under_other_policies(
    chaos: Chaos, files: list[int], spark: SparkSession, tmp_path: Path, policy: str
) -> None:
    engine = chaos.engine(**settings_of(policy, tmp_path / "store"), **LARGER)
    point = "back-up" if policy == "checkpoint" else "commit"  # without lineage nothing is committed
    found = write_through(chaos, engine, spark, tmp_path / "table", point + "@{write}:1:kill", ("p",))
    assert files == [found]


@pytest.mark.parametrize("mode", ["append", "overwrite", "error"])
def test_a_write_that_fails_leaves_the_table_as_it_was(
    above: Engine, spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "table"
    if mode != "error":
        spark.sql("select k, count(*) n from few group by k").write.parquet(str(path))
    before = listed(tmp_path)
    spark.conf.set("spark.wallaby.timeout", "200ms")
    try:
        with pytest.raises(QueryTimeoutError):
            spark.sql("select k, count(*) n from tiny group by k").write.mode(mode).parquet(str(path))
    finally:
        spark.conf.unset("spark.wallaby.timeout")
    assert listed(tmp_path) == before
    assert not list(tmp_path.glob("**/.*"))


def test_an_overwrite_that_spark_makes_and_that_fails_leaves_the_table_as_it_was(
    above: Engine, files: list[int], spark: SparkSession, tmp_path: Path
) -> None:
    """The data is at fault, and Spark says how: it runs the query again, and deletes nothing before it has rows."""
    path = tmp_path / "table"
    spark.sql("select k, count(*) n from few group by k").write.parquet(str(path))
    before = listed(path)
    spark.conf.set("spark.wallaby.sparkErrors", "true")
    bad = "select k, max(v div (v - 100)) n from few group by k"
    try:
        with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
            spark.sql(bad).write.mode("overwrite").parquet(str(path))
    finally:
        spark.conf.unset("spark.wallaby.sparkErrors")
    assert listed(path) == before
    spark.sql("select k, 1L n from few group by k").write.mode("overwrite").option(
        "parquet.bloom.filter.enabled", "true"
    ).parquet(str(path))
    assert len(read(spark, path)) == 7
    assert not set(listed(path)) & {file for file in before if file.name != "_SUCCESS"}
    assert len(files) == 1, "Spark wrote what has settings of Parquet's own"
