"""The same action with the engine and without it, in turn, in one session; with proof of what ran where.

`spark.wallaby.enabled` is the only difference between the two. Both have the same cores: a local master has one slot
more than cores, and the TaskManager occupies it, busy or idle.
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
from wallaby_lab.differential.layouts import configured

SWITCH: Final = "spark.wallaby.enabled"


@dataclass(frozen=True, slots=True)
class Setup:
    """One enabled session, and how to measure in it."""

    spark: SparkSession
    engine: Engine
    #: The tables, and a folder for what is written.
    data: Path
    folder: Path
    cores: int
    rounds: int
    say: Callable[[str], None]
    #: How often everything runs before it is timed.
    warm_ups: int = 1


@dataclass(slots=True)
class Pair:
    """One action: its times with the engine and without, and what the TaskManagers had to do with it."""

    on: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    #: The seconds of one core that all processes of the session took; other work on the machine is not in it.
    on_cpu: list[float] = field(default_factory=list)
    off_cpu: list[float] = field(default_factory=list)
    #: The queries that the TaskManagers got in one run with the engine, and in one without.
    queries_on: int = 0
    queries_off: int = 0
    #: The parts of Spark's plans that they ran, in words, in one run with the engine.
    parts: list[str] = field(default_factory=list)

    @property
    def times_as_fast(self) -> float:
        """How many times as fast it is with the engine, by medians."""
        return median(self.off) / median(self.on)

    @property
    def added_seconds(self) -> float:
        """What the engine adds: the median of the differences of neighbouring runs."""
        return median(on - off for on, off in zip(self.on, self.off, strict=True))


class Proof:
    """Counts what the TaskManagers get: whole queries, and parts of Spark's plans."""

    def __init__(self, engine: Engine) -> None:
        self.queries = 0
        self.parts: list[str] = []
        self._subplans: Any = engine.subplans
        self._runner: Any = engine._runner

    def __enter__(self) -> Proof:
        run, submit = self._subplans._run, self._runner._submit

        def running(subplan: Any) -> Any:
            self.parts.append("; ".join(label for label in subplan.physical.labels[:-1] if label))
            return run(subplan)

        def submitting(*arguments: Any, **named: Any) -> Any:
            self.queries += 1
            return submit(*arguments, **named)

        self._subplans._run, self._runner._submit = running, submitting
        return self

    def __exit__(self, *_: object) -> None:
        del self._subplans._run, self._runner._submit


def measure_pair(
    setup: Setup, act: Callable[[], object], *, rounds_factor: int = 1, warm_ups_factor: int = 1
) -> Pair:
    """Time an action, which plans its query anew each time, with the engine and without.

    What takes milliseconds is run some times as often.
    """
    pair, warm_ups = Pair(), setup.warm_ups * warm_ups_factor
    for number in range(warm_ups + setup.rounds * rounds_factor):
        for on in (True, False) if number % 2 else (False, True):
            quiet = contextlib.redirect_stdout(io.StringIO())
            with switched(setup.spark, on=on), Proof(setup.engine) as proof, quiet:
                cpu, began = cpu_seconds(), time.perf_counter()
                act()
                seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
            if on:
                pair.queries_on, pair.parts = proof.queries, proof.parts
            else:
                pair.queries_off = proof.queries
            if number >= warm_ups:
                (pair.on if on else pair.off).append(round(seconds, 5))
                (pair.on_cpu if on else pair.off_cpu).append(round(cpu, 3))
            if proof.parts:
                let_go(setup)
    return pair


def cpu_seconds() -> float:
    """What this process and all below it have taken: the JVM, its Python workers, the TaskManager."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # with those of processes below it that have ended
    return total


@contextmanager
def switched(spark: SparkSession, *, on: bool) -> Iterator[None]:
    """Everything inside may use the engine, or nothing."""
    with configured(spark, {SWITCH: str(on).lower()}):
        yield


def let_go(setup: Setup) -> None:
    """Have rows released that nobody reads any more, so that no later run pays for it."""
    gc.collect()
    setup.engine.subplans.collect()


def write_nowhere(df: DataFrame) -> None:
    """Make all rows in Spark's tasks and drop them there."""
    df.write.format("noop").mode("overwrite").save()


def wallaby_nodes(df: DataFrame) -> int:
    """Plan a DataFrame, run nothing, and count the parts that would run in the TaskManagers."""
    queries: Any = df._jdf.queryExecution()
    return sum(
        line.lstrip(" :+-*()0123456789").startswith("Wallaby ")
        for line in str(queries.executedPlan().toString()).splitlines()
    )
