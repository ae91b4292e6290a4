"""Orders of faults: what they say, when they strike, and that every strike is written down first."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from wallaby.config.settings import read_settings
from wallaby.errors import ConfigurationError
from wallaby.errors.files import FULL
from wallaby.faults.injection import FaultInjector
from wallaby.faults.orders import (
    FaultAct,
    FaultOrder,
    FaultOrders,
    Strike,
    order_book,
    parse,
    parse_all,
    point_name,
)
from wallaby.lineage.effects import Acknowledge, Await, CommitTask, FailPoint, Push
from wallaby.lineage.names import HEAD, TaskName, WorkerId
from wallaby.node.actors import SESSION
from wallaby.node.node import Actor, EngineNode, WorkerQuery

STRIKE = Strike("w2:commit:3:kill", "w2-abc", 4711, 12.5, "CommitTask()")


@pytest.mark.parametrize(
    "text",
    [
        "w2:commit:3:kill",
        "w2:commit:3:kill:after",
        "*:deliver:5:stop=3000ms",
        "w0:back-up:2:fail",
        "w1:execute:1:slow=50ms",
        "*:execute@s1.c0.t4:1:kill:x9",
        "w1:deliver@w0:1:fail:x99",
        "w1:commit:2:deafen",
        "*:execute@s5:1:hoard=1200m:x9",
        "*:read:2:hoard-sql=64m",
        "*:retrace:1:hoard-native=1024m",
        "w0:back-up:2:fill=1m",
        "*:commit:1:fill=64m:after",
        "w0:deliver:3:forget",
        "head:freeze:1:restart",
        "head:resume:2:delay=250ms:after:x3",
    ],
)
def test_an_order_is_its_text(text: str) -> None:
    assert str(parse(text)) == text


def test_every_fail_point_has_a_name_that_orders_understand() -> None:
    for point in FailPoint:
        assert parse(f"*:{point_name(point)}:1:delay=1ms").point is point


@pytest.mark.parametrize(
    "text",
    [
        "w2:commit:3",
        "x2:commit:3:kill",
        "w2:comit:3:kill",
        "w2:commit:0:kill",
        "w2:commit:three:kill",
        "w2:commit:3:explode",
        "w2:commit:3:stop",
        "w2:commit:3:kill=2s",
        "w2:commit:3:restart",
        "head:commit:3:kill",
        "head:commit:3:stop=2s",
        "w2:commit@c1:3:kill",
        "head:commit:3:deafen",
        "w2:commit:3:kill:soon",
        "w2:commit:3:hoard=1g",
        "w2:execute:3:hoard",
        "w2:execute:3:hoard=3s",
        "w2:execute:3:hoard=1g:after",
        "w2:execute:3:kill=1g",
        "head:execute:3:hoard=1g",
        "w2:commit:3:forget:after",
        "w2:back-up:3:fill",
        "w2:back-up:3:fill=3s",
        "head:submit:1:fill=1m",
    ],
)
def test_what_is_no_order_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a valid fault order"):
        parse(text)


def test_an_order_concerns_a_place_anybody_or_the_head() -> None:
    assert parse("w2:commit:1:kill").concerns("w2-abcdef")
    assert not parse("w2:commit:1:kill").concerns("w20-abcdef")
    assert parse("*:commit:1:kill").concerns("w7-abcdef")
    assert not parse("*:commit:1:kill").concerns(HEAD)
    assert parse("head:freeze:1:restart").concerns(HEAD)


def test_an_order_may_be_for_one_task_one_stage_or_one_target() -> None:
    commit = CommitTask(TaskName(2, 1, 7), b"", False, (), 1)
    assert parse("*:commit@s2.c1.t7:1:kill").counts(commit)
    assert parse("*:commit@s2:1:kill").counts(commit)
    assert not parse("*:commit@s1:1:kill").counts(commit)
    assert not parse("*:execute@s2:1:kill").counts(commit)
    push = Push(FailPoint.DELIVER, 1, WorkerId("w0-a"), WorkerId("w1-b"), ())
    assert parse("*:deliver@w1:1:fail").counts(push)
    assert not parse("*:deliver@w0:1:fail").counts(push)


def test_a_strike_is_written_down_once_for_all_processes(tmp_path: Path) -> None:
    one, other = FaultOrders(tmp_path), FaultOrders(tmp_path)
    name = one.give(parse_all("w2:commit:3:kill; *:look:1:delay=1ms:x2"))
    (first, kill), (second, delay) = other.orders().items()
    assert other.claim(first, kill, STRIKE)
    assert not one.claim(first, kill, STRIKE)
    assert [one.claim(second, delay, STRIKE) for _ in range(3)] == [True, True, False]
    assert one.struck(name) == (STRIKE,) * 3
    assert one.give(()) != name
    assert other.orders() == {}


def test_faults_are_refused_unless_chaos_is_enabled(tmp_path: Path) -> None:
    assert order_book(read_settings({}, {})) is None
    with pytest.raises(ConfigurationError, match="not enabled"):
        order_book(read_settings({"spark.wallaby.chaos.faults": "w0:look:1:kill"}, {}))
    with pytest.raises(ConfigurationError, match="directory"):
        order_book(read_settings({}, {"chaos_enabled": True}))
    with pytest.raises(ConfigurationError, match="not a valid fault order"):
        order_book(
            read_settings(
                {}, {"chaos_enabled": True, "chaos_directory": tmp_path / "c", "chaos_faults": "boom"}
            )
        )


class _Performer:
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.performed: list[Any] = []

    def perform(self, actor: Actor, effect: Any) -> None:
        self.performed.append(effect)

    def close(self, worker_query: WorkerQuery) -> None: ...

    def has_busy_kernel(self) -> bool:
        return False

    def has_idle_kernel(self) -> bool:
        return True


class _Scene:
    """One process with orders, whose node notes answers and whose end is noted too."""

    def __init__(self, directory: Path, orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[Any] = []
        self.signals: list[int] = []
        self.restarts = 0
        self.book = FaultOrders(directory)
        self.book.give(parse_all(orders))
        node = EngineNode(WorkerId("w1-abc"), lambda _: None)
        monkeypatch.setattr(node, "answer", lambda _actor, _effect, value: self.answers.append(value))
        monkeypatch.setattr(os, "kill", lambda _pid, number: self.signals.append(number))
        self.performer = _Performer()
        self.striking = FaultInjector(self.performer, node, self.book)

    def perform(self, effect: Any, actor: Actor | None = None) -> None:
        self.striking.perform(actor or Actor(SESSION, _echo()), effect)


def _echo() -> Any:
    got = yield "first"
    while True:
        got = yield got


ACKNOWLEDGE = Acknowledge((), 3)


def test_it_strikes_at_the_nth_visit_of_its_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _Scene(tmp_path, "w1:acknowledge:2:fail", monkeypatch)
    for effect in (ACKNOWLEDGE, Await(), ACKNOWLEDGE, ACKNOWLEDGE):
        scene.perform(effect)
    assert scene.performer.performed == [ACKNOWLEDGE, Await(), ACKNOWLEDGE]
    assert scene.answers == [None]
    assert [strike.order for strike in scene.book.struck()] == ["w1:acknowledge:2:fail"]


def test_a_kill_is_written_down_before_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _Scene(tmp_path, "*:acknowledge:1:kill", monkeypatch)
    seen: list[int] = []
    monkeypatch.setattr(os, "kill", lambda *_: seen.append(len(scene.book.struck())))
    scene.perform(ACKNOWLEDGE)
    assert seen == [1]


def test_after_means_when_the_answer_comes_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _Scene(tmp_path, "*:acknowledge:1:kill:after", monkeypatch)
    actor = Actor(SESSION, _echo())
    assert str(actor.effects.send(None)) == "first"
    scene.perform(ACKNOWLEDGE, actor)
    assert scene.performer.performed == [ACKNOWLEDGE]
    assert scene.signals == []
    assert str(actor.effects.send("done")) == "done"
    assert scene.signals == [signal.SIGKILL]
    assert str(actor.effects.send("more")) == "more", "it strikes once"


def test_an_answer_that_is_lost_after_the_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _Scene(tmp_path, "*:acknowledge:1:fail:after", monkeypatch)
    actor = Actor(SESSION, _echo())
    actor.effects.send(None)
    scene.perform(ACKNOWLEDGE, actor)
    assert scene.performer.performed == [ACKNOWLEDGE]
    assert actor.effects.send("done") is None


def test_what_is_forgotten_is_neither_done_nor_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = _Scene(tmp_path, "w1:acknowledge:1:forget", monkeypatch)
    scene.perform(ACKNOWLEDGE)
    assert (scene.performer.performed, scene.answers) == ([], [])
    assert len(scene.book.struck()) == 1


@pytest.mark.parametrize("after", ["", ":after"])
def test_a_full_disk_lets_a_write_begin_and_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    scene = _Scene(tmp_path, f"w1:acknowledge:1:fill=1m{after}", monkeypatch)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    actor = Actor(SESSION, _echo())
    actor.effects.send(None)
    try:
        scene.perform(ACKNOWLEDGE, actor)
        assert scene.performer.performed == [ACKNOWLEDGE]
        assert str(actor.effects.send("done")) == "done"
        with (tmp_path / "segment").open("wb", buffering=0) as segment:
            assert segment.write(bytes(3 << 20)) == 1 << 20
            with pytest.raises(OSError, match="File too large") as error:
                segment.write(b"more")
        assert error.value.errno in FULL
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_what_cannot_fail_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _Scene(tmp_path, "*:choose:1:fail", monkeypatch)
    scene.perform(Await())
    assert scene.performer.performed == [Await()]
    assert scene.book.struck() == ()


def test_orders_given_later_count_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _Scene(tmp_path, "", monkeypatch)
    scene.perform(ACKNOWLEDGE)
    later = scene.book.give([FaultOrder("*", FailPoint.ACKNOWLEDGE, 1, FaultAct.FAIL)])
    scene.perform(ACKNOWLEDGE)
    assert len(scene.performer.performed) == 1
    assert len(scene.book.struck(later)) == 1
