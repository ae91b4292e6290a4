"""The pipelines: an operation that only Spark has, above a join or an aggregation that TaskManagers can run.

Each case plans its query, acts, and leaves an answer that can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf
from pyspark.sql.pandas.functions import pandas_udf

#: A quarter of a year: about 1 of 27 orders.
_JOIN: Final = """
    select l_orderkey, l_linenumber, o_orderpriority, c_name, cast(l_extendedprice as double) price,
        cast(l_discount as double) discount
    from lineitem join orders on l_orderkey = o_orderkey join customer on o_custkey = c_custkey
    where o_orderdate >= date '1995-01-01' and o_orderdate < date '1995-04-01'
"""
_YEAR: Final = """
    select l_orderkey, l_linenumber, l_extendedprice, l_shipmode, o_orderdate, o_orderpriority
    from lineitem join orders on l_orderkey = o_orderkey
    where o_orderdate >= date '1995-01-01' and o_orderdate < date '1996-01-01'
"""
_WIDE: Final = "select * from lineitem join orders on l_orderkey = o_orderkey"
_BY_CUSTOMER: Final = """
    select o_custkey, count(*) lines, sum(l_extendedprice * (1 - l_discount)) revenue, max(l_shipdate) latest
    from lineitem join orders on l_orderkey = o_orderkey
    group by o_custkey
"""
_BY_PART: Final = """
    select l_partkey, l_returnflag, count(*) lines, cast(sum(l_quantity) as double) quantity,
        cast(avg(l_extendedprice) as double) price
    from lineitem group by l_partkey, l_returnflag
"""


@dataclass(frozen=True, slots=True)
class PipelineCase:
    """One pipeline: `act` runs it and may write to a path or a table; `answer` reads what it wrote."""

    name: str
    act: Callable[[SparkSession, str], object]
    answer: Callable[[SparkSession, str], DataFrame]


def cases(folder: Path) -> tuple[PipelineCase, ...]:
    """All pipelines. They write to a folder, or to tables."""

    def written(spark: SparkSession, name: str) -> DataFrame:
        return spark.read.parquet(str(folder / name))

    def write(df: DataFrame, name: str) -> None:
        df.write.mode("overwrite").parquet(str(folder / name))

    def udf_above_join(spark: SparkSession, name: str) -> None:
        write(_with_charge(spark.sql(_JOIN), _plain()), name)

    def pandas_udf_above_join(spark: SparkSession, name: str) -> None:
        write(_with_charge(spark.sql(_JOIN), _of_pandas()), name)

    def table_of_aggregate(spark: SparkSession, name: str) -> None:
        spark.sql(_BY_CUSTOMER).write.mode("overwrite").format("parquet").saveAsTable(name)

    def parquet_of_join(spark: SparkSession, name: str) -> None:
        write(spark.sql(_YEAR), name)

    def cached_aggregate(spark: SparkSession, name: str) -> None:
        cached = spark.sql(_BY_CUSTOMER).cache()
        try:
            cached.count()
            write(cached.groupBy((col("lines") % 10).alias("digit")).count(), name)
        finally:
            cached.unpersist(blocking=True)

    def map_above_aggregate(spark: SparkSession, name: str) -> None:
        write(spark.sql(_BY_PART).mapInPandas(_rated, "l_partkey long, lines long, rating double"), name)

    return (
        PipelineCase("Python UDF above a join, written as Parquet", udf_above_join, written),
        PipelineCase(
            "an aggregate as a new table (saveAsTable)",
            table_of_aggregate,
            lambda spark, name: spark.table(name),
        ),
        PipelineCase("pandas UDF above a join, written as Parquet", pandas_udf_above_join, written),
        PipelineCase("a join written as Parquet", parquet_of_join, written),
        PipelineCase("an aggregate cached, counted and grouped", cached_aggregate, written),
        PipelineCase("mapInPandas above an aggregate, written as Parquet", map_above_aggregate, written),
    )


def writes(folder: Path) -> tuple[PipelineCase, ...]:
    """Tables of the lake, made from other tables as a whole."""

    def created(spark: SparkSession, name: str, query: str) -> None:
        spark.sql(f"drop table if exists {name}")
        spark.sql(f"create table {name} using parquet as {query}")

    def by_day(spark: SparkSession, name: str) -> None:
        spark.table("lineitem").write.mode("overwrite").partitionBy("l_shipdate").parquet(str(folder / name))

    def table(spark: SparkSession, name: str) -> DataFrame:
        return spark.table(name)

    return (
        PipelineCase(
            "lineitem joined with orders, all columns and rows (CREATE TABLE AS)",
            lambda spark, name: created(spark, name, _WIDE),
            table,
        ),
        PipelineCase(
            "lineitem by its 2,526 ship dates (partitionBy)",
            by_day,
            lambda spark, name: spark.read.parquet(str(folder / name)),
        ),
        PipelineCase(
            "a table of aggregates by customer (CREATE TABLE AS)",
            lambda spark, name: created(spark, name, _BY_CUSTOMER),
            table,
        ),
        PipelineCase(
            "lineitem as it is (CREATE TABLE AS)",
            lambda spark, name: created(spark, name, "select * from lineitem"),
            table,
        ),
    )


def _with_charge(df: DataFrame, charge: Any) -> DataFrame:
    return df.withColumn("charge", charge("price", "discount", "o_orderpriority"))


def _plain() -> Any:
    # Without type hints, which Spark would take for those of a pandas or Arrow function.
    return udf(
        lambda price, discount, priority: price * (1 - discount) * (1.1 if priority[0] == "1" else 1.0),
        "double",
    )


def _of_pandas() -> Any:
    def charge(price: pd.Series, discount: pd.Series, priority: pd.Series) -> pd.Series:
        return price * (1 - discount) * priority.str.startswith("1").map({True: 1.1, False: 1.0})

    make: Any = pandas_udf
    return make(charge, "double")


def _rated(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        rating = frame["price"] / frame["quantity"]
        yield pd.DataFrame({"l_partkey": frame["l_partkey"], "lines": frame["lines"], "rating": rating})
