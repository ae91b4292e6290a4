"""Outputs for a consumer in the same process: what is on disk is read only if there is room for it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from wallaby.errors import DurableStoreError
from wallaby.exchange.lazy_body import GoneError, LazyBody
from wallaby.lineage.effects import FailPoint, Push, PushReply, Slice
from wallaby.lineage.names import Edge, QueryId, TaskName, WorkerId
from wallaby.node.actors import ActorKind, ActorName
from wallaby.node.node import Actor
from wallaby.node.pushing import Pushing

ME = WorkerId("w0")
EDGES = [Edge(0, 0, consumer) for consumer in range(3)]
TASK = TaskName(0, 0, 0)


class FakeNode:
    """Has room for some consumers, and answers at once."""

    def __init__(self, room: set[int]) -> None:
        self.worker = ME
        self.room = room
        self.received: list[Slice] = []
        self.answers: list[Any] = []
        self.loop = SimpleNamespace(post=lambda method, *arguments: method(*arguments))

    def preview(self, _query: object, _epoch: int, _target: object, slices: tuple[Slice, ...]) -> PushReply:
        return PushReply(True, tuple(piece.edge.consumer in self.room for piece in slices))

    def receive(self, _query: object, _epoch: int, _target: object, slices: tuple[Slice, ...]) -> PushReply:
        self.received += slices
        return PushReply(True, (True,) * len(slices))

    def answer(self, _actor: object, _effect: object, value: object) -> None:
        self.answers.append(value)


def pushed(
    node: FakeNode,
    read: Callable[[int], Any],
    *,
    fit: int = len(EDGES),
    reads: dict[object, float] | None = None,
) -> None:
    """Push three outputs that are all on disk to consumers of this node; so many of the first fit in one push."""
    reads = {} if reads is None else reads

    def slices_of(_query: object, items: tuple[tuple[Edge, TaskName], ...], _limit: int) -> tuple[Slice, ...]:
        return tuple(
            Slice(task, edge, False, 8, LazyBody(lambda at=edge.consumer: read(at)))  # type: ignore[misc]
            for edge, task in items[:fit]
        )

    backups: Any = SimpleNamespace(slices_of=slices_of)
    pool: Any = SimpleNamespace(submit=lambda job: job())
    worker_query: Any = SimpleNamespace(query=QueryId("q"), recorder=None, durable_outputs=None, reads=reads)
    pushing = Pushing(node, backups, None, lambda _: None, pool, 1 << 20)  # type: ignore[arg-type]
    items = tuple((edge, TASK) for edge in EDGES)
    nothing: Any = iter(())
    actor = Actor(ActorName(ActorKind.DELIVERY, ME), nothing, worker_query)
    pushing.push(actor, Push(FailPoint.DELIVER, 1, ME, ME, items))


def test_only_what_there_is_room_for_is_read_and_taken() -> None:
    node, read = FakeNode({0, 2}), list[int]()

    def fetch(at: int) -> tuple[str]:
        read.append(at)
        return (f"body {at}",)

    pushed(node, fetch)
    assert read == [0, 2]
    assert [(piece.edge.consumer, piece.body) for piece in node.received] == [
        (0, ("body 0",)),
        (2, ("body 2",)),
    ]
    assert node.answers == [PushReply(True, (True, False, True))]


def test_where_there_is_no_room_nothing_is_read() -> None:
    node = FakeNode(set())
    pushed(node, lambda at: pytest.fail(f"{at} was read"))
    assert node.answers == [PushReply(True, (False, False, False))]


def test_the_answer_to_a_push_that_is_cut_is_of_what_was_sent() -> None:
    node = FakeNode({1})
    pushed(node, lambda at: (f"body {at}",), fit=2)
    assert node.answers == [PushReply(True, (False, True))], "the third was not refused"


def test_whoever_asks_sees_that_outputs_are_being_read() -> None:
    reads: dict[object, float] = {}
    seen = []

    def read(at: int) -> tuple[str]:
        seen.append(len(reads))
        return (f"body {at}",)

    pushed(FakeNode({0, 2}), read, reads=reads)
    assert (seen, reads) == ([1, 1], {})


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (GoneError("dropped"), PushReply(accepted=False)),
        (lost := DurableStoreError("spoilt"), lost),
    ],
)
def test_what_cannot_be_read_is_answered(error: Exception, answer: object) -> None:
    node = FakeNode({1})

    def read(_at: int) -> object:
        raise error

    pushed(node, read)
    assert node.answers == [answer]
    assert not node.received
