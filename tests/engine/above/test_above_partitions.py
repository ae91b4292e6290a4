"""Where the user placed rows, they are: in partitions, in files, and in the files from which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, input_file_name, udf
from tests.engine.conftest import Counted, on_spark

from wallaby.above import partitions
from wallaby.engine import Engine

QUERY = "select o_custkey % 40 k, o_orderpriority p, count(*) n from orders group by 1, 2"
ROWS = 200


@pytest.fixture(autouse=True)
def _even_few_rows_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "TASK_BYTES_MIN", 1)


@pytest.fixture
def df(spark: SparkSession) -> DataFrame:
    return spark.sql(QUERY)


@pytest.fixture(params=["true", "false"])
def adaptive(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.adaptive.enabled", request.param)
    yield
    spark.conf.unset("spark.sql.adaptive.enabled")


def sizes(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """One row for each partition: how many rows it has."""
    yield pd.DataFrame({"rows": [sum(map(len, frames))]})


def places(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """For each row its key and the number of its partition."""
    context = TaskContext.get()
    assert context is not None
    for frame in frames:
        yield pd.DataFrame({"k": frame["k"], "place": context.partitionId()})


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize(
    "one",
    [
        lambda df: df.repartition(1),
        lambda df: df.coalesce(1),
        lambda df: df.repartition(1).where("n > 0").select("n"),
        lambda df: df.orderBy("k").coalesce(1),
    ],
    ids=["repartition", "coalesce", "with more above it", "of sorted rows"],
)
def test_a_function_gets_all_rows_if_they_are_in_one_partition(
    one: Callable[[DataFrame], DataFrame], counted: Counted, df: DataFrame
) -> None:
    assert [row.rows for row in one(df).mapInPandas(sizes, "rows long").collect()] == [ROWS]
    assert one(df).rdd.getNumPartitions() == 1
    assert counted.runs == 2


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize(
    "by_key",
    [
        lambda df: df.repartition(5, "k"),
        lambda df: df.repartitionByRange(5, "k"),
        lambda df: df.repartition(5, "k").sortWithinPartitions("k", "p"),
    ],
    ids=["by hash", "by range", "sorted"],
)
def test_rows_of_one_key_are_in_one_partition(
    by_key: Callable[[DataFrame], DataFrame], counted: Counted, df: DataFrame
) -> None:
    found = {tuple(row) for row in by_key(df).mapInPandas(places, "k long, place int").collect()}
    assert len(found) == len({key for key, _ in found}) == 40
    assert len({place for _, place in found}) > 1
    assert counted.runs >= 1


@pytest.mark.parametrize("kind", ["parquet", "json"])
@pytest.mark.parametrize("count", [1, 3])
def test_there_are_as_many_files_as_the_user_said(
    count: int, kind: str, counted: Counted, spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    for number, placed in enumerate((df.repartition(count), df.coalesce(1), df.repartition(count, "p"))):
        placed.write.format(kind).save(str(tmp_path / str(number)))
        files = len(list((tmp_path / str(number)).glob("part-*")))
        assert files == 1 if number == 1 else 1 <= files <= count
        assert files == count or number
        assert on_spark(spark, spark.read.format(kind).load(str(tmp_path / str(number))).count) == ROWS
    assert counted.runs == 3


def test_the_taskmanagers_write_what_is_only_gathered_by_partition(
    above: Engine, counted: Counted, df: DataFrame, tmp_path: Path
) -> None:
    """They bring the rows of a partition together anyway."""
    df.repartition("p").write.partitionBy("p").parquet(str(tmp_path / "out"))
    assert counted.runs == 1
    assert not above.subplans.kept, "Spark's tasks have read nothing"
    assert [len(list(folder.glob("part-*"))) for folder in (tmp_path / "out").glob("p=*")] == [1] * 5


def test_the_order_in_files_is_that_of_the_user(counted: Counted, df: DataFrame, tmp_path: Path) -> None:
    df.sortWithinPartitions("n", "k").write.parquet(str(tmp_path / "out"))
    assert counted.runs == 1
    for path in (tmp_path / "out").glob("*.parquet"):
        found = pq.read_table(path).to_pylist()
        assert found == sorted(found, key=lambda row: (row["n"], row["k"]))


def test_the_files_of_rows_are_named(counted: Counted, spark: SparkSession, tmp_path: Path) -> None:
    """Only a task that reads a file knows it: above a join with a few rows, that is the same task."""
    on_spark(spark, lambda: spark.table("nation").repartition(3).write.parquet(str(tmp_path / "nations")))
    nations = spark.read.parquet(str(tmp_path / "nations"))
    regions = spark.sql("select * from values (0L, 'here'), (1L, 'there') as t(n_regionkey, place)")
    named = nations.join(broadcast(regions), "n_regionkey").select(
        input_file_name().alias("file"), "n_name", "place"
    )
    found = sorted(map(tuple, named.collect()))
    assert found == on_spark(spark, lambda: sorted(map(tuple, named.collect())))
    assert len({file for file, *_ in found}) == 3
    assert "" not in {file for file, *_ in found}
    assert counted.queries == 0


def test_rows_that_stay_are_not_placed(
    above: Engine, df: DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", logger="wallaby"):
        cached = above.persist(df.repartition(3, "k"))
    assert "repartition the DataFrame over them" in caplog.text
    assert cached.rdd.getNumPartitions() == 3
    cached.unpersist(blocking=True)
    kept: Any = above.persist(df)
    assert kept.repartition(3, "k").select(udf(lambda k: k, "long")("k")).rdd.getNumPartitions() == 3
    kept.unpersist()
