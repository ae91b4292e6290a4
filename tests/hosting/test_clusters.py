"""Real clusters of executors on this host: answers, places, lost executors, secrets, and the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from tests.hosting.support import driver, standalone, until

import wallaby

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]


def executor_of(worker: dict[str, int]) -> int:
    """The JVM of a TaskManager: it is the child of a keeper, which PySpark's daemon has started."""
    return int(psutil.Process(worker["pid"]).parent().parent().ppid())


def test_a_local_cluster_survives_a_lost_executor_and_tells_no_secrets(data: Path, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(events),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
    }
    with driver("local-cluster[2,2,512]", data, tmp_path / "driver", conf=conf) as program:
        attached = program.ask("attach")
        workers = attached["workers"]
        assert len(workers) == 2
        assert len({executor_of(worker) for worker in workers}) == 2, "one TaskManager in each executor"
        assert {found["host"] for found in attached["sockets"] if found["owner"] != "driver"} == {"127.0.0.1"}
        assert [program.ask("run", number)["equal"] for number in (6, 3)] == [True, True]
        assert len(program.ask("executors")) == 4, "Spark's own jobs still run"

        program.tell("run_often", 3)
        assert program.answer() == {"going": True}
        os.kill(executor_of(workers[1]), signal.SIGKILL)
        answer = program.answer()["answer"]
        assert answer["wrong"] == 0
        assert len({executor_of(worker) for worker in answer["workers"]}) == 2, "a new executor has a new one"

        texts = dict(program.texts())
        texts |= {str(path): path.read_text(errors="replace") for path in events.iterdir()}
        texts["driver.log"] = program.log.read_text(errors="replace")
        for path in (tmp_path / "driver").rglob("std*"):
            texts[str(path)] = path.read_text(errors="replace")
        assert any("TaskManager" in text for name, text in texts.items() if name.startswith(str(events)))
        for secret in attached["secrets"]:
            assert [name for name, text in texts.items() if secret in text] == []

        program.send(signal.SIGKILL)
        assert until(lambda: program.processes() == []), program.processes()
        assert until(lambda: program.leftovers() == []), program.leftovers()


def test_rows_that_stay_are_read_through_the_loss_of_an_executor(data: Path, tmp_path: Path) -> None:
    """With the executor go a TaskManager that holds rows, and tasks that read them, which run a second time."""
    conf = {"spark.executor.memory": "512m"}
    settings = {"task_target": 10_000}
    with driver("local-cluster[2,2,512]", data, tmp_path / "driver", conf=conf, **settings) as program:
        workers = program.ask("attach")["workers"]
        kept = program.ask("keep_divided", 8)
        assert kept["equal"]
        assert kept["partitions"] > 4, "more than there are slots"
        program.tell("read_slowly", None)
        assert program.answer() == {"going": True}
        os.kill(executor_of(workers[0]), signal.SIGKILL)
        answer = program.answer()["answer"]
        assert answer["wrong"] == 0
        assert answer["recoveries"] >= 1
        assert answer["failed_tasks"] >= 1, "those of the executor"
        assert until(lambda: len(set(map(executor_of, program.ask("workers")))) == 2), "a new one has another"


def test_a_speculative_task_reads_the_same_rows_as_the_one_that_stands_still(
    data: Path, tmp_path: Path
) -> None:
    """Spark starts a second attempt only on another host, so each of the two executors has an address of its own."""
    conf = {
        "spark.executor.memory": "512m",
        "spark.pyspark.python": sys.executable,
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.efficiency.enabled": "false",
    }
    with standalone(tmp_path / "cluster", workers=2, cores=2, own_addresses=True) as (url, host):
        conf["spark.driver.host"] = host
        with driver(url, data, tmp_path / "driver", conf=conf, task_target=10_000) as program:
            program.ask("attach")
            assert until(lambda: len(program.ask("workers")) == 2)
            kept = program.ask("keep_divided", 8)
            assert kept["equal"]
            assert kept["partitions"] > 4
            read = program.ask("read_twice_at_once", str(tmp_path))
            assert read["stopped"], "the first attempt had read some of its rows"
            first, second = read["attempts"]
            assert (first["speculative"], second["speculative"]) == (False, True)
            assert first["host"] != second["host"]
            assert first["status"] != second["status"] == "SUCCESS", (
                "the rows are those of the second attempt"
            )
            assert read["equal"]


def test_no_reader_takes_the_slot_of_a_killed_taskmanager(data: Path, tmp_path: Path) -> None:
    """Two readers could run where a TaskManager and one reader do. Then nobody could make the lost rows again."""
    conf = {"spark.executor.memory": "512m"}
    settings = {"task_target": 10_000}
    with driver("local-cluster[1,2,512]", data, tmp_path / "driver", conf=conf, **settings) as program:
        workers = program.ask("attach")["workers"]
        kept = program.ask("keep_divided", 8)
        assert kept["equal"]
        assert kept["partitions"] > 2, "more than there are slots"
        program.tell("read_slowly", None)
        assert program.answer() == {"going": True}
        os.kill(workers[0]["pid"], signal.SIGKILL)
        answer = program.answer()["answer"]
        assert answer["wrong"] == 0
        assert answer["recoveries"] >= 1
        assert answer["failed_tasks"] == 0, "no reader had to give up"


def test_leaves_below_and_readers_above_share_one_slot(data: Path, tmp_path: Path) -> None:
    """Under `local[2]` a TaskManager leaves one slot, for the leaves of three queries and the readers of their rows."""
    with driver("local[2]", data, tmp_path / "driver", leaf_minimum=0) as program:
        assert len(program.ask("attach")["workers"]) == 1
        answer = program.ask("read_over_leaves", 3)
        assert answer["equal"]
        assert answer["kept"] >= 1, "the part in the middle ran here"


def test_attach_brings_the_first_executor_of_dynamic_allocation(data: Path, tmp_path: Path) -> None:
    """Spark's default is none at rest."""
    conf = {
        "spark.executor.memory": "512m",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    }
    with driver("local-cluster[2,2,512]", data, tmp_path / "driver", conf=conf) as program:
        attached = program.ask("attach")
        assert attached["workers"]
        assert program.ask("run", 6)["equal"]


def in_small_row_groups(data: Path, directory: Path) -> Path:
    """The same tables in so many row groups that every TaskManager has something to read."""
    directory.mkdir()
    for path in data.glob("*.parquet"):
        pq.write_table(pq.read_table(path), directory / path.name, row_group_size=1000)
    return directory


def test_executors_that_are_taken_away_or_killed_and_those_that_come_instead(
    data: Path, tmp_path: Path
) -> None:
    """A decommission is no loss; a killed JVM is one. What Spark starts instead takes work."""
    conf = {"spark.executor.memory": "512m", "spark.decommission.enabled": "true"}
    settings = {
        "split": 1,
        "event_log_dir": str(tmp_path / "events"),
        "chaos_enabled": True,
        "chaos_directory": str(tmp_path / "chaos"),
        # Or the query would be over before Spark has heard of the decommission.
        "chaos_faults": "*:read:1:slow=300ms:x99",
    }
    fine = in_small_row_groups(data, tmp_path / "fine")
    with driver("local-cluster[3,2,512]", fine, tmp_path / "driver", conf=conf, **settings) as program:
        workers = {worker["id"]: worker for worker in program.ask("attach")["workers"]}

        def all_in_executors_of_their_own() -> bool:
            live = [worker for worker in program.ask("workers") if worker["state"] == "live"]
            return len(live) == 3 and len({executor_of(worker) for worker in live}) == 3

        program.tell("run_watched", 9)
        assert program.answer() == {"going": True}
        leaving, executor = next((name, executor_of(worker)) for name, worker in workers.items())
        os.kill(executor, signal.SIGPWR)  # how an executor is told to decommission itself
        watched = program.answer()["answer"]
        assert watched["equal"]
        assert watched["stats"]["lost_workers"] == []
        froze = [event for event in watched["events"] if event["event"] == "froze"]
        assert froze[0]["draining"] == [leaving], "it leaves before anybody has to notice"
        assert froze[0]["lost"] == []
        assert until(lambda: not psutil.pid_exists(executor)), (
            "Spark waits for the TaskManager, and no longer"
        )
        assert until(all_in_executors_of_their_own)

        before = {worker["id"]: worker for worker in program.ask("workers")}
        assert leaving not in before
        program.tell("run_watched", 9)
        assert program.answer() == {"going": True}
        killed, executor = next((name, executor_of(worker)) for name, worker in before.items())
        os.kill(executor, signal.SIGKILL)
        watched = program.answer()["answer"]
        assert watched["equal"]
        assert watched["stats"]["lost_workers"] == [killed]
        assert watched["stats"]["recoveries"] >= 1
        assert until(all_in_executors_of_their_own)

        (new,) = {worker["id"] for worker in program.ask("workers")} - before.keys()
        program.tell("run_watched", 9)
        assert program.answer() == {"going": True}
        watched = program.answer()["answer"]
        assert watched["equal"]
        tasks = [event["worker"] for event in watched["events"] if event["event"] == "task"]
        assert new in tasks, "the TaskManager of the executor that Spark started instead takes work"


def built_wheel(directory: Path) -> str:
    """Wallaby's wheel, under a name that Spark takes for a package."""
    project = Path(wallaby.__file__).parents[2]
    build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", directory)
    subprocess.run([sys.executable, *build, project], check=True, timeout=300)
    (wheel,) = directory.glob("*.whl")
    return str(wheel.rename(directory / "wallaby-shipped.zip"))


def test_a_standalone_cluster_with_the_wheel_shipped_to_it(data: Path, tmp_path: Path) -> None:
    shipped = built_wheel(tmp_path)
    with standalone(tmp_path / "cluster", workers=2, cores=2) as (url, host):
        conf = {
            "spark.executor.memory": "512m",
            "spark.driver.host": host,
            "spark.pyspark.python": sys.executable,
            "spark.submit.pyFiles": shipped,
        }
        with driver(url, data, tmp_path / "driver", conf=conf) as program:
            attached = program.ask("attach")
            assert until(lambda: len(program.ask("workers")) == 2), "the executor that came later has one too"
            workers = program.ask("workers")
            assert len({executor_of(worker) for worker in workers}) == 2
            assert {found["host"] for found in attached["sockets"] if found["owner"] != "driver"} == {host}
            assert "wallaby-shipped.zip" in program.ask("where_from")[0]
            assert [program.ask("run", number)["equal"] for number in (6, 3)] == [True, True]
            pids = [psutil.Process(worker["pid"]) for worker in workers]
            program.send(signal.SIGKILL)
            assert until(lambda: not any(process.is_running() for process in pids))
            assert until(lambda: program.processes() == []), program.processes()
            assert until(lambda: not list(tmp_path.rglob("wallaby-taskmanager-*")))
