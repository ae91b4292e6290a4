"""Runs to learn from: queries with few workers, and with more to check predictions, each with its event log."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame

from wallaby.engine import Engine, attach
from wallaby.observe.history import History
from wallaby.observe.log_reading import read_log
from wallaby_lab import tpch
from wallaby_lab.bench.contenders.sparksql import session

#: The numbers of workers to learn from, and those to predict and compare.
LEARNED: Final = (1, 2)
CHECKED: Final = (4, 8)
RUNS: Final = 3

Say = Callable[[str], None]


def run_queries(
    data: Path,
    queries: Sequence[int],
    workers: Sequence[int],
    logs: Path,
    say: Say,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> dict[int, dict[int, History]]:
    """By query and number of workers: the log of the median of some runs; each worker has one kernel thread.

    Logs are named after the data and the settings, and kept; existing ones are not run again.
    """
    logs.mkdir(parents=True, exist_ok=True)
    of = "-".join([data.name, *(f"{name}-{value}" for name, value in sorted(settings.items()))])

    def kept(number: int, count: int) -> Path:
        return logs / f"{of}-q{number}-{count}-workers.jsonl"

    wanted = {count: [number for number in queries if not kept(number, count).exists()] for count in workers}
    if any(wanted.values()):
        _run_all(data, wanted, kept, say, settings)
    return {number: {count: read_log(kept(number, count)) for count in workers} for number in queries}


def _run_all(
    data: Path,
    wanted: Mapping[int, Sequence[int]],
    kept: Callable[[int, int], Path],
    say: Say,
    settings: Mapping[str, Any],
) -> None:
    spark = session(f"local[{max(wanted) + 1}]", "1g", data)
    try:
        with tempfile.TemporaryDirectory(prefix="wallaby-logs-") as directory:
            for count, queries in wanted.items():
                own = {"progress_enabled": False, "event_log_dir": directory, **settings}
                with attach(spark, workers=count, threads=1, **own) as engine:
                    for number in queries:
                        runs = [_run(engine, spark.sql(tpch.query(number))) for _ in range(RUNS + 1)]
                        del runs[0]  # it warms up
                        median = sorted(runs)[len(runs) // 2]
                        shutil.copy(median.log, kept(number, count))
                        say(f"query {number}, {count} workers: {median.seconds:.2f} s")
    finally:
        spark.stop()


class _Timed(NamedTuple):
    seconds: float
    log: str


def _run(engine: Engine, query: DataFrame) -> _Timed:
    result = engine.run(query, observed=True)
    result.arrow()
    log = result.stats.event_log
    return _Timed(read_log(Path(log)).seconds, log)
