"""Results that stay: the outputs of the last stage remain with the workers that made them, under their lineage.

The collector of such a query draws nothing. It only waits until every channel that feeds it has ended; then the result
is whole. Until it is released, all of it counts as needed: Algorithm 2 rewinds a lost channel that made a part of it,
and nothing else, for what that channel consumed is still in the backups of others.

Readers come from outside, late, twice or never. What they read is committed, and a committed name has one content for
ever (invariant 2); so it does not matter which worker they get it from, in which epoch, or how often. A reader asks
where a channel is, fetches outputs from there, and where it finds none asks again: the worker may be lost, or the
channel may be on its way through a retrace at another. It goes on behind the last output that it has got as a whole.
A reader that a worker does not answer says so to the head, which accuses the worker in the worker's own name: one that
is alive and out of its readers' reach is expelled like one that is out of the head's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from wallaby.errors import KeptResultError
from wallaby.lineage.attempt import ChannelRun
from wallaby.lineage.effects import Effect, Effects, FailPoint, Pause, ask
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, Edge, WorkerId
from wallaby.lineage.snapshot import Snapshot

#: How often it is asked whether a result is whole.
KEEPER_MS = 20
#: How long a reader waits before it asks again where a channel is: at first, and at most.
LOCATE_MS = 20
LOCATE_MS_MAX = 500


@dataclass(frozen=True, slots=True)
class KeptChannel:
    """A channel that makes a part of the result: where its outputs are, or are being made again, and how many."""

    host: WorkerId
    length: int
    final: bool


#: The channels that make the result, as the store has them.
KeptChannels = Mapping[ChannelName, KeptChannel]


@dataclass(frozen=True, slots=True)
class ReadKept(Effect["KeptChannels | None"]):
    """How far the channels are that make the result: the answer has none of them if the query has ended."""

    point = FailPoint.KEEP


@dataclass(frozen=True, slots=True)
class Locate(Effect["WorkerId | None"]):
    """Where the outputs of a channel are. If there is no result any more, the error that says why is thrown."""

    channel: ChannelName
    point = FailPoint.LOCATE


@dataclass(frozen=True, slots=True)
class Fetch(Effect["int | None"]):
    """Get outputs of a channel, from one on, from a worker: the answer is how many came whole, in order."""

    worker: WorkerId
    channel: ChannelName
    edge: Edge
    first: int
    end: int
    point = FailPoint.FETCH


@dataclass(frozen=True, slots=True)
class ReportReach(Effect[None]):
    """Tell the head that a worker does not answer a reader, or that it does again."""

    worker: WorkerId
    reachable: bool
    point = FailPoint.COMPLAIN


@dataclass(frozen=True, slots=True)
class KeptRange:
    """Outputs `[first, end)` of a channel that are part of a result."""

    channel: ChannelName
    edge: Edge
    first: int
    end: int


def kept_channels(graph: StageGraph, snapshot: Snapshot) -> KeptChannels:
    """What a snapshot says of the channels that make the result."""
    found: dict[ChannelName, KeptChannel] = {}
    for edge in graph.edges_into(graph.collector):
        name = graph.producer(edge)
        state = snapshot.channels[name]
        found[name] = KeptChannel(state.host, state.length, state.final)
    return found


def whole_result(graph: StageGraph, channels: KeptChannels) -> tuple[KeptRange, ...]:
    """All outputs of a result, in its order: that of links, then of channels, then of outputs."""
    return tuple(
        KeptRange(graph.producer(edge), edge, 0, channels[graph.producer(edge)].length)
        for edge in graph.edges_into(graph.collector)
    )


def run_keeper(_run: ChannelRun, done: Callable[[], None]) -> Effects[None]:
    """The life of a collector that keeps: wait until the result is whole. It does not end, for it needs all of it."""
    while True:
        channels = yield from ask(ReadKept())
        if channels and all(channel.final for channel in channels.values()):
            break
        yield Pause(KEEPER_MS, FailPoint.KEEP)
    done()


def read_kept(
    ranges: Iterable[KeptRange],
    now_ms: Callable[[], int],
    patience_ms: int,
    known: Mapping[ChannelName, WorkerId],
) -> Effects[None]:
    """Get some outputs of a result, in order, each once, from wherever they are.

    `known` says where channels were when the result became whole. A reader gives up if nothing comes for `patience_ms`,
    also while a lost channel is retraced.

    Raises:
        WallabyError: the result was released, or was lost; `KeptResultError` if nothing came for so long.
    """
    places = dict(known)
    accused: set[WorkerId] = set()
    for each in ranges:
        at, waited_ms, since_ms = each.first, LOCATE_MS, now_ms()
        while at < each.end:
            worker = places.get(each.channel)
            got = None
            if worker is not None:
                got = yield from ask(Fetch(worker, each.channel, each.edge, at, each.end))
                yield from _report(worker, got is not None, accused)
            if got:
                at, waited_ms, since_ms = at + got, LOCATE_MS, now_ms()
                continue
            silent_ms = now_ms() - since_ms
            if silent_ms > patience_ms:
                raise KeptResultError(
                    f"No rows of {each.channel} came for {silent_ms / 1000:.1f} s; output {at} of {each.end} is due.",
                    fix="Check that TaskManagers are running: engine.workers() lists them. If a lost one has to repeat "
                    "more work than that, raise spark.wallaby.stallTimeout.",
                )
            found = yield from ask(Locate(each.channel))
            if found is not None and found != worker:
                places[each.channel] = found
                continue
            yield Pause(waited_ms, FailPoint.LOCATE)
            waited_ms = min(2 * waited_ms, LOCATE_MS_MAX)
    for worker in sorted(accused):
        yield ReportReach(worker, reachable=True)


def _report(worker: WorkerId, answered: bool, accused: set[WorkerId]) -> Effects[None]:
    """Say that a worker does not answer, whenever it does not; take that back when it does."""
    if not answered:
        accused.add(worker)
        yield ReportReach(worker, reachable=False)
    elif worker in accused:
        accused.discard(worker)
        yield ReportReach(worker, reachable=True)
