"""Results that stay: when they are whole, and readers who get each output once, from wherever it is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.builders import W, at, execute, read, snapshot

from wallaby.errors import KeptResultError
from wallaby.lineage.effects import Effect, FailPoint, Pause
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.kept import (
    Fetch,
    KeptChannel,
    KeptPlace,
    KeptRange,
    Locate,
    ReadKept,
    ReportReach,
    kept_channels,
    read_kept,
    run_keeper,
    whole_result,
)
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, WorkerId
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.reconcile import drained, reconcile

#: s0 reads, s1 executes in two channels, whose outputs stay.
GRAPH = StageGraph((read(), execute(2), Stage(StageKind.KEEP, 1)), (Link(0, 1), Link(1, 2)))
R0, X0, X1 = ChannelName(0, 0), ChannelName(1, 0), ChannelName(1, 1)
TO_KEEP = Edge(1, 0, 0)
A, B, C = W[:3]


class Hand:
    """Answers a reader, and notes what it asks for."""

    def __init__(self, ranges: tuple[KeptRange, ...], known: Mapping[ChannelName, WorkerId]) -> None:
        self.now_ms = 0
        self._effects = read_kept(ranges, lambda: self.now_ms, 1_000, known)
        self.asked: Effect[object] | None = next(self._effects, None)

    def answer(self, value: object) -> Effect[object] | None:
        try:
            self.asked = self._effects.send(value)
        except StopIteration:
            self.asked = None
        return self.asked

    def throw(self, error: Exception) -> None:
        self._effects.throw(error)


def fetch(worker: WorkerId, first: int, end: int) -> Fetch:
    return Fetch(worker, X0, TO_KEEP, first, end)


ONE = (KeptRange(X0, TO_KEEP, 0, 3),)


def test_a_result_is_whole_when_every_channel_that_makes_it_has_ended() -> None:
    done: list[bool] = []
    keeper = run_keeper(None, lambda: done.append(True))  # type: ignore[arg-type]
    assert next(keeper) == ReadKept()
    for channels in (
        None,
        {},
        {X0: KeptChannel(A, 1, True), X1: KeptChannel(B, 4, False)},
    ):
        assert isinstance(keeper.send(channels), Pause)
        assert keeper.send(True) == ReadKept()
    with pytest.raises(StopIteration):
        keeper.send({X0: KeptChannel(A, 1, True), X1: KeptChannel(B, 4, True)})
    assert done == [True]


def test_the_store_says_who_makes_the_result_and_in_which_order_it_is_read() -> None:
    found = kept_channels(
        GRAPH,
        snapshot(
            GRAPH, {R0: at(A, 9), X0: at(B, 2, final=True), X1: at(C, 5)}, members=(A, B, C), delivered={}
        ),
    )
    assert found == {X0: KeptChannel(B, 2, True), X1: KeptChannel(C, 5, False)}
    assert whole_result(GRAPH, found) == (
        KeptRange(X0, TO_KEEP, 0, 2),
        KeptRange(X1, Edge(1, 1, 0), 0, 5),
    )


def test_what_stays_is_never_due() -> None:
    box = Outbox(GRAPH)
    box.begin_epoch({TO_KEEP: 0}, {X0: A, GRAPH.collector: HEAD}, (X0,))
    box.start(X0, 0)
    box.publish(TaskName(*X0, 0), ended=True)
    assert box.targets() == ()
    assert box.due(HEAD, 99) == ()
    assert box.report_ended() == ()


def test_a_reader_goes_on_behind_what_it_has_got() -> None:
    hand = Hand((*ONE, KeptRange(X1, Edge(1, 1, 0), 4, 5)), {X0: A, X1: B})
    assert hand.asked == fetch(A, 0, 3)
    assert hand.answer(1) == fetch(A, 1, 3)
    assert hand.answer(2) == Fetch(B, X1, Edge(1, 1, 0), 4, 5)
    assert hand.answer(1) is None


def test_a_reader_that_finds_nothing_asks_where_it_is_and_waits_longer_each_time() -> None:
    hand = Hand(ONE, {X0: A})
    assert hand.answer(0) == Locate(X0), "the worker has answered, and is about to make it again"
    waits = []
    for _ in range(7):
        asked = hand.answer(KeptPlace(A))
        assert isinstance(asked, Pause)
        waits.append(asked.limit_ms)
        assert hand.answer(True) == fetch(A, 0, 3)
        assert hand.answer(0) == Locate(X0)
    assert waits == [20, 40, 80, 160, 320, 500, 500]


def test_a_reader_follows_a_channel_to_its_new_host_at_once() -> None:
    hand = Hand(ONE, {X0: A})
    assert hand.answer(2) == fetch(A, 2, 3)
    assert hand.answer(None) == ReportReach(A, reachable=False)
    assert hand.answer(None) == Locate(X0)
    assert hand.answer(KeptPlace(B)) == fetch(B, 2, 3)
    assert hand.answer(1) == ReportReach(A, reachable=True), "what it has said of A is over with its reading"
    assert hand.answer(None) is None


def test_a_worker_that_answers_again_is_not_accused_any_longer() -> None:
    hand = Hand(ONE, {X0: A})
    assert hand.answer(None) == ReportReach(A, reachable=False)
    hand.answer(None)
    hand.answer(KeptPlace(A))
    assert hand.answer(True) == fetch(A, 0, 3)
    assert hand.answer(3) == ReportReach(A, reachable=True)
    assert hand.answer(None) is None


def test_a_reader_without_a_place_asks_first() -> None:
    hand = Hand(ONE, {})
    assert hand.asked == Locate(X0)
    assert hand.answer(KeptPlace(B)) == fetch(B, 0, 3)


def test_a_reader_gives_up_when_nothing_has_come_for_long() -> None:
    hand = Hand(ONE, {X0: A})
    hand.answer(1)
    hand.now_ms = 1_001
    with pytest.raises(KeptResultError, match="output 1 of 3"):
        hand.answer(0)


def test_patience_begins_anew_with_every_output() -> None:
    hand = Hand(ONE, {X0: A})
    hand.now_ms = 900
    assert hand.answer(1) == fetch(A, 1, 3)
    hand.now_ms = 1_800
    assert hand.answer(0) == Locate(X0)


def test_patience_begins_anew_while_a_retrace_advances() -> None:
    hand = Hand(ONE, {X0: A})
    for moves in range(1, 6):
        assert hand.answer(0) == Locate(X0)
        assert isinstance(hand.answer(KeptPlace(A, moves)), Pause)
        hand.now_ms += 900
        assert hand.answer(True) == fetch(A, 0, 3)
    assert hand.answer(0) == Locate(X0)
    assert isinstance(hand.answer(KeptPlace(A, 5)), Pause), "nothing has moved since"
    hand.now_ms += 200
    hand.answer(True)
    with pytest.raises(KeptResultError, match=r"sent no rows for 1\.1 s, and no progress was made"):
        hand.answer(0)


def test_a_result_that_is_gone_ends_its_readers() -> None:
    hand = Hand(ONE, {X0: A})
    hand.answer(0)
    with pytest.raises(KeptResultError, match="released"):
        hand.throw(KeptResultError("It was released."))


# --- recovery ----------------------------------------------------------------------------------------


def ended(hosts: tuple[WorkerId, WorkerId]) -> dict[ChannelName, object]:
    """All is done: R0 at A, the two channels whose outputs stay at these hosts."""
    return {R0: at(A, 9, final=True), X0: at(hosts[0], 3, final=True), X1: at(hosts[1], 2, final=True)}


DELIVERED = {Edge(0, 0, 0): 9, Edge(0, 0, 1): 9, TO_KEEP: 0, Edge(1, 1, 0): 0}


def test_a_lost_worker_costs_what_it_held_and_nothing_else() -> None:
    before = snapshot(GRAPH, ended((B, C)), members=(A, C), delivered=DELIVERED)  # type: ignore[arg-type]
    plan = reconcile(GRAPH, before)
    assert plan.rewound == (X0,)
    assert set(plan.hosts) == {X0}
    assert plan.delivered == {Edge(0, 0, 0): 0}, "its inputs come again from the backups of A"
    assert plan.rereads == ()


def test_a_lost_worker_that_held_nothing_of_the_result_costs_nothing() -> None:
    before = snapshot(GRAPH, ended((B, C)), members=(B, C), delivered=DELIVERED)  # type: ignore[arg-type]
    assert reconcile(GRAPH, before).hosts == {}


def test_what_a_draining_worker_holds_is_made_again_elsewhere_before_it_goes() -> None:
    before = snapshot(GRAPH, ended((B, C)), members=(A, C), draining=(B,), delivered=DELIVERED)  # type: ignore[arg-type]
    plan = reconcile(GRAPH, before)
    assert set(plan.hosts) == {X0}
    assert plan.losses == {}
    moved = snapshot(GRAPH, ended((C, C)), members=(A, C), draining=(B,), delivered=DELIVERED)  # type: ignore[arg-type]
    assert drained(GRAPH, moved, B)


def test_fail_points_of_results_that_stay_are_their_own() -> None:
    assert ReadKept().point is FailPoint.KEEP
    assert Locate(X0).point is FailPoint.LOCATE
    assert fetch(A, 0, 1).point is FailPoint.FETCH
