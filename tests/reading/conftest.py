"""One small Spark session for all tests that read plans, with a little TPC-H data."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tools.daily_functions import KINDS

from wallaby_lab import tpch


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    directory = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("catalyst tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    tpch.register(session, tpch.generate(directory / "tpch", 0.01))
    session.sql(KINDS).write.parquet(str(directory / "kinds"))
    session.read.parquet(str(directory / "kinds")).createOrReplaceTempView("kinds")
    yield session
    session.stop()


@pytest.fixture
def legacy(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the ANSI rules off."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    yield spark
    spark.conf.unset("spark.sql.ansi.enabled")
