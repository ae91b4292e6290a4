"""Errors of the data are Spark's in every field if Spark is asked, and as far as can be known if it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions import base
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from wallaby.engine import Engine
from wallaby.errors import QueryError, query_errors
from wallaby.errors.sql_states import SQL_STATES

#: An expression of each family that can fail, over one row.
FAILING = (
    "i / (i - 7)",
    "i % (i - 7)",
    "div(i, i - 7)",
    "i * 2147483647",
    "l + 9223372036854775807",
    "-(l - 9223372036854775807 - 8)",
    "cast(i as tinyint) * cast(100 as tinyint)",
    "abs(cast(l - 9223372036854775807 - 8 as bigint))",
    "cast(s as int)",
    "cast(s as double)",
    "cast(s as boolean)",
    "cast(s as date)",
    "cast(s as decimal(10, 2))",
    "cast(i * 1000 as tinyint)",
    "cast(x * 1e300 as int)",
    "cast(i * 100000 as decimal(4, 2))",
    "array(1, 2)[i]",
    "element_at(array(1, 2), i)",
    "element_at(array(1, 2), i - 7)",
    "slice(array(1, 2), i - 7, 1)",
    "slice(array(1, 2), 1, i - 9)",
    "sequence(1, 5, i - 8)",
    "map_from_arrays(array(i, i), array(1, 2))",
    "make_date(2024, i + 7, 1)",
    "to_date(s, 'yyyy-MM-dd')",
    "to_timestamp(s, 'yyyy-MM-dd')",
    "map_from_arrays(array(i), array(1, 2))",
    "map_from_arrays(array(nullif(i, 7)), array(1))",
    "make_timestamp(2024, 1, 1, 1, 1, i + 53.5)",
)
#: Words of ours and of DuckDB's that say nothing to a user of Spark.
FOREIGN = re.compile(
    r"\bc\d+\b|\bs\d+\.c\d|source column|HUGEINT|INT\d+|[A-Z][a-z]+ Error\b|(?i:duckdb|polars|arrow)"
)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory: Path = tmp_path_factory.mktemp("errors")
    row = "7 i, cast(7 as bigint) l, 'abc' s, 1.5D x"
    spark.sql(f"select {row}").coalesce(1).write.parquet(str(directory / "one"))
    spark.range(3).selectExpr("id l").coalesce(1).write.parquet(str(directory / "many"))
    spark.read.parquet(str(directory / "one")).createOrReplaceTempView("errors_one")
    spark.read.parquet(str(directory / "many")).createOrReplaceTempView("errors_many")
    return "errors_one"


def caught(collect: Any) -> PySparkException:
    with pytest.raises(PySparkException) as found:
        collect()
    return found.value


def described(error: PySparkException) -> dict[str, object]:
    contexts = [
        (c.contextType().name, c.objectType(), c.objectName(), c.startIndex(), c.stopIndex(), c.fragment())
        if c.contextType().name == "SQL"
        else (c.contextType().name, c.fragment(), c.callSite())
        for c in error.getQueryContext()
    ]
    return {
        "types": [kind for kind in type(error).__mro__ if kind.__module__ == base.__name__],
        "condition": error.getCondition(),
        "state": error.getSqlState(),
        "parameters": error.getMessageParameters(),
        "contexts": contexts,
        "message": str(error).partition("\n\nJVM stacktrace")[0],
    }


@pytest.fixture
def asking(engine: Engine, setting: Callable[[str, str], None]) -> Engine:
    setting("sparkErrors", "true")
    return engine


def needs_the_engine(engine: Engine, df: DataFrame, text: str) -> None:
    if reasons := engine.fallback_reasons(df):
        pytest.skip(f"{text} is Spark's: {reasons[0]}")


@pytest.mark.parametrize("text", FAILING)
def test_an_error_is_sparks_in_every_field(
    text: str, asking: Engine, spark: SparkSession, table: str, setting: Callable[[str, str], None]
) -> None:
    df = spark.sql(f"select {text} as v from {table}")
    needs_the_engine(asking, df, text)
    sparks = caught(df.collect)
    assert described(caught(lambda: asking.collect(df))) == described(sparks)
    # The engine's own has what can be known without asking.
    setting("sparkErrors", "false")
    own = caught(lambda: asking.collect(df))
    assert isinstance(own, QueryError)
    assert (own.getCondition(), own.getSqlState()) == (sparks.getCondition(), sparks.getSqlState())
    assert not FOREIGN.search(str(own)), str(own)
    kinds = {kind for kind in described(sparks)["types"] if kind is not PySparkException}  # type: ignore[attr-defined]
    assert kinds <= set(type(own).__mro__), "whoever catches Spark's catches it"


def test_an_error_for_which_pyspark_has_no_class_is_py4js_as_on_spark(
    asking: Engine, spark: SparkSession, table: str
) -> None:
    df = spark.sql(f"select (select l from errors_many) v from {table}")
    needs_the_engine(asking, df, "a subquery")
    with pytest.raises(Py4JJavaError, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        asking.collect(df)


def test_an_error_of_a_dataframe_says_where_it_was_written(
    asking: Engine, spark: SparkSession, table: str
) -> None:
    df = spark.table(table).select((col("i") / (col("i") - 7)).alias("v"))
    sparks, ours = caught(df.collect), caught(lambda: asking.collect(df))
    assert described(ours) == described(sparks)
    assert ours.getQueryContext()


def test_rows_are_sparks_if_spark_has_no_error(
    asking: Engine, spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = asking.run(spark.table(table))
    monkeypatch.setattr(
        result._collected, "batches", lambda: iter_raising(query_errors()["DIVIDE_BY_ZERO"]("A zero."))
    )
    assert result.rows() == spark.table(table).collect()
    assert not result.native


def test_an_error_after_rows_were_given_is_sparks_too(
    asking: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    """The rows of the first file, in portions; then those of the last, one of which cannot be divided by."""
    source = spark.read.schema("k long").parquet(str(zero_at_the_end(tmp_path / "t")))
    df = source.selectExpr("10 div k as v")
    sparks = caught(df.collect)
    result = asking.run(df)
    taken = result.batches()
    assert next(taken).num_rows
    ours = caught(lambda: list(taken))
    assert described(ours) == described(sparks)
    assert ours.getQueryContext()
    assert result.native, "Spark was asked for its error only"


def zero_at_the_end(directory: Path) -> Path:
    directory.mkdir()
    for number in range(40):
        keys = [0] if number == 39 else list(range(1, 2000))
        pq.write_table(pa.table({"k": keys}), directory / f"{number:02}.parquet")
    return directory


def test_if_spark_has_no_error_after_rows_were_given_it_is_the_engines(
    asking: Engine, spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = asking.run(spark.table(table))
    zero = query_errors()["DIVIDE_BY_ZERO"]("A zero.")

    def one_batch_then_raise() -> Iterator[object]:
        yield next(there)
        raise zero

    there = result._collected.batches()
    monkeypatch.setattr(result._collected, "batches", one_batch_then_raise)
    taken = result.batches()
    assert next(taken).num_rows == 1
    assert caught(lambda: list(taken)) is zero


#: Steps that a library refuses for a reason of its own, or for one that Spark has a name for.
REFUSED = ("timestampadd(YEAR, i * 100000, timestamp'2024-01-01 00:00:00')", "sequence(1, l * 1000000000000)")


@pytest.mark.parametrize("text", REFUSED)
def test_what_no_step_is_made_for_is_left_to_spark_and_told_without_foreign_words(
    text: str, asking: Engine, spark: SparkSession, table: str, setting: Callable[[str, str], None]
) -> None:
    df = spark.sql(f"select {text} as v from {table}")
    needs_the_engine(asking, df, text)
    assert described(caught(lambda: asking.collect(df))) == described(caught(df.collect))
    setting("sparkErrors", "false")
    own = caught(lambda: asking.collect(df))
    assert not FOREIGN.search(str(own)), str(own)


def iter_raising(error: Exception) -> Iterator[object]:
    yield from ()
    raise error


def test_every_sqlstate_is_sparks(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    helper = jvm.org.apache.spark.SparkThrowableHelper
    known = [name for name in query_errors() if not name.startswith("WALLABY")]
    assert {name: SQL_STATES.get(name) for name in known} == {
        name: helper.getSqlState(name) for name in known
    }
