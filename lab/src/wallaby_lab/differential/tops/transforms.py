"""What Spark puts on a query before its rows are used: Python functions, and joins, windows and unions of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.functions import col, count, hash, lit, pmod, rank, udf  # noqa: A004 - Spark's
from pyspark.sql.pandas.functions import pandas_udf

from wallaby_lab.differential.tops.query import ToppedQuery, key, texts

Transform = Callable[[ToppedQuery], ToppedQuery]
_BUCKETS: Final = 3


def _marked(text: str | None) -> str:
    return f"<{text}>"


def _raised(words: pd.Series) -> pd.Series:
    return words.str.upper()


def _longer(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame.assign(u=frame.iloc[:, 0].str.len().astype("string"))


def _sliced(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in more batches."""
    for batch in batches:
        half = batch.num_rows // 2
        yield batch.slice(0, half)
        yield batch.slice(half)


def _counted(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"k": frame["k"].head(1), "n": [len(frame)]})


def _function(value: Any, kind: str = "string") -> Column:
    return udf(_marked, kind)(value)


def python_udf(query: ToppedQuery) -> ToppedQuery:
    """A Python function of a column."""
    return replace(query, df=query.df.withColumn("u", _function(key(query))))


def two_udfs(query: ToppedQuery) -> ToppedQuery:
    """The same query below two Python functions, whose rows are put together."""
    one = query.df.withColumn("u", _function(key(query)))
    two = query.df.withColumn("u", udf(repr, "string")(key(query)))
    return replace(query, df=one.union(two), order=())


def pandas_function(query: ToppedQuery) -> ToppedQuery:
    """A function of pandas."""
    make: Any = pandas_udf
    return replace(query, df=query.df.withColumn("u", make(_raised, "string")(key(query))))


def map_in_pandas(query: ToppedQuery) -> ToppedQuery:
    """A function of all rows as pandas has them."""
    found = texts(query)
    schema = ", ".join(f"{name} string" for name in [*found.df.columns, "u"])
    return replace(found, df=found.df.mapInPandas(_longer, schema))


def map_in_arrow(query: ToppedQuery) -> ToppedQuery:
    """A function of all rows as Arrow has them."""
    return replace(query, df=query.df.mapInArrow(_sliced, query.df.schema))


def apply_in_pandas(query: ToppedQuery) -> ToppedQuery:
    """A function of the rows of a group."""
    groups = query.df.select(key(query).alias("k")).groupBy("k")
    return ToppedQuery(groups.applyInPandas(_counted, "k string, n bigint"), wild=query.wild)


def group_by_python(query: ToppedQuery) -> ToppedQuery:
    """An aggregation by what a Python function gives."""
    named = query.df.select(_function(key(query)).alias("u"))
    return ToppedQuery(named.groupBy("u").agg(count(lit(1)).alias("n")), wild=query.wild)


def join(query: ToppedQuery) -> ToppedQuery:
    """A join with rows of Python."""
    side = _rows_of_python(query, "b int").withColumn("word", col("b").cast("string"))
    bucket = pmod(hash(key(query)), lit(_BUCKETS)).alias("b")
    return replace(query, df=query.df.select("*", bucket).join(side, "b"), order=())


def outer_join(query: ToppedQuery) -> ToppedQuery:
    """A join with rows of Python that keeps those without a partner."""
    side = _rows_of_python(query, "j int").withColumn("m", _function(col("j").cast("string")))
    found = query.df.withColumn("l", _function(pmod(hash(key(query)), lit(_BUCKETS)).cast("string")))
    return replace(query, df=found.join(side, col("l") == col("m"), "full"), order=())


def window(query: ToppedQuery) -> ToppedQuery:
    """Windows over what a Python function gives."""
    found = query.df.withColumn("k", key(query)).withColumn("u", _function(col("k")))
    over = Window.partitionBy(pmod(hash("u"), lit(_BUCKETS))).orderBy("u")
    return replace(
        query,
        df=found.withColumn("r", rank().over(over)).withColumn("n", count("*").over(over)),
        order=(),
    )


def union(query: ToppedQuery) -> ToppedQuery:
    """Rows of Python beside the query's."""
    kinds = [(field.name, field.dataType) for field in query.df.schema.fields]
    side = _rows_of_python(query, "i int").select(*(lit(None).cast(kind).alias(name) for name, kind in kinds))
    return replace(query, df=query.df.union(side), order=())


def _rows_of_python(query: ToppedQuery, schema: str) -> DataFrame:
    """A few numbers from a place that Spark alone can read."""
    rows = query.spark.sparkContext.parallelize([(0,), (1,)], 1)
    return query.spark.createDataFrame(rows, schema)


TRANSFORMS: Final[dict[str, Transform]] = {
    "Python UDF": python_udf,
    "two Python UDFs": two_udfs,
    "pandas UDF": pandas_function,
    "mapInPandas": map_in_pandas,
    "mapInArrow": map_in_arrow,
    "applyInPandas": apply_in_pandas,
    "group by a Python UDF": group_by_python,
    "join with rows of Python": join,
    "full join with rows of Python": outer_join,
    "window over a Python UDF": window,
    "union with rows of Python": union,
}
