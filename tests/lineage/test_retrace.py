"""The retrace of a rewound channel, which follows its records to the letter; and the collector."""

from __future__ import annotations

import pytest
from tests.builders import Driven, W, draw, drawn, filtered_read, final_record, kinds, output, piece, pipeline

from wallaby.errors import DivergenceError, EncodingError
from wallaby.lineage.attempt import (
    RETRY_MS,
    ChannelPhase,
    ChannelRun,
    WorkerContext,
    run_channel,
    run_collector,
)
from wallaby.lineage.choose import Dynamic, Static
from wallaby.lineage.effects import (
    Await,
    BackUp,
    Collect,
    CommitTask,
    Execute,
    Executed,
    FailPoint,
    Leave,
    Pause,
    ReadRecords,
)
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.inbox import Inbox
from wallaby.lineage.lineage import LineageRecord, encode
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, Upstream
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.verdict import CommitReply, RecordsReply, Verdict

GRAPH = pipeline(readers=2)
X0 = ChannelName(1, 0)
FROM_0, FROM_1, OUT = Edge(0, 0, 0), Edge(0, 1, 0), Edge(1, 0, 0)


def rewound(
    length: int,
    *,
    closed: bool = False,
    window_bytes: int = 100,
    graph: StageGraph = GRAPH,
    at: ChannelName = X0,
) -> ChannelRun:
    """A channel with so many records, that has just come to w0, in epoch 3, with an empty inbox."""
    outbox = Outbox(graph)
    routes = {name: HEAD if name == graph.collector else W[1] for name in graph.channels}
    outbox.begin_epoch(dict.fromkeys(graph.edges_from(at), 0), routes, (at,))
    outbox.start(at, 0)
    host = WorkerContext(graph, Dynamic(1), outbox, epoch=3)
    phase = ChannelPhase.RETRACING if length > 0 else ChannelPhase.CHOOSING
    return ChannelRun(host, at, Inbox(graph, at, window_bytes), 0, length, closed=closed, phase=phase)


def arrive(channel: ChannelRun, edge: Edge, *seqs: int, size_bytes: int = 1, final: bool = False) -> None:
    for seq in seqs:
        channel.inbox.offer(piece(channel.context.graph, edge, seq, size_bytes, final=final))


def records(*data: bytes) -> RecordsReply:
    return RecordsReply(Verdict.DONE, data)


def published(channel: ChannelRun) -> int:
    return channel.context.outbox.published(channel.channel)


def test_a_retrace_executes_what_its_records_say_and_commits_nothing() -> None:
    channel = rewound(2)
    arrive(channel, FROM_0, 0, 1, 2)
    arrive(channel, FROM_1, 0, 1)
    run = Driven(run_channel(channel))
    first, second = output(1), output(2)
    run.answer_all(
        records(drawn(0, 1, c0=1, c1=2), drawn(0, 2, c0=1)),
        ("state 1", first),
        True,
        ("state 2", second),
        True,
    )
    t0, t1 = TaskName(*X0, 0), TaskName(*X0, 1)
    drawn_first = (piece(GRAPH, FROM_0, 0), piece(GRAPH, FROM_1, 0), piece(GRAPH, FROM_1, 1))
    assert run.seen[:5] == [
        ReadRecords(X0, 3),
        Execute(FailPoint.RETRACE, t0, None, None, draw(0, c0=1, c1=2), drawn_first, {}, False),
        BackUp(FailPoint.RETRACE_BACK_UP, t0, first, False),
        Execute(FailPoint.RETRACE, t1, "state 1", None, draw(0, c0=1), (piece(GRAPH, FROM_0, 1),), {}, False),
        BackUp(FailPoint.RETRACE_BACK_UP, t1, second, False),
    ]
    assert published(channel) == 2
    assert not channel.retracing


def test_after_its_last_record_a_channel_chooses_freely_again() -> None:
    channel = rewound(1)
    arrive(channel, FROM_0, 0, 1)
    run = Driven(run_channel(channel))
    run.answer_all(records(drawn(0, c0=1)), Executed("state 1", output()), True)
    assert run.now == Execute(
        FailPoint.EXECUTE,
        TaskName(*X0, 1),
        "state 1",
        None,
        draw(0, c0=1),
        (piece(GRAPH, FROM_0, 1),),
        {},
        False,
    )
    run.answer_all(Executed("state 2", output(8)), True)
    assert run.now == CommitTask(TaskName(*X0, 1), drawn(0, 8, c0=1), False, (), 3)


def test_a_retraced_output_is_published_one_by_one_as_it_is_made() -> None:
    channel = rewound(2)
    arrive(channel, FROM_0, 0, 1)
    run = Driven(run_channel(channel))
    run.answer_all(records(drawn(0, c0=1), drawn(0, c0=1)), Executed("s", output()))
    assert published(channel) == 0
    run.answer(True)
    assert published(channel) == 1


def test_a_retrace_waits_for_exactly_what_its_record_names() -> None:
    channel = rewound(1)
    arrive(channel, FROM_0, 0, 1, 2)
    run = Driven(run_channel(channel))
    run.answer(records(drawn(0, c0=1, c1=1)))
    assert run.now == Await()
    assert run.answer(True) == Await(), "however eager, a retrace takes neither less nor other inputs"
    arrive(channel, FROM_1, 0)
    run.answer(False)
    assert [one.edge for one in run.now.inputs] == [FROM_0, FROM_1]


def test_a_retrace_gets_its_draw_through_a_window_that_is_smaller() -> None:
    channel = rewound(1, window_bytes=10)
    run = Driven(run_channel(channel))
    run.answer(records(drawn(0, c0=3)))
    assert run.now == Await()
    arrive(channel, FROM_0, 0, 1, 2, size_bytes=10)
    run.answer(False)
    assert len(run.now.inputs) == 3


def test_another_checksum_is_a_divergence_before_anything_is_backed_up_or_published() -> None:
    channel = rewound(1)
    arrive(channel, FROM_0, 0)
    run = Driven(run_channel(channel))
    run.answer(records(drawn(0, 0xAA, c0=1)))
    with pytest.raises(DivergenceError, match=r"s1\.c0\.t0") as caught:
        run.answer(Executed("state 1", output(0xBB)))
    assert caught.value.fields["task"] == TaskName(*X0, 0)
    assert "BackUp" not in kinds(run.seen)
    assert published(channel) == 0


def test_records_that_cannot_be_read_stop_the_retrace() -> None:
    run = Driven(run_channel(rewound(1)))
    with pytest.raises(EncodingError):
        run.answer(records(b"garbage"))


def test_a_finished_channel_is_retraced_to_its_end_and_no_further() -> None:
    channel = rewound(2)
    arrive(channel, FROM_0, 0, final=True)
    arrive(channel, FROM_1, 0, final=True)
    run = Driven(run_channel(channel))
    run.answer_all(records(drawn(0, c0=1, c1=1), final_record()), Executed("s", output()), True)
    assert run.now == Execute(FailPoint.RETRACE, TaskName(*X0, 1), "s", None, None, (), {}, True)
    assert run.answer_all(("s", output()), True) is None
    assert channel.ended
    assert published(channel) == 2


def test_a_satisfied_channel_is_retraced_as_it_was_and_closes_nothing_again() -> None:
    channel = rewound(1)
    arrive(channel, FROM_0, 0)
    run = Driven(run_channel(channel))
    run.answer(records(drawn(0, c0=1, final=True)))
    assert not run.now.last
    assert run.answer_all(("s", output(satisfied=True)), True) is None
    assert channel.ended


def test_a_closed_channel_is_retraced_no_further_than_its_records() -> None:
    channel = rewound(1, closed=True)
    arrive(channel, FROM_0, 0, 1)
    run = Driven(run_channel(channel))
    assert run.answer_all(records(drawn(0, c0=1)), Executed("s", output()), True) is None
    assert kinds(run.seen) == ["ReadRecords", "Execute", "BackUp"]
    assert published(channel) == 1


def test_a_retrace_uses_the_side_inputs_that_its_record_names() -> None:
    graph, reader = filtered_read(required=False), ChannelName(2, 0)
    filter_edge = Edge(1, 0, 0)
    channel = rewound(2, graph=graph, at=reader)
    run = Driven(run_channel(channel))
    run.answer(records(encode(LineageRecord(7, split=4)), encode(LineageRecord(7, split=5, sides=1))))
    assert (run.now.split, run.now.sides) == (4, {})
    arrive(channel, filter_edge, 0)
    run.answer_all(Executed(None, output()), True)
    assert run.now == Await(), "the filter is not whole yet"
    arrive(channel, filter_edge, 1, final=True)
    run.answer(False)
    assert run.now.split == 5
    assert [one.task.seq for one in run.now.sides[1]] == [0, 1]


@pytest.mark.parametrize("answer", [RecordsReply(Verdict.FROZEN), RecordsReply(Verdict.STALE), None], ids=str)
def test_records_are_asked_for_again_in_the_present_epoch(answer: object) -> None:
    channel = rewound(1)
    run = Driven(run_channel(channel))
    assert run.answer(answer) == Pause(RETRY_MS, FailPoint.READ_RECORDS)
    assert channel.context.look_wanted
    channel.context.epoch = 5
    assert run.answer(False) == ReadRecords(X0, 5)


@pytest.mark.parametrize("verdict", [Verdict.GONE, Verdict.EXPELLED, Verdict.NOT_HOST])
def test_a_retrace_that_is_not_ours_any_more_ends(verdict: Verdict) -> None:
    channel = rewound(1)
    run = Driven(run_channel(channel))
    assert run.answer(RecordsReply(verdict)) is None
    assert channel.ended
    assert published(channel) == 0


def test_a_worker_without_room_for_a_retraced_backup_leaves_before_it_publishes() -> None:
    channel = rewound(1)
    arrive(channel, FROM_0, 0)
    run = Driven(run_channel(channel))
    run.answer_all(records(drawn(0, c0=1)), Executed("s", output()), False)
    assert isinstance(run.now, Leave)
    assert published(channel) == 0


def test_a_run_and_its_retrace_execute_the_same() -> None:
    """What a channel did freely, it does again from its records, whatever has arrived by then."""
    free = rewound(0)
    committed: list[bytes] = []
    executions: list[Execute] = []
    arrive(free, FROM_0, 0)
    run = Driven(run_channel(free))
    while run.now is not None:
        if isinstance(run.now, Execute):
            executions.append(run.now)
            run.answer(Executed(f"state {len(executions)}", output(len(executions))))
        elif isinstance(run.now, CommitTask):
            committed.append(run.now.record)
            run.answer(CommitReply(Verdict.DONE))
        elif isinstance(run.now, Await):
            arrive(free, FROM_1, 0)
            arrive(free, FROM_1, 1, final=True)
            arrive(free, FROM_0, 1, 2)
            arrive(free, FROM_0, 3, final=True)
            run.answer(False)
        else:
            run.answer(True)
    again = rewound(len(committed))
    arrive(again, FROM_0, 0, 1, 2)
    arrive(again, FROM_0, 3, final=True)
    arrive(again, FROM_1, 0)
    arrive(again, FROM_1, 1, final=True)
    run = Driven(run_channel(again))
    retraced: list[Execute] = []
    run.answer(records(*committed))
    while run.now is not None:
        if isinstance(run.now, Execute):
            retraced.append(run.now)
            run.answer(Executed(f"state {len(retraced)}", output(len(retraced))))
        else:
            run.answer(True)
    assert len(executions) > 3
    assert [(e.task, e.state, e.draw, e.inputs, e.last) for e in retraced] == [
        (e.task, e.state, e.draw, e.inputs, e.last) for e in executions
    ]


# --- the collector -----------------------------------------------------------------------------------------

RESULT = pipeline(executors=2)
FROM_X0, FROM_X1 = Edge(1, 0, 0), Edge(1, 1, 0)


def collector() -> ChannelRun:
    host = WorkerContext(RESULT, Static(1), Outbox(RESULT), epoch=3)
    return ChannelRun(host, RESULT.collector, Inbox(RESULT, RESULT.collector, 100), 0, 0)


def test_the_collector_hands_on_everything_once_in_order_and_then_says_so() -> None:
    channel, done = collector(), list[str]()
    run = Driven(run_collector(channel, lambda: done.append("done")))
    assert run.now == Await()
    arrive(channel, FROM_X1, 1, 0)
    run.answer(False)
    assert run.now == Collect((piece(RESULT, FROM_X1, 0), piece(RESULT, FROM_X1, 1)))
    assert run.answer(None) == Await()
    arrive(channel, FROM_X1, 0, 1)
    assert run.answer(True) == Await(), "what came twice is handed on once"
    arrive(channel, FROM_X0, 0, final=True)
    arrive(channel, FROM_X1, 2, final=True)
    run.answer(False)
    assert run.now == Collect((piece(RESULT, FROM_X0, 0, final=True),))
    assert not done
    assert run.answer(None) == Collect((piece(RESULT, FROM_X1, 2, final=True),))
    assert run.answer(None) is None
    assert done == ["done"]
    assert channel.ended


def test_the_collector_commits_nothing() -> None:
    channel = collector()
    arrive(channel, FROM_X0, 0, final=True)
    arrive(channel, FROM_X1, 0, final=True)
    run = Driven(run_collector(channel, lambda: None))
    run.answer_all(None, None)
    assert kinds(run.seen) == ["Collect", "Collect"]


def test_the_collector_waits_for_what_is_missing_in_between() -> None:
    channel = collector()
    arrive(channel, FROM_X0, 1, final=True)
    run = Driven(run_collector(channel, lambda: None))
    assert run.now == Await()
    assert channel.inbox.consumed(Upstream(1, 0)) == 0
