"""Choose which of the arrived slices the next task of a channel draws. A pure function.

`Dynamic` takes what has arrived, up to a byte target; it waits for more only while the caller says that waiting is
worthwhile. `Static` takes a fixed number of outputs, fewer only at the end, whatever that costs in waiting. Either
draws from one upstream channel at a time, as in the paper, or from several of one input at once.

A build side is consumed to its end before its probe side begins, and the required side inputs of a stage are complete
before its first task. In a staged query something of every input must have arrived, which happens only after its
producer has ended; see `outbox`.
"""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.inbox import Inbox
from wallaby.lineage.lineage import COUNT_MAX, Draw
from wallaby.lineage.names import ChannelName, Upstream
from wallaby.lineage.tolerance import LINEAGE, Tolerance


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Take as much as has arrived, up to `target_bytes`."""

    target_bytes: int
    several: bool = True

    def __post_init__(self) -> None:
        if self.target_bytes < 1:
            raise InvalidArgumentError(f"A byte target must be positive, not {self.target_bytes}.")


@dataclass(frozen=True, slots=True)
class Static:
    """Take exactly `outputs` outputs per task, fewer only at the end."""

    outputs: int
    several: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.outputs <= COUNT_MAX:
            raise InvalidArgumentError(f"A static draw takes 1..{COUNT_MAX} outputs, not {self.outputs}.")


DrawPolicy = Dynamic | Static


@dataclass(frozen=True, slots=True)
class Finish:
    """Every input is final and consumed: the next task is the channel's last."""


def choose(
    graph: StageGraph,
    channel: ChannelName,
    inbox: Inbox,
    policy: DrawPolicy,
    *,
    eager: bool,
    tolerance: Tolerance = LINEAGE,
) -> Draw | Finish | None:
    """The next draw, `Finish`, or None to wait. `eager`: the worker is idle, so take less than the target."""
    if not (sides_ready(graph, channel.stage, inbox) and tolerance.may_draw(graph, channel.stage, inbox)):
        return None
    for links in graph.phases(channel.stage):
        if all(inbox.is_exhausted(link) for link in links):
            continue
        for link in links:
            upstreams = graph.upstreams(channel, link)
            draw = _draw(upstreams, inbox, policy, eager)
            if draw is not None:
                return draw
        return None
    return Finish()


def sides_ready(graph: StageGraph, stage: int, inbox: Inbox) -> bool:
    """Are the side inputs that every task of a stage uses complete?"""
    return all(inbox.is_whole(link) for link in graph.sides(stage) if graph.links[link].required)


def whole_sides(graph: StageGraph, stage: int, inbox: Inbox) -> int:
    """The side inputs that a read chosen now uses, as bits of its record: all that are complete."""
    return sum(1 << bit for bit, link in enumerate(graph.sides(stage)) if inbox.is_whole(link))


def _draw(upstreams: tuple[Upstream, ...], inbox: Inbox, policy: DrawPolicy, eager: bool) -> Draw | None:
    if isinstance(policy, Static):
        return _draw_static(upstreams, inbox, policy)
    if policy.several:
        if not eager and inbox.is_short_of(upstreams[0].link, policy.target_bytes, COUNT_MAX):
            return None
        return _draw_dynamic(upstreams, inbox, policy.target_bytes, eager)
    for upstream in sorted(upstreams, key=lambda u: -sum(inbox.ready(u))):
        draw = _draw_dynamic((upstream,), inbox, policy.target_bytes, eager)
        if draw is not None:
            return draw
    return None


def _draw_dynamic(
    upstreams: tuple[Upstream, ...], inbox: Inbox, target_bytes: int, eager: bool
) -> Draw | None:
    counts: list[tuple[int, int]] = []
    total_bytes = 0
    full = False
    for upstream in upstreams:
        count = 0
        for size_bytes in inbox.ready(upstream):
            if count == COUNT_MAX or ((counts or count) and total_bytes + size_bytes > target_bytes):
                full = True  # more has arrived than fits: waiting would not make the draw larger
                break
            total_bytes += size_bytes
            count += 1
        if count:
            counts.append((upstream.channel, count))
    if not counts:
        return None
    enough = eager or full or total_bytes >= target_bytes or all(inbox.is_ending(u) for u in upstreams)
    return Draw(upstreams[0].link, tuple(counts)) if enough else None


def _draw_static(upstreams: tuple[Upstream, ...], inbox: Inbox, policy: Static) -> Draw | None:
    if policy.several:
        return _draw_exactly(upstreams, inbox, policy.outputs)
    for upstream in upstreams:
        draw = _draw_exactly((upstream,), inbox, policy.outputs)
        if draw is not None:
            return draw
    return None


def _draw_exactly(upstreams: tuple[Upstream, ...], inbox: Inbox, outputs: int) -> Draw | None:
    counts: list[tuple[int, int]] = []
    left = outputs
    for upstream in upstreams:
        count = min(left, len(inbox.ready(upstream)))
        if count:
            counts.append((upstream.channel, count))
            left -= count
    if counts and (left == 0 or all(inbox.is_ending(u) for u in upstreams)):
        return Draw(upstreams[0].link, tuple(counts))
    return None
