"""The TPC-H queries as they are read. To accept a change: WALLABY_GOLDEN=write pytest tests/reading, and review."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.plan.tpch_fixtures import relation_path, without_session, write
from tests.reading.relation_text import format_relation

from wallaby.errors import InvalidArgumentError
from wallaby.reading.reader import read_plan
from wallaby.relations.relation import Relation
from wallaby_lab import tpch

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_a_query_reads_as_its_golden_text_says(spark: SparkSession, number: int) -> None:
    result = read_plan(spark.sql(tpch.query(number)))
    assert result.reasons == ()
    assert result.relation is not None
    text = format_relation(result.relation)
    golden = GOLDEN / f"q{number:02d}.txt"
    if os.environ.get("WALLABY_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_the_output_is_the_dataframes_schema(spark: SparkSession, number: int) -> None:
    df = spark.sql(tpch.query(number))
    result = read_plan(df)
    assert result.relation is not None, result.reasons
    expected = [(field.name, field.dataType.simpleString(), field.nullable) for field in df.schema.fields]
    assert [(c.name, str(c.type), c.nullable) for c in result.columns] == expected
    assert [(c.name, str(c.type), c.nullable) for c in result.relation.columns] == expected


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_the_relation_that_stage_graphs_are_planned_from_is_still_sparks(
    spark: SparkSession, number: int
) -> None:
    relation = read_plan(spark.sql(tpch.query(number))).relation
    assert relation is not None
    text = write(without_session(relation), Relation)
    kept = relation_path(number)
    if os.environ.get("WALLABY_GOLDEN") == "write":
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8"), f"to accept it: WALLABY_GOLDEN=write, and review {kept}"


def test_there_is_no_query_23() -> None:
    with pytest.raises(InvalidArgumentError, match="no query 23"):
        tpch.query(23)


def test_missing_data_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(tpch.TpchError, match="no Parquet data for customer, lineitem"):
        tpch.register(spark, tmp_path)
