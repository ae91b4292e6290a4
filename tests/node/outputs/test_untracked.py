"""A query without fault tolerance: who reads which split, and which outputs may go."""

from __future__ import annotations

from tests.builders import pipeline
from tests.hand import ME, OTHER, Hand, assigned, view

from wallaby.lineage.effects import CommitTask
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName
from wallaby.lineage.verdict import CommitReply, Verdict
from wallaby.node.outputs.untracked import Untracked, dealt

GRAPH = pipeline(readers=3, executors=2, splits=8)
READERS = [ChannelName(0, channel) for channel in range(3)]
EXECUTORS = [ChannelName(1, channel) for channel in range(2)]


def untracked() -> tuple[Untracked, Hand]:
    """A worker with the first and the last of three readers, and the first of two executors."""
    hand = Hand(GRAPH)
    mine = (READERS[0], READERS[2], EXECUTORS[0])
    routes = {**{name: ME if name in mine else OTHER for name in GRAPH.channels}, GRAPH.collector: HEAD}
    hand.look(view(*(assigned(name) for name in mine), graph=GRAPH, routes=routes))
    return Untracked(hand.session), hand


def commit(channel: ChannelName, seq: int = 0, *, final: bool = False) -> CommitTask:
    return CommitTask(TaskName(*channel, seq), b"", final, (), 3)


def test_every_split_is_dealt_to_one_worker() -> None:
    first, other = dealt(GRAPH, 0, frozenset((0, 2))), dealt(GRAPH, 0, frozenset((1,)))
    assert sorted((*range(3), *first, *other)) == list(range(8)), "with the first of each channel"


def test_the_readers_of_a_worker_share_its_splits() -> None:
    query, _ = untracked()
    replies = [query.commit(commit(READERS[at])).split for at in (0, 0, 2, 2)]
    assert replies == [3, 5, 6, None]


def test_a_last_task_and_one_that_reads_nothing_get_no_split() -> None:
    query, _ = untracked()
    assert query.commit(commit(READERS[0], final=True)) == CommitReply(Verdict.DONE)
    assert query.commit(commit(EXECUTORS[0])) == CommitReply(Verdict.DONE)


def test_an_output_goes_when_all_its_consumers_hold_it_and_once() -> None:
    query, hand = untracked()
    outbox = hand.session.context.outbox
    tasks = [TaskName(*READERS[0], seq) for seq in range(2)]
    for task in tasks:
        outbox.publish(task, ended=False)
    outbox.confirm(tuple((Edge(0, 0, 0), task) for task in tasks), (True, True))
    assert query.released.of(READERS[0]) == [], "one consumer has none of them"
    outbox.confirm(((Edge(0, 0, 1), tasks[0]),), (True,))
    assert query.released.of(READERS[0]) == [tasks[0]]
    assert query.released.of(READERS[0]) == []
