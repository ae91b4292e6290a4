"""Barriers, by which the channels of a query agree on one cut through everything that they send to each other.

A barrier is an output without rows: every channel sends it over all its edges, in order with its other outputs. Barrier
`n` divides what a channel sends into what belongs to snapshot `n` and what does not. A channel takes its part of the
snapshot when it has consumed everything before barrier `n` on every edge and nothing behind it: its inputs are
*aligned*. Then nothing is under way on any edge of the cut, so the states alone are the snapshot. Readers begin
barriers; all others pass them on.

Where aligning is impossible, the snapshot is given up: the channel sends a *void* barrier of the same number, and so
does everybody behind it. That is so if an input that may be consumed now has reached the barrier, and before the
barrier of another one there are rows that may only be consumed when the first has ended: a probe side waits for the end
of its build side, and everything waits for a broadcast.

Pure data: `AlignedInbox` is the inbox of a channel that aligns. Its draws never reach past a barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wallaby.lineage.effects import Effect, FailPoint, Slice
from wallaby.lineage.graph import LinkKind, StageGraph
from wallaby.lineage.inbox import Inbox, InboxLane
from wallaby.lineage.names import ChannelName, QueryId, TaskName, Upstream


@dataclass(frozen=True, slots=True)
class Barrier:
    """The body of every slice of an output that is a barrier. A void one says that there is no such snapshot."""

    number: int
    void: bool = False


@dataclass(frozen=True, slots=True)
class BesideCut:
    """A side input up to a barrier: the slices of one upstream channel, and whether there will be no more."""

    slices: tuple[Slice, ...]
    ended: bool


@dataclass(frozen=True, slots=True)
class ChannelCut:
    """A channel's part of a snapshot."""

    state: Any
    #: For a reader, the split that it reads next; None if there is none.
    split: int | None = None
    #: The upstream channels that had ended, with everything consumed.
    ended: tuple[Upstream, ...] = ()
    beside: tuple[tuple[Upstream, BesideCut], ...] = ()
    #: Side inputs that were given up because they were too large.
    given_up: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """The complete snapshot from which a query goes on after a roll-back."""

    #: The run of the query that took it.
    query: QueryId
    number: int
    #: The collector's part: the upstream channels that had ended.
    ended: tuple[Upstream, ...] = ()


@dataclass(frozen=True, slots=True)
class BarrierDue(Effect[int]):
    """Ask how many snapshots a reader should have begun by now."""

    channel: ChannelName
    #: The last number that the channel has passed.
    passed: int
    point = FailPoint.CHOOSE


@dataclass(frozen=True, slots=True)
class SaveCut(Effect[bool]):
    """Save a channel's part of a snapshot. `task` is the barrier that says so; it leaves afterwards."""

    task: TaskName
    number: int
    cut: ChannelCut
    point = FailPoint.SAVE_STATE


@dataclass(frozen=True, slots=True)
class RestoreCut(Effect[ChannelCut | None]):
    """Restore a channel's part of a snapshot; None if it has none, because it had ended or nobody needed it."""

    channel: ChannelName
    start: Start
    point = FailPoint.RESTORE_STATE


@dataclass(frozen=True, slots=True)
class Cover(Effect[None]):
    """A snapshot is complete: hand the rows before it to the client, and remember it. Neither is ever taken back.

    Both happen at once, also at the end of the result, which counts as a snapshot after which nothing comes.
    """

    slices: tuple[Slice, ...]
    number: int
    ended: tuple[Upstream, ...]
    #: These are the last rows: the result is whole, whatever happens to this run from now on.
    whole: bool = False
    point = FailPoint.COLLECT


@dataclass(frozen=True, slots=True)
class Aligned:
    """All inputs of a channel have reached a barrier."""

    number: int


@dataclass(frozen=True, slots=True)
class Void:
    """A snapshot that this channel cannot take part in."""

    number: int


class AlignedInbox(Inbox):
    """The inbox of a channel that takes part in coordinated snapshots."""

    def __init__(self, graph: StageGraph, channel: ChannelName, window_bytes: int, reserve: int = 1) -> None:
        super().__init__(graph, channel, window_bytes, reserve)
        #: The number of the last barrier that the channel has passed.
        self.passed = 0
        stage = channel.stage
        self._phases = graph.phases(stage) if not graph.is_reader(stage) else ()
        self._rank = {link: rank for rank, links in enumerate(self._phases) for link in links}
        self._sides = graph.sides(stage)
        self._required = frozenset(link for link in self._sides if graph.links[link].required)
        #: Side links that a task has used: from then on what they hold is a part of everything.
        self._used: set[int] = set()
        #: The slices of side inputs that were restored, by upstream channel.
        self._beside: dict[Upstream, tuple[Slice, ...]] = {}
        assert all(graph.links[link].kind is LinkKind.SIDE for link in self._sides)

    # --- drawing -------------------------------------------------------------------------------------

    def ready(self, upstream: Upstream) -> tuple[int, ...]:
        """The sizes of the slices that could be drawn now: those before the next barrier."""
        return tuple(piece.size_bytes for piece in self._before_barrier(self._lanes[upstream]))

    def is_ending(self, upstream: Upstream) -> bool:
        """Has everything arrived that can be drawn before the next barrier, or the end?"""
        lane = self._lanes[upstream]
        at = lane.consumed + len(self.ready(upstream))
        return at == lane.total or at in lane.held

    def whole(self, link: int) -> tuple[Slice, ...]:
        """All slices of a side link, without barriers; those that were restored come first."""
        found: list[Slice] = []
        for upstream in self._upstreams_of(link):
            found += self._beside.get(upstream, ())
            found += _rows_of(self._lanes[upstream].held)
        return tuple(found)

    @staticmethod
    def _before_barrier(lane: InboxLane) -> Iterator[Slice]:
        seq = lane.consumed
        while (piece := lane.held.get(seq)) is not None and not isinstance(piece.body, Barrier):
            yield piece
            seq += 1

    def _upstreams_of(self, link: int) -> list[Upstream]:
        return [upstream for upstream in self._lanes if upstream.link == link]

    # --- aligning ------------------------------------------------------------------------------------

    def alignment(self) -> Aligned | Void | None:
        """What the barriers that have arrived ask for now, if anything.

        A number is given up if some input has skipped it: it begins with a later one.
        """
        heads = self._heads()
        while (number := _latest(heads)) > self.passed + 1:
            self._pass(number - 1)
            heads = self._heads()
        if not number:
            return None
        if any(barrier.void for barrier in heads.values()):
            return Void(number)
        rank = self._current_rank()
        reached = [u for u in heads if self._rank_of(u) <= rank]
        waits = False
        for upstream, lane in self._lanes.items():
            if upstream in heads:
                continue
            if upstream.link in self._rank:
                if lane.consumed == lane.total:
                    continue
                if lane.consumed in lane.held and self._rank[upstream.link] > rank and reached:
                    return Void(number)
                waits = True
            elif upstream.link not in self._used and not self._is_lane_whole(upstream):
                waits = True
        return None if waits else Aligned(number)

    def may_begin(self) -> bool:
        """May a reader begin a snapshot? While side inputs are still coming, their barriers begin it."""
        unused = [link for link in self._sides if link not in self._used]
        lanes = [upstream for link in unused for upstream in self._upstreams_of(link)]
        return not self._heads() and all(map(self._is_lane_whole, lanes))

    def use(self, links: Iterable[int]) -> Void | None:
        """A task is about to use these side inputs: a snapshot whose barrier is among them cannot be taken any more."""
        fresh = set(links) - self._used
        self._used |= fresh
        found = [
            piece.body.number
            for link in fresh
            for upstream in self._upstreams_of(link)
            for piece in self._lanes[upstream].held.values()
            if isinstance(piece.body, Barrier)
        ]
        latest = max(found, default=0)
        return Void(latest) if latest > self.passed else None

    def pass_barrier(self, number: int) -> None:
        """The channel has passed a barrier: what was held back behind it may be drawn."""
        assert number > self.passed, "a channel passes each barrier once, in order"
        self._pass(number)

    def _pass(self, number: int) -> None:
        self.passed = number
        for upstream in self._lanes:
            if upstream.link in self._rank:
                self._drop_passed(upstream)

    def _drop_passed(self, upstream: Upstream) -> None:
        """Consume the barriers at the head of a main input that the channel has passed."""
        lane = self._lanes[upstream]
        while (piece := lane.held.get(lane.consumed)) is not None and isinstance(piece.body, Barrier):
            if piece.body.number > self.passed:
                return
            del lane.held[lane.consumed]
            lane.sum.held -= 1
            lane.consumed += 1
            lane.wanted = max(lane.wanted, lane.consumed + self._reserve)

    def _heads(self) -> dict[Upstream, Barrier]:
        """The next barrier of each lane whose next output is one; of a side input, whatever comes before it."""
        heads: dict[Upstream, Barrier] = {}
        for upstream, lane in self._lanes.items():
            if upstream.link in self._rank:
                self._drop_passed(upstream)
                piece = lane.held.get(lane.consumed)
                if piece is not None and isinstance(piece.body, Barrier):
                    heads[upstream] = piece.body
            elif upstream.link not in self._used:
                barrier = self._barrier_beside(lane)
                if barrier is not None:
                    heads[upstream] = barrier
        return heads

    def _barrier_beside(self, lane: InboxLane) -> Barrier | None:
        """The next barrier of a side input: everything before it has arrived."""
        seq = 0
        while (piece := lane.held.get(seq)) is not None:
            if isinstance(piece.body, Barrier) and piece.body.number > self.passed:
                return piece.body
            seq += 1
        return None

    def _rank_of(self, upstream: Upstream) -> int:
        """The place of an input in the order of consumption; required side inputs come before all others."""
        if upstream.link in self._rank:
            return self._rank[upstream.link]
        return -1 if upstream.link in self._required else len(self._phases)

    def _current_rank(self) -> int:
        if not all(self.is_whole(link) for link in self._required):
            return -1
        unfinished = (
            rank
            for rank, links in enumerate(self._phases)
            if not all(self.is_exhausted(link) for link in links)
        )
        return next(unfinished, len(self._phases))

    def _is_lane_whole(self, upstream: Upstream) -> bool:
        lane = self._lanes[upstream]
        return upstream.link in self._given_up or (lane.total is not None and len(lane.held) == lane.total)

    # --- cutting -------------------------------------------------------------------------------------

    def ended(self) -> tuple[Upstream, ...]:
        """The main inputs that have ended and are consumed."""
        return tuple(
            u for u, lane in self._lanes.items() if u.link in self._rank and lane.consumed == lane.total
        )

    def cut(self, number: int, state: Any, split: int | None) -> ChannelCut:
        """The channel's part of the snapshot at whose barrier it has arrived."""
        beside = [(u, self._cut_beside(u, number)) for link in self._sides for u in self._upstreams_of(link)]
        return ChannelCut(state, split, self.ended(), tuple(beside), tuple(sorted(self._given_up)))

    def _cut_beside(self, upstream: Upstream, number: int) -> BesideCut:
        lane = self._lanes[upstream]
        before: dict[int, Slice] = {}
        ended = lane.total is not None and len(lane.held) == lane.total
        for seq in range(len(lane.held)):
            piece = lane.held.get(seq)
            if piece is None:
                break
            if upstream.link not in self._used and _is_at(piece, number):
                ended = False
                break
            before[seq] = piece
        return BesideCut((*self._beside.get(upstream, ()), *_rows_of(before)), ended)

    def go_on_from(self, cut: ChannelCut) -> None:
        """Continue from a channel's part of a snapshot: what had ended then sends nothing any more."""
        for link in cut.given_up:
            self.give_up(link)
        self.end_upstreams(cut.ended)
        for upstream, beside in cut.beside:
            if upstream.link in self._given_up:
                continue
            self._beside[upstream] = beside.slices
            self._sums[upstream.link].held_bytes += sum(piece.size_bytes for piece in beside.slices)
            if beside.ended:
                self._ends(upstream)

    def end_upstreams(self, upstreams: Iterable[Upstream]) -> None:
        """Note inputs that had ended at the snapshot from which the query goes on."""
        for upstream in upstreams:
            self._ends(upstream)

    def _ends(self, upstream: Upstream) -> None:
        lane = self._lanes[upstream]
        assert lane.total is None, "nothing has arrived yet"
        lane.sum.unknown -= 1
        lane.total = 0


def _latest(heads: Mapping[Upstream, Barrier]) -> int:
    return max((barrier.number for barrier in heads.values()), default=0)


def _is_at(piece: Slice, number: int) -> bool:
    return isinstance(piece.body, Barrier) and piece.body.number >= number


def _rows_of(held: dict[int, Slice]) -> list[Slice]:
    """The slices that are not barriers, in order."""
    return [held[seq] for seq in sorted(held) if not isinstance(held[seq].body, Barrier)]
