"""How a process stands with a query: what moved, who is busy, who waits for what, and the bytes of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.builders import output, piece
from tests.hand import GRAPH, ME, ROUTES, S0, TO_X0, X0, Hand, assigned, view

from wallaby.errors import EncodingError
from wallaby.lineage.effects import (
    Await,
    BackUp,
    Collect,
    CommitTask,
    Execute,
    FailPoint,
    Pause,
    Push,
    RestoreState,
    SaveState,
)
from wallaby.lineage.lineage import Draw
from wallaby.lineage.names import HEAD, QueryId, TaskName, WorkerId
from wallaby.node.actors import SESSION
from wallaby.node.excuses import READS_SECONDS, STORAGE_SECONDS_MAX, is_excuse, reading
from wallaby.node.node import Actor, WorkerQuery
from wallaby.node.standing import (
    Standing,
    ask_standing,
    decode_standing,
    encode_standing,
    occupation,
    standing_of,
    standings,
)

TASK = TaskName(1, 0, 3)
BUSY: list[Any] = [
    Execute(FailPoint.EXECUTE, TASK, None, None, None, (), {}, False),
    BackUp(FailPoint.BACK_UP, TASK, output(), False),
    SaveState(TASK, "key", None, {}),
    RestoreState(TASK, "key"),
    Collect(()),
]
WAITING: list[Any] = [
    None,
    Await(),
    Pause(5),
    CommitTask(TASK, b"", False, (), 1),
    Push(FailPoint.DELIVER, 1, ME, HEAD, ()),
]


def worker_query() -> Hand:
    """A worker that reads and executes: the reader has two outputs for a window of 100 bytes."""
    hand = Hand(GRAPH)
    hand.look(view(assigned(S0, split=0), assigned(X0), routes=ROUTES))
    return hand


@pytest.mark.parametrize("effect", BUSY, ids=lambda effect: type(effect).__name__)
def test_what_may_take_any_time_is_an_occupation(effect: Any) -> None:
    assert occupation(effect)
    found = standing_of(worker_query().session, [("a", Await()), ("b", effect)])
    assert found.busy == occupation(effect)
    assert found.waits == ()


@pytest.mark.parametrize("effect", WAITING, ids=lambda effect: type(effect).__name__)
def test_what_has_a_time_limit_of_its_own_is_none(effect: Any) -> None:
    assert not occupation(effect)
    assert not standing_of(worker_query().session, [("a", effect)]).busy


def test_what_a_process_does_beside_its_effects_counts_too() -> None:
    assert standing_of(worker_query().session, [], "outputs are being read").busy == "outputs are being read"


def test_only_effects_that_are_really_under_way_are_an_excuse() -> None:
    waiting = [(str(at), effect) for at, effect in enumerate(BUSY)]
    found = standing_of(worker_query().session, waiting, excuses=[])
    assert found.busy == ""
    assert "0 waits for an answer to Execute" in found.waits
    assert standing_of(worker_query().session, waiting, excuses=BUSY[1:2]).busy == occupation(BUSY[1])


def waiting_for(effect: Any, since_seconds: float = 0.0) -> Actor:
    return Actor(SESSION, iter(()), effect=effect, since_seconds=time.monotonic() - since_seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "computes", "excused"),
    [(1, True, True), (1, False, False), (0, True, False)],
    ids=["a thread computes", "all threads are idle", "the step is over, and its answer lost"],
)
def test_a_step_is_an_excuse_while_a_thread_computes(steps: int, computes: bool, excused: bool) -> None:
    query = WorkerQuery(worker_query().session, QueryId("q"), steps=set(range(steps)))
    assert is_excuse(waiting_for(BUSY[0]), query, computes=computes) is excused


@pytest.mark.parametrize("holds_up", [True, False])
def test_the_client_is_an_excuse_while_it_has_rows_to_take(holds_up: bool) -> None:
    query = WorkerQuery(worker_query().session, QueryId("q"), waits_for_client=lambda: holds_up)
    assert is_excuse(waiting_for(Collect(())), query, computes=True) is holds_up


@pytest.mark.parametrize("effect", BUSY[1:4], ids=lambda effect: type(effect).__name__)
def test_a_disk_is_an_excuse_for_a_limited_time(effect: Any) -> None:
    query = WorkerQuery(worker_query().session, QueryId("q"))
    assert is_excuse(waiting_for(effect), query, computes=False)
    assert not is_excuse(waiting_for(effect, STORAGE_SECONDS_MAX + 1), query, computes=True)


def test_reading_outputs_is_an_excuse_for_a_limited_time() -> None:
    query, now = WorkerQuery(worker_query().session, QueryId("q")), time.monotonic()
    for age, excused in ((0.0, False), (READS_SECONDS + 1, True), (STORAGE_SECONDS_MAX + 1, False)):
        query.reads = {object(): now - age}
        assert bool(reading(query)) is excused


def test_whatever_moves_changes_the_marks() -> None:
    hand = worker_query()
    session, outbox = hand.session, hand.session.context.outbox
    seen = [standing_of(session, []).marks]
    session.receive(3, ME, (piece(GRAPH, TO_X0, 0),))
    seen.append(standing_of(session, []).marks)
    outbox.publish(TaskName(*S0, 0), ended=False)
    outbox.confirm(((TO_X0, TaskName(*S0, 0)),), (True,))
    seen.append(standing_of(session, []).marks)
    session.runs[X0].seq += 1
    seen.append(standing_of(session, []).marks)
    session.runs[X0].closed = True
    seen.append(standing_of(session, []).marks)
    session.context.epoch += 1
    seen.append(standing_of(session, []).marks)
    assert len(set(seen)) == len(seen)
    assert standing_of(session, []).marks == seen[-1]


def test_it_is_told_who_waits_for_which_edge_with_how_many_bytes_and_why() -> None:
    hand = worker_query()
    session, outbox = hand.session, hand.session.context.outbox
    for seq, size_bytes in ((0, 60), (1, 70)):
        outbox.publish(TaskName(*S0, seq), ended=False)
        reply = session.receive(3, ME, (piece(GRAPH, TO_X0, seq, size_bytes),))
        outbox.confirm(((TO_X0, TaskName(*S0, seq)),), reply.held)
    waits = standing_of(
        session, [("s1.c0", Await()), ("deliver to w2", Push(FailPoint.DELIVER, 3, ME, ME, ()))]
    ).waits
    assert (
        f"s1.c0 is at task 0 and waits for s0.c0 over {TO_X0}: consumed 0, holds 1 with 60 bytes of a window of 100, "
        "has refused output 1 with 70 bytes" in waits
    )
    assert (
        f"s0.c0 has outputs 1 to 1 for s1.c0 over {TO_X0} at {ME}: refused when it was last offered" in waits
    )
    assert "deliver to w2 waits for an answer to Push" in waits
    assert not any(line.startswith("s1.c0 waits for an answer") for line in waits), "it is only parked"


def test_a_refusal_is_forgotten_when_the_output_is_there() -> None:
    hand = worker_query()
    inbox = hand.session.runs[X0].inbox
    assert not hand.session.receive(3, ME, (piece(GRAPH, TO_X0, 1, 170),)).held[0]
    assert any("has refused output 1" in line for line in standing_of(hand.session, []).waits)
    hand.session.receive(3, ME, (piece(GRAPH, TO_X0, 0),))
    inbox.take(Draw(0, ((0, 1),)))
    assert hand.session.receive(3, ME, (piece(GRAPH, TO_X0, 1, 170),)).held[0]
    assert not any("has refused" in line for line in standing_of(hand.session, []).waits)


def test_an_answer_is_these_bytes() -> None:
    standing = Standing((1, 22), "busy", ("a waits for b",))
    data = b'{"version":1,"marks":[1,22],"busy":"busy","waits":["a waits for b"]}'
    assert encode_standing(standing) == data
    assert decode_standing(data) == standing


@pytest.mark.parametrize("data", [b"", b"[]", b'{"version":2}', b'{"version":1,"marks":["x"]}', b"\xff"])
def test_what_is_no_answer_is_an_error(data: bytes) -> None:
    with pytest.raises(EncodingError):
        decode_standing(data)


class Peers:
    """Answers every question with the same bytes."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer

    def ask(self, *_: Any) -> bytes | None:
        return self.answer


@pytest.mark.parametrize("answer", [None, b"nonsense"])
def test_a_process_that_says_nothing_that_can_be_understood_has_not_answered(answer: bytes | None) -> None:
    assert ask_standing(Peers(answer), "w1:1", "q", 1.0) is None  # type: ignore[arg-type]


def test_one_that_does_not_answer_hides_and_delays_nobody_else() -> None:
    jobs: list[Callable[[], None]] = []
    told: list[dict[WorkerId, Standing]] = []
    others = {HEAD: Standing((1,)), WorkerId("w9"): Standing((9,), "busy")}
    standings((HEAD, ME, WorkerId("w9")), others.get, told.append, jobs.append)
    for job in reversed(jobs):  # each is a job of its own, in whatever order they end
        assert told == []
        job()
    assert told == [others]
