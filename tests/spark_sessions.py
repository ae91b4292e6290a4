"""The one Spark session of a process's tests, which `tests/engine` and `tests/reading` share, and the engine on it.

Both start when a test first needs them and stay until a module of another folder begins: such modules find neither,
because some of them start sessions of their own (see the conftest at the root).
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

import wallaby
from wallaby.engine import Engine

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
#: Python functions of Spark Connect's clients run under it.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


class Engines:
    """The engine of the shared session, attached anew only when a test wants other settings."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._settings: dict[str, object] = {}
        self._engine: Engine | None = None

    def get(self, **settings: object) -> Engine:
        """An engine with these settings and all its TaskManagers. Errors are its own, so that tests see them."""
        if self._engine is None or not self._engine.is_open or settings != self._settings:
            self.close()
            self._engine = wallaby.attach(
                self._spark, **{"attach_timeout": 120, "lease": 3, "spark_errors": False, **settings}
            )
            self._settings = settings
        return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None


class SharedSpark:
    """A local session with five slots: room for four TaskManagers and an ordinary job."""

    def __init__(self) -> None:
        other = SparkContext._active_spark_context
        assert other is None, "a test has left its Spark session behind"
        self._directory = tempfile.TemporaryDirectory(prefix="wallaby-spark-", ignore_cleanup_errors=True)
        self.session: SparkSession = (
            SparkSession.builder.master("local[5]")
            .appName("wallaby tests")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "1g")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", f"{self._directory.name}/warehouse")
            .config("spark.local.dir", f"{self._directory.name}/local")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            .getOrCreate()
        )
        self.session.sparkContext.setLogLevel("OFF")
        self.engines = Engines(self.session)
        #: What folders keep with the session: made once, gone with it.
        self.kept: dict[str, Any] = {}

    def stop(self) -> None:
        self.engines.close()
        self.session.stop()
        self._directory.cleanup()


_shared: SharedSpark | None = None


def shared_spark() -> SharedSpark:
    """The session of this process, started if there is none."""
    global _shared  # noqa: PLW0603 - one for each process, as Spark's own context
    if _shared is None:
        _shared = SharedSpark()
    return _shared


def stop_shared_spark() -> None:
    """Stop the session of this process, if there is one."""
    global _shared  # noqa: PLW0603 - as above
    if _shared is not None:
        _shared.stop()
        _shared = None
