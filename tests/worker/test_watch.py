"""The watch over a TaskManager's memory, with figures that a test sets: what it does with whose memory."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from wallaby.batches.stopping import Task
from wallaby.errors import GcsUnavailableError, MemoryLimitError, QueryError
from wallaby.exchange.backup import Backup
from wallaby.exchange.memory import ByteBudget
from wallaby.lineage.names import Edge, QueryId, TaskName, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby.node.pools import KernelPool
from wallaby.worker.memory import watch as watch_module
from wallaby.worker.memory.floor import CALM_SECONDS, LET_GO_SECONDS, MIB, MemoryLimits
from wallaby.worker.memory.states import ChannelStates
from wallaby.worker.memory.watch import GONE_SECONDS, MemoryWatch

LIMITS = MemoryLimits(1000 * MIB, 300 * MIB)
WORKER = WorkerId("w0-1")
LIMIT_SECONDS = 10.0


@dataclass
class Figures:
    """What the process has; nobody else shares anything."""

    used_bytes: int = 100 * MIB
    room_bytes: int | None = None

    def resident(self) -> int:
        return self.used_bytes

    def proportional(self) -> int:
        return self.used_bytes

    def room(self) -> int | None:
        return self.room_bytes


@dataclass
class FakeWork:
    """A query's work: how much its one running task has grown by since it began with nothing."""

    states: dict[int, int] = field(default_factory=dict)
    running: list[Task] = field(default_factory=list)
    #: What the process has grown by because of its tasks; by default as much as since the one that runs began.
    grown: int | None = None
    stopped: list[QueryError] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def held_bytes(self) -> dict[int, int]:
        return self.states

    def tasks(self) -> tuple[Task, ...]:
        return tuple(self.running)

    def grown_bytes(self, resident: int) -> int:
        since = max((resident - task.before_bytes for task in self.running), default=0)
        return since if self.grown is None else self.grown

    def operator_of(self, stage: int) -> str:
        return "join"

    def stop(self, error: QueryError) -> int:
        self.stopped.append(error)
        return len(self.running)

    def forget(self) -> None:
        self.calls.append("forget")

    def spill(self) -> int:
        self.calls.append("spill")
        return 7


class FakeGcs:
    """Remembers what it was told; a number of times it does not answer."""

    def __init__(self) -> None:
        self.told: queue.SimpleQueue[tuple[object, ...]] = queue.SimpleQueue()
        self.silent = 0
        self.refusals: list[Verdict] = []

    def strain(self, query: QueryId, worker: WorkerId, strained: bool) -> Verdict:
        self.told.put(("strain", query, strained))
        return Verdict.DONE

    def fail(self, query: QueryId, worker: WorkerId, epoch: int, error: str) -> Verdict:
        self.told.put(("fail", query, epoch))
        if self.silent:
            raise GcsUnavailableError("no answer")
        return self.refusals.pop() if self.refusals else Verdict.DONE


class FakeNode:
    """Queries that are served, and errors that ended some."""

    def __init__(self) -> None:
        self.worker = WORKER
        self.worker_queries: dict[QueryId, Any] = {}
        self.failed: list[tuple[QueryId, QueryError]] = []
        self.loop = SimpleNamespace(post=lambda do, *arguments: do(*arguments))

    def fail(self, worker_query: Any, error: QueryError) -> None:
        self.failed.append((worker_query.query, error))

    def end(self, error: BaseException) -> None:
        raise error

    def serve(self, name: str, work: FakeWork) -> Any:
        session = SimpleNamespace(runs={}, context=SimpleNamespace(epoch=3))
        worker_query = SimpleNamespace(query=QueryId(name), work=work, session=session, recorder=None)
        self.worker_queries[worker_query.query] = worker_query
        return worker_query


class Watched:
    """A watch and everything around it."""

    def __init__(self, directory: Path, *, keeps: bool = False) -> None:
        self.node, self.gcs, self.figures = FakeNode(), FakeGcs(), Figures()
        self.kernels = KernelPool("test", 2, self.node.end)
        self.backup = Backup(ByteBudget(1 << 30), (directory,), 1 << 40)
        self.states = ChannelStates(directory, 1 << 30)
        self.left: list[bool] = []
        self.watch = MemoryWatch(
            self.node,  # type: ignore[arg-type]
            self.kernels,
            self.backup,
            self.states,
            self.gcs,  # type: ignore[arg-type]
            LIMITS,
            lambda: self.left.append(True),
            self.figures,
            keeps_freed_memory=keeps,
        )

    def look(self, now: float, part: float) -> None:
        """Look when so much of the allowance is used, and let a step that began come to its end."""
        self.figures.used_bytes = LIMITS.budget_bytes + int(LIMITS.allowance_bytes * part)
        self.watch.look(now)
        done: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.watch._steps.submit(lambda: done.put(True))
        assert done.get(timeout=LIMIT_SECONDS)

    def close(self) -> None:
        self.watch.close(LIMIT_SECONDS)
        self.kernels.stop(LIMIT_SECONDS)
        self.backup.close()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    found = Watched(tmp_path)
    yield found
    found.close()


def running(grown_bytes: int, used_bytes: int) -> FakeWork:
    task = Task(None, TaskName(4, 1, 7), used_bytes - grown_bytes)
    return FakeWork(running=[task])


def keep(watched: Watched, query: str, rows: int) -> None:
    batch = pa.RecordBatch.from_pydict({"n": list(range(rows))})
    task = TaskName(0, 0, 0)
    assert watched.backup.keep_in_memory(QueryId(query), task, {Edge(0, 0, 0): (batch,)}, final=False)


def test_a_shortage_is_shed_then_spilled_and_all_is_as_before_when_it_is_over(watched: Watched) -> None:
    work = FakeWork(states={1: 600 * MIB})
    watched.node.serve("q", work)
    keep(watched, "q", 1000)
    watched.look(1.0, 0.65)
    assert work.calls == ["forget"]
    assert watched.gcs.told.get(timeout=LIMIT_SECONDS) == ("strain", "q", True)
    assert watched.backup.bytes_in_memory > 0
    watched.look(2.0, 0.85)
    assert work.calls == ["forget", "forget", "spill"]
    assert watched.backup.bytes_in_memory == 0
    batch = pa.RecordBatch.from_pydict({"n": [1]})
    output = {Edge(0, 0, 0): (batch,)}
    assert not watched.backup.keep_in_memory(QueryId("q"), TaskName(0, 0, 1), output, final=False)
    watched.look(3.0, 0.2)
    watched.look(3.0 + CALM_SECONDS, 0.2)
    assert watched.gcs.told.get(timeout=LIMIT_SECONDS) == ("strain", "q", False)
    assert watched.backup.keep_in_memory(QueryId("q"), TaskName(0, 0, 1), output, final=False)
    assert not watched.node.failed


def test_the_query_that_takes_most_ends_and_no_other(watched: Watched) -> None:
    used = LIMITS.budget_bytes + LIMITS.allowance_bytes
    watched.node.serve("small", running(50 * MIB, used))
    greedy = watched.node.serve("greedy", running(700 * MIB, used))
    watched.look(1.0, 1.0)
    ((query, error),) = watched.node.failed
    assert query == "greedy"
    assert isinstance(error, MemoryLimitError)
    assert greedy.work.stopped[0] is error
    assert (error.fields["operator"], error.fields["stage"]) == ("join", 4)
    assert error.fields["task"] == TaskName(4, 1, 7)
    assert error.fields["held_bytes"] == 700 * MIB
    watched.look(1.1, 1.0)
    watched.look(1.2, 1.0)
    assert len(watched.node.failed) == 1, "one query at a time"
    assert len(greedy.work.stopped) > 2, "what still runs is interrupted again and again"
    greedy.work.running.clear()
    del watched.node.worker_queries[QueryId("greedy")]
    watched.look(1.3, 1.0)
    assert not watched.left
    watched.look(3.0, 0.1)
    assert len(watched.node.failed) == 1


@pytest.mark.parametrize(("seconds", "ends"), [(0.005, True), (0.1, False)])
def test_a_query_ends_before_the_limit_if_memory_grows_so_fast_that_it_would_be_passed_meanwhile(
    watched: Watched, seconds: float, ends: bool
) -> None:
    """12 MiB in 5 ms are 48 MiB until the query has noticed; in 100 ms there is time for the other steps."""
    watched.node.serve("fast", running(700 * MIB, LIMITS.limit_bytes))
    watched.look(1.0, 0.89)
    assert not watched.node.failed
    watched.look(1.0 + seconds, 0.93)
    assert bool(watched.node.failed) is ends


def test_a_long_task_beside_short_greedy_ones_is_not_blamed(watched: Watched) -> None:
    """The process has grown since the long one began, but not because of it; the short ones have just begun."""
    used = LIMITS.limit_bytes
    long, short = running(900 * MIB, used), running(20 * MIB, used)
    long.grown, short.grown = 60 * MIB, 840 * MIB
    watched.node.serve("long", long)
    watched.node.serve("short", short)
    watched.look(1.0, 1.0)
    ((query, error),) = watched.node.failed
    assert query == "short"
    assert error.fields["held_bytes"] == 840 * MIB


@pytest.mark.parametrize("keeps", [False, True])
def test_freed_memory_is_given_back_after_a_query_unless_it_is_kept_for_the_next(
    keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bool] = []
    monkeypatch.setattr(watch_module, "give_freed_memory_back", lambda: given.append(True))
    watched = Watched(tmp_path, keeps=keeps)
    try:
        watched.node.serve("first", FakeWork())
        watched.look(1.0, 0.0)
        watched.node.worker_queries.clear()
        watched.node.serve("second", FakeWork())
        watched.look(2.0, 0.0)
        watched.look(2.0 + GONE_SECONDS, 0.0)
        assert bool(given) is not keeps
        watched.node.worker_queries.clear()
        for now in (10.0, 10.0 + GONE_SECONDS):
            watched.look(now, 0.0)
        assert given
    finally:
        watched.close()


def test_states_that_grew_while_a_task_of_another_query_ran_are_not_that_tasks(watched: Watched) -> None:
    used = LIMITS.limit_bytes
    long = running(900 * MIB, used)
    long.grown = 300 * MIB
    watched.node.serve("long", long)
    watched.node.serve("collects", FakeWork(states={2: 700 * MIB}, grown=600 * MIB))
    watched.look(1.0, 1.0)
    ((query, error),) = watched.node.failed
    assert query == "collects"
    assert error.fields["held_bytes"] == 700 * MIB, "what is counted is not counted twice"


def test_an_error_names_the_operator_and_the_stage_and_no_task(watched: Watched) -> None:
    watched.node.serve("greedy", running(700 * MIB, LIMITS.limit_bytes))
    watched.look(1.0, 1.0)
    ((_, error),) = watched.node.failed
    assert "most of it in the join of stage 4. " in str(error)
    assert str(TaskName(4, 1, 7)) not in str(error)


def test_what_is_held_by_no_query_ends_none(watched: Watched) -> None:
    watched.node.serve("small", FakeWork(states={1: 50 * MIB}))
    watched.look(1.0, 1.0)
    assert not watched.node.failed
    watched.look(2.0, 1.3)
    assert [query for query, _ in watched.node.failed] == ["small"], "the kernel would end all of them"


@pytest.mark.parametrize("refusals", [[], [Verdict.STALE, Verdict.FROZEN]])
def test_a_query_that_cannot_be_stopped_is_written_down_before_the_worker_leaves(
    watched: Watched, refusals: list[Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wallaby.worker.memory.watch.TELL_SECONDS", 0.0)
    watched.gcs.refusals = refusals
    calls = 1 + len(refusals)
    watched.node.serve("greedy", running(700 * MIB, LIMITS.limit_bytes))
    watched.look(1.0, 1.0)
    assert watched.gcs.told.get(timeout=LIMIT_SECONDS) == ("strain", "greedy", True)
    watched.look(2.0, 1.0)
    assert not watched.left
    watched.look(2.0 + LET_GO_SECONDS, 1.0)
    told = [watched.gcs.told.get(timeout=LIMIT_SECONDS) for _ in range(calls)]
    assert told == [("fail", "greedy", 3)] * calls
    assert watched.left == [True]


def test_a_worker_leaves_although_the_store_is_silent(watched: Watched) -> None:
    watched.gcs.silent = 1
    watched.node.serve("greedy", running(700 * MIB, LIMITS.limit_bytes))
    watched.look(1.0, 1.0)
    watched.look(1.1, 2.1)
    assert watched.left == [True]


def test_while_memory_is_short_one_task_runs_at_a_time_and_none_waits_for_ever(watched: Watched) -> None:
    watched.node.serve("q", FakeWork())
    watched.look(1.0, 0.65)
    begun: queue.SimpleQueue[int] = queue.SimpleQueue()
    go_on: queue.SimpleQueue[None] = queue.SimpleQueue()

    def job(number: int) -> Callable[[], None]:
        def run() -> None:
            begun.put(number)
            go_on.get(timeout=LIMIT_SECONDS)

        return run

    for number in range(3):
        watched.kernels.submit((number,), job(number))
    for number in range(2):
        assert begun.get(timeout=LIMIT_SECONDS) == number
        assert begun.empty()
        go_on.put(None)
    assert begun.get(timeout=LIMIT_SECONDS) == 2
    watched.kernels.submit((3,), job(3))
    watched.look(2.0, 0.2)
    watched.look(2.0 + CALM_SECONDS, 0.2)
    assert begun.get(timeout=LIMIT_SECONDS) == 3, "all is well: both threads work"
    go_on.put(None)
    go_on.put(None)
