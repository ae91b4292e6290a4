"""The list of daily functions says what Spark says, and what it calls native is read."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tools.daily_functions import kept, planned
from wallaby.reading.reader import read_plan

pytestmark = pytest.mark.spark


def test_names_are_sparks(spark: SparkSession) -> None:
    known = {row[0] for row in spark.sql("show functions").collect()}
    names = {daily.name.partition(" (")[0] for daily in kept() if daily.group not in ("operators", "casts")}
    # These are words of the grammar.
    assert names - known == {"timestampadd", "timestampdiff"}


def test_examples_become_the_classes_that_the_list_says(spark: SparkSession) -> None:
    assert list(planned(spark)) == kept()


def test_what_the_list_calls_native_is_read(spark: SparkSession) -> None:
    refused = [
        daily
        for daily in kept()
        if daily.is_native and read_plan(spark.sql(f"select {daily.example} from kinds")).relation is None
    ]
    assert refused == []


def test_more_than_a_hundred_and_fifty_are_native() -> None:
    assert sum(daily.is_native for daily in kept()) > 150
