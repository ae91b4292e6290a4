"""A node goes on without an answer that was lost, where nothing else would notice that, and drops a late one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from wallaby.coordinator.effects import Watch
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.lineage.effects import Effect, Effects, Pause, ask
from wallaby.lineage.names import HEAD, QueryId, WorkerId
from wallaby.node import node as nodes
from wallaby.node.actors import COORDINATOR, DISCOVERY
from wallaby.node.effects import Discover, OpenSession
from wallaby.node.node import Actor, EngineNode, WorkerQuery
from wallaby.node.perform import NodeSettings, Performer

LIMIT_SECONDS = 10.0
Q = QueryId("q")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers count as lost at once."""
    monkeypatch.setattr(nodes, "LOST_POLL_SECONDS", 0.01)
    for effect in (Watch, Discover, OpenSession):
        monkeypatch.setattr(effect, "answered_within_seconds", 0.05)


class _Losing:
    """Performs nothing of the first effect, and answers the others with their number."""

    def __init__(self, node: EngineNode) -> None:
        self._node = node
        self.performed: list[tuple[Actor, Effect[Any]]] = []

    def perform(self, actor: Actor, effect: Effect[Any]) -> None:
        self.performed.append((actor, effect))
        if len(self.performed) == 2:
            self._node.answer(*self.performed[0], "late")
        if len(self.performed) > 1:
            self._node.answer(actor, effect, len(self.performed))

    def close(self, worker_query: WorkerQuery) -> None:
        raise AssertionError("there is no query")

    def has_idle_kernel(self) -> bool:
        return True

    def has_busy_kernel(self) -> bool:
        return False


@pytest.mark.usefixtures("impatient")
def test_a_coordinator_goes_on_without_a_lost_answer_and_a_late_one_has_no_effect() -> None:
    answers: list[object] = []
    over = threading.Event()

    def coordinate() -> Effects[None]:
        answers.append((yield from ask(Watch())))
        answers.append((yield from ask(Watch())))
        answers.append((yield from ask(Watch())))
        over.set()

    failed: list[BaseException | None] = []
    node = EngineNode(HEAD, failed.append)
    node.start(_Losing(node), {COORDINATOR: coordinate()})
    try:
        assert over.wait(LIMIT_SECONDS), "it waits for ever"
        assert answers == [None, 2, 3]
    finally:
        node.stop()


@pytest.mark.usefixtures("impatient")
def test_a_session_whose_opening_was_not_answered_is_not_opened_again() -> None:
    """It has begun; only the answer that says so was lost."""
    opened: list[QueryId] = []
    over = threading.Event()
    nothing: Any = None

    def life() -> Effects[None]:
        assert (yield from ask(OpenSession(Q))) is None
        assert (yield from ask(OpenSession(Q))) is True
        over.set()
        yield Pause(60_000)

    lost: list[object] = []

    class _LosesOne(EngineNode):
        def answer(self, actor: Actor, effect: Effect[Any], value: Any) -> None:
            if lost:
                super().answer(actor, effect, value)
            else:
                lost.append(value)

    node = _LosesOne(WorkerId("w0-1"), lambda _: None)

    def open_serving(query: QueryId) -> WorkerQuery:
        opened.append(query)
        return WorkerQuery(nothing, query)

    def begin(worker_query: WorkerQuery) -> None:
        node.worker_queries[worker_query.query] = worker_query

    node.begin_query = begin  # type: ignore[method-assign]
    gcs: Any = MemoryGcs(MemoryStore(lambda: 0))
    performer = Performer(node, gcs, nothing, nothing, nothing, open_serving, nothing, NodeSettings(1))
    node.start(performer, {DISCOVERY: life()})
    try:
        assert over.wait(LIMIT_SECONDS)
        assert (opened, lost) == ([Q], [True])
    finally:
        node.stop()
        performer.stop(LIMIT_SECONDS)


@pytest.mark.usefixtures("impatient")
def test_a_session_that_is_being_opened_for_long_is_not_opened_a_second_time() -> None:
    opened: list[QueryId] = []
    answers: list[object] = []
    asked_twice, over = threading.Event(), threading.Event()
    nothing: Any = None

    def life() -> Effects[None]:
        answers.append((yield from ask(OpenSession(Q))))
        answers.append((yield from ask(OpenSession(Q))))
        asked_twice.set()
        while not (yield from ask(OpenSession(Q))):
            yield Pause(1)
        over.set()
        yield Pause(60_000)

    node = EngineNode(WorkerId("w0-1"), lambda _: None)

    def open_serving(query: QueryId) -> WorkerQuery:
        opened.append(query)
        assert asked_twice.wait(LIMIT_SECONDS)
        return WorkerQuery(nothing, query)

    def begin(worker_query: WorkerQuery) -> None:
        node.worker_queries[worker_query.query] = worker_query

    node.begin_query = begin  # type: ignore[method-assign]
    gcs: Any = MemoryGcs(MemoryStore(lambda: 0))
    performer = Performer(node, gcs, nothing, nothing, nothing, open_serving, nothing, NodeSettings(1))
    node.start(performer, {DISCOVERY: life()})
    try:
        assert over.wait(LIMIT_SECONDS)
        assert (answers, opened) == ([None, False], [Q])
    finally:
        node.stop()
        performer.stop(LIMIT_SECONDS)
