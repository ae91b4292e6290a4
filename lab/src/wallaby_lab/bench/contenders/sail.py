"""Sail, a replacement of Spark, if it is installed: its server in this process, asked through Spark Connect."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from wallaby_lab.bench.contenders import Contender
from wallaby_lab.tpch import TABLES


class Sail(Contender):
    """See `Contender`."""

    def __init__(self, server: Any, spark: Any, what: str) -> None:
        self._server = server
        self._spark = spark
        self.what = what

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query."""
        return self._spark.sql(sql).toArrow()

    def end(self) -> None:
        """Stop both."""
        self._spark.stop()
        self._server.stop()


def start(data: Path, cores: int, _memory: str, mode: str) -> Sail:
    """In one process, or with workers that exchange data (`local-cluster`)."""
    os.environ["SAIL_MODE"] = mode
    os.environ["SAIL_EXECUTION__DEFAULT_PARALLELISM"] = str(cores)
    server = import_module("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    server.start()
    _, port = server.listening_address
    session = import_module("pyspark.sql.connect.session").SparkSession
    spark = session.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    for table in TABLES:
        spark.read.parquet(str(data / f"{table}.parquet")).createOrReplaceTempView(table)
    return Sail(server, spark, f"Sail {version('pysail')}, {mode}, parallelism {cores}")
