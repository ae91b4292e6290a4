"""A channel that is rewound where it is has another run: nothing of the one before acts in its name."""

from __future__ import annotations

import pytest
from tests.builders import Driven, output, piece
from tests.hand import GRAPH, ME, OTHER, S0, SINK, TO_X0, X0, X1, Hand, assigned, view

from wallaby.errors import QueryError
from wallaby.lineage.effects import Await, BackUp, CommitTask, Execute, Executed, Fail, Pause
from wallaby.lineage.names import HEAD
from wallaby.lineage.verdict import CommitReply, Verdict

ROUTES = {S0: OTHER, X0: ME, X1: OTHER, SINK: HEAD}


def refused() -> tuple[Hand, Driven]:
    """A channel whose commit met a closed gate: it will send the same again once the gate is open."""
    hand = Hand()
    hand.look(view(assigned(X0), epoch=3, routes=ROUTES))
    run = hand.spawned[str(X0)]
    assert run.now == Await()
    hand.session.receive(3, ME, (piece(GRAPH, TO_X0, 0),))
    assert isinstance(run.answer(False), Execute)
    run.answer_all(Executed(None, output()), True)
    assert isinstance(run.now, CommitTask)
    assert isinstance(run.answer(CommitReply(Verdict.FROZEN)), Pause)
    return hand, run


def test_in_the_same_run_a_refused_commit_is_sent_again_in_the_new_epoch() -> None:
    hand, run = refused()
    hand.look(view(assigned(X0), epoch=5, routes=ROUTES))
    again = run.answer(None)
    assert isinstance(again, CommitTask)
    assert (again.epoch, again.since_epoch) == (5, 1)


@pytest.mark.parametrize("length", [0, 1])
def test_in_another_run_the_old_generator_comes_to_its_end_wherever_it_is(length: int) -> None:
    """It is stopped some steps after the epoch has begun, and is woken before: it must not commit in that epoch."""
    hand, run = refused()
    hand.look(view(assigned(X0, length, since=5), epoch=5, routes=ROUTES))
    assert run.answer(None) is None
    assert hand.spawned[str(X0)] is not run
    assert hand.session.runs[X0].since_epoch == 5


def test_an_error_of_an_old_run_does_not_end_the_query() -> None:
    hand = Hand()
    hand.look(view(assigned(X0), epoch=3, routes=ROUTES))
    run = hand.spawned[str(X0)]
    hand.session.receive(3, ME, (piece(GRAPH, TO_X0, 0),))
    assert isinstance(run.answer(False), Execute)
    hand.look(view(assigned(X0, since=5), epoch=5, routes=ROUTES))
    assert run.throw(QueryError("of what nobody will ever see")) is None
    assert not any(isinstance(effect, Fail) for effect in run.seen)


def test_a_channel_that_was_elsewhere_meanwhile_begins_anew_though_its_base_is_the_same() -> None:
    """This worker has missed the epochs between: what it holds of the channel is older than its records."""
    hand, run = refused()
    hand.look(view(assigned(X0, 4, since=7), epoch=7, routes=ROUTES))
    assert run.answer(None) is None
    assert hand.session.runs[X0].length == 4


def test_attempts_and_what_they_keep_name_their_run() -> None:
    hand = Hand()
    hand.look(view(assigned(X0, since=9), epoch=9, routes=ROUTES, graph=GRAPH))
    run = hand.spawned[str(X0)]
    hand.session.receive(9, ME, (piece(GRAPH, TO_X0, 0),))
    run.answer(False)
    kept = run.answer(Executed(None, output()))
    assert isinstance(kept, BackUp)
    commit = run.answer(True)
    assert isinstance(commit, CommitTask)
    assert (kept.since_epoch, commit.since_epoch) == (9, 9)
