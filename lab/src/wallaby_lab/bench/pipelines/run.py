"""Run parts of the benchmark of pipelines in one enabled session, and describe under what conditions each was run."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import wallaby
from wallaby.commands.session import spark_session
from wallaby_lab import tpch
from wallaby_lab.bench.contenders import SPARK_SETTINGS
from wallaby_lab.bench.contenders.sparksql import megabytes
from wallaby_lab.bench.figures import machine
from wallaby_lab.bench.pipelines.handover import measure_hand_over
from wallaby_lab.bench.pipelines.leaves import measure_leaves
from wallaby_lab.bench.pipelines.pairs import PipelineSetup
from wallaby_lab.bench.pipelines.pipelines import measure_pipelines, measure_writes
from wallaby_lab.bench.pipelines.planning import measure_planning
from wallaby_lab.bench.pipelines.progress import Case, PartProgress, TimeIsUpError
from wallaby_lab.bench.pipelines.rates import measure_rates
from wallaby_lab.provenance import commit

Say = Callable[[str], None]
Done = Callable[[str, dict[str, Any]], None]
Known = Mapping[str, Mapping[str, Any]]
NOTHING_KNOWN: Final[Known] = {}
_PIECE_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Pace:
    """How often each case is timed, after how many untimed runs, and for how many minutes cases may begin."""

    rounds: int = 3
    warm_ups: int = 1
    minutes: float | None = None


PARTS: Final[dict[str, Callable[[PipelineSetup], dict[str, Any]]]] = {
    "handover": measure_hand_over,
    "pipelines": measure_pipelines,
    "planning": measure_planning,
    "writes": measure_writes,
    "leaves": measure_leaves,
    "rates": measure_rates,
}


def run_pipelines(
    parts: Sequence[str],
    data: Path,
    cores: Sequence[int],
    memory: str,
    pace: Pace,
    say: Say,
    done: Done,
    known: Known,
) -> None:
    """Run parts in a session of their own; `done` gets each part's figures whenever there are more of them.

    `known` are the figures of parts that an earlier run has not finished.
    """
    os.sched_setaffinity(0, cores)
    half = megabytes(memory) // 2
    with tempfile.TemporaryDirectory(prefix="wallaby-pipelines-") as folder:
        conf = {
            **SPARK_SETTINGS,
            "spark.driver.memory": f"{half}m",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }
        with spark_session(f"local[{len(cores) + 1}]", conf, "wallaby bench pipelines") as spark:
            run_parts(spark, parts, data, Path(folder), len(cores), half, pace, say, done, known)


def run_parts(
    spark: SparkSession,
    parts: Sequence[str],
    data: Path,
    folder: Path,
    cores: int,
    megabytes_each: int,
    pace: Pace,
    say: Say,
    done: Done,
    known: Known = NOTHING_KNOWN,
) -> None:
    """Run parts in a session, with one TaskManager that has all cores and this memory."""
    until = None if pace.minutes is None else time.monotonic() + 60 * pace.minutes
    read_files(data)
    tpch.register(spark, data)
    engine = wallaby.enable(
        spark,
        workers=1,
        threads=cores,
        memory=megabytes_each << 20,
        progress_enabled=False,
        spark_errors=False,  # failures must show: otherwise Spark's answer would be measured as ours
    )
    setup = PipelineSetup(spark, engine, data, folder, cores, pace.rounds, say, pace.warm_ups)
    try:
        for part in parts:
            _run_part(setup, part, known.get(part, {}), until, megabytes_each, done)
    except TimeIsUpError:
        say("The time is up. The next run with the same --save file measures the rest.")
    finally:
        wallaby.disable(spark)


def _run_part(
    setup: PipelineSetup,
    part: str,
    known: Mapping[str, Any],
    until: float | None,
    megabytes_each: int,
    done: Done,
) -> None:
    load, began = os.getloadavg()[1], time.monotonic()

    def about() -> dict[str, Any]:
        return _about(setup, megabytes_each, load, began, known.get("about", {}))

    def keep(cases: list[Case]) -> None:
        done(part, {"about": about(), "cases": cases, "unfinished": True})

    progress = PartProgress(known.get("cases", ()), keep, until)
    progress.require_time()
    figures = PARTS[part](replace(setup, progress=progress))
    done(part, {"about": about(), **figures})


def read_files(data: Path) -> None:
    """Read the tables' files once, so that whoever reads them first need not wait for the disk."""
    for path in sorted(data.rglob("*.parquet")):
        with path.open("rb") as file:
            while file.read(_PIECE_BYTES):
                pass


def _about(
    setup: PipelineSetup, megabytes_each: int, load: float, began: float, before: Mapping[str, Any]
) -> dict[str, Any]:
    """The conditions of a run; `before` are those of an earlier run that did not finish the part."""
    commits = dict.fromkeys((*str(before.get("commit", "")).split(", "), commit()))
    return {
        "machine": machine(),
        "data": setup.data.name,
        "cores": setup.cores,
        "memory_mib": 2 * megabytes_each,
        "rounds": setup.rounds,
        "warm_ups": setup.warm_ups,
        "commit": ", ".join(each for each in commits if each),
        "date": datetime.now(UTC).date().isoformat(),
        # Of other processes, if it is far above zero: the last five minutes before the part began.
        "load_before": max(round(load, 2), before.get("load_before", 0.0)),
        "took_seconds": round(time.monotonic() - began) + before.get("took_seconds", 0),
    }
