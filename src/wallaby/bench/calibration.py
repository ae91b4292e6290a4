"""Runs to learn from: queries with few workers, and with more to check what was learned, each with its event log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

from wallaby import tpch
from wallaby.bench.contenders.sparksql import session
from wallaby.engine import Engine, attach
from wallaby.observe.history import History, read_log

#: What is learned from, and what is predicted and compared.
LEARNED: Final = (1, 2)
CHECKED: Final = (4, 8)
RUNS: Final = 3

Say = Callable[[str], None]


def run_queries(
    data: Path, queries: Sequence[int], workers: Sequence[int], logs: Path, say: Say
) -> dict[int, dict[int, History]]:
    """By query and number of workers: the log of the median of some runs, workers of one kernel thread each."""
    found: dict[int, dict[int, History]] = {number: {} for number in queries}
    spark = session(f"local[{max(workers) + 1}]", "1g", data)
    try:
        for count in workers:
            with attach(
                spark, workers=count, threads=1, progress_enabled=False, event_log_dir=str(logs)
            ) as engine:
                for number in queries:
                    runs = [_run(engine, spark.sql(tpch.query(number))) for _ in range(RUNS + 1)]
                    del runs[0]  # it warms up
                    runs.sort(key=lambda run: run.seconds)
                    found[number][count] = runs[len(runs) // 2]
                    say(f"query {number}, {count} workers: {found[number][count].seconds:.2f} s")
    finally:
        spark.stop()
    return found


def _run(engine: Engine, query: DataFrame) -> History:
    result = engine.run(query, observed=True)
    result.arrow()
    seen = result.observed_stats()
    assert seen is not None, "it was asked for"
    return read_log(Path(seen.event_log))
