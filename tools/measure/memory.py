"""What a TaskManager takes at its peak under a small budget, query by query: `make memory`.

A table for docs/memory.md: each query in a TaskManager of its own, its rows taken as a stream. And ten thousand tiny
tasks several times over in one TaskManager, to see whether anything stays.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import wallaby
from wallaby.commands.session import spark_session
from wallaby.errors import WallabyError
from wallaby_lab import tpch
from wallaby_lab.bench.memory import Peak, held_bytes

MIB = 1 << 20
BUDGET = 100 * MIB
SAMPLE_SECONDS = 0.02
TINY_FILES, TINY_GROUPS, TINY_ROWS, TINY_RUNS = 100, 100, 5, 5
QUERIES = {
    "every row of lineitem to the client": "select * from lineitem",
    "`group by l_orderkey`, 1.5 million groups": (
        "select l_orderkey, sum(l_quantity) q, max(l_comment) c from lineitem group by l_orderkey"
    ),
    "`group by l_comment`, 4.6 million groups": (
        "select l_comment, count(*) n, sum(l_extendedprice) s from lineitem group by l_comment"
    ),
    "lineitem joined with orders, 6 million rows to the client": (
        "select o_orderdate, l_shipmode, o_comment, l_comment, l_extendedprice "
        "from lineitem join orders on l_orderkey = o_orderkey"
    ),
    "the same join, then aggregated": (
        "select count(*) n, sum(l_extendedprice) s, min(o_comment) c, max(l_comment) d "
        "from lineitem join orders on l_orderkey = o_orderkey"
    ),
    "all of lineitem sorted by three columns": (
        "select * from lineitem order by l_extendedprice, l_orderkey, l_linenumber"
    ),
    "a join with half of the probe side in one key": (
        "select count(*) n, max(a.l_comment) c, min(o_comment) d "
        "from (select if(l_orderkey % 2 = 0, 1, l_orderkey) k, l_comment from lineitem) a join orders on k = o_orderkey"
    ),
    "a join with half of the build side in one key": (
        "select count(*) n, max(o_comment) c, min(b.l_comment) d "
        "from orders join (select if(l_orderkey % 2 = 0, 5, l_orderkey) k, l_comment from lineitem) b on o_orderkey = k"
    ),
    "distinct values of one group": (
        "select count(distinct l_comment) n, count(distinct l_orderkey) m from lineitem"
    ),
}


def measure(spark: SparkSession, sql: str) -> tuple[int, int, float, str]:
    """Bytes before and at the peak, seconds, and the error if there is one."""
    with wallaby.attach(spark, workers=1, threads=1, memory=BUDGET, broadcast=0) as engine:
        pid = engine.workers()[0].pid
        before, began, error = held_bytes(pid)[0], time.monotonic(), ""
        with Peak(pid, sample_seconds=SAMPLE_SECONDS) as peak:
            try:
                for _ in engine.run(spark.sql(sql)).batches():
                    pass
            except WallabyError as failure:
                error = failure.condition
        return before, peak.bytes, time.monotonic() - began, error


def make_tiny(directory: Path) -> None:
    """A table of ten thousand row groups."""
    directory.mkdir()
    rows = TINY_GROUPS * TINY_ROWS
    for number in range(TINY_FILES):
        ids = range(number * rows, (number + 1) * rows)
        table = pa.table({"k": [i % 7 for i in ids], "v": list(ids)})
        pq.write_table(table, directory / f"{number:03}.parquet", row_group_size=TINY_ROWS)


def measure_tiny(spark: SparkSession, directory: Path) -> None:
    """Ten thousand tiny tasks, again and again: what TaskManager and driver hold after each."""
    make_tiny(directory)
    spark.read.parquet(str(directory)).createOrReplaceTempView("tiny")
    sys.stdout.write(
        "\n| run of ten thousand tasks | tasks | TaskManager after it | seconds |\n|---|---|---|---|\n"
    )
    with wallaby.attach(spark, workers=1, threads=1, split=1) as engine:
        pid = engine.workers()[0].pid
        for run in range(TINY_RUNS):
            began = time.monotonic()
            result = engine.run(spark.sql("select k, count(*) n, sum(v) s from tiny group by k order by k"))
            result.rows()
            seconds = time.monotonic() - began
            held = held_bytes(pid)[0] // MIB
            sys.stdout.write(f"| {run + 1} | {result.stats.tasks} | {held} MiB | {seconds:.1f} |\n")
            sys.stdout.flush()


def main() -> None:
    """Print the tables."""
    with (
        tempfile.TemporaryDirectory() as directory,
        spark_session("local[3]", {"spark.sql.autoBroadcastJoinThreshold": "-1"}) as spark,
    ):
        tpch.register(spark, sys.argv[1])
        sys.stdout.write(
            f"Budget {BUDGET // MIB} MiB.\n\n| query | before | peak | seconds |\n|---|---|---|---|\n"
        )
        for name, sql in QUERIES.items():
            before, peak, seconds, error = measure(spark, sql)
            figures = f"{before // MIB} | {peak // MIB} {error}"
            sys.stdout.write(f"| {name} | {figures} | {seconds:.1f} |\n")
            sys.stdout.flush()
        measure_tiny(spark, Path(directory) / "tiny")


if __name__ == "__main__":
    main()
