"""Algorithm 1, driven by hand: which effects, in which order, and what no answer may change."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import (
    Driven,
    W,
    broadcast_to_execute,
    draw,
    drawn,
    filtered_read,
    final_record,
    kinds,
    output,
    piece,
    pipeline,
)

from wallaby.errors import DivergenceError, InternalError
from wallaby.lineage.attempt import RETRY_MS, ChannelPhase, ChannelRun, WorkerContext, run_channel
from wallaby.lineage.choose import DrawPolicy, Dynamic, Static
from wallaby.lineage.effects import (
    Advance,
    Await,
    BackUp,
    CloseEarly,
    CommitTask,
    Execute,
    Executed,
    FailPoint,
    Leave,
    Pause,
)
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.inbox import Inbox
from wallaby.lineage.lineage import LineageRecord, encode
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, Upstream
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.verdict import CommitReply, Verdict

GRAPH = pipeline()
R0, X0 = ChannelName(0, 0), ChannelName(1, 0)
IN, OUT = Edge(0, 0, 0), Edge(1, 0, 0)
T0, T1 = TaskName(*X0, 0), TaskName(*X0, 1)
DONE = CommitReply(Verdict.DONE)
ONE_OF_R0 = draw(0, c0=1)


def channel_run(
    channel: ChannelName = X0,
    *,
    graph: StageGraph = GRAPH,
    policy: DrawPolicy | None = None,
    length: int = 0,
    split: int | None = None,
    closed: bool = False,
    retracing: bool = False,
) -> ChannelRun:
    """A channel that has just come to w0, in epoch 3, with an empty inbox."""
    outbox = Outbox(graph)
    routes = {name: HEAD if name == graph.collector else W[1] for name in graph.channels}
    outbox.begin_epoch(dict.fromkeys(graph.edges_from(channel), 0), routes, (channel,))
    base = 0 if retracing else length
    outbox.start(channel, base)
    host = WorkerContext(graph, policy or Static(1), outbox, epoch=3)
    inbox = Inbox(graph, channel, 100)
    phase = ChannelPhase.RETRACING if retracing else ChannelPhase.CHOOSING
    return ChannelRun(host, channel, inbox, base, length, split, closed, phase=phase)


def arrive(channel: ChannelRun, *seqs: int, final: bool = False, edge: Edge = IN) -> None:
    for seq in seqs:
        channel.inbox.offer(piece(channel.context.graph, edge, seq, final=final))


def published(channel: ChannelRun) -> int:
    return channel.context.outbox.published(channel.channel)


def commit(task: TaskName, record: bytes, *, final: bool = False, epoch: int = 3) -> CommitTask:
    return CommitTask(task, record, final, (), epoch)


def executed(channel: ChannelRun, *, satisfied: bool = False) -> Driven:
    """Drive a channel with one input to its first commit."""
    arrive(channel, 0)
    run = Driven(run_channel(channel))
    run.answer_all(Executed("state 1", output(satisfied=satisfied)), True)
    assert isinstance(run.now, CommitTask)
    return run


# --- one task after another --------------------------------------------------------------------------------


def test_a_task_is_executed_backed_up_committed_and_only_then_advanced() -> None:
    channel = channel_run()
    arrive(channel, 0)
    run = Driven(run_channel(channel))
    made = output()
    run.answer_all(("state 1", made), True, DONE, None)
    assert run.seen == [
        Execute(FailPoint.EXECUTE, T0, None, None, ONE_OF_R0, (piece(GRAPH, IN, 0),), {}, False),
        BackUp(FailPoint.BACK_UP, T0, made, False),
        commit(T0, drawn(0, c0=1)),
        Advance(T0),
        Await(),
    ]


def test_a_channel_runs_from_its_first_input_to_its_final_task() -> None:
    channel = channel_run()
    arrive(channel, 0, final=True)
    run = Driven(run_channel(channel))
    run.answer_all(
        Executed("state 1", output(1)), True, DONE, None, Executed("state 2", output(2)), True, DONE, None
    )
    assert run.now is None
    assert run.seen[4] == Execute(FailPoint.EXECUTE, T1, "state 1", None, None, (), {}, True)
    assert run.seen[6] == commit(T1, final_record(2), final=True)
    assert channel.ended
    assert published(channel) == 2


def test_every_side_effect_stands_behind_a_fail_point_of_its_own() -> None:
    channel = channel_run()
    run = executed(channel, satisfied=True)
    run.answer_all(DONE, None, Verdict.DONE)
    assert [effect.point for effect in run.seen] == [
        FailPoint.EXECUTE,
        FailPoint.BACK_UP,
        FailPoint.COMMIT,
        FailPoint.ADVANCE,
        FailPoint.CLOSE_EARLY,
    ]


def test_a_channel_waits_while_nothing_has_arrived() -> None:
    channel = channel_run()
    run = Driven(run_channel(channel))
    run.answer_all(False, False)
    assert run.seen == [Await()] * 3
    arrive(channel, 0)
    assert isinstance(run.answer(False), Execute)


def test_a_channel_takes_less_than_its_target_only_after_a_wait_in_vain() -> None:
    channel = channel_run(policy=Dynamic(50))
    arrive(channel, 0)
    run = Driven(run_channel(channel))
    assert run.now == Await()
    assert run.answer(False) == Await()
    assert isinstance(run.answer(True), Execute)


def test_state_goes_from_each_task_to_the_next() -> None:
    channel = channel_run()
    arrive(channel, 0, 1)
    run = Driven(run_channel(channel))
    run.answer_all(Executed("state 1", output()), True, DONE, None)
    assert run.now == Execute(
        FailPoint.EXECUTE, T1, "state 1", None, ONE_OF_R0, (piece(GRAPH, IN, 1),), {}, False
    )


def test_a_channel_that_goes_on_starts_at_its_committed_length() -> None:
    """A moved reader: what its earlier hosts read is behind its base."""
    channel = channel_run(R0, length=5, split=8)
    run = Driven(run_channel(channel))
    assert run.now.task == TaskName(0, 0, 5)
    assert run.now.split == 8


# --- nothing leaves before its commit ----------------------------------------------------------------------


def test_nothing_is_published_before_the_commit_is_answered() -> None:
    channel = channel_run()
    run = executed(channel)
    assert published(channel) == 0
    assert channel.context.outbox.targets() == ()
    run.answer(DONE)
    assert run.now == Advance(T0)
    assert published(channel) == 0
    run.answer(None)
    assert published(channel) == 1


@pytest.mark.parametrize(
    "refusal",
    [CommitReply(Verdict.FROZEN), CommitReply(Verdict.STALE), None],
    ids=["frozen", "stale", "no answer"],
)
def test_a_commit_without_success_is_sent_again_as_it_was_and_nothing_is_executed_twice(
    refusal: CommitReply | None,
) -> None:
    channel = channel_run()
    run = executed(channel)
    for _ in range(3):
        assert run.answer(refusal) == Pause(RETRY_MS, FailPoint.COMMIT)
        assert channel.context.look_wanted
        assert published(channel) == 0
        assert run.answer(False) == commit(T0, drawn(0, c0=1))
    run.answer_all(CommitReply(Verdict.ALREADY), None)
    assert kinds(run.seen).count("Execute") == 1
    assert published(channel) == 1


def test_more_input_that_arrives_during_a_commit_does_not_change_it() -> None:
    """The mistake that gives one name two contents: another try with other inputs."""
    channel = channel_run(policy=Dynamic(1))
    run = executed(channel)
    run.answer(None)
    arrive(channel, 1, 2)
    assert run.answer(False) == commit(T0, drawn(0, c0=1))


def test_the_commit_is_repeated_in_the_epoch_that_the_look_has_found() -> None:
    channel = channel_run()
    run = executed(channel)
    run.answer(CommitReply(Verdict.STALE))
    channel.context.epoch = 5
    assert run.answer(False) == commit(T0, drawn(0, c0=1), epoch=5)


@pytest.mark.parametrize("verdict", [Verdict.GONE, Verdict.EXPELLED, Verdict.NOT_HOST, Verdict.CLOSED])
def test_a_channel_that_is_not_ours_any_more_ends_without_publishing(verdict: Verdict) -> None:
    channel = channel_run()
    run = executed(channel)
    assert run.answer(CommitReply(verdict)) is None
    assert channel.ended
    assert published(channel) == 0


def test_another_record_under_the_same_name_is_a_divergence() -> None:
    channel = channel_run()
    run = executed(channel)
    with pytest.raises(DivergenceError) as caught:
        run.answer(CommitReply(Verdict.DIVERGED))
    assert caught.value.fields["task"] == T0
    assert published(channel) == 0


@pytest.mark.parametrize("verdict", [Verdict.OUT_OF_ORDER, Verdict.CONFLICT])
def test_an_answer_that_makes_no_sense_stops_the_channel(verdict: Verdict) -> None:
    run = executed(channel_run())
    with pytest.raises(InternalError, match=str(T0)):
        run.answer(CommitReply(verdict))


def test_a_worker_without_room_for_a_backup_leaves_before_it_commits() -> None:
    channel = channel_run()
    arrive(channel, 0)
    run = Driven(run_channel(channel))
    run.answer_all(Executed("state 1", output()), False)
    assert isinstance(run.now, Leave)
    assert str(T0) in run.now.reason


def test_what_the_attempt_in_flight_has_drawn_is_known_until_its_commit() -> None:
    channel = channel_run()
    run = executed(channel)
    assert channel.drawing == ONE_OF_R0
    assert channel.inbox.consumed(Upstream(0, 0)) == 1
    run.answer(None)
    assert channel.drawing == ONE_OF_R0
    run.answer_all(False, DONE)
    assert channel.drawing is None


# --- deliveries ride on commits ----------------------------------------------------------------------------


def deliver(channel: ChannelRun) -> None:
    items = channel.context.outbox.due(HEAD, 9)
    channel.context.outbox.confirm(items, (True,) * len(items))


def second_commit(channel: ChannelRun) -> Driven:
    """The first output is committed and delivered; the second waits for its commit."""
    run = executed(channel)
    run.answer_all(DONE, None)
    deliver(channel)
    arrive(channel, 1)
    run.answer_all(False, Executed("state 2", output()), True)
    return run


def test_a_commit_carries_the_deliveries_made_since_the_one_before() -> None:
    channel = channel_run()
    run = second_commit(channel)
    assert run.now.delivered == ((OUT, 1),)
    run.answer_all(DONE, None)
    arrive(channel, 2)
    run.answer_all(False, Executed("state 3", output()), True)
    assert run.now.delivered == ()


def test_deliveries_whose_commit_had_no_answer_are_reported_again() -> None:
    run = second_commit(channel_run())
    run.answer_all(None, False)
    assert run.now.delivered == ((OUT, 1),)


def test_an_answer_from_an_earlier_epoch_does_not_count_deliveries_of_this_one() -> None:
    """The look came between the commit and its answer: the consumer may have been rewound since."""
    channel = channel_run()
    run = second_commit(channel)
    channel.context.epoch = 5
    channel.context.outbox.begin_epoch({OUT: 0}, {GRAPH.collector: HEAD}, (X0,))
    run.answer_all(CommitReply(Verdict.ALREADY), None)
    channel.context.outbox.confirm(((OUT, T0),), (True,))
    assert channel.context.outbox.report(X0) == ((OUT, 1),)


# --- early end ---------------------------------------------------------------------------------------------


def test_a_satisfied_channel_ends_at_once_and_closes_what_feeds_it() -> None:
    channel = channel_run()
    arrive(channel, 1)
    run = executed(channel, satisfied=True)
    assert run.now == commit(T0, drawn(0, c0=1, final=True), final=True)
    run.answer_all(DONE, None)
    assert run.now == CloseEarly(X0, 3)
    assert published(channel) == 1
    assert run.answer(Verdict.DONE) is None
    assert channel.ended
    assert channel.inbox.ready(Upstream(0, 0)) == ()


def test_closing_is_repeated_in_the_present_epoch_until_it_is_answered() -> None:
    channel = channel_run()
    run = executed(channel, satisfied=True)
    run.answer_all(DONE, None, None)
    assert run.now == Pause(RETRY_MS, FailPoint.CLOSE_EARLY)
    assert run.answer(None) == CloseEarly(X0, 3)
    run.answer(Verdict.STALE)
    assert channel.context.look_wanted
    channel.context.epoch = 5
    assert run.answer(False) == CloseEarly(X0, 5)
    assert run.answer(Verdict.GONE) is None


def test_a_closed_channel_stops_before_its_next_task() -> None:
    channel = channel_run()
    run = executed(channel)
    run.answer_all(DONE, None)
    channel.closed = True
    arrive(channel, 1)
    assert run.answer(False) is None
    assert channel.ended
    assert kinds(run.seen).count("Execute") == 1


def test_a_channel_that_comes_closed_does_nothing() -> None:
    channel = channel_run(closed=True)
    run = Driven(run_channel(channel))
    assert run.seen == []
    assert channel.ended


# --- readers -----------------------------------------------------------------------------------------------


def test_a_reader_takes_the_split_that_came_with_its_last_commit() -> None:
    channel = channel_run(R0, split=0)
    run = Driven(run_channel(channel))
    first, second = TaskName(0, 0, 0), TaskName(0, 0, 1)
    assert run.now == Execute(FailPoint.READ, first, None, 0, None, (), {}, False)
    run.answer_all(Executed(None, output()), True, CommitReply(Verdict.DONE, 3), None)
    assert run.now == Execute(FailPoint.READ, second, None, 3, None, (), {}, False)


def test_a_reader_without_a_split_ends_its_channel() -> None:
    channel = channel_run(R0)
    run = Driven(run_channel(channel))
    assert run.now == Execute(FailPoint.EXECUTE, TaskName(0, 0, 0), None, None, None, (), {}, True)
    run.answer_all(Executed(None, output()), True)
    assert run.now == commit(TaskName(0, 0, 0), final_record(), final=True)
    assert run.answer_all(DONE, None) is None


def test_a_reader_whose_reply_was_lost_gets_the_same_split_again() -> None:
    channel = channel_run(R0, split=0)
    run = Driven(run_channel(channel))
    run.answer_all(Executed(None, output()), True, None, False, CommitReply(Verdict.ALREADY, 3), None)
    assert run.now.split == 3


def side_arrives(channel: ChannelRun) -> None:
    channel.inbox.offer(piece(channel.context.graph, Edge(1, 0, 0), 0, final=True))


def test_a_reader_waits_for_a_required_side_input_and_uses_it() -> None:
    graph = filtered_read(required=True)
    channel = channel_run(ChannelName(2, 0), graph=graph, split=0)
    run = Driven(run_channel(channel))
    assert run.now == Await()
    side_arrives(channel)
    run.answer(False)
    assert run.now.sides == {1: (piece(graph, Edge(1, 0, 0), 0, final=True),)}
    run.answer_all(Executed(None, output()), True)
    assert run.now.record == encode(LineageRecord(7, split=0, sides=1))


def test_a_reader_records_an_optional_side_input_only_if_it_was_whole_when_the_read_was_chosen() -> None:
    channel = channel_run(ChannelName(2, 0), graph=filtered_read(required=False), split=0)
    run = Driven(run_channel(channel))
    assert run.now.sides == {}
    side_arrives(channel)
    run.answer_all(Executed(None, output()), True)
    assert run.now.record == encode(LineageRecord(7, split=0))
    run.answer_all(CommitReply(Verdict.DONE, 1), None)
    assert list(run.now.sides) == [1]


def test_an_ended_reader_keeps_its_side_inputs_for_re_reads() -> None:
    channel = channel_run(ChannelName(2, 0), graph=filtered_read(required=True))
    side_arrives(channel)
    run = Driven(run_channel(channel))
    run.answer_all(Executed(None, output()), True, DONE, None)
    assert channel.ended
    assert channel.inbox.is_whole(1)


def test_an_execute_task_uses_its_required_side_inputs_whole() -> None:
    graph = broadcast_to_execute()
    channel = channel_run(ChannelName(2, 1), graph=graph)
    arrive(channel, 0, edge=Edge(1, 0, 1))
    run = Driven(run_channel(channel))
    assert run.now == Await()
    broadcast = piece(graph, Edge(0, 0, 1), 0, final=True)
    channel.inbox.offer(broadcast)
    run.answer(False)
    assert run.now.sides == {0: (broadcast,)}
    run.answer_all(Executed(None, output()), True)
    assert run.now.record == encode(LineageRecord(7, draw=draw(1, c0=1), sides=1))


def effects_until_end(channel: ChannelRun, answers: dict[str, Any]) -> list[str]:
    """Drive a channel with one answer for each kind of effect."""
    run = Driven(run_channel(channel))
    while run.now is not None and len(run.seen) < 99:
        run.answer(answers[type(run.now).__name__])
    return kinds(run.seen)


def test_a_source_without_splits_has_one_task() -> None:
    answers = {"Execute": Executed(None, output()), "BackUp": True, "CommitTask": DONE, "Advance": None}
    assert effects_until_end(channel_run(R0), answers) == ["Execute", "BackUp", "CommitTask", "Advance"]
