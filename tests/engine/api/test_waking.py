"""Python is started ahead under local masters, once, and a failure says nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterable

import pytest

from wallaby import waking


class FakeContext:
    """A SparkContext that runs the job of one element, or fails."""

    def __init__(self, master: str, error: Exception | None = None) -> None:
        self.master = master
        self.error = error
        self.pythonExec = "python3"
        self.jobs: list[list[int]] = []

    def getConf(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        return {}

    def setLocalProperty(self, key: str, value: str) -> None:  # noqa: N802 - PySpark's name
        assert (key, value) == ("spark.job.description", "Wallaby starts Python")

    def parallelize(self, rows: list[int], parts: int) -> FakeContext:
        assert parts == 1
        assert self.pythonExec == sys.executable, "TaskManagers use that one"
        if self.error is not None:
            raise self.error
        self.jobs.append(rows)
        return self

    def mapPartitions(self, function: Callable[[object], Iterable[int]]) -> FakeContext:  # noqa: N802 - PySpark's name
        assert not list(function([0]))
        return self

    def collect(self) -> list[int]:
        return []


def woken(context: FakeContext | None, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Is a job run?"""

    class Module:
        class SparkContext:
            _active_spark_context = context

    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark.core.context", Module)
    waking.wake_python()
    for thread in threading.enumerate():
        if thread.name == "wallaby-wake":
            thread.join(10)
    return context is not None and context.jobs == [[0]]


def test_python_is_started_where_tasks_run_in_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    assert woken(FakeContext("local[2]"), monkeypatch)
    assert not woken(FakeContext("spark://host:7077"), monkeypatch)
    assert not woken(FakeContext("local-cluster[2,1,1024]"), monkeypatch)
    assert not woken(None, monkeypatch)


def test_a_failure_is_left_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not woken(FakeContext("local[2]", ValueError("stopped")), monkeypatch)


def test_whoever_starts_an_engine_starts_python_once() -> None:
    program = """
import sys
import wallaby
import wallaby.waking
woken = []
wallaby.waking.wake_python = lambda: woken.append("wallaby.engine" in sys.modules)
wallaby.Where
assert woken == []
wallaby.enable, wallaby.attach, wallaby.enable
assert woken == [False], woken
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
