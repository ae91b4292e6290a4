"""How long a cold start takes: Spark, then `attach`, then the first row; and the same by `wallaby sql`.

    make measure                                  # or: python tools/measure/start.py --rounds 5 --cold

Every round is a process of its own. `--cold` has the kernel forget all files first, as after a reboot; that needs root.
On a machine with other work the seconds mean little. The CPU seconds of all processes, the JVM's included, say more;
they are printed beside them, with the load.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

QUERY = "select k, count(*) n, sum(v) s from t group by k order by k"
ROWS = 1_000_000
#: What the aims of a cold start are: attach, once Spark is up; and `wallaby sql` beyond Spark's own start.
ATTACH_SECONDS_MAX = 3.0
SQL_SECONDS_MAX = 5.0
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
PROGRAM = """
import json, sys, time, psutil

def cpu():
    tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:4]) for process in tree)

marks = {}
def mark(name):
    global at, used
    now, taken = time.perf_counter(), cpu()
    marks[name] = (now - at, taken - used)
    at, used = time.perf_counter(), cpu()

at, used = time.perf_counter(), cpu()
from wallaby.commands.session import spark_session
with spark_session("local[3]", {}) as spark:
    mark("Spark")
    import wallaby
    with wallaby.attach(spark, workers=1) as engine:
        mark("attach")
        spark.read.parquet(sys.argv[1]).createOrReplaceTempView("t")
        query = spark.sql(sys.argv[2])
        mark("analysis")
        assert engine.run(query).rows()
        mark("first query")
        assert engine.run(spark.sql(sys.argv[2])).rows()
        mark("second query")
        at, used = time.perf_counter(), cpu()
    mark("close")
print(json.dumps(marks))
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure a cold start.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold", action="store_true", help="forget cached files before each start (root)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wallaby-start-") as directory:
        table = Path(directory) / "t.parquet"
        pq.write_table(pa.table({"k": [n % 5 for n in range(ROWS)], "v": list(range(ROWS))}), table)
        phases: dict[str, list[tuple[float, float]]] = {}
        for _ in range(given.rounds):
            for name, figures in one_round(table, cold=given.cold).items():
                phases.setdefault(name, []).append(figures)
    print(
        f"{given.rounds} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores{', cold' * given.cold}"
    )
    for name, each_round in phases.items():
        seconds = [figures[0] for figures in each_round]
        used = statistics.median(figures[1] for figures in each_round)
        spread = f"({min(seconds):.2f} to {max(seconds):.2f})"
        cpu = f", CPU {used:.2f} s" if used else ""
        print(f"  {name:14} {statistics.median(seconds):6.2f} s {spread}{cpu}")
    attach = statistics.median(each[0] for each in phases["attach"])
    beyond = statistics.median(
        sql[0] - spark[0] for sql, spark in zip(phases["wallaby sql"], phases["Spark"], strict=True)
    )
    print(f"attach: {attach:.2f} s; aim: {ATTACH_SECONDS_MAX:g} s")
    print(f"wallaby sql beyond Spark's start: {beyond:.2f} s; aim: {SQL_SECONDS_MAX:g} s")
    return 0


def one_round(table: Path, *, cold: bool) -> dict[str, tuple[float, float]]:
    """The seconds and CPU seconds of each phase of a program, and of `wallaby sql` to its first row."""
    forget(cold)
    said = subprocess.run(  # noqa: S603 - the program of this file
        [sys.executable, "-c", PROGRAM, table, QUERY], capture_output=True, text=True, check=True, timeout=600
    )
    phases = {name: (figures[0], figures[1]) for name, figures in json.loads(said.stdout).items()}
    forget(cold)
    began = time.perf_counter()
    command: list[str | Path] = [
        Path(sys.executable).parent / "wallaby",
        "sql",
        QUERY,
        "--table",
        f"t={table}",
        "--format",
        "csv",
        "-q",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - ours
        assert process.stdout is not None
        process.stdout.readline()
        first = process.stdout.readline()
        seconds = time.perf_counter() - began
    if not first:
        raise SystemExit("wallaby sql printed no row")
    return {**phases, "wallaby sql": (seconds, 0.0)}


def forget(wanted: bool) -> None:
    """Have the kernel forget the files that it keeps in memory."""
    if wanted:
        os.sync()
        DROP_CACHES.write_text("3\n", encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
