"""Losing a machine in the middle of a run: what dies, what is told, and what comes instead."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from wallaby_lab.bench.killing import cluster_conf, killed_during, settled
from wallaby_lab.bench.machines import Machines, MachinesError

ANSWER = pa.table({"a": [2, 1]})


def test_a_machine_is_lost_in_the_middle_of_a_run() -> None:
    lost = threading.Event()

    def lose() -> float:
        lost.set()
        return 7.5

    def run() -> tuple[pa.Table, dict[str, object]]:
        assert lost.wait(30)
        return ANSWER, {"more": 1}

    told = killed_during(run, 0.05, lose)
    assert told["killed_at"] == 7.5
    assert (told["rows"], told["sum"], told["more"]) == (2, [["1"], ["2"]], 1)


def test_a_run_that_is_over_before_loses_nobody() -> None:
    told = killed_during(lambda: (ANSWER, {}), 60, lambda: pytest.fail("nobody was to be lost"))
    assert told["killed_at"] is None


def test_an_undisturbed_run_loses_nobody() -> None:
    told = killed_during(lambda: (ANSWER, {}), 0, lambda: pytest.fail("nobody was to be lost"))
    assert told["killed_at"] is None


def test_who_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wallaby_lab.bench.machines.START_SECONDS", 0.0)
    before = psutil.Process().children(recursive=True)
    with pytest.raises(MachinesError, match="master did not start in 0 s"):
        Machines(1, 1, 512, directory=tmp_path / "cluster")
    assert psutil.Process().children(recursive=True) == before


@pytest.mark.cluster
def test_a_lost_machine_takes_its_processes_with_it_and_another_comes(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    with Machines(2, 1, 512, directory=tmp_path / "cluster") as machines:
        builder = SparkSession.builder.master(machines.url).config("spark.driver.memory", "512m")
        for key, value in {**cluster_conf(512), "spark.driver.host": "127.0.0.1"}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        try:
            settled(machines, lambda: True)
            there = [
                process for process in psutil.Process().children(recursive=True) if process not in before
            ]
            at = time.time()
            assert machines.lose_one() >= at
            assert machines.executors() == 1
            gone = psutil.wait_procs(there, timeout=5)[0]
            assert len(gone) == 2, "the daemon and its executor"
            assert spark.range(10).count() == 10
            settled(machines, lambda: True)
            assert machines.executors() == 2
        finally:
            spark.stop()
        children = psutil.Process().children()
        daemons = [each for each in children if re.search(r"deploy\.(master|worker)", str(each.cmdline()))]
        assert len(daemons) == 3, "the master and two machines"
    assert not [process for process in daemons if process.is_running()]


@pytest.mark.cluster
def test_no_machine_outlives_a_program_that_fails(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from wallaby_lab.bench.machines import Machines; import sys\n"
        "Machines(1, 1, 512, directory=Path(sys.argv[1])); raise SystemExit(3)"
    )
    assert (
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, timeout=120).returncode
        == 3
    )
    assert "registered with master" in (tmp_path / "worker0.log").read_text()
    assert not [process for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(tmp_path)]
