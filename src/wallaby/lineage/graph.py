"""The stage graph: the channels of a query, and which of them feed which.

Stages are numbered in topological order, side links included, so walking the numbers downwards visits every
consumer before its producers; `reconcile` relies on it. A link joins two stages; an edge joins two channels.
Two links may join the same two stages (a self join), which is why edges carry the link and not the stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.names import ChannelName, Edge, Upstream

#: Below 2^14, so that two varint bytes are enough and a record takes at most 24 + 4n bytes; see `lineage`.
CHANNELS_MAX = 1 << 14
SIDES_MAX = 14


class StageKind(Enum):
    """What drives a stage: splits of a source, the outputs of other stages, or the client.

    The last stage is the client's. It collects the result, or keeps it: then the outputs stay where they were made, for
    readers who may come late, often or never.
    """

    READ = "read"
    EXECUTE = "execute"
    COLLECT = "collect"
    KEEP = "keep"


class LinkKind(Enum):
    """Main: rows to process. Side: a complete input that every task uses in addition."""

    MAIN = "main"
    SIDE = "side"


class Routing(Enum):
    """Which consumer channels an output has slices for."""

    HASH = "hash"
    BROADCAST = "broadcast"
    PASS_THROUGH = "pass-through"


@dataclass(frozen=True, slots=True)
class Stage:
    """One fragment of the plan, run by `channels` channels; `splits` only for readers."""

    kind: StageKind
    channels: int
    splits: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """Stage `producer` feeds stage `consumer`.

    Main links of a lower `phase` are consumed to their end before those of a higher one begin; so a build side
    comes before its probe side. A read uses a side link that is not `required` only if it was complete when the
    read was chosen. The planner makes required side links only (build sides, run-time filters).
    """

    producer: int
    consumer: int
    kind: LinkKind = LinkKind.MAIN
    phase: int = 0
    required: bool = True
    routing: Routing = Routing.HASH


@dataclass(frozen=True)
class StageGraph:
    """Stages and links, validated once, with precomputed look-ups for the protocol."""

    stages: tuple[Stage, ...]
    links: tuple[Link, ...]
    channels: tuple[ChannelName, ...] = field(init=False, compare=False, repr=False)
    #: The one channel on the head that the result is for, whether it is collected or kept.
    collector: ChannelName = field(init=False, compare=False, repr=False)
    _ends: dict[Edge, tuple[ChannelName, ChannelName]] = field(init=False, compare=False, repr=False)
    _edges_from: dict[ChannelName, tuple[Edge, ...]] = field(init=False, compare=False, repr=False)
    _edges_into: dict[ChannelName, tuple[Edge, ...]] = field(init=False, compare=False, repr=False)
    _mains: dict[int, tuple[tuple[int, ...], ...]] = field(init=False, compare=False, repr=False)
    _sides: dict[int, tuple[int, ...]] = field(init=False, compare=False, repr=False)
    _producers: tuple[tuple[Upstream, ...], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _validate(self)
        names = tuple(ChannelName(s, c) for s, stage in enumerate(self.stages) for c in range(stage.channels))
        outgoing: dict[ChannelName, list[Edge]] = {name: [] for name in names}
        incoming: dict[ChannelName, list[Edge]] = {name: [] for name in names}
        ends: dict[Edge, tuple[ChannelName, ChannelName]] = {}
        for number, link in enumerate(self.links):
            for edge in _edges_of(number, link, self.stages):
                producer = ChannelName(link.producer, edge.producer)
                consumer = ChannelName(link.consumer, edge.consumer)
                ends[edge] = (producer, consumer)
                outgoing[producer].append(edge)
                incoming[consumer].append(edge)
        set_ = object.__setattr__
        set_(self, "_ends", ends)
        set_(self, "channels", names)
        set_(self, "collector", ChannelName(len(self.stages) - 1, 0))
        set_(self, "_edges_from", {name: tuple(edges) for name, edges in outgoing.items()})
        set_(self, "_edges_into", {name: tuple(edges) for name, edges in incoming.items()})
        set_(self, "_mains", {s: _phases(s, self.links) for s in range(len(self.stages))})
        producers = (range(self.stages[link.producer].channels) for link in self.links)
        found = tuple(tuple(Upstream(n, p) for p in channels) for n, channels in enumerate(producers))
        set_(self, "_producers", found)
        set_(self, "_sides", {s: _side_links(s, self.links) for s in range(len(self.stages))})

    def edges_from(self, channel: ChannelName) -> tuple[Edge, ...]:
        """The edges over which a channel's outputs go out."""
        return self._edges_from[channel]

    def edges_into(self, channel: ChannelName) -> tuple[Edge, ...]:
        """The edges over which a channel gets its inputs, main and side."""
        return self._edges_into[channel]

    def producer(self, edge: Edge) -> ChannelName:
        """The channel that an edge comes from."""
        return self._ends[edge][0]

    def consumer(self, edge: Edge) -> ChannelName:
        """The channel that an edge leads to."""
        return self._ends[edge][1]

    def phases(self, stage: int) -> tuple[tuple[int, ...], ...]:
        """The main links into a stage, grouped by phase, in the order in which they are consumed."""
        return self._mains[stage]

    def sides(self, stage: int) -> tuple[int, ...]:
        """The side links into a stage; a record's bit `i` stands for the i-th of them."""
        return self._sides[stage]

    def required_sides(self, stage: int) -> int:
        """The side links that every task of a stage uses, as bits of a record."""
        return sum(1 << i for i, link in enumerate(self._sides[stage]) if self.links[link].required)

    def upstreams(self, channel: ChannelName, link: int) -> tuple[Upstream, ...]:
        """The producer channels that feed a channel over one link, in order."""
        if self.links[link].routing is Routing.PASS_THROUGH:
            return (Upstream(link, channel.channel),)
        return self._producers[link]

    def is_reader(self, stage: int) -> bool:
        """Are the tasks of a stage independent of each other, so that any worker can repeat any of them?"""
        return self.stages[stage].kind is StageKind.READ

    @property
    def keeps(self) -> bool:
        """Does the result stay with the workers that made it, until it is released?"""
        return self.stages[-1].kind is StageKind.KEEP

    def stays(self, edge: Edge) -> bool:
        """Do the outputs for an edge stay with their producer, until readers fetch them?"""
        return self.keeps and self.consumer(edge) == self.collector

    def is_kept(self, channel: ChannelName) -> bool:
        """Are the outputs of a channel part of a kept result?"""
        return any(map(self.stays, self._edges_from[channel]))

    def closable_above(self, channel: ChannelName) -> tuple[tuple[ChannelName, tuple[ChannelName, ...]], ...]:
        """The channels upstream of one that has ended early, each with its consumers; consumers come first."""
        cone = {channel.stage}
        for link in sorted(self.links, key=lambda link: -link.consumer):
            if link.consumer in cone:
                cone.add(link.producer)
        return tuple(
            (name, tuple(dict.fromkeys(self.consumer(e) for e in self._edges_from[name])))
            for name in reversed(self.channels)
            if name.stage in cone and name.stage != channel.stage
        )


def _edges_of(number: int, link: Link, stages: tuple[Stage, ...]) -> list[Edge]:
    producers, consumers = stages[link.producer].channels, stages[link.consumer].channels
    if link.routing is Routing.PASS_THROUGH:
        return [Edge(number, c, c) for c in range(producers)]
    return [Edge(number, p, c) for p in range(producers) for c in range(consumers)]


def _phases(stage: int, links: tuple[Link, ...]) -> tuple[tuple[int, ...], ...]:
    mains = [
        (link.phase, n)
        for n, link in enumerate(links)
        if link.consumer == stage and link.kind is LinkKind.MAIN
    ]
    return tuple(tuple(n for p, n in mains if p == phase) for phase in sorted({p for p, _ in mains}))


def _side_links(stage: int, links: tuple[Link, ...]) -> tuple[int, ...]:
    return tuple(n for n, link in enumerate(links) if link.consumer == stage and link.kind is LinkKind.SIDE)


def _validate(graph: StageGraph) -> None:
    """Refuse, by name, every graph that the protocol could not run."""
    last = len(graph.stages) - 1
    _require(last >= 1, "a stage graph needs a stage that produces and one that collects")
    for s, stage in enumerate(graph.stages):
        _require(
            1 <= stage.channels <= CHANNELS_MAX,
            f"stage {s} has {stage.channels} channels, not 1..{CHANNELS_MAX}",
        )
        collects = stage.kind in (StageKind.COLLECT, StageKind.KEEP)
        _require(collects == (s == last), f"stage {s}: exactly the last stage collects or keeps the result")
        _require(not collects or stage.channels == 1, f"stage {s} collects and so has one channel")
        _require(stage.splits >= 0, f"stage {s} has a negative number of splits")
        _require(
            stage.kind is StageKind.READ or not stage.splits,
            f"stage {s} reads no splits but has {stage.splits}",
        )
        mains = _phases(s, graph.links)
        _require(
            (stage.kind is StageKind.READ) != bool(mains),
            f"stage {s}: readers have no main input, others need one",
        )
        _require(not collects or len(mains) == 1, f"stage {s} collects and so draws in one phase")
        sides = _side_links(s, graph.links)
        _require(len(sides) <= SIDES_MAX, f"stage {s} has {len(sides)} side inputs, more than {SIDES_MAX}")
        _require(not collects or not sides, f"stage {s} collects and so has no side input")
        _require(s == last or any(k.producer == s for k in graph.links), f"stage {s} feeds no other stage")
    for n, link in enumerate(graph.links):
        _require(0 <= link.producer < link.consumer <= last, f"link {n} does not lead to a later stage")
        reads = graph.stages[link.consumer].kind is StageKind.READ
        kept = graph.stages[link.consumer].kind is StageKind.KEEP
        _require(
            not kept or graph.stages[link.producer].kind is StageKind.EXECUTE,
            f"link {n}: what is kept comes from a stage that executes, whose channels have one host each",
        )
        _require(
            link.required or (link.kind is LinkKind.SIDE and reads),
            f"link {n}: only a side input of a reader is optional",
        )
        _require(
            link.routing is not Routing.PASS_THROUGH
            or graph.stages[link.producer].channels == graph.stages[link.consumer].channels,
            f"link {n} passes through but its stages differ in channels",
        )


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise InvalidArgumentError(f"Impossible stage graph: {what}.", fix="Correct the graph.")
