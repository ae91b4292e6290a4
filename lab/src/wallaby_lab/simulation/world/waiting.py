"""What a channel could do with its arrived slices: computed independently, from the slices alone."""

from __future__ import annotations

from wallaby.lineage.attempt import ChannelRun
from wallaby.lineage.choose import DrawPolicy, Dynamic, Static
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.lineage import Draw, LineageRecord
from wallaby.lineage.names import Upstream


class Arrived:
    """The present inbox of one channel."""

    def __init__(
        self, graph: StageGraph, run: ChannelRun, policy: DrawPolicy, *, staged: bool = False
    ) -> None:
        self._graph = graph
        self._channel = run.channel
        self._lanes = run.inbox.lanes()
        self._policy = policy
        self._staged = staged

    def ready(self, upstream: Upstream) -> list[int]:
        """The sizes of the slices that could be drawn from an upstream channel, in order."""
        lane = self._lanes[upstream]
        end = lane.consumed
        while end in lane.held:
            end += 1
        return [lane.held[seq].size_bytes for seq in range(lane.consumed, end)]

    def is_exhausted(self, upstream: Upstream) -> bool:
        """Has everything of an upstream channel been drawn?"""
        return self._lanes[upstream].consumed == self._lanes[upstream].total

    def pool(self, draw: Draw) -> list[Upstream]:
        """All upstream channels of the link that a draw is from."""
        return [upstream for upstream in self._lanes if upstream.link == draw.link]

    def has_all_of(self, record: LineageRecord) -> bool:
        """Has everything arrived that a committed task used?"""
        sides = [
            link for bit, link in enumerate(self._graph.sides(self._channel.stage)) if record.sides >> bit & 1
        ]
        drawn = record.draw.upstreams if record.draw is not None else ()
        return all(map(self._is_whole, sides)) and all(len(self.ready(u)) >= n for u, n in drawn)

    def allows_a_task(self, *, eager: bool) -> bool:
        """Could the channel begin a task now, if it chooses freely?"""
        stage = self._channel.stage
        required = [link for link in self._graph.sides(stage) if self._graph.links[link].required]
        if not all(map(self._is_whole, required)):
            return False
        if self._graph.is_reader(stage):
            return True
        phases = self._graph.phases(stage)
        mains = [upstream for upstream in self._lanes if any(upstream.link in links for links in phases)]
        if self._staged and any(
            not lane.consumed and 0 not in lane.held for lane in map(self._lanes.get, mains) if lane
        ):
            return False
        for links in phases:
            if all(self.is_exhausted(upstream) for upstream in mains if upstream.link in links):
                continue
            return any(self._allows_a_draw(link, eager=eager) for link in links)
        return True

    def _allows_a_draw(self, link: int, *, eager: bool) -> bool:
        upstreams = [upstream for upstream in self._lanes if upstream.link == link]
        pools = [upstreams] if self._policy.several else [[upstream] for upstream in upstreams]
        return any(self._is_enough(pool, eager=eager) for pool in pools)

    def _is_enough(self, pool: list[Upstream], *, eager: bool) -> bool:
        sizes = [size for upstream in pool for size in self.ready(upstream)]
        at_end = all(self._lanes[u].total == self._lanes[u].consumed + len(self.ready(u)) for u in pool)
        match self._policy:
            case Static(outputs):
                return len(sizes) >= outputs or bool(sizes and at_end)
            case Dynamic(target):
                return bool(sizes) and (eager or at_end or sum(sizes) >= target)

    def _is_whole(self, link: int) -> bool:
        lanes = [lane for upstream, lane in self._lanes.items() if upstream.link == link]
        return all(lane.total is not None and set(lane.held) >= set(range(lane.total)) for lane in lanes)
