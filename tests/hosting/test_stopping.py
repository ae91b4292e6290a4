"""`spark.stop()`, Ctrl-C and the end of the program without `disable`: nothing is printed, and a new session works."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: What a user would take for a failure.
NOISE = re.compile(r"ERROR|Exception|Traceback|^\tat |SparkContext was shut down", re.MULTILINE)
PROGRAM = """
import os, signal, sys, threading, time
import psutil
from pyspark.sql import SparkSession
import wallaby
for number in range(int(sys.argv[2])):
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    wallaby.enable(spark, attach_timeout=120, console_quiet=sys.argv[3] != "show")
    rows = spark.read.parquet(sys.argv[1]).groupBy("n_regionkey").count().collect()
    print("round", number, len(rows), flush=True)
    if sys.argv[3] in ("kill", "show"):
        engine = wallaby.attach.__globals__["attached_to"](spark)
        for with_keeper in (False, True):  # Spark's task, which notices its end, is the TaskManager's keeper
            before = {worker.pid for worker in engine.workers()}
            for pid in before:
                os.kill(psutil.Process(pid).ppid() if with_keeper else pid, signal.SIGKILL)
            while not {worker.pid for worker in engine.workers() if worker.is_live} - before:
                time.sleep(0.1)
            time.sleep(1)  # for whatever is still to be said about the loss
        spark.stop()
    if sys.argv[3] == "busy":
        spark.read.parquet(sys.argv[1]).createOrReplaceTempView("nation")
        long = "select count(*) from " + " cross join ".join(f"nation n{at}" for at in range(7))
        failed = []

        def work():
            try:
                print("answered", spark.sql(long).collect(), flush=True)
            except Exception as error:
                failed.append(type(error).__name__)

        working = threading.Thread(target=work)
        working.start()
        engine = wallaby.attach.__globals__["attached_to"](spark)
        while not engine._parts.gcs.queries():
            time.sleep(0.05)
        time.sleep(1)
        spark.stop()
        working.join(60)
        print("ended with", *failed, flush=True)
    if sys.argv[3] == "stop":
        spark.stop()
if sys.argv[3] == "wait":
    try:
        time.sleep(300)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
print("end", flush=True)
"""


def started(data: Path, rounds: int, how: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(next(data.glob("nation*"))), str(rounds), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


@pytest.mark.spark
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("rounds", "how"), [(2, "stop"), (1, "leave")])
def test_the_end_is_quiet(data: Path, rounds: int, how: str) -> None:
    program = started(data, rounds, how)
    said, complained = program.communicate(timeout=380)
    assert said.split("\n")[:-1] == [*(f"round {number} 5" for number in range(rounds)), "end"]
    assert not NOISE.search(complained), complained
    assert program.returncode == 0


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_the_end_is_quiet_while_a_query_runs(data: Path) -> None:
    program = started(data, 1, "busy")
    said, complained = program.communicate(timeout=380)
    assert said.split("\n")[:-1] == ["round 0 5", "ended with QueryCancelledError", "end"]
    assert not NOISE.search(complained), complained
    assert program.returncode == 0


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_ctrl_c_is_quiet(data: Path) -> None:
    program = started(data, 1, "wait")
    assert program.stdout is not None
    assert program.stdout.readline() == "round 0 5\n"
    time.sleep(0.5)
    os.kill(program.pid, signal.SIGINT)
    said, complained = program.communicate(timeout=380)
    assert said == "interrupted\nend\n"
    assert not NOISE.search(complained), complained
    assert program.returncode == 0


@pytest.mark.spark
@pytest.mark.timeout(400)
@pytest.mark.parametrize("how", ["kill", "show"])
def test_a_lost_worker_is_one_line_unless_a_setting_shows_more(data: Path, how: str) -> None:
    program = started(data, 1, how)
    said, complained = program.communicate(timeout=380)
    assert said == "round 0 5\nend\n"
    ours = [line for line in complained.splitlines() if line.startswith("lost w0-")]
    assert ours, complained
    assert len(ours) == len({line.split()[1] for line in ours}), "one line for each loss"
    assert bool(NOISE.search(complained)) is (how == "show"), complained
    assert program.returncode == 0
