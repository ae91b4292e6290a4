"""The floor under all budgets: a query that takes memory which nobody counts ends, and its worker and others go on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.memory.test_memory import BESIDE, MIB, peak_of, pss_bytes
from tests.engine.test_ends import nothing_is_left_of_queries, until
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import MemoryLimitError
from wallaby.faults.orders import FaultOrders, parse_all
from wallaby.observe.log_reading import read_log
from wallaby_lab import tpch

BUDGET = 256 * MIB
#: Far more than the budget, and less than would hurt anybody if nothing stopped it.
HOARD = "1200m"
#: So much makes a TaskManager short of memory, and no more: it sheds, and ends nothing.
LITTLE = "290m"
#: A query with a stage that no other query here has.
GREEDY = tpch.query(5)
STAGE = 5
TASK = "s5.c0.t1"
OTHER = "select k, count(*) n, sum(v) s from short group by k order by k"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("floor")


@pytest.fixture
def book(directory: Path) -> Iterator[FaultOrders]:
    found = FaultOrders(directory)
    yield found
    found.give(())


@pytest.fixture
def engine(engines: Engines, directory: Path) -> Engine:
    """One TaskManager with two kernel threads, that may be told to hoard."""
    found = engines.get(
        workers=1,
        threads=2,
        memory=BUDGET,
        split=1,
        chaos_enabled=True,
        chaos_directory=str(directory),
        event_log_dir=str(directory / "events"),
    )
    until(lambda: len(pids(found)) == 1, 90)
    return found


def pids(engine: Engine) -> set[int]:
    return {worker.pid for worker in engine.workers() if worker.is_live}


@pytest.mark.parametrize("way", ["hoard", "hoard-sql"])
def test_the_greedy_query_ends_and_the_other_answers(
    engine: Engine, spark: SparkSession, book: FaultOrders, directory: Path, way: str
) -> None:
    """Two users' queries in one TaskManager: it lives, and never takes more than it may."""
    before = pids(engine)
    expected = [tuple(row) for row in spark.sql(OTHER).collect()]
    name = book.give(parse_all(f"*:execute@s{STAGE}:1:{way}={HOARD}"))
    answers: list[object] = []

    def other() -> None:
        answers.append([tuple(row) for row in engine.run(spark.sql(OTHER)).rows()])

    thread = threading.Thread(target=other)
    with peak_of(engine) as samples:
        thread.start()
        result = engine.run(spark.sql(GREEDY))
        with pytest.raises(MemoryLimitError) as caught:
            result.rows()
        thread.join()
    assert len(book.struck(name)) == 1
    assert answers == [expected]
    assert pids(engine) == before, "no worker was lost"
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"
    fields = caught.value.fields
    assert (fields["stage"], fields["setting"]) == (STAGE, "spark.wallaby.memory")
    assert (fields["memory_bytes"], fields["limit_bytes"]) == (BUDGET, BUDGET + BESIDE)
    until(lambda: nothing_is_left_of_queries(engine))
    (pid,) = before
    until(lambda: pss_bytes(pid) < BUDGET + BESIDE // 2)
    (path,) = (directory / "events").glob(f"*{fields['query']}*")
    log = read_log(path)
    assert log.short_of_memory["end"] == 1


def test_a_query_that_cannot_be_stopped_costs_its_worker_and_is_not_begun_again(
    engine: Engine, spark: SparkSession, book: FaultOrders
) -> None:
    (before,) = pids(engine)
    name = book.give(parse_all(f"*:execute@{TASK}:1:hoard-native={HOARD}:x9"))
    with pytest.raises(MemoryLimitError):
        engine.run(spark.sql(GREEDY)).rows()
    until(lambda: before not in pids(engine), 120)
    assert len(book.struck(name)) == 1
    book.give(())
    expected = [tuple(row) for row in spark.sql(OTHER).collect()]
    assert [tuple(row) for row in engine.run(spark.sql(OTHER)).rows()] == expected


def test_a_query_that_costs_two_workers_their_memory_ends(
    engine: Engine, spark: SparkSession, book: FaultOrders
) -> None:
    """The kernel was quicker than the watch, and quicker again with the worker that came instead."""
    name = book.give(parse_all(f"*:execute@{TASK}:1:hoard-native={LITTLE}:x9"))
    result = engine.run(spark.sql(GREEDY))
    for losses in (1, 2):
        until(lambda: bool(strained(engine)), 120)
        (pid,) = strained(engine)
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: pid not in pids(engine), 60)  # type: ignore[misc]
        assert len(book.struck(name)) == losses
    with pytest.raises(MemoryLimitError) as caught:
        result.rows()
    assert caught.value.fields["losses"] == 2
    until(lambda: nothing_is_left_of_queries(engine))


def strained(engine: Engine) -> set[int]:
    """The processes of live workers that are short of memory because of the query that runs."""
    found = [engine._parts.gcs.snapshot(query) for query in engine._parts.gcs.queries()]
    names = {worker for snapshot in found if snapshot is not None for worker in snapshot.strained}
    live = [worker for worker in engine.workers() if worker.is_live]
    return {worker.pid for worker in live if worker.id in names}
