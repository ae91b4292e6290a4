"""This engine, with one or more TaskManagers. A quarter of the memory is the JVM's, which plans; the rest is theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from wallaby.bench.breakdown import breakdown
from wallaby.bench.contenders.sparksql import session
from wallaby.config import read_settings
from wallaby.engine import Engine, attach
from wallaby.version import __version__


class Wallaby:
    """See `Contender`."""

    def __init__(self, spark: SparkSession, engine: Engine) -> None:
        self._spark = spark
        self._engine = engine
        settings = engine.settings
        size = f"{settings.workers} TaskManager(s) of {settings.threads} thread(s)"
        self.what = f"Wallaby {__version__}, {spark.sparkContext.master}, {size}"

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query, natively or not at all."""
        result = self._engine.run_here(self._spark.sql(sql))
        if result is None:
            raise RuntimeError("; ".join(self._engine.fallback_reasons(self._spark.sql(sql))))
        return result.arrow()

    def breakdown(self, sql: str) -> dict[str, Any]:
        """See `breakdown`."""
        return breakdown(self._spark, self._engine, sql)

    def end(self) -> None:
        """Close it, and Spark with it."""
        self._engine.close()
        self._spark.stop()


def start(data: Path, cores: int, memory: str, workers: int) -> Wallaby:
    """The cores are shared out among the TaskManagers."""
    whole = read_settings({}, {"memory": memory}).memory
    spark = session(f"local[{workers + 1}]", f"{(whole // 4) >> 20}m", data)
    each = whole * 3 // 4 // workers
    return Wallaby(spark, attach(spark, workers=workers, threads=max(1, cores // workers), memory=each))
