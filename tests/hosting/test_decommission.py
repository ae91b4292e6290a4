"""Executors that Spark has been told will go: each of their TaskManagers is drained, once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from wallaby.errors import GcsUnavailableError
from wallaby.gcs.interface import WorkerLease
from wallaby.lineage.names import WorkerId
from wallaby.node.worker_address import WorkerAddress
from wallaby.spark.decommission import Decommissions

LIMIT_SECONDS = 10.0


class Scene:
    """A cluster of which executor 1 is to go, and the drains that were asked for."""

    def __init__(self) -> None:
        self.drained: list[str] = []
        self.asked = threading.Semaphore(0)
        self.answers = [True]
        self.leases = [lease("w0-a", "1"), lease("w1-b", "2"), lease("w2-c", "")]

    def is_decommissioned(self, executor: str) -> bool:
        return executor == "1"

    def workers(self) -> tuple[WorkerLease, ...]:
        return tuple(self.leases)

    def drain(self, worker: WorkerId, _: float) -> bool:
        self.drained.append(worker)
        self.asked.release()
        return self.answers.pop(0)

    def watch(self) -> Decommissions:
        return Decommissions(self, self.workers, self.drain)


def lease(worker: str, executor: str) -> WorkerLease:
    return WorkerLease(
        WorkerId(worker), WorkerAddress("grpc://127.0.0.1:1", "here", 7, executor).encode(), 1000
    )


def test_only_what_is_in_an_executor_that_goes_is_drained_and_only_once() -> None:
    scene = Scene()
    watch = scene.watch()
    watch.look()
    watch.look()
    assert scene.asked.acquire(timeout=LIMIT_SECONDS)
    assert scene.drained == ["w0-a"]


def test_a_drain_that_does_not_come_to_its_end_is_tried_again() -> None:
    scene = Scene()
    scene.answers = [False, False, True]
    scene.watch().look()
    for _ in range(3):
        assert scene.asked.acquire(timeout=LIMIT_SECONDS)
    assert scene.drained == ["w0-a"] * 3


def test_a_store_that_does_not_answer_is_somebody_elses_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent() -> tuple[WorkerLease, ...]:
        raise GcsUnavailableError("no answer")

    scene = Scene()
    monkeypatch.setattr(scene, "workers", silent)
    scene.watch().look()
    assert scene.drained == []


@pytest.mark.parametrize("executor", ["", "3"])
def test_a_place_tells_its_executor(executor: str) -> None:
    place = WorkerAddress("grpc://127.0.0.1:1", "here", 7, executor)
    assert WorkerAddress.decode(place.encode()) == place


@pytest.mark.parametrize("between", [0, 1, 2, 3], ids=["nobody", "a daemon", "and a keeper", "and one more"])
def test_an_executors_id_is_read_from_its_command(between: int) -> None:
    """Whatever processes are between the one that asks and its executor."""
    program = "from wallaby.worker.executor_slot import spark_id_of_executor; print(spark_id_of_executor())"
    for _ in range(between + 1):
        program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}], check=True)"
    for arguments, found in ((["--executor-id", "17", "--cores", "2"], "17"), ([], "")):
        answer = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=60,
        )
        assert answer.stdout.decode().strip() == found
