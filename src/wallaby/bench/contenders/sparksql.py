"""SparkSQL, in one JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from wallaby import tpch

#: As tuned for a small machine: few partitions, adaptive, no UI. Printed with every report.
SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.autoBroadcastJoinThreshold": "64m",
    "spark.sql.files.maxPartitionBytes": "128m",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def session(master: str, memory: str, data: Path) -> SparkSession:
    """A session with these settings and the tables."""
    builder = SparkSession.builder.master(master).appName("wallaby bench")
    for key, value in {**SETTINGS, "spark.driver.memory": memory}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    tpch.register(spark, data)
    return spark


class SparkSql:
    """See `Contender`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.what = f"SparkSQL {spark.version}, {spark.sparkContext.master}"

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query."""
        return self._spark.sql(sql).toArrow()

    def breakdown(self, _sql: str) -> dict[str, Any]:
        """Spark's own UI tells."""
        return {}

    def end(self) -> None:
        """Stop it."""
        self._spark.stop()


def start(data: Path, cores: int, memory: str) -> SparkSql:
    """All of the memory is the JVM's."""
    return SparkSql(session(f"local[{cores}]", memory, data))
