"""Break the time of one query down: Catalyst, our planning, reading, kernels, partitioning, pushes, store, waiting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wallaby.engine import Engine

#: The figures in the order of the page, each with its heading there.
HEADINGS: Final = {
    "wall_seconds": "wall",
    "catalyst_seconds": "Catalyst",
    "planning_seconds": "planning",
    "run_seconds": "running",
    "scan_seconds": "scan",
    "kernel_seconds": "kernels",
    "partition_seconds": "partitioning",
    "checksum_seconds": "checksums",
    "waiting_seconds": "waiting",
    "push_seconds": "push",
    "backup_seconds": "backup",
    "store_seconds": "GCS",
}
#: The explanation of the columns; printed above the table.
EXPLANATION: Final = (
    "Seconds of one more run of each query, observed. Wall = Catalyst + planning (ours, and submitting) + running. "
    "Kernel threads × running = scan + kernels + partitioning + checksums + waiting, summed over the threads of all "
    "TaskManagers; a thread that reads uses other threads of Polars meanwhile. Push (over Flight), backup (writing to "
    "disk) and GCS have their own threads, which wait while kernels run; their times are sums over these threads."
)


def breakdown(spark: SparkSession, engine: Engine, sql: str, threads: int) -> dict[str, Any]:
    """Run a query once more, observed. `threads` are the kernel threads of all TaskManagers."""
    began = time.perf_counter()
    df = spark.sql(sql)
    query: Any = df._jdf
    query.queryExecution().optimizedPlan()
    optimized = time.perf_counter()
    result = engine.run(df, observed=True)
    submitted = time.perf_counter()
    result.arrow()
    ended = time.perf_counter()
    detail = result.stats.detail
    assert detail is not None, "it was observed"
    stages = detail.per_stage

    def total(name: str) -> float:
        return float(sum(getattr(stage, name) for stage in stages))

    parts = {name: total(name) for name in ("scan_seconds", "partition_seconds", "checksum_seconds")}
    running = ended - submitted
    seconds = {
        "wall_seconds": ended - began,
        "catalyst_seconds": optimized - began,
        "planning_seconds": submitted - optimized,
        "run_seconds": running,
        **parts,
        "kernel_seconds": total("seconds") - sum(parts.values()),
        "waiting_seconds": max(running * threads - total("seconds"), 0.0),
        **{name: getattr(detail, name) for name in ("push_seconds", "backup_seconds", "store_seconds")},
    }
    tasks = int(total("tasks"))
    graph = result.plan.graph.stages[:-1] if result.plan is not None else ()
    return {
        **{name: round(value, 4) for name, value in seconds.items()},
        "threads": threads,
        "stages": len(stages),
        "channels": sum(stage.channels for stage in graph),
        "splits": sum(stage.splits for stage in graph),
        "tasks": tasks,
        **{
            name: getattr(detail, name)
            for name in (
                "commits",
                "lineage_bytes",
                "store_calls",
                "pushes",
                "exchanged_bytes",
                "sent_bytes",
                "spilled_bytes",
            )
        },
    }
