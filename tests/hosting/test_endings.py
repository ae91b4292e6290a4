"""Everything is gone after close, after Ctrl-C, and after the death of the driver or of its JVM."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from tests.hosting.support import driver, until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]


def test_close_then_ctrl_c_then_the_drivers_death_leave_nothing(data: Path, tmp_path: Path) -> None:
    with driver("local[2]", data, tmp_path) as program:
        first = program.ask("attach")
        worker = psutil.Process(first["workers"][0]["pid"])
        ports = {(found["host"], found["port"]) for found in first["sockets"] if found["owner"] != "driver"}
        assert len(ports) == 4  # Redis, the head's data server, lifelines, and the TaskManager's data server
        assert {host for host, _ in ports} == {"127.0.0.1"}
        assert program.ask("run", 6)["equal"]

        assert program.ask("close")["seconds"] < 10
        assert until(lambda: not worker.is_running())
        assert program.leftovers() == []
        assert not any("redis-server" in text for text in program.processes())

        second = program.ask("attach")
        assert second["workers"][0]["id"] != first["workers"][0]["id"]
        program.tell("wait_interrupted")
        assert program.answer() == {"going": True}
        program.send(signal.SIGINT)
        assert program.answer() == {"answer": {"interrupted": True}}
        assert program.ask("workers")[0]["id"] == second["workers"][0]["id"], "Ctrl-C spares the TaskManagers"
        assert program.ask("run", 6)["equal"]

        program.send(signal.SIGKILL)
        assert until(lambda: program.processes() == []), program.processes()
        assert until(lambda: program.leftovers() == []), program.leftovers()


def test_the_jvms_death_ends_the_engine_and_its_taskmanagers(data: Path, tmp_path: Path) -> None:
    with driver("local[2]", data, tmp_path) as program:
        attached = program.ask("attach")
        worker = psutil.Process(attached["workers"][0]["pid"])
        program.remember()
        os.kill(attached["jvm"], signal.SIGKILL)
        assert until(lambda: not worker.is_running())
        assert program.ask("is_closed")
        assert until(lambda: not any("redis-server" in text for text in program.processes()))
        assert until(lambda: program.leftovers() == []), program.leftovers()
        program.send(signal.SIGINT)  # at the prompt, so to speak: the program ends
        program.wait()
        assert until(lambda: program.processes() == []), program.processes()
