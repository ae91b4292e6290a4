"""A driver program for tests: attaches an engine and does what it is told, one JSON line at a time.

It runs in a process of its own, so that a test can kill it. The first argument is JSON with `master`, `conf`,
`settings` and `data`; commands come on standard input as `[name, argument]`, answers go to standard output.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark import InheritableThread, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, udf

import wallaby.enabling
import wallaby.engine
from wallaby.above import partitions
from wallaby.errors import WallabyError
from wallaby.spark.bypass import on_spark
from wallaby_lab import tpch

#: Longer than it takes Spark to notice, and shorter than whoever waits for an answer.
STANDS_STILL_SECONDS = 200.0


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Program:
    def __init__(self, order: dict[str, Any]) -> None:
        builder = SparkSession.builder.master(order["master"]).appName("wallaby hosting tests")
        for key, value in order["conf"].items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel(order.get("log", "OFF"))
        self.settings = order["settings"]
        self.data = order["data"]
        self.answers: dict[int, pa.Table] = {}

    def attach(self, _: object) -> dict[str, Any]:
        began = time.monotonic()
        self.engine = wallaby.engine.attach(self.spark, **self.settings)
        seconds = time.monotonic() - began
        tpch.register(self.spark, self.data)
        jvm: Any = self.spark.sparkContext._jvm
        return {
            "seconds": seconds,
            "workers": self.workers(None),
            "jvm": jvm.java.lang.ProcessHandle.current().pid(),
            "sockets": [dataclasses.asdict(found) for found in self.engine._parts.deployment.sockets()],
            "secrets": [
                self.engine._parts.deployment._hosting._bootstrap.token,
                self.engine._parts.deployment._hosting._bootstrap.gcs_password,
            ],
        }

    def run(self, number: int) -> dict[str, Any]:
        """A query of TPC-H, on the engine and on Spark: are they equal?"""
        result = self.engine.run_native(self.spark.sql(tpch.query(number)))
        assert result is not None
        here = result.arrow()
        there = self.spark.sql(tpch.query(number)).toArrow()
        return {"equal": here.equals(there), "rows": here.num_rows}

    def run_often(self, number: int) -> dict[str, Any]:
        """A query again and again until all workers are there and one is another, but not for ever."""
        expected = self.spark.sql(tpch.query(number)).toArrow()
        before = {worker.id for worker in self.engine.workers()}
        say({"going": True})
        deadline = time.monotonic() + 240
        wrong = runs = 0
        while time.monotonic() < deadline:
            wrong += not self.engine.to_arrow(self.spark.sql(tpch.query(number))).equals(expected)
            runs += 1
            after = {worker.id for worker in self.engine.workers() if worker.is_live}
            if len(after) == len(before) and after != before:
                break
        return {"runs": runs, "wrong": wrong, "workers": self.workers(None)}

    def run_for(self, order: list[float]) -> dict[str, Any]:
        """A query of TPC-H again and again for so many seconds, and at least once: were all answers Spark's?"""
        number, seconds = int(order[0]), order[1]
        deadline = time.monotonic() + seconds
        return self._run_while(number, lambda: time.monotonic() < deadline)

    def run_until_gone(self, order: list[Any]) -> dict[str, Any]:
        """A query of TPC-H again and again until one of these workers is gone, but not for ever; and once more."""
        number, workers = order
        deadline = time.monotonic() + 120
        answer = self._run_while(number, lambda: not self._gone(workers) and time.monotonic() < deadline)
        return answer | {"gone": self._gone(workers)}

    def _gone(self, workers: list[str]) -> list[str]:
        live = {worker.id for worker in self.engine.workers() if worker.is_live}
        return sorted(set(workers) - live)

    def _run_while(self, number: int, goes_on: Callable[[], bool]) -> dict[str, Any]:
        if number not in self.answers:
            self.answers[number] = self.spark.sql(tpch.query(number)).toArrow()
        say({"going": True})
        wrong = runs = 0
        again = True
        while again:
            again = goes_on()
            wrong += not self.engine.to_arrow(self.spark.sql(tpch.query(number))).equals(self.answers[number])
            runs += 1
        return {"runs": runs, "wrong": wrong}

    def keep(self, number: int) -> dict[str, Any]:
        """Let the rows of a query of TPC-H stay, and read them by Spark's tasks: are they Spark's?"""
        query = self.spark.sql(tpch.query(number))
        self.expected = sorted(map(str, query.collect()))
        self.kept = self.engine.persist(query)
        return {"equal": sorted(map(str, self.kept.collect())) == self.expected, "rows": len(self.expected)}

    def read_often(self, _: object) -> dict[str, Any]:
        """Read rows that stay again and again, until all workers are there and one is another, but not for ever."""
        before = {worker.id for worker in self.engine.workers()}
        say({"going": True})
        deadline = time.monotonic() + 240
        wrong = reads = 0
        while time.monotonic() < deadline:
            wrong += sorted(map(str, self.kept.collect())) != self.expected
            reads += 1
            after = {worker.id for worker in self.engine.workers() if worker.is_live}
            if len(after) == len(before) and after != before:
                break
        wrong += sorted(map(str, self.kept.collect())) != self.expected
        return {"reads": reads, "wrong": wrong, "workers": self.workers(None)}

    def keep_divided(self, count: int) -> dict[str, Any]:
        """Let the rows of a table stay, and have about so many of Spark's tasks read them: are they Spark's?"""
        query = self.spark.sql(
            "select l_orderkey, l_linenumber, l_comment from lineitem where l_linenumber > 1"
        )
        self.expected = sorted(map(str, query.collect()))
        partitions.TASK_BYTES = sum(map(len, self.expected)) // count  # type: ignore[misc]
        self.kept = self.engine.persist(query)
        found = sorted(map(str, self.kept.collect()))
        return {"equal": found == self.expected, "partitions": self.kept.rdd.getNumPartitions()}

    def read_slowly(self, _: object) -> dict[str, Any]:
        """Read rows that stay, a second or more for each task; say when there is a reader in each executor."""
        context = self.spark.sparkContext

        def slow(rows: Iterable[Any]) -> list[list[str]]:
            time.sleep(1.0)
            return [sorted(map(str, rows))]

        parts: list[list[str]] = []

        def read() -> None:
            context.setJobGroup("slowly", "a slow read")
            parts.extend(self.kept.rdd.mapPartitions(slow).collect())

        reading = InheritableThread(target=read)
        reading.start()
        while self._tasks_of("slowly").count("RUNNING") < len(self.engine.workers()):
            time.sleep(0.05)
        say({"going": True})
        reading.join()
        tasks = self._tasks_of("slowly")
        return {
            "wrong": int(sorted(row for part in parts for row in part) != self.expected),
            "failed_tasks": tasks.count("FAILED"),
            "recoveries": sum(
                rows.collected.figures.recoveries
                for rows in self.engine.subplans.kept.values()
                if rows.collected is not None
            ),
            "workers": self.workers(None),
        }

    def read_twice_at_once(self, folder: str) -> dict[str, Any]:
        """Read rows that stay; the first attempt at one partition stands still among its rows until it is ended."""
        context, stopped = self.spark.sparkContext, Path(folder) / "stopped"
        context.setJobGroup("twice", "a read with an attempt that stands still")

        def slow(number: int, rows: Iterable[Any]) -> Iterator[list[str]]:
            task = TaskContext.get()
            assert task is not None
            found = []
            for row in rows:
                found.append(str(row))
                if (number, task.attemptNumber(), len(found)) == (0, 0, 2):
                    stopped.touch()
                    time.sleep(STANDS_STILL_SECONDS)
            yield found

        parts = self.kept.rdd.mapPartitionsWithIndex(slow).collect()
        found = sorted(row for part in parts for row in part)
        return {
            "equal": found == self.expected,
            "stopped": stopped.exists(),
            "attempts": self._attempts_of("twice"),
        }

    def _attempts_of(self, group: str) -> list[dict[str, Any]]:
        """The attempts at partition 0 of a job group, in their order."""
        found = [task for task in self._task_data(group) if task.index() == 0]
        return [
            {"host": task.host(), "speculative": bool(task.speculative()), "status": str(task.status())}
            for task in sorted(found, key=lambda task: int(task.attempt()))
        ]

    def read_over_leaves(self, count: int) -> dict[str, Any]:
        """So many queries at once: Spark runs a function of Python, the engine joins and counts, Spark runs another."""
        wallaby.enabling.enable(self.spark)
        self.spark.conf.set("spark.wallaby.below", "always")
        same = udf(lambda key: key, "long")

        def query() -> DataFrame:
            orders = self.spark.table("orders").select(same("o_custkey").alias("k"))
            joined = orders.join(self.spark.table("customer"), expr("k = c_custkey"))
            return joined.groupBy("c_nationkey").count().select(same("c_nationkey").alias("n"), "count")

        with on_spark():
            expected = sorted(map(str, query().collect()))
        found: list[list[str]] = []
        threads = [
            threading.Thread(target=lambda: found.append(sorted(map(str, query().collect()))))
            for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
        return {"equal": found == [expected] * count, "kept": len(self.engine.subplans.kept)}

    def _tasks_of(self, group: str) -> list[str]:
        """The status of each task of a job group."""
        return [str(task.status()) for task in self._task_data(group)]

    def _task_data(self, group: str) -> list[Any]:
        context, jvm = self.spark.sparkContext, cast(Any, self.spark._jvm)
        cast(Any, context._jsc).sc().listenerBus().waitUntilEmpty(60_000)
        store, tracker = cast(Any, context._jsc).sc().statusStore(), context.statusTracker()
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        lists = (store.taskList(stage, 0, 1000) for stage in stages)
        return [task for each in lists for task in jvm.scala.jdk.javaapi.CollectionConverters.asJava(each)]

    def run_watched(self, number: int) -> dict[str, Any]:
        """A query of TPC-H, and what its driver saw of it."""
        if number not in self.answers:
            self.answers[number] = self.spark.sql(tpch.query(number)).toArrow()
        result = self.engine.run(self.spark.sql(tpch.query(number)), observed=True)
        say({"going": True})
        equal = result.arrow().equals(self.answers[number])
        events = [
            {"event": event.kind, "at": event.at, "worker": event.worker, **event.fields}
            for event in result.events
        ]
        return {"equal": equal, "stats": result.stats.as_dict(), "events": events}

    def workers(self, _: object) -> list[dict[str, Any]]:
        return [dataclasses.asdict(worker) for worker in self.engine.workers()]

    def executors(self, _: object) -> list[int]:
        """Spark's own Python still runs in every slot that is left: what processes ran it."""
        context = self.spark.sparkContext
        return context.parallelize(range(4), 4).map(lambda _: os.getppid()).collect()

    def where_from(self, _: object) -> list[str]:
        """Where executors have the package from."""

        def find(_: object) -> str:
            import wallaby

            return str(wallaby.__file__)

        return self.spark.sparkContext.parallelize([0], 1).map(find).collect()

    def wait_interrupted(self, _: object) -> dict[str, Any]:
        """An ordinary Spark job that only Ctrl-C ends."""
        say({"going": True})
        try:
            self.spark.sparkContext.parallelize([0], 1).map(lambda _: time.sleep(60)).collect()
        except KeyboardInterrupt:
            return {"interrupted": True}
        return {"interrupted": False}

    def close(self, _: object) -> dict[str, Any]:
        began = time.monotonic()
        self.engine.close()
        return {"seconds": time.monotonic() - began}

    def is_closed(self, _: object) -> bool:
        """Has the engine ended by itself, within half a minute?"""
        deadline = time.monotonic() + 30
        while not self.engine._closed and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.engine._closed


def main() -> None:
    program = Program(json.loads(sys.argv[1]))
    for line in iter(sys.stdin.readline, ""):
        name, argument = json.loads(line)
        if name == "quit":
            break
        try:
            answer: Any = {"answer": getattr(program, name)(argument)}
        except WallabyError as error:
            answer = {"error": str(error)}
        say(answer)


if __name__ == "__main__":
    main()
