"""Measure how fast Spark's tasks read kept rows, compared with Spark's own shuffle files and cache.

All three have the same rows, and all are read in the same way: Spark counts the internal rows of the plan's RDD. So
each row becomes a Spark row, and nothing else is done with it. The shuffle's map side has run before: every job is
checked to have run only one stage.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from wallaby_lab.bench.pipelines.pairs import PipelineSetup, cpu_seconds, let_go, switched
from wallaby_lab.differential.layouts import configured

_GROUP: Final = "wallaby bench hand-over"
#: How long Spark may take to inform its listeners.
_TOLD_MS: Final = 60_000
_WIDE: Final = ", ".join(
    f"l_{column} + {number} as {column}{number}"
    for number in range(10)
    for column in ("orderkey", "partkey", "suppkey", "linenumber")
)
#: For each kind of row: its columns, and the approximate maximum number of rows.
KINDS: Final[dict[str, tuple[str, int]]] = {
    "narrow": ("l_orderkey, l_linenumber", 8_000_000),
    "wide": (_WIDE, 500_000),
    "strings": ("l_shipinstruct, l_shipmode, l_comment", 1_500_000),
}


@dataclass(frozen=True, slots=True)
class HandOver:
    """Rows of one kind: how many, how many bytes as Arrow data, and the seconds of each read."""

    name: str
    columns: int
    rows: int
    size_bytes: int
    wallaby: list[float]
    shuffle: list[float]
    cache: list[float]
    #: The seconds of one core that all processes of the session took for a read from a TaskManager.
    wallaby_cpu: list[float]

    def rows_per_second(self, source: str) -> float:
        """By the median."""
        return self.rows / self._median(source)

    def bytes_per_second(self, source: str) -> float:
        """By the median; for all sources the bytes that the rows have as Arrow data."""
        return self.size_bytes / self._median(source)

    def _median(self, source: str) -> float:
        times: list[float] = getattr(self, source)
        return median(times)


def measure_hand_over(setup: PipelineSetup) -> dict[str, Any]:
    """Measure the hand-over of every kind of rows."""
    for kind in KINDS:
        setup.progress.run(kind, partial(_measured, setup, kind))
    return {"cases": setup.progress.cases}


def _measured(setup: PipelineSetup, kind: str) -> dict[str, Any]:
    one = hand_over(setup, kind)
    setup.say(
        f"hand-over, {kind}: {one.rows:,} rows; rows/s "
        + ", ".join(f"{of} {one.rows_per_second(of):,.0f}" for of in ("wallaby", "shuffle", "cache"))
    )
    return asdict(one)


def hand_over(setup: PipelineSetup, kind: str) -> HandOver:
    """One kind of rows, from all sources."""
    spark, (columns, most) = setup.spark, KINDS[kind]
    lineitems = spark.table("lineitem").count()
    some = f"where l_orderkey % {-(-lineitems // most)} = 0" if lineitems > most else ""
    text = f"select {columns} from lineitem {some}"  # noqa: S608 - our own words
    df = spark.sql(text)
    times: dict[str, list[float]] = {"wallaby": [], "shuffle": [], "cache": []}
    cpus: dict[str, list[float]] = {name: [] for name in times}
    before = set(setup.engine.subplans.kept)
    kept = setup.engine.persist(df)
    own = [rows for query, rows in setup.engine.subplans.kept.items() if query not in before]
    if len(own) != 1:
        raise RuntimeError(f"The rows of {kind} are not kept in the TaskManagers.")
    located = own[0].locate()
    with switched(spark, on=False), configured(spark, {"spark.sql.adaptive.enabled": "false"}):
        # Planned before the cache exists: otherwise Spark would exchange the cached rows.
        shuffled = _rdd(spark.sql(text).repartition(setup.cores))
        cached = spark.sql(text).persist(StorageLevel.MEMORY_AND_DISK)
        sources = {"wallaby": _rdd(kept), "shuffle": shuffled, "cache": _rdd(cached)}
        counts = {
            name: int(rdd.count()) for name, rdd in sources.items()
        }  # the cache and the shuffle are filled
        if set(counts.values()) != {located.rows}:
            raise RuntimeError(f"The sources of {kind} have different rows: {counts}.")
        for number in range(setup.rounds):
            names = list(sources) if number % 2 else list(reversed(sources))
            for name in names:
                with _one_stage(setup):
                    cpu, began = cpu_seconds(), time.perf_counter()
                    sources[name].count()
                    times[name].append(round(time.perf_counter() - began, 5))
                    cpus[name].append(round(cpu_seconds() - cpu, 3))
        cached.unpersist(blocking=True)
    kept.unpersist()
    del sources, kept
    let_go(setup)
    return HandOver(
        kind,
        len(df.columns),
        located.rows,
        located.size_bytes,
        times["wallaby"],
        times["shuffle"],
        times["cache"],
        cpus["wallaby"],
    )


def _rdd(df: DataFrame) -> Any:
    """The RDD of a plan's internal rows; always the same one."""
    return df._jdf.queryExecution().toRdd()


@contextmanager
def _one_stage(setup: PipelineSetup) -> Iterator[None]:
    """Check that the job in this block only reads: one stage runs, and no map side."""
    context = setup.spark.sparkContext
    tracker = context.statusTracker()
    before = set(tracker.getJobIdsForGroup(_GROUP))
    context.setJobGroup(_GROUP, "read rows that are there")
    try:
        yield
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    told_all: Any = context._jsc.sc().listenerBus()
    told_all.waitUntilEmpty(_TOLD_MS)
    ran = 0
    for job in set(tracker.getJobIdsForGroup(_GROUP)) - before:
        told = tracker.getJobInfo(job)
        stages = [tracker.getStageInfo(stage) for stage in (told.stageIds if told else ())]
        ran += sum(stage is not None and stage.numCompletedTasks > 0 for stage in stages)
    if ran != 1:
        raise RuntimeError(f"{ran} stages ran instead of one that only reads.")
