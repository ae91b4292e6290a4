"""A little TPC-H data for the tests that read plans, in the shared Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from pyspark.sql import SparkSession
from tests.spark_sessions import shared_spark

from tools.daily_functions import KINDS
from wallaby_lab import tpch


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session of its own, with its own views and settings, in the shared Spark."""
    shared = shared_spark()
    if "reading" not in shared.kept:
        directory = tmp_path_factory.mktemp("reading")
        session = shared.session.newSession()
        tpch.register(session, tpch.generate(directory / "tpch", 0.01))
        session.sql(KINDS).write.parquet(str(directory / "kinds"))
        session.read.parquet(str(directory / "kinds")).createOrReplaceTempView("kinds")
        shared.kept["reading"] = session
    return cast(SparkSession, shared.kept["reading"])


@pytest.fixture
def legacy(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the ANSI rules off."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    yield spark
    spark.conf.unset("spark.sql.ansi.enabled")
