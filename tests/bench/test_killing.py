"""Killing an executor: what is found, what dies, and what is told; with processes that only look like executors."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from wallaby.bench.killing import executors, killed_during, settled

SCRIPT = "sleep 60 & echo $!; wait"


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[tuple[psutil.Process, int]]:
    """A shell under the name `java`, whose arguments name Spark's class, with a child."""
    java = tmp_path / "java"
    shutil.copy(Path("/bin/sh").resolve(), java)
    command = [str(java), "-c", SCRIPT, "org.apache.spark.executor.CoarseGrainedExecutorBackend"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        yield psutil.Process(process.pid), child
        for each in (process.pid, child):
            if psutil.pid_exists(each):
                psutil.Process(each).kill()


def test_an_executor_dies_with_its_children_in_the_middle_of_a_run(
    fake: tuple[psutil.Process, int],
) -> None:
    process, child = fake
    assert executors() == [process]
    answer = pa.table({"a": [2, 1]})

    def run() -> tuple[pa.Table, dict[str, object]]:
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        return answer, {"more": 1}

    told = killed_during(run, 0.05)
    assert told["killed_at"] is not None
    assert (told["rows"], told["sum"], told["more"]) == (2, [["1"], ["2"]], 1)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_run_that_is_over_before_loses_nobody(fake: tuple[psutil.Process, int]) -> None:
    told = killed_during(lambda: (pa.table({"a": [1]}), {}), 60)
    assert told["killed_at"] is None
    assert executors() == [fake[0]]


def test_who_never_settles_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wallaby.bench.killing.SETTLE_SECONDS", 0.0)
    with pytest.raises(TimeoutError, match="0 of 4"):
        settled(lambda: True)
