"""Short ways to build what the protocol's unit tests talk about, and a hand to drive its generators."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from wallaby.lineage.effects import Output, Slice
from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.lineage import Draw, LineageRecord, encode
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, WorkerId
from wallaby.lineage.snapshot import ChannelState, ReRead, Snapshot

W = tuple(WorkerId(f"w{number}") for number in range(32))


# --- graphs ----------------------------------------------------------------------------------------------


def read(channels: int = 1, splits: int = 4) -> Stage:
    return Stage(StageKind.READ, channels, splits)


def execute(channels: int = 1) -> Stage:
    return Stage(StageKind.EXECUTE, channels)


def collect() -> Stage:
    return Stage(StageKind.COLLECT, 1)


def side(producer: int, consumer: int, *, required: bool = True) -> Link:
    return Link(producer, consumer, LinkKind.SIDE, required=required, routing=Routing.BROADCAST)


def pipeline(readers: int = 1, executors: int = 1, splits: int = 4) -> StageGraph:
    """s0 reads, s1 executes, s2 collects; l0 and l1 join them."""
    return StageGraph((read(readers, splits), execute(executors), collect()), (Link(0, 1), Link(1, 2)))


def chain(stages: int, channels: int = 1) -> StageGraph:
    """s0 reads, so many stages execute, the last collects; link n leads from stage n to the next."""
    return StageGraph(
        (read(channels), *(execute(channels) for _ in range(stages)), collect()),
        tuple(Link(n, n + 1) for n in range(stages + 1)),
    )


def join(channels: int = 1) -> StageGraph:
    """s0 is the build side (l0), s1 the probe side (l1) of s2."""
    return StageGraph(
        (read(channels), read(channels), execute(channels), collect()),
        (Link(0, 2, phase=0), Link(1, 2, phase=1), Link(2, 3)),
    )


def self_join(channels: int = 1) -> StageGraph:
    """s0 is both the build side (l0) and the probe side (l1) of s1."""
    return StageGraph(
        (read(channels), execute(channels), collect()),
        (Link(0, 1, phase=0), Link(0, 1, phase=1), Link(1, 2)),
    )


def broadcast_to_execute() -> StageGraph:
    """s0 goes whole, over l0, to both channels of s2, which draw from s1 over l1."""
    return StageGraph((read(), read(), execute(2), collect()), (side(0, 2), Link(1, 2), Link(2, 3)))


def filtered_read(*, required: bool, readers: int = 1) -> StageGraph:
    """s0 feeds s1, which makes a side input (l1) of the readers s2, which s3 draws from (l2)."""
    return StageGraph(
        (read(), execute(), read(readers), execute(), collect()),
        (Link(0, 1), side(1, 2, required=required), Link(2, 3), Link(3, 4)),
    )


# --- slices, outputs and records ---------------------------------------------------------------------------


def piece(
    graph: StageGraph,
    edge: Edge,
    seq: int,
    size_bytes: int = 1,
    *,
    final: bool = False,
    body: object = "rows",
) -> Slice:
    return Slice(TaskName(*graph.producer(edge), seq), edge, final, size_bytes, body)


def output(checksum: int = 7, *, satisfied: bool = False) -> Output:
    return Output(checksum, {}, satisfied)


def draw(link: int, **counts: int) -> Draw:
    """`draw(1, c0=2, c3=1)`: two outputs of channel 0 and one of channel 3 over link 1."""
    return Draw(link, tuple((int(name[1:]), count) for name, count in counts.items()))


def drawn(link: int, checksum: int = 7, *, final: bool = False, **counts: int) -> bytes:
    return encode(LineageRecord(checksum, draw=draw(link, **counts), final=final))


def final_record(checksum: int = 7) -> bytes:
    return encode(LineageRecord(checksum, final=True))


# --- snapshots ---------------------------------------------------------------------------------------------


def at(
    host: WorkerId,
    length: int = 0,
    *,
    base: int = 0,
    final: bool = False,
    closed: bool = False,
    losses: int = 0,
    split: int | None = None,
) -> ChannelState:
    return ChannelState(host, base, length, final, closed, split, losses)


def snapshot(
    graph: StageGraph,
    channels: Mapping[tuple[int, int], ChannelState] | Mapping[ChannelName, ChannelState],
    *,
    members: tuple[WorkerId, ...],
    draining: tuple[WorkerId, ...] = (),
    announced: tuple[WorkerId, ...] = (),
    delivered: Mapping[Edge, int] | None = None,
    rereads: tuple[ReRead, ...] = (),
) -> Snapshot:
    """A frozen query. Edges that are not given are not behind; hosts that are no members have departed."""
    states = {ChannelName(*name): state for name, state in channels.items()}
    states.setdefault(graph.collector, at(HEAD))
    hosts = {state.host for state in states.values()}
    given = delivered or {}
    return Snapshot(
        version=9,
        epoch=4,
        gate_open=False,
        members=members,
        draining=draining,
        departed={w: w in announced for w in sorted(hosts - {*members, *draining, HEAD})},
        channels={name: states[name] for name in graph.channels},
        delivered={
            edge: given.get(edge, states[name].length)
            for name in graph.channels
            for edge in graph.edges_from(name)
        },
        rereads=rereads,
    )


# --- driving -----------------------------------------------------------------------------------------------


class Driven:
    """A generator of effects, driven by hand: `now` is the effect it waits on, None once it has ended."""

    def __init__(self, effects: Generator[Any, Any, Any]) -> None:
        self._effects = effects
        self.seen: list[Any] = []
        self.now: Any = None
        self.answer(None)

    def answer(self, value: object) -> Any:
        """Answer the present effect; the next one, or None if there is none."""
        try:
            self.now = self._effects.send(value)
            self.seen.append(self.now)
        except StopIteration:
            self.now = None
        return self.now

    def throw(self, error: Exception) -> Any:
        """Let the present effect fail with an error; the next one, or None if there is none."""
        try:
            self.now = self._effects.throw(error)
            self.seen.append(self.now)
        except StopIteration:
            self.now = None
        return self.now

    def answer_all(self, *values: object) -> Any:
        for value in values:
            assert self.now is not None, "it has ended, and there are answers left"
            self.answer(value)
        return self.now


def kinds(effects: list[Any]) -> list[str]:
    return [type(effect).__name__ for effect in effects]
