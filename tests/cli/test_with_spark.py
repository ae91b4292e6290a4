"""The command line for real, in processes of its own: a query on Spark and an engine, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wallaby.observe.log_reading import read_log

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
WALLABY = (sys.executable, "-c", "from wallaby.cli import main; main()")
#: A command starts Spark and an engine within this time, also on a loaded machine.
SECONDS = 280


def run(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WALLABY, *arguments], cwd=directory, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    numbers = list(range(1000))
    pq.write_table(
        pa.table({"k": [n % 3 for n in numbers], "v": numbers}), tmp_path / "t.parquet", row_group_size=300
    )
    return tmp_path


def test_a_query_is_answered_and_its_log_makes_a_report(data: Path) -> None:
    query = "select k, count(*) as n, sum(v) as total from t group by k order by k"
    options = ("--table", "t=t.parquet", "--format", "csv", "--event-log", "logs")
    said = run("sql", query, *options, directory=data)
    assert said.returncode == 0, said.stderr
    assert said.stdout == "k,n,total\n0,334,166833\n1,333,166167\n2,333,166500\n"
    assert "3 rows in" in said.stderr
    assert "by Wallaby" in said.stderr
    assert said.stderr.count("\n") == 1
    (log,) = (data / "logs").iterdir()
    history = read_log(log)
    assert history.outcome == "done"
    assert history.commits > 0
    assert sum(totals.tasks for totals in history.totals()) == history.commits
    assert run("report", str(log), directory=data).returncode == 0


def test_an_interrupt_ends_it_with_130(data: Path) -> None:
    query = "select count(*) from t a join t b on a.k = b.k join t c on b.k = c.k join t d on c.k = d.k"
    command = [*WALLABY, "sql", query, "--table", "t=t.parquet", "--event-log", "logs"]
    with subprocess.Popen(
        command, cwd=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        deadline = time.monotonic() + SECONDS
        while not list(data.glob("logs/*.jsonl")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    (log,) = data.glob("logs/*.jsonl")
    assert read_log(log).outcome == "cancelled"


def test_without_java_the_way_to_install_it_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(data / "nowhere"))
    said = run("sql", "select 1", directory=data)
    assert said.returncode == 1
    assert said.stderr.startswith(f"wallaby: [WALLABY_JAVA] JAVA_HOME={data}/nowhere has no working Java")
    assert "apt install openjdk" in said.stderr
    assert said.stderr.count("\n") == 1
