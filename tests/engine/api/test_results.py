"""What a result can be made into, and that it is the same as Spark's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame, Row, SparkSession

from wallaby.engine import Engine
from wallaby.errors import InvalidArgumentError
from wallaby_lab import tpch
from wallaby_lab.compare import require_same


@pytest.fixture(scope="module")
def kinds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Columns of many types, with and without NULLs."""
    path = str(tmp_path_factory.mktemp("kinds") / "kinds")
    some = "case when id % 3 = 0 then null else cast(id as {0}) end as some_{0}"
    narrow = ", ".join(
        some.format(kind) for kind in ("tinyint", "smallint", "int", "bigint", "float", "double")
    )
    spark.sql(
        f"""
        select id, cast(id as tinyint) b, cast(id as smallint) s, cast(id as int) i, cast(id as float) f,
               cast(id as double) d, cast(id as decimal(9, 2)) m, cast(id as string) t, id > 2 p,
               cast(cast(id as string) as binary) y, date_add(date '2020-02-27', cast(id as int)) day,
               timestamp '2020-02-29 12:34:56.789' at, timestamp_ntz '2020-02-29 12:34:56' at_ntz, {narrow},
               case when id % 2 = 0 then null else date '1999-12-31' end some_day,
               case when id % 2 = 0 then null else timestamp '1969-12-31 23:59:59' end some_at
        from range(7)
        """
    ).coalesce(1).write.parquet(path)
    return spark.read.parquet(path)


def test_every_form_of_a_result_is_sparks(engine: Engine, kinds: DataFrame) -> None:
    assert engine.fallback_reasons(kinds) == []
    result = engine.run(kinds)
    require_same(result.arrow(), kinds.toArrow())
    assert result.arrow().schema == kinds.toArrow().schema
    assert result.rows() == kinds.collect()
    pd.testing.assert_frame_equal(result.pandas(), kinds.toPandas())


def test_an_empty_result_has_sparks_types_too(engine: Engine, kinds: DataFrame) -> None:
    none = kinds.where("id > 100")
    result = engine.run(none)
    require_same(result.arrow(), none.toArrow())
    assert result.rows() == []
    pd.testing.assert_frame_equal(result.pandas(), none.toPandas())


def test_two_columns_of_one_name_stay_two(engine: Engine, kinds: DataFrame) -> None:
    twice = kinds.select("id", kinds.b.alias("id"))
    assert engine.collect(twice) == twice.collect()
    require_same(engine.to_arrow(twice), twice.toArrow())


def test_actions_are_sparks(engine: Engine, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    nation = spark.table("nation").orderBy("n_name")
    assert engine.count(nation) == 25
    assert engine.take(nation, 3) == nation.take(3)
    assert engine.first(nation) == nation.first()
    assert engine.head(nation) == nation.head()
    assert engine.head(nation, 2) == nation.head(2)
    assert engine.first(nation.where("n_nationkey < 0")) is None
    pd.testing.assert_frame_equal(engine.to_pandas(nation), nation.toPandas())
    for how in (
        {},
        {"n": 3},
        {"n": 25},
        {"n": 2, "truncate": False},
        {"n": 2, "truncate": 5, "vertical": True},
    ):
        capsys.readouterr()
        engine.show(nation, **how)  # type: ignore[arg-type]
        ours = capsys.readouterr().out
        nation.show(**how)  # type: ignore[arg-type]
        assert ours == capsys.readouterr().out


def test_batches_come_while_the_query_runs(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.table("short"))
    stream = result.batches()
    rows = next(stream).num_rows
    assert not result._collected.is_over, "the first rows must be there before the last"
    rows += sum(batch.num_rows for batch in stream)
    assert rows == 5_000
    with pytest.raises(InvalidArgumentError, match="read as a stream"):
        result.batches()
    assert result.stats.rows == 5_000
    assert result.stats.tasks > 1_000


def test_a_whole_result_can_be_taken_again(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.sql(tpch.query(6)))
    assert result.arrow() == result.arrow()
    assert sum(batch.num_rows for batch in result.batches()) == 1


def test_a_dataframe_that_was_collected_has_the_same_files_again(engine: Engine, spark: SparkSession) -> None:
    def observe(
        table: str, collect: Callable[[DataFrame], list[Row]], keep: Callable[[DataFrame], DataFrame]
    ) -> list[object]:
        spark.range(3).write.saveAsTable(table)
        early, looked_at = spark.table(table).where("id >= 0"), spark.table(table).where("id >= 0")
        seen = [sorted(collect(early))]
        assert "scan" in engine.explain(looked_at)
        spark.sql(f"insert into {table} values (7)")
        seen += [sorted(collect(df)) for df in (early, looked_at, early.select("id"))]
        kept = keep(early)
        seen.append(sorted(kept.select("id").collect()))
        kept.unpersist()
        spark.sql(f"drop table {table}")
        return [*seen, len(seen[1])]

    there = observe("there", DataFrame.collect, DataFrame.persist)
    assert observe("here", engine.collect, engine.persist) == there


def test_stats_tell_what_was_done(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.sql(tpch.query(3)))
    result.arrow()
    stats = result.stats
    assert stats.native is True
    assert stats.rows == 10
    assert stats.stages >= 4
    assert stats.tasks >= stats.stages
    assert stats.bytes > 0
    assert stats.seconds > 0
    assert stats.recoveries == 0


def test_what_is_no_dataframe_is_refused(engine: Engine) -> None:
    asks: tuple[Callable[[Any], object], ...] = (
        engine.run,
        engine.collect,
        engine.count,
        engine.show,
        engine.explain,
    )
    for ask in asks:
        with pytest.raises(InvalidArgumentError, match="Expected a DataFrame, got str"):
            ask("select 1")


def test_a_number_of_rows_that_cannot_be_shown_is_refused_as_pyspark_does(
    engine: Engine, spark: SparkSession
) -> None:
    with pytest.raises(PySparkTypeError, match="`n` should be int"):
        engine.show(spark.table("nation"), "ten")  # type: ignore[arg-type]


def test_an_engine_and_its_results_say_what_they_are(engine: Engine, spark: SparkSession) -> None:
    assert repr(engine).startswith(f"<Engine on {spark.sparkContext.applicationId}: ")
    result = engine.run(spark.sql("select n_name from nation"))
    result.arrow()
    assert repr(result) == "<Result by the engine: struct<n_name:string>>"
    assert result.is_over


def test_a_result_on_spark_is_over_when_spark_has_run_it(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.sql("select 1 as one"))
    assert (result.native, result.is_over, result.stats.rows) == (False, False, None)
    assert repr(result) == "<SparkResult on Spark: struct<one:int>>"
    assert len(result.rows()) == 1
    assert (result.is_over, result.stats.rows) == (True, 1)


def test_limits_read_a_few_splits_only(engine: Engine, spark: SparkSession) -> None:
    for few in (spark.table("short").limit(20), spark.table("short").where("v >= 0").limit(20)):
        result = engine.run(few)
        assert len(result.rows()) == 20
        assert result.stats.tasks < 200, "a thousand splits were there to be read"


def test_explain_says_what_runs_where(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    assert "scan lineitem" in engine.explain(spark.sql(tpch.query(6)))
    collected = spark.sql("select collect_list(n_name) from nation")
    assert "the order of its elements depends on that of the rows" in engine.explain(collected)
    with pytest.raises(InvalidArgumentError, match="simple"):
        engine.explain(collected, mode="everything")
