"""Algorithm 1, the work of a channel at its host: choose, execute, back up, commit, and only then deliver.

`run_channel` is one channel's life at one host, as a generator of effects. If the channel was rewound it
first *retraces* its committed records, all or those after a saved state: the same inputs in the same order, and each
output must have the committed checksum before it may leave (invariant 4). Then it chooses freely until its last task.

The input of a task may give more rows than one output should hold. Then the output says that there is a rest, and the
channel's next task consumes nothing and continues with the rest: its record has neither split nor draw, and does not
end the channel. The kernel derives this from its state alone, so a retrace finds the same. A reader has no state: the
rest of its split becomes the next split of its channel, which its commit and its next record name.

After `Execute` the attempt is frozen: its inputs are part of the state, and it is never executed again. After a refused
or unanswered commit, the channel looks and then sends *the same* commit again, in the epoch of the look. An output is
published, so that it can be delivered, only after its commit: a name has one content for ever (invariants 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from wallaby.errors import DivergenceError, InternalError
from wallaby.lineage.choose import DrawPolicy, Finish, choose, sides_ready, whole_sides
from wallaby.lineage.effects import (
    Advance,
    Await,
    BackUp,
    CloseEarly,
    Collect,
    CommitTask,
    Effects,
    Execute,
    FailPoint,
    Leave,
    Output,
    Pause,
    ReadRecords,
    RestoreState,
    SaveState,
    Slice,
    ask,
)
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.inbox import Inbox
from wallaby.lineage.lineage import Draw, LineageRecord, decode, encode, fold, key_of
from wallaby.lineage.names import ChannelName, TaskName
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.tolerance import LINEAGE, Tolerance
from wallaby.lineage.verdict import CommitReply, Verdict

#: How long to wait, at most, before repeating an action that the store refused.
RETRY_MS = 50


@dataclass(slots=True)
class WorkerContext:
    """What the channels of one query share at a worker: the epoch that the worker knows, and its outbox."""

    graph: StageGraph
    policy: DrawPolicy
    outbox: Outbox
    tolerance: Tolerance = LINEAGE
    epoch: int = 0
    #: The store has refused an action: a look is needed to find out why.
    look_wanted: bool = False


class ChannelPhase(IntEnum):
    """How far a channel has come at its host; it never goes back."""

    #: It repeats its committed records.
    RETRACING = 0
    #: It chooses its inputs itself.
    CHOOSING = 1
    ENDED = 2


@dataclass(slots=True)
class ChannelRun:
    """One channel at one host, from the epoch in which it arrives to the one in which it leaves."""

    context: WorkerContext
    channel: ChannelName
    inbox: Inbox
    #: The first output to be made here: 0; for a moved reader its committed length; or the one after a saved state.
    base: int
    #: The number of committed records when it arrived here.
    length: int
    #: For a reader, the split of its first task here.
    split: int | None = None
    #: Closed by an early end: only retrace, then stop.
    closed: bool = False
    #: The epoch in which it arrived or was rewound here. Attempts and their backups belong to it.
    since_epoch: int = 1
    #: The next task to be committed, or retraced.
    seq: int = 0
    #: The inputs that the attempt in flight has taken from the inbox and not yet committed.
    drawing: Draw | None = None
    phase: ChannelPhase = ChannelPhase.CHOOSING

    @property
    def retracing(self) -> bool:
        """Are there committed records that the channel has not yet repeated here?"""
        return self.phase is ChannelPhase.RETRACING

    @property
    def ended(self) -> bool:
        """Has the channel finished its work here?"""
        return self.phase is ChannelPhase.ENDED


@dataclass(frozen=True, slots=True)
class Chosen:
    """The input of one task."""

    draw: Draw | None
    split: int | None
    sides: int
    last: bool


def run_channel(run: ChannelRun) -> Effects[None]:
    """Retrace the committed records, then continue to the channel's last task."""
    state: Any = None
    ended = False
    rest: Chosen | None = None
    base = run.base
    if run.retracing:
        records = yield from _committed(run)
        if base and records:
            state = yield from _restored(run, records)
        for run.seq, data in enumerate(records[base:], base):
            record, task = decode(data), TaskName(*run.channel, run.seq)
            chosen = _recorded(task, record, rest)
            state, has_rest = yield from _retrace(run, task, state, record, chosen)
            rest = _going_on(chosen) if has_rest else None
            ended = record.final
        run.phase = ChannelPhase.CHOOSING
    run.seq = run.length
    while not ended and not run.closed:
        next_chosen = rest or (yield from _choose(run))
        if next_chosen is None:
            break
        task = TaskName(*run.channel, run.seq)
        state, ended, has_rest = yield from _attempt(run, task, state, next_chosen)
        rest = _going_on(next_chosen) if has_rest else None
        run.seq += 1
    end_run(run)


def _going_on(chosen: Chosen) -> Chosen:
    """The task after one that left a rest."""
    return replace(chosen, draw=None, split=None)


def _recorded(task: TaskName, record: LineageRecord, rest: Chosen | None) -> Chosen:
    """The input of a committed task. The last task, and one that continued with a rest, has neither split nor draw."""
    consumed = record.draw is not None or record.split is not None
    if rest is not None and consumed:
        raise DivergenceError(f"{task} goes on with a rest, but its record is {record}.", task=task)
    last = rest.last if rest is not None else not consumed
    return Chosen(record.draw, record.split, record.sides, last)


def _attempt(run: ChannelRun, task: TaskName, state: Any, chosen: Chosen) -> Effects[tuple[Any, bool, bool]]:
    """Execute, back up, commit and publish one task. Returns the new state, whether the channel ended, and a rest."""
    inputs = run.inbox.take(chosen.draw) if chosen.draw else ()
    run.drawing = chosen.draw
    point = FailPoint.READ if chosen.split is not None else FailPoint.EXECUTE
    state, output = yield from ask(_execute(run, point, task, state, chosen, inputs))
    final = (chosen.last and not output.rest) or output.satisfied
    record = LineageRecord(output.checksum, chosen.split, chosen.draw, chosen.sides, final)
    tolerance, graph = run.context.tolerance, run.context.graph
    if tolerance.may_save(graph, task.stage, ended=final, rest=output.rest):
        saved = yield from ask(SaveState(task, key_of(record), state, run.inbox.totals()))
        record = replace(record, saved=bool(saved))
    if not (yield from ask(BackUp(FailPoint.BACK_UP, task, output, final, run.since_epoch))):
        yield Leave(f"no room to back {task} up")
    reply = yield from _commit(run, task, record, output.next_split)
    run.drawing = None
    if reply is None:
        return state, True, False
    run.split = reply.split
    yield Advance(task)
    run.context.outbox.publish(task, ended=final)
    if output.satisfied:
        yield from _close_early(run)
    return state, final, output.rest


def _restored(run: ChannelRun, records: tuple[bytes, ...]) -> Effects[Any]:
    """Restore the saved state from which the channel, and its inbox, continue."""
    before = [decode(data) for data in records[: run.base]]
    task = TaskName(*run.channel, run.base - 1)
    restored = yield from ask(RestoreState(task, key_of(before[-1])))
    run.inbox.go_on(fold(before), restored.totals)
    return restored.state


def _retrace(
    run: ChannelRun, task: TaskName, state: Any, record: LineageRecord, chosen: Chosen
) -> Effects[tuple[Any, bool]]:
    """Repeat one task as its record says, with the same output. Returns the new state, and whether there is a rest."""
    while not _has_arrived(run, chosen):
        yield Await()
    inputs = run.inbox.take(record.draw) if record.draw else ()
    state, output = yield from ask(_execute(run, FailPoint.RETRACE, task, state, chosen, inputs))
    verify(task, record, output)
    if not (yield from ask(BackUp(FailPoint.RETRACE_BACK_UP, task, output, record.final, run.since_epoch))):
        yield Leave(f"no room to back {task} up")
    run.context.outbox.publish(task, ended=record.final)
    return state, output.rest


def verify(task: TaskName, record: LineageRecord, output: Output) -> None:
    """Check that a repeated output has the committed checksum, before it leaves the worker (invariant 4)."""
    if output.checksum != record.checksum:
        raise DivergenceError(
            f"{task} gave a different output when it was repeated: {output.checksum:016x}, not {record.checksum:016x}.",
            fix="Its operator is not deterministic, or its source has changed.",
            task=task,
        )


def _choose(run: ChannelRun) -> Effects[Chosen | None]:
    """Wait until there is something to do; None if the channel was closed meanwhile."""
    context, name = run.context, run.channel
    eager = False
    while not run.closed:
        if context.graph.is_reader(name.stage):
            if sides_ready(context.graph, name.stage, run.inbox):
                sides = whole_sides(context.graph, name.stage, run.inbox)
                return Chosen(None, run.split, sides, last=run.split is None)
        else:
            choice = choose(
                context.graph, name, run.inbox, context.policy, eager=eager, tolerance=context.tolerance
            )
            if choice is not None:
                sides = context.graph.required_sides(name.stage)
                draw = choice if isinstance(choice, Draw) else None
                return Chosen(draw, None, sides, last=isinstance(choice, Finish))
        eager = yield from ask(Await())
    return None


def _has_arrived(run: ChannelRun, chosen: Chosen) -> bool:
    links = run.context.graph.sides(run.channel.stage)
    sides = all(run.inbox.is_whole(link) for bit, link in enumerate(links) if chosen.sides >> bit & 1)
    return sides and (chosen.draw is None or run.inbox.want(chosen.draw))


def _execute(
    run: ChannelRun, point: FailPoint, task: TaskName, state: Any, chosen: Chosen, inputs: tuple[Slice, ...]
) -> Execute:
    sides = used_sides(run.context.graph, task.stage, run.inbox, chosen.sides)
    return Execute(point, task, state, chosen.split, chosen.draw, inputs, sides, chosen.last)


def used_sides(graph: StageGraph, stage: int, inbox: Inbox, bits: int) -> Mapping[int, tuple[Slice, ...]]:
    """The complete side inputs that a record names, by link."""
    return {link: inbox.whole(link) for bit, link in enumerate(graph.sides(stage)) if bits >> bit & 1}


def _commit(
    run: ChannelRun, task: TaskName, record: LineageRecord, next_split: int | None
) -> Effects[CommitReply | None]:
    """Repeat a commit until it succeeds; None if the channel, or this worker's part in it, is over."""
    context, data = run.context, encode(record)
    while True:
        news = context.outbox.report(task.of)
        epoch = context.epoch
        reply = yield from ask(CommitTask(task, data, record.final, news, epoch, run.since_epoch, next_split))
        match reply and reply.verdict:
            case Verdict.DONE | Verdict.ALREADY:
                if context.epoch == epoch:
                    context.outbox.reported(news)
                return reply
            case Verdict.DIVERGED:
                raise DivergenceError(
                    f"{task} is already committed with a record other than {record}.", task=task
                )
            case Verdict.GONE | Verdict.EXPELLED | Verdict.NOT_HOST | Verdict.CLOSED:
                return None
            case Verdict.FROZEN | Verdict.STALE | None:
                context.look_wanted = True
                yield Pause(RETRY_MS, FailPoint.COMMIT)
            case unexpected:
                raise InternalError(f"The store answered the commit of {task} with {unexpected}.", task=task)


def _committed(run: ChannelRun) -> Effects[tuple[bytes, ...]]:
    """The records to retrace; none if this worker's part in the channel is over."""
    while True:
        reply = yield from ask(ReadRecords(run.channel, run.context.epoch))
        match reply and reply.verdict:
            case Verdict.DONE:
                assert reply is not None, "it has a verdict"
                return reply.records
            case Verdict.FROZEN | Verdict.STALE | None:
                run.context.look_wanted = True
                yield Pause(RETRY_MS, FailPoint.READ_RECORDS)
            case _:
                run.closed = True
                return ()


def _close_early(run: ChannelRun) -> Effects[None]:
    """A LIMIT is satisfied: close the channels that feed only ended channels."""
    while True:
        match (yield from ask(CloseEarly(run.channel, run.context.epoch))):
            case Verdict.FROZEN | Verdict.STALE | None:
                run.context.look_wanted = True
                yield Pause(RETRY_MS, FailPoint.CLOSE_EARLY)
            case _:
                return


def end_run(run: ChannelRun) -> None:
    """Note that a channel has ended here: it publishes no more, and drops what still arrives."""
    run.phase = ChannelPhase.ENDED
    run.context.outbox.end(run.channel)
    if not run.context.graph.is_reader(run.channel.stage):
        run.inbox.discard()


def run_collector(run: ChannelRun, done: Callable[[], None]) -> Effects[None]:
    """The collector: hand every output to the client once, in order for each upstream channel."""
    (links,) = run.context.graph.phases(run.channel.stage)
    upstreams = [u for link in links for u in run.context.graph.upstreams(run.channel, link)]
    while not all(run.inbox.is_exhausted(link) for link in links):
        ready = [(u, len(run.inbox.ready(u))) for u in upstreams if run.inbox.ready(u)]
        if not ready:
            yield Await()
            continue
        for upstream, count in ready:
            yield Collect(run.inbox.take(Draw(upstream.link, ((upstream.channel, count),))))
    run.phase = ChannelPhase.ENDED
    done()
