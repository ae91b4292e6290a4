"""What `enable` costs queries that stay on Spark: each with it and without it in turn, in one session.

Run it on a quiet machine: `make measure`. The figure is the median of the differences of neighbouring runs.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import wallaby
from wallaby.commands.session import spark_session
from wallaby_lab import tpch

WARM_UPS = 10
ROUNDS = 40
SWITCH = "spark.wallaby.enabled"


def cases(spark: SparkSession) -> dict[str, Callable[[], object]]:
    """Queries that are not worth an engine, or that it cannot run."""
    rows = [(number, str(number)) for number in range(10)]
    local = spark.createDataFrame(rows, "a int, b string")
    return {
        "local rows, collect": lambda: local.select("a").collect(),
        "local rows, count": lambda: local.select("a").count(),
        "local rows, show": lambda: local.select("b").show(),
        "local rows, toPandas": local.toPandas,
        "one row": lambda: spark.sql("select 1").collect(),
        "a range, count": lambda: spark.range(100).count(),
        "a command": lambda: spark.sql("show tables").collect(),
        "a command, show": lambda: spark.sql("show tables").show(),
        "a random column of a table": lambda: spark.sql("select rand() from nation").collect(),
        "the same, show": lambda: spark.sql("select rand() from nation").show(),
    }


def measure(spark: SparkSession, ask: Callable[[], object]) -> tuple[float, float, float]:
    """Milliseconds: the median without, the median difference, and its 90th percentile."""
    without, differences = [], []
    with contextlib.redirect_stdout(io.StringIO()):
        for number in range(WARM_UPS + ROUNDS):
            seconds = {}
            for switch in ("true", "false") if number % 2 else ("false", "true"):
                spark.conf.set(SWITCH, switch)
                began = time.perf_counter()
                ask()
                seconds[switch] = time.perf_counter() - began
            if number >= WARM_UPS:
                without.append(seconds["false"] * 1000)
                differences.append((seconds["true"] - seconds["false"]) * 1000)
    return (
        statistics.median(without),
        statistics.median(differences),
        statistics.quantiles(differences, n=10)[-1],
    )


def main() -> None:
    """Print a table."""
    with (
        tempfile.TemporaryDirectory() as directory,
        spark_session("local[3]", {"spark.sql.shuffle.partitions": "2"}) as spark,
    ):
        tpch.register(spark, tpch.generate(Path(directory) / "data", 0.01))
        wallaby.enable(spark, workers=1)
        sys.stdout.write("| query | Spark alone | enable adds | 90th percentile |\n|---|---|---|---|\n")
        for name, ask in cases(spark).items():
            alone, added, tenth = measure(spark, ask)
            sys.stdout.write(f"| {name} | {alone:.1f} ms | {added:+.1f} ms | {tenth:+.1f} ms |\n")
            sys.stdout.flush()
        wallaby.disable(spark)


if __name__ == "__main__":
    main()
