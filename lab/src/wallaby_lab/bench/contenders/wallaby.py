"""This engine, with one or more TaskManagers. A quarter of the memory is the JVM's, which plans; the rest is theirs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from wallaby.engine import Engine, attach
from wallaby.observe.event import EventKind
from wallaby.results.result import Result
from wallaby.version import __version__
from wallaby_lab.bench.breakdown import breakdown
from wallaby_lab.bench.contenders import Contender
from wallaby_lab.bench.contenders.sparksql import megabytes, session
from wallaby_lab.bench.killing import EXECUTORS, cluster_conf, four_machines, killed_during, settled
from wallaby_lab.bench.machines import Machines

#: An executor that only hosts a TaskManager needs no optimizing compiler: its JVM then starts with half of the work.
HOSTING_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: The memory of an executor's JVM if TaskManagers do the work.
EXECUTOR_MEGABYTES = 512
#: The statistics of a run: the effects of a loss, and what was recorded and moved with or without one.
_OF_LOSSES: Final = ("frozen_seconds", "recoveries", "restarts", "channels_rewound")
_FACTS: Final = (
    *("durable_bytes", "durable_seconds", "checkpoints", "commits", "lineage_bytes"),
    *("exchanged_bytes", "sent_bytes", "spilled_bytes"),
)


class Wallaby(Contender):
    """See `Contender`."""

    def __init__(
        self, spark: SparkSession, settings: dict[str, Any], machines: Machines | None = None
    ) -> None:
        self._spark = spark
        self._machines = machines
        # Failures must show: otherwise Spark's answer would be measured as ours.
        self._settings = settings = {"spark_errors": False, **settings}
        began = time.perf_counter()
        self._engine: Engine = attach(spark, **settings)
        self.attach_seconds = time.perf_counter() - began
        size = f"{settings['workers']} TaskManager(s) of {settings['threads']} thread(s)"
        tolerance = ", fault tolerance off" if settings["fault_tolerance_policy"] == "off" else ""
        where = f"{machines.count} machines" if machines else spark.sparkContext.master
        self.what = f"Wallaby {__version__}, {where}, {size}{tolerance}"

    def configure(self, more: dict[str, Any]) -> None:
        """Attach again, with additional settings."""
        self._engine.close()
        self._engine = attach(self._spark, **{**self._settings, **more})

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query, only natively."""
        return self._run(sql, observed=False).arrow()

    def _run(self, sql: str, *, observed: bool) -> Result:
        result = self._engine.run_native(self._spark.sql(sql), observed=observed)
        if result is None:
            raise RuntimeError("; ".join(self._engine.fallback_reasons(self._spark.sql(sql))))
        return result

    def breakdown(self, sql: str) -> dict[str, Any]:
        """See `breakdown`."""
        return breakdown(
            self._spark, self._engine, sql, self._settings["workers"] * self._settings["threads"]
        )

    def worker_pids(self) -> list[int]:
        """The TaskManagers."""
        return [worker.pid for worker in self._engine.workers()]

    def lifecycle(self, count: int) -> dict[str, list[float]]:
        """Close and attach again several times; returns the times."""
        closing, attaching = [], [self.attach_seconds]
        for _ in range(count):
            began = time.perf_counter()
            self._engine.close()
            closed = time.perf_counter()
            self._engine = attach(self._spark, **self._settings)
            closing.append(round(closed - began, 3))
            attaching.append(round(time.perf_counter() - closed, 3))
        return {"attach_seconds": [round(seconds, 3) for seconds in attaching], "close_seconds": closing}

    def ask_killed(self, sql: str, after_seconds: float) -> dict[str, Any]:
        """Run a query during which a machine with its TaskManager is lost."""
        assert self._machines is not None, "it was started on a cluster"

        def run() -> tuple[pa.Table, dict[str, Any]]:
            result = self._run(sql, observed=True)
            answer = result.arrow()
            stats = result.stats
            froze = [event.at for event in result.events if event.kind == EventKind.FROZE.value]
            assert stats.detail is not None, "it was observed"
            again = sum(stage.again_seconds for stage in stats.detail.per_stage)
            return answer, {
                "froze_at": min(froze, default=None),
                "again_seconds": round(again, 3),
                **{name: getattr(stats, name) for name in _OF_LOSSES},
                **{name: getattr(stats.detail, name) for name in _FACTS},
            }

        return killed_during(run, after_seconds, self._machines.lose_one)

    def facts(self, sql: str) -> dict[str, Any]:
        """What one run recorded and moved."""
        result = self._run(sql, observed=True)
        result.arrow()
        detail = result.stats.detail
        return {name: getattr(detail, name) for name in _FACTS}

    def settle(self) -> float:
        """Wait until exactly the expected TaskManagers are there."""
        assert self._machines is not None, "it was started on a cluster"

        def is_whole() -> bool:
            live = [w.id.partition("-")[0] for w in self._engine.workers() if w.is_live]
            return len(live) == len(set(live)) == int(self._settings["workers"])

        return settled(self._machines, is_whole)

    def end(self) -> None:
        """Close it, and Spark with it."""
        self._engine.close()
        self._spark.stop()
        if self._machines is not None:
            self._machines.close()


def start(
    data: Path,
    cores: int,
    memory: str,
    workers: int,
    tolerant: bool = True,
    cluster: bool = False,
    more: Mapping[str, Any] | None = None,
) -> Wallaby:
    """Start the engine. The TaskManagers share the cores; in a cluster each has its own executor."""
    whole = megabytes(memory)
    settings: dict[str, Any] = {
        "workers": EXECUTORS if cluster else workers,
        "progress_enabled": False,
        "fault_tolerance_policy": "lineage" if tolerant else "off",
        **(more or {}),
    }
    count = settings["workers"]
    machines = None
    if cluster:
        jvms = EXECUTOR_MEGABYTES * (count + 2)
        machines = four_machines(EXECUTOR_MEGABYTES)
        spark = session(
            machines.url,
            f"{2 * EXECUTOR_MEGABYTES}m",
            data,
            {**cluster_conf(EXECUTOR_MEGABYTES), "spark.executor.extraJavaOptions": HOSTING_JVM},
        )
        settings |= {"exclusive": True, "memory": ((whole - jvms) // count) << 20}
    else:
        spark = session(f"local[{workers + 1}]", f"{whole // 4}m", data)
        settings |= {"memory": (whole * 3 // 4 // count) << 20}
    settings["threads"] = max(1, cores // count)
    return Wallaby(spark, settings, machines)
