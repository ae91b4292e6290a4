"""The inbox of one channel: slices that have arrived and are not consumed, with a window of bytes per edge.

Pure data: it decides what to accept, and hands slices out in order per upstream channel, each exactly once (invariant
1). Slices may arrive in any order and more than once, because pushes are repeated and because re-reads come from
several workers; a slice that was consumed or is already held is answered with "held" and dropped.

Flow control is per edge and only per edge: a slice that is the next to be consumed, or that a draw of fixed
size is waiting for, is accepted whatever the window says, so a full inbox can always be emptied and no edge
can hold up another (nothing to deadlock on). Side inputs are used as a whole, so they have no window; an optional one
that is too large is given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wallaby.lineage.effects import Slice
from wallaby.lineage.graph import LinkKind, StageGraph
from wallaby.lineage.lineage import Draw
from wallaby.lineage.names import ChannelName, Upstream


@dataclass(frozen=True, slots=True)
class LaneView:
    """A view of one upstream channel, to report what a channel waits for."""

    consumed: int
    held: int
    held_bytes: int
    total: int | None
    #: None: it has no window.
    window_bytes: int | None
    #: The output that was last refused for lack of room, and its size, if it has not arrived since.
    refused: tuple[int, int] | None


class _Sum:
    """The total of a link's lanes, and how many of them have not yet announced their end."""

    __slots__ = ("held", "held_bytes", "unknown")

    def __init__(self) -> None:
        self.held = 0
        self.held_bytes = 0
        self.unknown = 0


class InboxLane:
    """One upstream channel: the held slices by sequence number, the number consumed, and the total if known."""

    __slots__ = ("consumed", "held", "held_bytes", "refused", "sum", "total", "wanted", "windowed")

    def __init__(self, windowed: bool, wanted: int, sum_of_link: _Sum) -> None:
        self.sum = sum_of_link
        self.sum.unknown += 1
        self.held: dict[int, Slice] = {}
        self.held_bytes = 0
        self.consumed = 0
        self.total: int | None = None
        self.windowed = windowed
        #: Outputs below this are accepted whatever the window, because a draw waits for them.
        self.wanted = wanted
        #: The output that was refused last, and its size.
        self.refused: tuple[int, int] | None = None


class Inbox:
    """What one channel has received at its present host.

    `reserve` outputs of an edge pass the window in any case: as many as a static draw needs.
    """

    def __init__(self, graph: StageGraph, channel: ChannelName, window_bytes: int, reserve: int = 1) -> None:
        self._window_bytes = window_bytes
        self._reserve = reserve
        self._discarding = False
        self._given_up: set[int] = set()
        #: Counts the slices that were accepted and kept.
        self.arrived = 0
        into = graph.edges_into(channel)
        self._sums = {link: _Sum() for link in {edge.link for edge in into}}
        self._lanes = {
            Upstream(e.link, e.producer): InboxLane(
                graph.links[e.link].kind is LinkKind.MAIN, reserve, self._sums[e.link]
            )
            for e in into
        }
        self._by_link: dict[int, list[InboxLane]] = {}
        for upstream, lane in self._lanes.items():
            self._by_link.setdefault(upstream.link, []).append(lane)

    def offer(self, piece: Slice) -> bool:
        """Accept a slice unless its window is full; True if it is held or was consumed already."""
        if not self.would_hold(piece):
            return False
        lane = self._lanes[Upstream(piece.edge.link, piece.edge.producer)]
        seq = piece.task.seq
        if piece.edge.link in self._given_up or self._is_known(lane, seq):
            return True
        self.arrived += 1
        lane.held[seq] = piece
        lane.held_bytes += piece.size_bytes
        lane.sum.held += 1
        lane.sum.held_bytes += piece.size_bytes
        if piece.final:
            lane.sum.unknown -= lane.total is None
            lane.total = seq + 1
        return True

    @property
    def held_bytes(self) -> int:
        """The bytes that have arrived and are not consumed."""
        return sum(found.held_bytes for found in list(self._sums.values()))

    def would_hold(self, piece: Slice, promised_bytes: int = 0) -> bool:
        """Is there room for a slice, if this many bytes come on its edge before it? Its body is not needed."""
        lane = self._lanes[Upstream(piece.edge.link, piece.edge.producer)]
        if piece.edge.link in self._given_up or self._is_known(lane, piece.task.seq):
            return True
        if not self._has_room(lane, piece, promised_bytes):
            lane.refused = piece.task.seq, piece.size_bytes
            return False
        return True

    def added_bytes(self, piece: Slice) -> int:
        """The bytes that accepting a slice would add to the inbox: none if it has the slice, or does not need it."""
        lane = self._lanes[Upstream(piece.edge.link, piece.edge.producer)]
        needless = piece.edge.link in self._given_up or self._is_known(lane, piece.task.seq)
        return 0 if needless else piece.size_bytes

    def _has_room(self, lane: InboxLane, piece: Slice, promised_bytes: int) -> bool:
        seq = piece.task.seq
        over = lane.windowed and lane.held_bytes + promised_bytes + piece.size_bytes > self._window_bytes
        return not over or seq < lane.wanted

    def _is_known(self, lane: InboxLane, seq: int) -> bool:
        """Is an output held, consumed, or no longer needed?"""
        return self._discarding or seq < lane.consumed or seq in lane.held

    def ready(self, upstream: Upstream) -> tuple[int, ...]:
        """The sizes of the slices that could be drawn now, in order."""
        lane = self._lanes[upstream]
        sizes = []
        seq = lane.consumed
        while seq in lane.held:
            sizes.append(lane.held[seq].size_bytes)
            seq += 1
        return tuple(sizes)

    def is_short_of(self, link: int, size_bytes: int, outputs: int) -> bool:
        """Is it certain, without checking each channel, that less than this has arrived and more will come?"""
        found = self._sums[link]
        return found.unknown > 0 and found.held_bytes < size_bytes and found.held <= outputs

    def consumed(self, upstream: Upstream) -> int:
        """The number of outputs drawn: this channel's watermark."""
        return self._lanes[upstream].consumed

    def is_ending(self, upstream: Upstream) -> bool:
        """Has everything that this upstream channel will ever send arrived?"""
        lane = self._lanes[upstream]
        return lane.total is not None and lane.consumed + len(self.ready(upstream)) == lane.total

    def has_begun(self, link: int) -> bool:
        """Has the first output of every channel of a link arrived, now or earlier?"""
        return all(lane.consumed or 0 in lane.held for lane in self._by_link[link])

    def is_exhausted(self, link: int) -> bool:
        """Have all outputs of all channels of a link been drawn?"""
        return all(lane.consumed == lane.total for lane in self._by_link[link])

    def is_whole(self, link: int) -> bool:
        """Has every output of every channel of a link arrived?"""
        return all(lane.total is not None and len(lane.held) == lane.total for lane in self._by_link[link])

    def whole(self, link: int) -> tuple[Slice, ...]:
        """All slices of a side link, by channel and sequence number. They stay in the inbox."""
        return tuple(lane.held[seq] for lane in self._by_link[link] for seq in sorted(lane.held))

    def link_bytes(self, link: int) -> int:
        """The bytes held of a link."""
        return self._sums[link].held_bytes

    def give_up(self, link: int) -> None:
        """Drop a side input that no task requires: it will never be complete, so no task will use it."""
        self._given_up.add(link)
        self._sums[link].held = self._sums[link].held_bytes = 0
        for lane in self._by_link[link]:
            lane.held.clear()
            lane.held_bytes = 0
            lane.total = None

    def want(self, draw: Draw) -> bool:
        """Request a draw of fixed size: True once it can be taken. Until then its slices pass the window."""
        for upstream, count in draw.upstreams:
            lane = self._lanes[upstream]
            lane.wanted = max(lane.wanted, lane.consumed + count)
        return all(len(self.ready(upstream)) >= count for upstream, count in draw.upstreams)

    def take(self, draw: Draw) -> tuple[Slice, ...]:
        """Draw slices: they leave the inbox and will never be drawn again."""
        taken: list[Slice] = []
        for upstream, count in draw.upstreams:
            lane = self._lanes[upstream]
            for seq in range(lane.consumed, lane.consumed + count):
                piece = lane.held.pop(seq)
                lane.held_bytes -= piece.size_bytes
                lane.sum.held -= 1
                lane.sum.held_bytes -= piece.size_bytes
                taken.append(piece)
            lane.consumed += count
            lane.wanted = max(lane.wanted, lane.consumed + self._reserve)
        return tuple(taken)

    def totals(self) -> dict[Upstream, int]:
        """The number of outputs of the upstream channels whose last one has arrived."""
        return {upstream: lane.total for upstream, lane in self._lanes.items() if lane.total is not None}

    def go_on(self, consumed: Mapping[Upstream, int], totals: Mapping[Upstream, int]) -> None:
        """Continue from a state that has consumed this much: earlier outputs that arrive again are dropped."""
        for upstream, count in consumed.items():
            lane = self._lanes[upstream]
            lane.consumed = count
            lane.wanted = max(lane.wanted, count + self._reserve)
            for seq in [seq for seq in lane.held if seq < count]:
                size_bytes = lane.held.pop(seq).size_bytes
                lane.held_bytes -= size_bytes
                lane.sum.held -= 1
                lane.sum.held_bytes -= size_bytes
        for upstream, total in totals.items():
            lane = self._lanes[upstream]
            lane.sum.unknown -= lane.total is None
            lane.total = total

    def discard(self) -> None:
        """The channel has ended: from now on accept everything and keep nothing."""
        self._discarding = True
        for found in self._sums.values():
            found.held = found.held_bytes = 0
        for lane in self._lanes.values():
            lane.held.clear()
            lane.held_bytes = 0

    def lanes(self) -> Mapping[Upstream, InboxLane]:
        """For checks: the view of each upstream channel."""
        return self._lanes

    def lane(self, upstream: Upstream) -> LaneView:
        """The view of one upstream channel."""
        lane = self._lanes[upstream]
        refused = lane.refused
        if refused is not None and self._is_known(lane, refused[0]):
            refused = None
        window_bytes = self._window_bytes if lane.windowed else None
        return LaneView(lane.consumed, len(lane.held), lane.held_bytes, lane.total, window_bytes, refused)

    def holds(self, upstream: Upstream) -> tuple[int, int, int | None]:
        """For checks: how many were consumed, how many are held beyond, and the total if it is known."""
        lane = self._lanes[upstream]
        return lane.consumed, len(lane.held), lane.total

    def lacks(self, upstream: Upstream, end: int) -> tuple[int, ...]:
        """For checks: which outputs below `end` are neither consumed nor held."""
        lane = self._lanes[upstream]
        if end <= lane.consumed:
            return ()
        return tuple([seq for seq in range(lane.consumed, end) if seq not in lane.held])
