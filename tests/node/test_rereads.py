"""Re-reads: claimed, repeated as the record says, delivered by who made them, and only then completed."""

from __future__ import annotations

import pytest
from tests.builders import Driven, filtered_read, kinds, output, piece
from tests.hand import GRAPH, ME, OTHER, S0, TO_X0, TO_X1, Hand, assigned, held, view

from wallaby.errors import DivergenceError
from wallaby.gcs.interface import Assignment
from wallaby.lineage.attempt import RETRY_MS
from wallaby.lineage.effects import (
    Await,
    BackUp,
    ClaimReRead,
    Execute,
    Executed,
    Fail,
    FailPoint,
    Leave,
    Pause,
    Push,
    PushReply,
)
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.lineage import LineageRecord, encode
from wallaby.lineage.names import ChannelName, Edge, TaskName
from wallaby.lineage.verdict import Claim, Verdict
from wallaby.node.effects import Complain, Spawn
from wallaby.node.reaching import COMPLAIN_AFTER_PUSHES

READ = encode(LineageRecord(7, split=2))
LOST = TaskName(*S0, 2)


def rereading(graph: StageGraph = GRAPH, *assignments: Assignment) -> tuple[Hand, Driven]:
    hand = Hand(graph)
    routes = dict.fromkeys(graph.channels, OTHER)
    mine = assignments or (assigned(S0, 4, base=4, split=5),)
    hand.look(view(*mine, graph=graph, routes=routes, rereads_waiting=True))
    run = hand.spawned["re-read 0"]
    run.answer(False)
    return hand, run


def claimed(task: TaskName = LOST, record: bytes = READ, edges: tuple[Edge, ...] = (TO_X0, TO_X1)) -> Claim:
    return Claim(Verdict.DONE, task, record, edges)


def reread_push(*edges: Edge) -> Push:
    return Push(FailPoint.REREAD_DELIVER, 3, ME, OTHER, tuple((edge, LOST) for edge in edges))


def test_a_slot_claims_reads_again_backs_up_delivers_and_completes() -> None:
    _, run = rereading()
    made = output()
    run.answer_all(claimed(), (None, made), True, held(True, True))
    assert run.seen[1:] == [
        ClaimReRead(0, None, 3),
        Execute(FailPoint.REREAD, LOST, None, 2, None, (), {}, False),
        BackUp(FailPoint.REREAD_BACK_UP, LOST, made, False, 3),
        reread_push(TO_X0, TO_X1),
        ClaimReRead(0, LOST, 3),
    ]
    assert run.answer(Claim(Verdict.DONE)) == Await()


def test_a_slot_does_not_claim_while_nothing_waits() -> None:
    hand = Hand()
    hand.look(view(assigned(S0, split=0)))
    assert hand.spawned["re-read 0"].answer(False) == Await()


def test_a_claim_without_an_answer_is_repeated_even_if_nothing_seems_to_wait() -> None:
    """It may have been granted: then nobody else is given that output."""
    hand, run = rereading()
    assert run.answer(None) == Pause(RETRY_MS, FailPoint.CLAIM)
    hand.look(view(assigned(S0, 4, base=4, split=5), routes=dict.fromkeys(GRAPH.channels, OTHER)))
    assert run.answer(False) == ClaimReRead(0, None, 3)


def interrupted(*, rereads_waiting: bool) -> Driven:
    """A slot has read an output again when its session comes to a new epoch."""
    hand, run = rereading()
    run.answer_all(claimed(), Executed(None, output()))
    routes = dict.fromkeys(GRAPH.channels, OTHER)
    mine = assigned(S0, 4, base=4, split=5)
    hand.look(view(mine, epoch=5, routes=routes, rereads_waiting=rereads_waiting))
    run.answer(True)
    if isinstance(run.now, Push):
        run.answer(held(True, True))
    return run


def test_a_new_epoch_voids_the_claim() -> None:
    run = interrupted(rereads_waiting=False)
    assert run.now == Await(), "nothing is completed, and nothing is claimed while nothing waits"


def test_what_was_completed_in_an_earlier_epoch_is_not_completed_in_this_one() -> None:
    """The new plan may have put the same output in the queue once more."""
    hand, run = rereading()
    run.answer_all(claimed(), Executed(None, output()), True, held(True, True))
    assert run.now == ClaimReRead(0, LOST, 3)
    run.answer(Claim(Verdict.FROZEN))
    hand.look(view(assigned(S0, 4, base=4, split=5), epoch=5, rereads_waiting=True))
    assert run.answer(None) == ClaimReRead(0, None, 5)


def test_a_slot_that_a_new_epoch_interrupts_claims_anew_and_calls_for_no_other_slot() -> None:
    run = interrupted(rereads_waiting=True)
    assert run.now == ClaimReRead(0, None, 5)


def test_a_re_read_with_another_checksum_ends_the_query_and_is_never_sent() -> None:
    _, run = rereading()
    run.answer(claimed())
    run.answer(Executed(None, output(8)))
    assert isinstance(run.now, Fail)
    assert isinstance(run.now.error, DivergenceError)
    assert "Push" not in kinds(run.seen)


def test_a_re_read_is_offered_again_to_the_edges_that_had_no_room() -> None:
    hand, run = rereading()
    run.answer_all(claimed(), Executed(None, output()), True, held(True, False))
    assert isinstance(run.now, Spawn), "another slot takes over the rest of the queue"
    assert str(run.now.name) == "re-read 1"
    hand.spawned[str(run.now.name)] = Driven(run.now.effects)
    assert run.answer(None) == Await()
    assert run.answer(False) == reread_push(TO_X1)
    assert run.answer(held(True)) == ClaimReRead(0, LOST, 3)
    assert hand.spawned["re-read 1"].now == ClaimReRead(1, None, 3)


def test_edges_that_refuse_a_re_read_take_turns_at_being_the_first_of_a_push() -> None:
    """On the way there may be room for the first slice only: who is always second would wait for ever."""
    _, run = rereading()
    run.answer_all(claimed(), Executed(None, output()), True, held(False, False))
    assert isinstance(run.now, Spawn)
    assert run.answer(None) == Await()
    assert run.answer(False) == reread_push(TO_X1, TO_X0)
    assert run.answer(held(False, False)) == Await()
    assert run.answer(False) == reread_push(TO_X0, TO_X1)


def test_a_re_read_is_offered_to_every_edge_though_a_push_is_cut_after_one_that_has_no_room() -> None:
    _, run = rereading()
    run.answer_all(claimed(), Executed(None, output()), True, held(False))
    assert run.now == reread_push(TO_X1), "it was not sent before"
    run.answer_all(held(True), None, False)
    assert run.now == reread_push(TO_X0)


@pytest.mark.parametrize("reply", [None, PushReply(accepted=False)], ids=["no answer", "refused"])
def test_a_re_read_is_not_completed_before_every_edge_holds_it(reply: PushReply | None) -> None:
    _, run = rereading()
    run.answer_all(claimed(), Executed(None, output()), True, reply, None, False)
    assert run.now == reread_push(TO_X0, TO_X1)


def test_a_re_read_waits_for_the_side_inputs_that_its_record_names() -> None:
    graph, reader = filtered_read(required=False), ChannelName(2, 0)
    hand, run = rereading(graph, assigned(reader, 4, base=4, final=True))
    task = TaskName(*reader, 1)
    run.answer(claimed(task, encode(LineageRecord(7, split=2, sides=1)), (Edge(2, 0, 0),)))
    assert run.now == Await()
    whole = piece(graph, Edge(1, 0, 0), 0, final=True)
    hand.session.receive(3, ME, (whole,))
    run.answer(False)
    assert run.now.sides == {1: (whole,)}


def test_a_re_read_without_the_filter_does_not_use_it_now() -> None:
    """The filter has come since, but the read was made without it."""
    graph, reader = filtered_read(required=False), ChannelName(2, 0)
    hand, run = rereading(graph, assigned(reader, 4, base=4, final=True))
    hand.session.receive(3, ME, (piece(graph, Edge(1, 0, 0), 0, final=True),))
    run.answer(claimed(TaskName(*reader, 1), READ, (Edge(2, 0, 0),)))
    assert run.now.sides == {}


def test_a_worker_without_room_for_a_re_read_leaves() -> None:
    _, run = rereading()
    run.answer_all(claimed(), Executed(None, output()), False)
    assert isinstance(run.now, Leave)


def test_a_re_read_that_is_not_answered_is_complained_about_until_it_is() -> None:
    """Whoever lacks it waits for this worker alone, and for ever if nobody learns that the wire is cut."""
    _, run = rereading()
    run.answer_all(claimed(), Executed(None, output()), True)
    for _ in range(COMPLAIN_AFTER_PUSHES - 1):
        assert run.now == reread_push(TO_X0, TO_X1)
        if isinstance(run.answer(None), Spawn):  # of a slot for what else waits
            run.answer(None)
        assert run.now == Await()
        run.answer(False)
    for _ in range(2):
        assert run.answer(None) == Complain(OTHER, reachable=False)
        assert run.answer_all(True, False) == reread_push(TO_X0, TO_X1)
    assert run.answer(held(True, True)) == Complain(OTHER, reachable=True)
    assert run.answer(True) == ClaimReRead(0, LOST, 3)


def test_a_re_read_of_an_earlier_epoch_says_nothing_of_a_wire() -> None:
    hand, run = rereading()
    run.answer_all(claimed(), Executed(None, output()), True)
    hand.look(view(assigned(S0, 4, base=4, split=5), epoch=5))
    for _ in range(COMPLAIN_AFTER_PUSHES - 1):
        hand.session.reaching.note(OTHER, [(TO_X0, LOST), (TO_X1, LOST)], answered=False)
    run.answer(None)
    assert not hand.session.reaching.is_out_of_reach(OTHER)
    assert "Complain" not in kinds(run.seen)
