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
import sys, time
from pyspark.sql import SparkSession
import wallaby
for number in range(int(sys.argv[2])):
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    wallaby.enable(spark, attach_timeout=120)
    rows = spark.read.parquet(sys.argv[1]).groupBy("n_regionkey").count().collect()
    print("round", number, len(rows), flush=True)
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
