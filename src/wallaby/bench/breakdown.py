"""Where the time of one query went: Catalyst, our planning, scans and kernels, pushes, waiting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from wallaby.lineage.graph import StageKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wallaby.engine import Engine


def breakdown(spark: SparkSession, engine: Engine, sql: str) -> dict[str, Any]:
    """Run a query once more, observed. Times of tasks are summed over threads."""
    began = time.perf_counter()
    df = spark.sql(sql)
    query: Any = df._jdf
    query.queryExecution().optimizedPlan()
    catalyst = time.perf_counter() - began
    began = time.perf_counter()
    engine.fallback_reasons(df)
    planning = time.perf_counter() - began
    result = engine.run(df, observed=True)
    result.arrow()
    stats, plan = result.stats, result.plan
    seconds = {StageKind.READ: 0.0, StageKind.EXECUTE: 0.0}
    if plan is not None:
        for stage, totals in zip(plan.graph.stages, stats["per_stage"], strict=False):
            seconds[stage.kind] += totals["seconds"]
    return {
        "catalyst_seconds": round(catalyst, 4),
        "planning_seconds": round(planning, 4),
        "run_seconds": stats["seconds"],
        "scan_task_seconds": round(seconds[StageKind.READ], 4),
        "other_task_seconds": round(seconds[StageKind.EXECUTE], 4),
        "tasks": stats["tasks"],
        "exchanged_bytes": stats.get("exchanged_bytes"),
        "sent_bytes": stats.get("sent_bytes"),
    }
