"""Run the same action with and without the engine, in turn, in one session, and prove what ran where.

`spark.wallaby.enabled` is the only difference. Both have the same cores: a local master has one more slot than cores,
and the TaskManager occupies it, busy or idle.
"""

from __future__ import annotations

import contextlib
import gc
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil
from pyspark.sql import DataFrame, SparkSession

from wallaby.engine import Engine
from wallaby_lab.bench.pipelines.progress import PartProgress
from wallaby_lab.differential.layouts import configured
from wallaby_lab.differential.tops.witness import witness

SWITCH: Final = "spark.wallaby.enabled"


@dataclass(frozen=True, slots=True)
class PipelineSetup:
    """One enabled session, and how to measure in it."""

    spark: SparkSession
    engine: Engine
    #: The tables, and a folder for output.
    data: Path
    folder: Path
    cores: int
    rounds: int
    say: Callable[[str], None]
    #: The number of untimed runs before the timed ones.
    warm_ups: int = 1
    #: What earlier runs have measured of the part that is being measured, and how long this one may take.
    progress: PartProgress = field(default_factory=PartProgress)


@dataclass(slots=True)
class Pair:
    """One action: its times with and without the engine, and what the TaskManagers ran."""

    on: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    #: The CPU seconds of all processes of the session; other work on the machine does not count.
    on_cpu: list[float] = field(default_factory=list)
    off_cpu: list[float] = field(default_factory=list)
    #: The number of queries that the TaskManagers ran in one run with the engine, and in one without.
    queries_on: int = 0
    queries_off: int = 0
    #: Descriptions of the parts of Spark's plans that they ran in one run with the engine.
    parts: list[str] = field(default_factory=list)

    @property
    def times_as_fast(self) -> float:
        """The speedup with the engine, by medians."""
        return median(self.off) / median(self.on)

    @property
    def added_seconds(self) -> float:
        """The seconds that the engine adds: the median difference of neighbouring runs."""
        return median(on - off for on, off in zip(self.on, self.off, strict=True))


def measure_pair(
    setup: PipelineSetup, act: Callable[[], object], *, rounds_factor: int = 1, warm_ups_factor: int = 1
) -> Pair:
    """Time an action, which plans its query each time, with and without the engine.

    The factors are for actions that take milliseconds: they run more often, and some of the runs are always untimed.
    """
    least = 1 if warm_ups_factor > 1 else 0
    pair, warm_ups = Pair(), max(setup.warm_ups, least) * warm_ups_factor
    for number in range(warm_ups + setup.rounds * rounds_factor):
        for on in (True, False) if number % 2 else (False, True):
            quiet = contextlib.redirect_stdout(io.StringIO())
            with switched(setup.spark, on=on), witness(setup.engine) as use, quiet:
                cpu, began = cpu_seconds(), time.perf_counter()
                act()
                seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
            if on:
                pair.queries_on, pair.parts = len(use.submitted), use.parts
            else:
                pair.queries_off = len(use.submitted)
            if number >= warm_ups:
                (pair.on if on else pair.off).append(round(seconds, 5))
                (pair.on_cpu if on else pair.off_cpu).append(round(cpu, 3))
            if use.parts:
                let_go(setup)
    return pair


def cpu_seconds() -> float:
    """The CPU seconds of this process and all below it: the JVM, its Python workers, the TaskManager."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # including its children that have ended
    return total


@contextmanager
def switched(spark: SparkSession, *, on: bool) -> Iterator[None]:
    """In this block, all queries may use the engine, or none."""
    with configured(spark, {SWITCH: str(on).lower()}):
        yield


def let_go(setup: PipelineSetup) -> None:
    """Release unreachable rows now, so that no later run pays for it."""
    gc.collect()
    setup.engine.subplans.collect()


def write_nowhere(df: DataFrame) -> None:
    """Compute all rows in Spark's tasks and discard them there."""
    df.write.format("noop").mode("overwrite").save()


def wallaby_nodes(df: DataFrame) -> int:
    """Plan a DataFrame, run nothing, and count the parts that would run in the TaskManagers."""
    queries: Any = df._jdf.queryExecution()
    return sum(
        line.lstrip(" :+-*()0123456789").startswith("Wallaby ")
        for line in str(queries.executedPlan().toString()).splitlines()
    )
