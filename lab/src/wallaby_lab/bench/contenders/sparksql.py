"""SparkSQL, in one JVM, or on machines of which one may be lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from wallaby.config.settings import read_settings
from wallaby_lab import tpch
from wallaby_lab.bench.contenders import SPARK_SETTINGS, Contender
from wallaby_lab.bench.killing import EXECUTORS, cluster_conf, four_machines, killed_during, settled
from wallaby_lab.bench.machines import Machines


def session(master: str, memory: str, data: Path, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session with these settings and the tables."""
    builder = SparkSession.builder.master(master).appName("wallaby bench")
    for key, value in {**SPARK_SETTINGS, "spark.driver.memory": memory, **(conf or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    tpch.register(spark, data)
    return spark


class SparkSql(Contender):
    """See `Contender`."""

    def __init__(self, spark: SparkSession, machines: Machines | None = None) -> None:
        self._spark = spark
        self._machines = machines
        where = f"{machines.count} machines" if machines else spark.sparkContext.master
        self.what = f"SparkSQL {spark.version}, {where}"

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query."""
        return self._spark.sql(sql).toArrow()

    def ask_killed(self, sql: str, after_seconds: float) -> dict[str, Any]:
        """The same, and a machine is lost on the way."""
        assert self._machines is not None, "it was started on a cluster"
        return killed_during(lambda: (self.ask(sql), {}), after_seconds, self._machines.lose_one)

    def settle(self) -> float:
        """Wait until all executors are there."""
        assert self._machines is not None, "it was started on a cluster"
        return settled(self._machines, lambda: True)

    def end(self) -> None:
        """Stop the session."""
        self._spark.stop()
        if self._machines is not None:
            self._machines.close()


def start(data: Path, cores: int, memory: str, cluster: bool = False) -> SparkSql:
    """All of the memory is the JVM's; in a cluster it is shared out, a fifth for the driver and each executor."""
    if not cluster:
        return SparkSql(session(f"local[{cores}]", memory, data))
    each = megabytes(memory) // (EXECUTORS + 1)
    machines = four_machines(each)
    return SparkSql(session(machines.url, f"{each}m", data, cluster_conf(each)), machines)


def megabytes(memory: str) -> int:
    """A size such as 8g in MiB."""
    return read_settings({}, {"memory": memory}).memory >> 20
