"""One query at one worker: what a look changes, and what is received and delivered."""

from __future__ import annotations

import pytest
from tests.builders import Driven, kinds, output, piece, pipeline
from tests.hand import (
    GRAPH,
    ME,
    OTHER,
    ROUTES,
    S0,
    SINK,
    THIRD,
    TO_X0,
    TO_X1,
    X0,
    X1,
    Hand,
    assigned,
    held,
    view,
)

from wallaby.errors import QueryError
from wallaby.gcs.interface import QueryView
from wallaby.lineage.effects import (
    Acknowledge,
    Await,
    CommitTask,
    Effects,
    Execute,
    Executed,
    Fail,
    FailPoint,
    Push,
    PushReply,
    ReadRecords,
)
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, Upstream, WorkerId
from wallaby.lineage.verdict import CommitReply, Verdict
from wallaby.node.effects import Complain
from wallaby.node.reaching import COMPLAIN_AFTER_PUSHES, UnansweredPushes
from wallaby.node.session import PROBE_EVERY_PUSHES


def publish(hand: Hand, channel: ChannelName, *seqs: int, ended: bool = False) -> None:
    for seq in seqs:
        hand.session.context.outbox.publish(TaskName(*channel, seq), ended=ended)


# --- looking -----------------------------------------------------------------------------------------------


def test_a_look_begins_the_channels_of_the_worker_and_deliveries_to_every_host() -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0), assigned(X0)))
    assert list(hand.spawned) == [
        "re-read 0",
        "s0.c0",
        "s1.c0",
        "deliver to head",
        "deliver to w0",
        "deliver to w1",
    ]
    assert isinstance(hand.spawned["s0.c0"].now, Execute)
    assert hand.spawned["s1.c0"].now == Await()


def test_a_second_look_in_the_same_epoch_begins_nothing() -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0)))
    before = dict(hand.spawned)
    hand.look(view(assigned(S0, 7, split=3)))
    assert hand.spawned == before
    assert hand.session.runs[S0].length == 0


@pytest.mark.parametrize("answer", [QueryView(Verdict.FROZEN, 4), QueryView(Verdict.NOT_HOST), None], ids=str)
def test_a_look_without_a_view_changes_nothing(answer: QueryView | None) -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0)))
    hand.look(answer)
    assert hand.session.context.epoch == 3
    assert list(hand.session.runs) == [S0]
    assert not hand.ended


@pytest.mark.parametrize("verdict", [Verdict.GONE, Verdict.EXPELLED])
def test_a_session_ends_with_its_query_or_its_membership(verdict: Verdict) -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0)))
    hand.look(QueryView(verdict))
    assert hand.ended
    assert hand.session.over


def test_a_new_epoch_stops_the_channels_that_went_elsewhere_and_begins_those_that_came() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    hand.look(view(assigned(X1, 2), epoch=5, routes={**ROUTES, X0: OTHER, X1: ME}))
    assert hand.stopped == ["s1.c0"]
    assert list(hand.session.runs) == [X1]
    assert hand.spawned["s1.c1"].now == ReadRecords(X1, 5)
    assert hand.session.runs[X1].retracing


def test_a_channel_that_left_before_its_generator_began_does_nothing() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    begun = []

    def channel() -> Effects[None]:
        begun.append(True)
        yield Await()

    late = hand.session._during(hand.session.runs[X0], channel())
    hand.look(view(epoch=5, routes={**ROUTES, X0: OTHER}))
    assert not list(late)
    assert not begun


def test_a_new_epoch_leaves_the_state_and_the_inbox_of_a_channel_that_stays() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    hand.session.receive(3, ME, (piece(GRAPH, TO_X0, 0), piece(GRAPH, TO_X0, 1)))
    run = hand.spawned["s1.c0"]
    run.answer_all(False, Executed("state 1", output()), True)
    assert isinstance(run.now, CommitTask)
    hand.look(view(assigned(X0), epoch=5))
    assert hand.spawned["s1.c0"] is run
    assert hand.session.runs[X0].inbox.ready(Upstream(0, 0)) == (1,)
    run.answer_all(CommitReply(Verdict.STALE), False)
    assert (run.now.task, run.now.epoch) == (TaskName(*X0, 0), 5)


def test_a_new_epoch_delivers_from_what_the_store_says() -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0), delivered={TO_X1: 0}))
    publish(hand, S0, 0, 1)
    hand.session.context.outbox.confirm(((TO_X1, TaskName(*S0, 0)),), (True,))
    hand.look(view(assigned(S0, 2, split=2), epoch=5, delivered={TO_X0: 2, TO_X1: 0}))
    assert hand.session.context.outbox.due(OTHER, 9) == (
        (TO_X1, TaskName(*S0, 0)),
        (TO_X1, TaskName(*S0, 1)),
    )


def test_a_new_host_of_a_consumer_gets_a_delivery_of_its_own() -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0)))
    hand.look(view(assigned(S0, split=0), epoch=5, routes={**ROUTES, X1: THIRD}))
    assert "deliver to w2" in hand.spawned


def test_a_channel_that_is_closed_within_an_epoch_is_told() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    before = hand.session.news()
    hand.look(view(assigned(X0, closed=True)))
    assert hand.session.runs[X0].closed
    assert hand.session.news() != before
    assert hand.spawned["s1.c0"].answer(False) is None


def test_a_moved_reader_that_has_ended_only_lends_its_inbox() -> None:
    hand = Hand()
    hand.look(view(assigned(S0, 4, base=4, final=True)))
    assert hand.spawned["s0.c0"].now is None
    assert hand.session.runs[S0].ended


def test_the_head_collects_and_says_when_it_has_everything() -> None:
    hand = Hand(pipeline(), worker=HEAD)
    graph = hand.session.graph
    routes = dict.fromkeys(graph.channels, HEAD)
    hand.look(view(assigned(graph.collector), graph=graph, routes=routes))
    hand.session.receive(3, HEAD, (piece(graph, Edge(1, 0, 0), 0, final=True),))
    run = hand.spawned["s2.c0"]
    run.answer_all(False, None)
    assert run.now is None
    assert hand.collected == ["all"]


def test_every_look_settles_that_one_was_wanted() -> None:
    hand = Hand()
    hand.session.context.look_wanted = True
    hand.look(view())
    assert not hand.session.context.look_wanted


# --- errors ------------------------------------------------------------------------------------------------


def test_a_tasks_own_error_is_reported_until_the_store_has_it() -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0)))
    run = hand.spawned["s0.c0"]
    error = QueryError("divided by zero")
    assert run.throw(error) == Fail(error, 3)
    run.answer_all(None, False)
    assert run.now == Fail(error, 3)
    assert run.answer(Verdict.DONE) is None


def test_an_error_of_the_engine_is_not_the_querys() -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0)))
    with pytest.raises(RuntimeError):
        hand.spawned["s0.c0"].throw(RuntimeError("disk on fire"))


# --- receiving ---------------------------------------------------------------------------------------------


def test_a_push_is_taken_as_far_as_it_fits() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    big = [piece(GRAPH, TO_X0, seq, 60) for seq in range(2)]
    assert hand.session.receive(3, ME, tuple(big)) == PushReply(accepted=True, held=(True, False))


def test_a_push_that_is_only_asked_about_is_answered_alike_and_nothing_of_it_is_taken() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    big = tuple(piece(GRAPH, TO_X0, seq, 60) for seq in range(2))
    asked = hand.session.preview(3, ME, big)
    assert hand.session.runs[X0].inbox.arrived == 0
    assert asked == PushReply(accepted=True, held=(True, False)) == hand.session.receive(3, ME, big)
    assert hand.session.preview(2, ME, big) == PushReply(accepted=False)


def test_what_is_there_already_takes_no_room_from_what_is_asked_about() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    hand.session.receive(3, ME, (piece(GRAPH, TO_X0, 0, 40),))
    again = tuple(piece(GRAPH, TO_X0, seq, size) for seq, size in enumerate((40, 60, 20)))
    asked = hand.session.preview(3, ME, again)
    assert asked == PushReply(accepted=True, held=(True, True, False)) == hand.session.receive(3, ME, again)


@pytest.mark.parametrize(
    ("epoch", "target"), [(2, ME), (4, ME), (3, OTHER)], ids=["older", "newer", "for another worker"]
)
def test_a_push_of_another_epoch_or_for_another_worker_is_refused_as_a_whole(
    epoch: int, target: WorkerId
) -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    assert hand.session.receive(epoch, target, (piece(GRAPH, TO_X0, 0),)) == PushReply(accepted=False)
    assert hand.session.runs[X0].inbox.ready(Upstream(0, 0)) == ()


def test_only_a_push_of_a_newer_epoch_asks_for_a_look() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    hand.session.receive(2, ME, ())
    assert not hand.session.context.look_wanted
    hand.session.receive(4, ME, ())
    assert hand.session.context.look_wanted


def test_a_push_for_a_channel_that_is_elsewhere_is_refused_as_a_whole() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    mixed = (piece(GRAPH, TO_X0, 0), piece(GRAPH, TO_X1, 0))
    assert hand.session.receive(3, ME, mixed) == PushReply(accepted=False)
    assert hand.session.runs[X0].inbox.ready(Upstream(0, 0)) == ()


def test_a_session_that_is_over_takes_nothing() -> None:
    hand = Hand()
    hand.look(view(assigned(X0)))
    hand.look(QueryView(Verdict.GONE))
    assert hand.session.receive(3, ME, (piece(GRAPH, TO_X0, 0),)) == PushReply(accepted=False)


# --- delivering --------------------------------------------------------------------------------------------


def delivering(*seqs: int, ended: bool = False) -> tuple[Hand, Driven]:
    """s0 has published these; the delivery to w1 has just been woken."""
    hand = Hand()
    hand.look(view(assigned(S0, split=0), routes={**ROUTES, X0: OTHER}))
    publish(hand, S0, *seqs, ended=ended)
    run = hand.spawned["deliver to w1"]
    run.answer(False)
    return hand, run


def push(*items: tuple[Edge, int], epoch: int = 3) -> Push:
    named = tuple((edge, TaskName(*S0, seq)) for edge, seq in items)
    return Push(FailPoint.DELIVER, epoch, ME, OTHER, named)


def test_a_delivery_pushes_what_is_due_until_all_is_held() -> None:
    _, run = delivering(0, 1)
    assert run.now == push((TO_X0, 0), (TO_X1, 0), (TO_X0, 1), (TO_X1, 1))
    assert run.answer(held(True, True, False, True)) == Await()
    assert run.answer(False) == push((TO_X0, 1))
    assert run.answer(held(True)) == Await()


def test_a_delivery_tries_a_refused_edge_with_every_few_pushes_while_others_move_on() -> None:
    hand, run = delivering(0)
    replies = [held(False, True)] + [held(True)] * (PROBE_EVERY_PUSHES - 1)
    for seq, reply in enumerate(replies):
        assert run.now == (push((TO_X1, seq)) if seq else push((TO_X0, 0), (TO_X1, 0)))
        publish(hand, S0, seq + 1)
        run.answer(reply)
    assert run.now == push((TO_X1, PROBE_EVERY_PUSHES), (TO_X0, 0))


def test_a_delivery_waits_when_nothing_is_taken() -> None:
    _, run = delivering(0)
    assert run.answer(held(False, False)) == Await()
    assert isinstance(run.answer(False), Push)


def test_a_refused_push_counts_for_nothing() -> None:
    hand, run = delivering(0)
    assert run.answer(PushReply(accepted=False)) == Await()
    assert hand.session.context.outbox.delivered()[TO_X0] == 0


def test_an_answer_that_comes_in_another_epoch_counts_for_nothing() -> None:
    hand, run = delivering(0)
    hand.look(view(assigned(S0, split=0), epoch=5, routes={**ROUTES, X0: THIRD}))
    run.answer(held(True, True))
    assert hand.session.context.outbox.delivered() == {TO_X0: 0, TO_X1: 0}
    assert run.now == push((TO_X1, 0), epoch=5)


def test_what_is_published_while_a_push_is_refused_is_pushed_at_once() -> None:
    """Its delivery was not waiting when it was published, so nobody woke it."""
    hand, run = delivering(0)
    publish(hand, S0, 1)
    assert isinstance(run.answer(held(False, False)), Push)
    assert run.answer(held(False, False)) == Await(), "nothing was published meanwhile"


def test_what_is_published_while_an_acknowledgement_is_written_is_pushed_at_once() -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0), assigned(X0), routes={**ROUTES, SINK: OTHER}))
    publish(hand, S0, 0, ended=True)
    hand.session.context.outbox.confirm(((TO_X0, TaskName(*S0, 0)),), (True,))
    run = hand.spawned["deliver to w1"]
    assert run.answer(False) == push((TO_X1, 0))
    assert run.answer(held(True)) == Acknowledge(((TO_X0, 1), (TO_X1, 1)), 3)
    assert run.answer(None) == Acknowledge(((TO_X0, 1), (TO_X1, 1)), 3), (
        "no answer came, and nothing is left to push"
    )
    publish(hand, X0, 0)
    assert isinstance(run.answer(Verdict.DONE), Push)


def test_an_answer_to_a_push_that_was_cut_says_nothing_of_what_was_not_sent() -> None:
    hand, run = delivering(0)
    unanswered(run)
    run.answer_all(True, False)
    run.answer(held(True))
    assert hand.session.reaching.is_out_of_reach(OTHER), "the other output has had no answer yet"


def unanswered(run: Driven, *, pushes: int = COMPLAIN_AFTER_PUSHES) -> None:
    """So many pushes without an answer; at the end the answer to the last one is out."""
    for at in range(pushes):
        assert kinds([run.now]) == ["Push"]
        run.answer(None)
        if at < pushes - 1:
            assert run.now == Await()
            run.answer(False)


def test_a_worker_that_does_not_answer_is_complained_about_and_taken_back_when_it_does() -> None:
    _, run = delivering(0)
    unanswered(run)
    assert run.now == Complain(OTHER, reachable=False)
    run.answer_all(True, False)
    assert isinstance(run.now, Push)
    assert run.answer(held(True, True)) == Complain(OTHER, reachable=True)
    run.answer(True)
    assert "Complain" not in kinds([run.now])


def test_a_complaint_is_renewed_with_every_push_that_is_not_answered() -> None:
    _, run = delivering(0)
    unanswered(run)
    for _ in range(3):
        assert run.now == Complain(OTHER, reachable=False)
        run.answer_all(True, False)
        assert isinstance(run.now, Push)
        run.answer(None)


def test_a_complaint_that_is_made_again_while_it_is_taken_back_stands() -> None:
    """A re-read did not get through meanwhile: it has to be taken back once more when it does."""
    hand, run = delivering(0)
    unanswered(run)
    run.answer_all(True, False)
    assert run.answer(held(True, True)) == Complain(OTHER, reachable=True)
    for _ in range(COMPLAIN_AFTER_PUSHES):
        hand.session.reaching.note(OTHER, [(TO_X1, TaskName(*S0, 9))], answered=False)
    run.answer(True)
    assert OTHER in hand.session.reaching.accused


def test_a_push_of_an_earlier_epoch_says_nothing_of_a_wire() -> None:
    hand, run = delivering(0)
    item = (TO_X0, TaskName(*S0, 0))
    hand.look(view(assigned(S0, split=0), epoch=5))
    for _ in range(COMPLAIN_AFTER_PUSHES - 1):
        hand.session.reaching.note(OTHER, [item], answered=False)
    assert "Complain" not in kinds([run.answer(None)])
    assert not hand.session.reaching.is_out_of_reach(OTHER)


def test_a_complaint_is_taken_back_when_nothing_is_due_to_that_worker_any_more() -> None:
    """Its channels went elsewhere in a recovery: whether it answers is of no interest now, and must harm it no more."""
    hand, run = delivering(0)
    unanswered(run)
    assert run.now == Complain(OTHER, reachable=False)
    assert run.answer(True) == Await()
    hand.look(view(assigned(S0, split=0), epoch=5, routes=dict.fromkeys(GRAPH.channels, ME)))
    assert run.answer(False) == Complain(OTHER, reachable=True)
    assert run.answer(None) == Await(), "no answer: it may still stand"
    assert run.answer(False) == Complain(OTHER, reachable=True)
    assert run.answer(True) == Await()
    assert run.answer(False) == Await(), "the store has answered"


def test_an_answer_to_one_output_does_not_excuse_another_that_never_passes() -> None:
    """A wire that carries what is small and loses what is large is of no use to whoever waits for the large one."""
    reaching = UnansweredPushes()
    large, small = (TO_X0, TaskName(*S0, 0)), (TO_X1, TaskName(*S0, 0))
    for _ in range(COMPLAIN_AFTER_PUSHES):
        assert not reaching.is_out_of_reach(OTHER)
        reaching.note(OTHER, (large, small), answered=False)
        reaching.note(OTHER, (small,), answered=True)
    assert reaching.is_out_of_reach(OTHER)
    reaching.note(OTHER, (large,), answered=True)
    assert not reaching.is_out_of_reach(OTHER)


def test_a_worker_that_cannot_reach_the_head_accuses_itself() -> None:
    hand = Hand()
    items = ((TO_X0, TaskName(*S0, 0)),)
    for _ in range(COMPLAIN_AFTER_PUSHES - 1):
        assert list(hand.session._judge(HEAD, items, None)) == []
    assert Driven(hand.session._judge(HEAD, items, None)).now == Complain(ME, reachable=False)
    assert Driven(hand.session._judge(HEAD, items, held(True))).now == Complain(ME, reachable=True)


def test_the_last_deliveries_of_an_ended_channel_are_written_by_themselves() -> None:
    hand, run = delivering(0, ended=True)
    assert run.answer(held(True, True)) == Acknowledge(((TO_X0, 1), (TO_X1, 1)), 3)
    assert run.answer(Verdict.DONE) == Await()
    assert hand.session.context.outbox.report_ended() == ()


def test_one_acknowledgement_is_under_way_whoever_else_has_delivered() -> None:
    hand, run = delivering(0, ended=True)
    run.answer(held(True, True))
    assert run.now == Acknowledge(((TO_X0, 1), (TO_X1, 1)), 3)
    assert list(hand.session._acknowledge()) == [], "another delivery leaves it to this one"
    run.answer(None)
    assert run.now == Acknowledge(((TO_X0, 1), (TO_X1, 1)), 3), "which tries again"


def test_an_acknowledgement_of_an_earlier_epoch_holds_up_none_of_this_one() -> None:
    hand, run = delivering(0, ended=True)
    run.answer(held(True, True))
    hand.look(view(assigned(S0, split=0), epoch=5, routes={**ROUTES, X0: OTHER}))
    publish(hand, S0, 0, ended=True)
    outbox = hand.session.context.outbox
    outbox.confirm(outbox.due(OTHER, 9), (True, True))
    assert next(iter(hand.session._acknowledge())) == Acknowledge(((TO_X0, 1), (TO_X1, 1)), 5)


def test_deliveries_of_a_channel_that_goes_on_wait_for_its_commit() -> None:
    _, run = delivering(0)
    assert run.answer(held(True, True)) == Await()


def test_an_acknowledgement_without_an_answer_is_written_again() -> None:
    """Nothing is left to push, so nothing else would repeat it: the store would never know."""
    _, run = delivering(0, ended=True)
    run.answer_all(held(True, True), None)
    if run.now == Await():
        run.answer(True)
    assert run.now == Acknowledge(((TO_X0, 1), (TO_X1, 1)), 3)
