"""The life of a channel under coordinated snapshots, driven by hand."""

from __future__ import annotations

import pytest
from tests.builders import Driven, W, draw, kinds, piece, pipeline

from wallaby.lineage.aligned import run_aligned, run_aligned_collector, split_after
from wallaby.lineage.attempt import ChannelPhase, ChannelRun, WorkerContext
from wallaby.lineage.barriers import (
    AlignedInbox,
    Barrier,
    BarrierDue,
    ChannelCut,
    Cover,
    RestoreCut,
    SaveCut,
    Start,
)
from wallaby.lineage.choose import Dynamic
from wallaby.lineage.effects import Executed, Output
from wallaby.lineage.names import HEAD, ChannelName, Edge, QueryId, TaskName, Upstream
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.tolerance import POLICIES

GRAPH = pipeline(splits=3)
R0, X0, SINK = GRAPH.channels
IN, OUT = Edge(0, 0, 0), Edge(1, 0, 0)
START = Start(QueryId("q"), 4)


def channel_run(channel: ChannelName, split: int | None = None) -> ChannelRun:
    tolerance = POLICIES["checkpoint"]
    outbox = Outbox(GRAPH, tolerance)
    routes = {name: HEAD if name == SINK else W[1] for name in GRAPH.channels}
    outbox.begin_epoch(dict.fromkeys(GRAPH.edges_from(channel), 0), routes, (channel,))
    outbox.start(channel, 0)
    context = WorkerContext(GRAPH, Dynamic(100), outbox, tolerance, epoch=1)
    return ChannelRun(context, channel, AlignedInbox(GRAPH, channel, 100), 0, 0, split)


def arrive(run: ChannelRun, edge: Edge, *bodies: object, first: int = 0) -> None:
    for seq, body in enumerate(bodies, first):
        sent = Barrier(abs(body), void=body < 0) if isinstance(body, int) else body
        run.inbox.offer(piece(GRAPH, edge, seq, final=body == "end", body=sent))


def published(run: ChannelRun) -> int:
    return run.context.outbox.published(run.channel)


def executed(state: object, **more: bool) -> Executed:
    return Executed(state, Output(0, {}, **more))


def test_a_reader_saves_its_part_before_its_barrier_leaves_and_then_reads() -> None:
    run = channel_run(R0, split=0)
    driven = Driven(run_aligned(run, None))
    assert driven.now == BarrierDue(R0, 0)
    driven.answer(1)
    assert driven.now == SaveCut(TaskName(*R0, 0), 1, ChannelCut(None, split=0))
    assert published(run) == 0
    driven.answer(True)
    assert kinds(driven.seen)[-1] == "BackUp"
    assert driven.now.output.slices[IN] == (0, Barrier(1))
    assert published(run) == 0
    driven.answer(True)
    assert published(run) == 1
    assert kinds(driven.seen)[-1] == "Execute"
    assert driven.now.split == 0
    driven.answer_all(executed(None), True)
    assert driven.now == BarrierDue(R0, 1)
    driven.answer(1)
    assert kinds(driven.seen)[-1] == "Execute", "no snapshot is due"
    assert (driven.now.split, published(run)) == (1, 2)


def test_a_reader_that_is_late_leaves_no_snapshot_out() -> None:
    driven = Driven(run_aligned(channel_run(R0, split=0), None))
    driven.answer_all(3, *6 * [True])
    saved = [effect.number for effect in driven.seen if isinstance(effect, SaveCut)]
    assert saved == [1, 2, 3]
    assert kinds(driven.seen)[-1] == "Execute"


def test_a_reader_ends_after_its_own_splits() -> None:
    graph = pipeline(readers=2, splits=5)
    second = ChannelName(0, 1)
    assert [split_after(graph, second, split, None) for split in (1, 3, 6)] == [3, None, 3]
    assert split_after(graph, second, 1, 6) == 6, "the rest of a split comes first"


def test_a_channel_goes_on_from_its_part_of_a_snapshot() -> None:
    run = channel_run(R0, split=0)
    driven = Driven(run_aligned(run, START))
    assert driven.now == RestoreCut(R0, START)
    driven.answer(ChannelCut("state", split=2))
    driven.answer(0)
    assert kinds(driven.seen)[-1] == "Execute"
    assert (driven.now.split, driven.now.state, driven.now.task.seq) == (2, "state", 0)


def test_a_channel_without_a_part_had_ended_and_sends_nothing() -> None:
    run = channel_run(R0, split=0)
    driven = Driven(run_aligned(run, START))
    driven.answer(None)
    assert driven.now is None
    assert (run.phase, published(run)) == (ChannelPhase.ENDED, 0)


def test_a_channel_passes_a_barrier_on_when_it_has_consumed_what_is_before_it() -> None:
    run = channel_run(X0)
    arrive(run, IN, "rows", 1, "end")
    driven = Driven(run_aligned(run, None))
    assert driven.now.draw == draw(0, c0=1)
    driven.answer_all(executed("state"), True)
    assert driven.now == SaveCut(TaskName(*X0, 1), 1, ChannelCut("state"))
    driven.answer_all(True, True)
    assert driven.now.draw == draw(0, c0=1)
    driven.answer_all(executed("more"), True)
    assert driven.now.last
    driven.answer_all(executed("last"), True)
    assert (driven.now, run.phase, published(run)) == (None, ChannelPhase.ENDED, 4)


def test_a_rest_is_handed_on_before_a_barrier_is_heeded() -> None:
    run = channel_run(X0)
    arrive(run, IN, "rows", 1)
    driven = Driven(run_aligned(run, None))
    driven.answer_all(True, executed("state", rest=True), True)
    assert kinds(driven.seen)[-1] == "Execute"
    assert (driven.now.draw, driven.now.state) == (None, "state")
    driven.answer_all(executed("empty"), True)
    assert kinds(driven.seen)[-1] == "SaveCut"


def test_a_void_barrier_is_passed_on_and_nothing_is_saved() -> None:
    run = channel_run(X0)
    arrive(run, IN, -1)
    driven = Driven(run_aligned(run, None))
    assert kinds(driven.seen)[-1] == "BackUp"
    assert driven.now.output.slices[OUT] == (0, Barrier(1, void=True))
    driven.answer(True)
    assert kinds(driven.seen)[-1] == "Await"


def test_a_worker_without_room_for_a_barrier_leaves() -> None:
    run = channel_run(X0)
    arrive(run, IN, -1)
    driven = Driven(run_aligned(run, None))
    driven.answer(False)
    assert kinds(driven.seen) == ["BackUp", "Leave"]


@pytest.mark.parametrize("start", [None, Start(QueryId("q"), 4, ())])
def test_the_collector_gives_out_what_a_snapshot_covers_and_the_rest_at_the_end(start: Start | None) -> None:
    run, done = channel_run(SINK), []
    driven = Driven(run_aligned_collector(run, lambda: done.append(1), start))
    arrive(run, OUT, "one", "two")
    driven.answer(False)
    assert kinds(driven.seen) == ["Await", "Await"], "nothing is given out"
    arrive(run, OUT, 1, "three", -2, "end", first=2)
    driven.answer(False)
    assert kinds(driven.seen)[-1] == "Cover"
    assert ([piece.body for piece in driven.now.slices], driven.now.number) == (["one", "two"], 1)
    assert not driven.now.whole
    driven.answer(None)
    assert kinds(driven.seen)[-1] == "Cover"
    assert ([piece.body for piece in driven.now.slices], driven.now.whole) == (["three", "end"], True)
    assert not done
    assert driven.answer(None) is None
    assert done


def test_a_collector_that_goes_on_does_not_wait_for_what_had_ended() -> None:
    run, done = channel_run(SINK), []
    start = Start(QueryId("q"), 4, (Upstream(1, 0),))
    driven = Driven(run_aligned_collector(run, lambda: done.append(1), start))
    assert driven.now == Cover((), 0, start.ended, whole=True)
    driven.answer(None)
    assert done
