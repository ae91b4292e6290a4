"""Kept results: the outputs of the last stage stay with the workers that made them, under their lineage.

The collector of such a query takes no rows. It only waits until every channel that feeds it has ended; then the result
is whole. Until the result is released, all of it counts as needed: Algorithm 2 rewinds a lost channel that made a part
of it, and no other channel, because what that channel consumed is still in the backups of others.

Readers come from outside: late, twice or never. They read committed outputs, and a committed name has one content for
ever (invariant 2). So it does not matter from which worker, in which epoch or how often they read. A reader asks where
a channel is and fetches outputs from there. If it finds none, it asks again: the worker may be lost, or another worker
may be retracing the channel. It continues after the last output that it received completely. If a worker does not
answer a reader, the reader tells the head, which accuses the worker in the worker's own name. So a worker that is alive
but out of its readers' reach is expelled like one that is out of the head's reach.
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

#: How often the collector checks whether the result is whole.
KEEPER_MS = 20
#: How long a reader waits before it asks again for the place of a channel: at first, and at most.
LOCATE_MS = 20
LOCATE_MS_MAX = 500


@dataclass(frozen=True, slots=True)
class KeptChannel:
    """A channel that makes a part of the result: the worker that holds or remakes its outputs, and their number."""

    host: WorkerId
    length: int
    final: bool


#: The channels that make the result, as the store describes them.
KeptChannels = Mapping[ChannelName, KeptChannel]


@dataclass(frozen=True, slots=True)
class ReadKept(Effect["KeptChannels | None"]):
    """Read the progress of the channels that make the result: the answer is None if the query has ended."""

    point = FailPoint.KEEP


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """The worker that holds or remakes a channel's outputs. `moves` grows while workers remake parts of the result."""

    worker: WorkerId
    moves: int = 0


@dataclass(frozen=True, slots=True)
class Locate(Effect["KeptPlace | None"]):
    """Find the worker with a channel's outputs. If the result is gone, the error that says why is thrown."""

    channel: ChannelName
    point = FailPoint.LOCATE


@dataclass(frozen=True, slots=True)
class Fetch(Effect["int | None"]):
    """Get outputs of a channel from a worker: the answer is how many arrived completely, in order."""

    worker: WorkerId
    channel: ChannelName
    edge: Edge
    first: int
    end: int
    point = FailPoint.FETCH


@dataclass(frozen=True, slots=True)
class ReportReach(Effect[None]):
    """Tell the head that a worker does not answer a reader, or that it answers again."""

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
    """The channels that make the result, from a snapshot."""
    found: dict[ChannelName, KeptChannel] = {}
    for edge in graph.edges_into(graph.collector):
        name = graph.producer(edge)
        state = snapshot.channels[name]
        found[name] = KeptChannel(state.host, state.length, state.final)
    return found


def whole_result(graph: StageGraph, channels: KeptChannels) -> tuple[KeptRange, ...]:
    """All outputs of a result in order: by link, then by channel, then by output."""
    return tuple(
        KeptRange(graph.producer(edge), edge, 0, channels[graph.producer(edge)].length)
        for edge in graph.edges_into(graph.collector)
    )


def run_keeper(_run: ChannelRun, done: Callable[[], None]) -> Effects[None]:
    """The collector of a kept result: wait until it is whole. It never ends, so all of the result stays needed."""
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
    """Get some outputs of a result, each once and in order, wherever they are.

    `known` has the workers of channels when the result became whole. A reader gives up if nothing arrives for
    `patience_ms` and the workers make no progress either. A retrace may take as long as it needs while it advances.

    Raises:
        WallabyError: the result was released or lost; `KeptResultError` if nothing arrived for that long.
    """
    places = dict(known)
    accused: set[WorkerId] = set()
    moves: int | None = None
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
                    f"{each.channel} has sent no rows for {silent_ms / 1000:.1f} s, and no progress was made; "
                    f"waiting for output {at} of {each.end}.",
                    fix="Check that TaskManagers are running: engine.workers() lists them. If starting one takes "
                    "longer than that, raise spark.wallaby.stallTimeout.",
                )
            found = yield from ask(Locate(each.channel))
            if found is not None and found.moves != moves:
                since_ms = since_ms if moves is None else now_ms()
                moves = found.moves
            if found is not None and found.worker != worker:
                places[each.channel] = found.worker
                continue
            yield Pause(waited_ms, FailPoint.LOCATE)
            waited_ms = min(2 * waited_ms, LOCATE_MS_MAX)
    for worker in sorted(accused):
        yield ReportReach(worker, reachable=True)


def _report(worker: WorkerId, answered: bool, accused: set[WorkerId]) -> Effects[None]:
    """Report a worker each time that it does not answer; withdraw the report when it answers."""
    if not answered:
        accused.add(worker)
        yield ReportReach(worker, reachable=False)
    elif worker in accused:
        accused.discard(worker)
        yield ReportReach(worker, reachable=True)
