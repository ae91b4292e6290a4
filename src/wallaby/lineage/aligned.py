"""The life of a channel under coordinated snapshots: no records, and barriers among its outputs.

A channel chooses, executes, backs up and publishes as always. It commits nothing: the loss of a worker ends this run of
the query, and another run, with a name of its own, goes on from the last complete snapshot. So nothing that an earlier
run made can be taken for something of a later one, whatever names its tasks have and however late it arrives.

When all inputs of a channel have reached a barrier, it saves its part of the snapshot and only then passes the barrier
on. So a snapshot is complete once its barrier has reached the collector over every edge: everybody before it has saved.
The collector gives out rows only then; see `barriers`. A new run numbers its tasks from 0 again, because nothing is
under way at a cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wallaby.lineage.attempt import ChannelPhase, ChannelRun, Chosen, end_run, used_sides
from wallaby.lineage.barriers import (
    Aligned,
    AlignedInbox,
    Barrier,
    BarrierDue,
    Cover,
    RestoreCut,
    SaveCut,
    Start,
    Void,
)
from wallaby.lineage.choose import Finish, choose, sides_ready, whole_sides
from wallaby.lineage.effects import (
    Await,
    BackUp,
    Effects,
    Execute,
    FailPoint,
    Leave,
    Output,
    Slice,
    ask,
)
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.lineage import Draw
from wallaby.lineage.names import ChannelName, TaskName


def run_aligned(run: ChannelRun, start: Start | None) -> Effects[None]:
    """Continue from the channel's part of a snapshot, if there is one, to its last task."""
    inbox = _inbox_of(run)
    state: Any = None
    if start is not None:
        cut = yield from ask(RestoreCut(run.channel, start))
        if cut is None:
            end_run(run)
            return
        inbox.go_on_from(cut)
        state, run.split = cut.state, cut.split
    ended = False
    while not ended:
        chosen = yield from _choose(run, inbox, state)
        has_rest = True
        while has_rest:
            state, ended, has_rest = yield from _attempt(run, state, chosen)
            chosen = replace(chosen, draw=None, split=None)
    end_run(run)


def _inbox_of(run: ChannelRun) -> AlignedInbox:
    assert isinstance(run.inbox, AlignedInbox), "the policy determines both"
    return run.inbox


def _attempt(run: ChannelRun, state: Any, chosen: Chosen) -> Effects[tuple[Any, bool, bool]]:
    """Execute and publish one task. Returns the new state, whether the channel has ended, and a rest."""
    task, graph = TaskName(*run.channel, run.seq), run.context.graph
    inputs = run.inbox.take(chosen.draw) if chosen.draw else ()
    point = FailPoint.READ if chosen.split is not None else FailPoint.EXECUTE
    sides = used_sides(graph, task.stage, run.inbox, chosen.sides)
    execute = Execute(point, task, state, chosen.split, chosen.draw, inputs, sides, chosen.last)
    state, output = yield from ask(execute)
    final = (chosen.last and not output.rest) or output.satisfied
    if chosen.split is not None:
        run.split = split_after(graph, run.channel, chosen.split, output.next_split)
    yield from _publish(run, output, final=final)
    return state, final, output.rest


def split_after(graph: StageGraph, channel: ChannelName, split: int, rest: int | None) -> int | None:
    """The split that a channel reads after another: the rest of the same, or the next of its own.

    The splits of a stage are dealt to its channels in turn. So a channel's next split says which ones it has read.
    """
    if rest is not None:
        return rest
    stage = graph.stages[channel.stage]
    following = split % stage.splits + stage.channels
    return following if following < stage.splits else None


def _publish(run: ChannelRun, output: Output, *, final: bool = False) -> Effects[None]:
    """Back an output up, and let it leave."""
    task = TaskName(*run.channel, run.seq)
    if not (yield from ask(BackUp(FailPoint.BACK_UP, task, output, final, run.since_epoch))):
        yield Leave(f"no room to back {task} up")
    run.seq += 1
    run.context.outbox.publish(task, ended=final)


def _pass_on(run: ChannelRun, barrier: Barrier) -> Effects[None]:
    """Pass a barrier, and send it over every edge."""
    _inbox_of(run).pass_barrier(barrier.number)
    edges = run.context.graph.edges_from(run.channel)
    yield from _publish(run, Output(0, dict.fromkeys(edges, (0, barrier))))


def _snapshot(run: ChannelRun, inbox: AlignedInbox, state: Any, number: int) -> Effects[None]:
    """Save the channel's part of a snapshot; only then may the barrier leave."""
    cut = inbox.cut(number, state, run.split)
    yield from ask(SaveCut(TaskName(*run.channel, run.seq), number, cut))
    yield from _pass_on(run, Barrier(number))


def _heed(run: ChannelRun, inbox: AlignedInbox, state: Any) -> Effects[None]:
    """Do what the barriers that have arrived ask for."""
    while (asked := inbox.alignment()) is not None:
        if isinstance(asked, Aligned):
            yield from _snapshot(run, inbox, state, asked.number)
        else:
            yield from _pass_on(run, Barrier(asked.number, void=True))


def _choose(run: ChannelRun, inbox: AlignedInbox, state: Any) -> Effects[Chosen]:
    """Wait until there is something to do. Before that, take part in the snapshots that are due."""
    eager = False
    while True:
        yield from _heed(run, inbox, state)
        chosen = _next_of(run, inbox, eager=eager)
        if chosen is None:
            eager = yield from ask(Await())
            continue
        if chosen.split is not None and inbox.may_begin():
            due = yield from ask(BarrierDue(run.channel, inbox.passed))
            while inbox.passed < due and inbox.may_begin():  # none is left out: others wait for each of them
                yield from _snapshot(run, inbox, state, inbox.passed + 1)
        links = run.context.graph.sides(run.channel.stage)
        void = inbox.use(link for bit, link in enumerate(links) if chosen.sides >> bit & 1)
        if isinstance(void, Void):
            yield from _pass_on(run, Barrier(void.number, void=True))
        return chosen


def _next_of(run: ChannelRun, inbox: AlignedInbox, *, eager: bool) -> Chosen | None:
    """The input of the next task, if there is any yet."""
    context, name = run.context, run.channel
    if context.graph.is_reader(name.stage):
        if not sides_ready(context.graph, name.stage, inbox):
            return None
        return Chosen(None, run.split, whole_sides(context.graph, name.stage, inbox), last=run.split is None)
    choice = choose(context.graph, name, inbox, context.policy, eager=eager, tolerance=context.tolerance)
    if choice is None:
        return None
    draw = choice if isinstance(choice, Draw) else None
    return Chosen(draw, None, context.graph.required_sides(name.stage), last=isinstance(choice, Finish))


def run_aligned_collector(run: ChannelRun, done: Callable[[], None], start: Start | None) -> Effects[None]:
    """The collector: hand rows to the client when a complete snapshot covers them, or the result is whole."""
    inbox = _inbox_of(run)
    if start is not None:
        inbox.end_upstreams(start.ended)
    (links,) = run.context.graph.phases(run.channel.stage)
    upstreams = [u for link in links for u in run.context.graph.upstreams(run.channel, link)]
    held: list[Slice] = []
    while not all(inbox.is_exhausted(link) for link in links):
        ready = [(u, len(inbox.ready(u))) for u in upstreams if inbox.ready(u)]
        for upstream, count in ready:
            held += inbox.take(Draw(upstream.link, ((upstream.channel, count),)))
        asked = inbox.alignment()
        if isinstance(asked, Aligned):
            covered, held = tuple(held), []
            inbox.pass_barrier(asked.number)
            yield Cover(covered, asked.number, inbox.ended())
        elif isinstance(asked, Void):
            inbox.pass_barrier(asked.number)
        elif not ready:
            yield Await()
    yield Cover(tuple(held), inbox.passed, inbox.ended(), whole=True)
    run.phase = ChannelPhase.ENDED
    done()
