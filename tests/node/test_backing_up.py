"""What a node does with an output that finds no room in memory: it goes to disk under its own run, or nowhere."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from wallaby.lineage.effects import BackUp, FailPoint, Output
from wallaby.lineage.names import ChannelName, Edge, QueryId, TaskName, WorkerId
from wallaby.node.actors import ActorKind, ActorName
from wallaby.node.node import Actor, EngineNode, WorkerQuery
from wallaby.node.perform import NodeSettings, Performer

LIMIT_SECONDS = 10.0
EDGE, TASK = Edge(0, 0, 0), TaskName(0, 0, 7)
EFFECT = BackUp(FailPoint.BACK_UP, TASK, Output(1, {EDGE: (8, None)}), True, since_epoch=5)


class _Shelves:
    """A backup without memory, and with a disk that is full or not."""

    def __init__(self, *, has_room: bool) -> None:
        self._has_room = has_room
        self.kept: list[tuple[object, ...]] = []

    def keep_in_memory(self, *_: Any, **__: Any) -> bool:
        return False

    def disk_bytes_of(self, _query: QueryId) -> int:
        return 0

    def keep(self, query: QueryId, task: TaskName, bodies: Any, *, final: bool, since_epoch: int) -> bool:
        self.kept.append((query, task, bodies, final, since_epoch))
        return self._has_room


@pytest.mark.parametrize("has_room", [True, False], ids=["room", "full"])
def test_an_output_goes_to_disk_under_the_run_that_made_it_and_a_full_disk_is_told(has_room: bool) -> None:
    answers: queue.SimpleQueue[object] = queue.SimpleQueue()
    nothing: Any = None

    class _Node(EngineNode):
        def answer(self, actor: Actor, effect: Any, value: Any) -> None:
            answers.put((effect, value))

    node = _Node(WorkerId("w0-1"), lambda _: None)
    shelves: Any = _Shelves(has_room=has_room)
    performer = Performer(node, nothing, shelves, nothing, nothing, nothing, nothing, NodeSettings(1))
    name = ActorName(ActorKind.CHANNEL, ChannelName(0, 0))
    try:
        performer.perform(Actor(name, nothing, WorkerQuery(nothing, QueryId("q"))), EFFECT)
        assert answers.get(timeout=LIMIT_SECONDS) == (EFFECT, has_room)
    finally:
        performer.stop(LIMIT_SECONDS)
    assert shelves.kept == [(QueryId("q"), TASK, {EDGE: None}, True, 5)]
