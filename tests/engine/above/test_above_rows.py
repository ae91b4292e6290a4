"""Spark above: rows without columns, columns for which Arrow has no arrays, and what looking at a plan costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit, udf
from tests.engine.above.test_above import QUERY, rows
from tests.engine.conftest import Counted, on_spark

from wallaby.engine import Engine
from wallaby_lab import tpch

#: Looking at a plan asks the JVM for the plan's text, the columns of a part and its size. Long texts come in pieces.
ROUND_TRIPS_MAX = 12


@pytest.mark.parametrize("condition", ["n > 0", "n < 0"])
@pytest.mark.parametrize("limit", [None, 3])
def test_a_query_is_empty_or_not_without_its_columns(
    condition: str, limit: int | None, counted: Counted, spark: SparkSession
) -> None:
    query = spark.sql(QUERY).where(condition)
    query = query if limit is None else query.orderBy("n_name").limit(limit)
    ours = query.isEmpty()
    assert counted.runs == 1
    assert ours == on_spark(spark, query.isEmpty) == (condition == "n < 0")


def test_rows_without_columns_are_as_many(counted: Counted, spark: SparkSession) -> None:
    without = spark.sql(QUERY).select()
    assert without.rdd.count() == on_spark(spark, lambda: spark.sql(QUERY).count())
    assert without.collect()[0] == ()
    assert counted.runs >= 1


@pytest.mark.parametrize("literals", [[], ["all"]])
def test_a_function_of_all_rows_takes_them_from_the_engine(
    literals: list[str], counted: Counted, spark: SparkSession
) -> None:
    def act() -> list[Any]:
        groups = spark.sql(QUERY).groupBy(*map(lit, literals))
        return rows(groups.applyInPandas(lambda f: f[["seg", "n"]], "seg string, n long"))

    ours = act()
    assert counted.runs == 1
    assert ours == on_spark(spark, act)


@pytest.mark.parametrize(
    "keep",
    [
        lambda df: df.localCheckpoint(),
        lambda df: df.persist(),
        lambda df: df.select("*", udf(lambda name: f"<{name}>")("n_name")),
    ],
    ids=["localCheckpoint", "persist", "UDF"],
)
def test_months_arrive_as_intervals(
    keep: Callable[[DataFrame], DataFrame], counted: Counted, spark: SparkSession
) -> None:
    months = (
        "*",
        "make_ym_interval(0, cast(n as int)) m",
        "if(n % 3 = 0, null, make_ym_interval(cast(n as int), -7)) y",
    )

    def act() -> list[Any]:
        made = keep(spark.sql(QUERY).selectExpr(*months))
        assert dict(made.dtypes)["m"] == "interval year to month"
        found = rows(made.selectExpr("n_name", "seg", "string(m)", "string(y)"))
        made.unpersist(blocking=True)
        return found

    ours = act()
    assert counted.runs == 1
    assert ours == on_spark(spark, act)


def test_months_are_written_by_the_taskmanagers(
    counted: Counted, spark: SparkSession, tmp_path: Path
) -> None:
    made = spark.sql(QUERY).selectExpr("n_name", "seg", "make_ym_interval(1, cast(n as int)) m")
    made.write.parquet(str(tmp_path / "ours"))
    assert counted.runs == 1
    on_spark(spark, lambda: made.write.parquet(str(tmp_path / "sparks")))
    ours, sparks = (spark.read.parquet(str(tmp_path / name)) for name in ("ours", "sparks"))
    assert ours.schema == sparks.schema
    assert rows(ours.selectExpr("n_name", "seg", "string(m)")) == rows(
        sparks.selectExpr("n_name", "seg", "string(m)")
    )


@pytest.mark.parametrize("number", [9, 21])
def test_a_plan_that_is_left_to_spark_is_read_once_and_never_optimized_again(
    number: int, above: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.conf.set("spark.wallaby.below", "auto")
    query = spark.sql(tpch.query(number))
    changed: DataFrame = query.select(
        udf(lambda value: f"<{value}>")(query.columns[0]).alias("changed"), *query.columns[1:]
    )
    sent: list[str] = []
    gateway: Any = spark.sparkContext._gateway
    chosen, send = above.subplans._chosen, gateway._gateway_client.send_command

    def sending(command: str, *arguments: Any, **named: Any) -> Any:
        sent.append(command)
        return send(command, *arguments, **named)

    def choosing(plan: Any, facts: Any) -> Any:
        monkeypatch.setattr(gateway._gateway_client, "send_command", sending)
        found = chosen(plan, facts)
        monkeypatch.setattr(gateway._gateway_client, "send_command", send)
        offered.append(found)
        return found

    offered: list[Any] = []
    monkeypatch.setattr(above.subplans, "_chosen", choosing)
    queries: Any = changed._jdf.queryExecution()
    queries.executedPlan()
    assert offered == [[]], "it reads so little that handing its rows over would not pay"
    asked = [command for command in sent if command.startswith("c")]
    assert 1 <= len(asked) <= ROUND_TRIPS_MAX, asked
