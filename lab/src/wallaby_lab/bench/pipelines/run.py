"""Run parts of the benchmark of pipelines in one enabled session, and describe under what conditions each was run."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import wallaby
from wallaby.commands.session import spark_session
from wallaby_lab import tpch
from wallaby_lab.bench.contenders.settings import SETTINGS
from wallaby_lab.bench.contenders.sparksql import megabytes
from wallaby_lab.bench.figures import machine
from wallaby_lab.bench.pipelines.handover import measure_hand_over
from wallaby_lab.bench.pipelines.leaves import measure_leaves
from wallaby_lab.bench.pipelines.pairs import PipelineSetup
from wallaby_lab.bench.pipelines.pipelines import measure_pipelines, measure_writes
from wallaby_lab.bench.pipelines.planning import measure_planning
from wallaby_lab.bench.pipelines.rates import measure_rates
from wallaby_lab.provenance import commit

Say = Callable[[str], None]

PARTS: Final[dict[str, Callable[[PipelineSetup], dict[str, Any]]]] = {
    "handover": measure_hand_over,
    "pipelines": measure_pipelines,
    "writes": measure_writes,
    "planning": measure_planning,
    "leaves": measure_leaves,
    "rates": measure_rates,
}


def run_pipelines(
    parts: Sequence[str],
    data: Path,
    cores: Sequence[int],
    memory: str,
    rounds: int,
    say: Say,
    done: Callable[[str, dict[str, Any]], None],
) -> None:
    """Run parts in a session of their own; `done` gets each part's figures as soon as they are there."""
    os.sched_setaffinity(0, cores)
    half = megabytes(memory) // 2
    with tempfile.TemporaryDirectory(prefix="wallaby-pipelines-") as folder:
        conf = {
            **SETTINGS,
            "spark.driver.memory": f"{half}m",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }
        with spark_session(f"local[{len(cores) + 1}]", conf, "wallaby bench pipelines") as spark:
            run_parts(spark, parts, data, Path(folder), len(cores), half, rounds, say, done)


def run_parts(
    spark: SparkSession,
    parts: Sequence[str],
    data: Path,
    folder: Path,
    cores: int,
    megabytes_each: int,
    rounds: int,
    say: Say,
    done: Callable[[str, dict[str, Any]], None],
    warm_ups: int = 1,
) -> None:
    """Run parts in a session, with one TaskManager that has all cores and this memory."""
    tpch.register(spark, data)
    engine = wallaby.enable(
        spark,
        workers=1,
        threads=cores,
        memory=megabytes_each << 20,
        progress_enabled=False,
        spark_errors=False,  # failures must show: otherwise Spark's answer would be measured as ours
    )
    setup = PipelineSetup(spark, engine, data, folder, cores, rounds, say, warm_ups)
    try:
        for part in parts:
            load, began = os.getloadavg()[1], time.monotonic()
            figures = PARTS[part](setup)
            done(part, {"about": _about(setup, megabytes_each, load, began), **figures})
    finally:
        wallaby.disable(spark)


def _about(setup: PipelineSetup, megabytes_each: int, load: float, began: float) -> dict[str, Any]:
    return {
        "machine": machine(),
        "data": setup.data.name,
        "cores": setup.cores,
        "memory_mib": 2 * megabytes_each,
        "rounds": setup.rounds,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        # Of other processes, if it is far above zero: the last five minutes before the part began.
        "load_before": round(load, 2),
        "took_seconds": round(time.monotonic() - began),
    }
