"""The outbox of one worker in one query: which committed outputs it still has to send where.

Pure data. An output is published here after its commit, never before (invariant 1), and is due on an edge until the
consumer's host has acknowledged it. Acknowledgements count only for this pair of workers in this epoch: a new epoch
starts from what was delivered according to the GCS, which may be less than was known here, and nothing for a consumer
that was rewound. Sending again is harmless, because the inbox drops what it already has.

A kept result is never due: its readers fetch it.

In a staged query nothing is due of a channel that has not ended: so a consumer that has something of every upstream
channel knows that its inputs are complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, Edge, TaskName, WorkerId
from wallaby.lineage.tolerance import LINEAGE, Tolerance


class Outbox:
    """The delivery progress of the channels that one worker hosts."""

    def __init__(self, graph: StageGraph, tolerance: Tolerance = LINEAGE) -> None:
        self._graph = graph
        self._tolerance = tolerance
        self._bases: dict[ChannelName, int] = {}
        self._published: dict[ChannelName, int] = {}
        self._ended: set[ChannelName] = set()
        self._delivered: dict[Edge, int] = {}
        self._reported: dict[Edge, int] = {}
        self._edges_to: dict[WorkerId, list[Edge]] = {}
        #: The edges of a channel that have a consumer with a route.
        self._edges_of: dict[ChannelName, list[Edge]] = {}
        #: For ended channels: how many of these edges, from the first, have nothing due any more.
        self._through: dict[ChannelName, int] = {}
        #: Ended channels that have nothing more to send or to report.
        self._told: set[ChannelName] = set()
        #: Edges whose window was full at the last attempt.
        self._refused: set[Edge] = set()
        #: Counts publications and epochs: while it does not change, there is nothing new to send.
        self.news = 0

    def begin_epoch(
        self,
        delivered: Mapping[Edge, int],
        routes: Mapping[ChannelName, WorkerId],
        mine: tuple[ChannelName, ...],
    ) -> None:
        """Take routes and delivery counts from the GCS; forget channels that moved to another host.

        A consumer without a route has ended at a worker that is gone, and needs nothing more.
        """
        self.news += 1
        self._published = {name: end for name, end in self._published.items() if name in mine}
        self._ended &= set(mine)
        self._delivered = dict(delivered)
        self._reported = dict(delivered)
        self._edges_to = {}
        self._edges_of = {}
        self._through = {}
        self._told = set()
        self._refused = set()
        for name in mine:
            for edge in self._graph.edges_from(name):
                target = routes.get(self._graph.consumer(edge))
                if target is not None and not self._graph.stays(edge):
                    self._edges_to.setdefault(target, []).append(edge)
                    self._edges_of.setdefault(name, []).append(edge)

    def start(self, channel: ChannelName, base: int, published: int | None = None) -> None:
        """Begin a channel here; its first output at this host is `base`, unless more are at hand already."""
        self._bases[channel] = base
        self._published[channel] = base if published is None else published
        self._ended.discard(channel)
        self._begin_anew(channel)

    def publish(self, task: TaskName, *, ended: bool) -> None:
        """Note that a committed output is in the backup and may leave."""
        self.news += 1
        self._published[task.of] = max(task.seq + 1, self._published.get(task.of, 0))
        self._begin_anew(task.of)
        if ended:
            self._ended.add(task.of)

    def end(self, channel: ChannelName) -> None:
        """Note that a channel will publish no more."""
        self._ended.add(channel)

    def targets(self) -> tuple[WorkerId, ...]:
        """The workers for which something is due, in a fixed order."""
        return tuple(
            sorted(target for target, edges in self._edges_to.items() if any(map(self._is_due, edges)))
        )

    def _is_due(self, edge: Edge) -> bool:
        """Is something due? Below its base a channel has nothing to send: a consumer that lacks it has ended."""
        producer = self._graph.producer(edge)
        if not self._tolerance.may_send(ended=producer in self._ended):
            return False
        return self._bases.get(producer, 0) <= self._delivered[edge] < self._published.get(producer, 0)

    def due(
        self, target: WorkerId, outputs_max: int, *, probing: bool = True
    ) -> tuple[tuple[Edge, TaskName], ...]:
        """What to push to one worker now, up to a limit: in order for each edge, with the edges taking turns.

        On an edge that was refused, one output is tried again, and only if `probing`, because a refused output was sent
        in vain.
        """
        queues = []
        for edge in self._edges_to.get(target, ()):
            if self._is_due(edge) and (probing or edge not in self._refused):
                producer = self._graph.producer(edge)
                first = self._delivered[edge]
                end = first + 1 if edge in self._refused else self._published[producer]
                queues.append((edge, producer, first, end))
        items: list[tuple[Edge, TaskName]] = []
        offset = 0
        while queues and len(items) < outputs_max:
            queues = [q for q in queues if q[2] + offset < q[3]]
            items += [(edge, TaskName(*producer, first + offset)) for edge, producer, first, _ in queues]
            offset += 1
        return tuple(items[:outputs_max])

    def confirm(self, items: tuple[tuple[Edge, TaskName], ...], held: tuple[bool, ...]) -> bool:
        """Note what the receiver holds, up to the first gap on each edge. True if there was any progress.

        `held` may be shorter than `items`: the others were not sent. A refused edge goes behind all others from now on,
        and those that were not sent come first, because the refused edge may wait for what one of them carries. Among
        several refused edges, another one is first each time. So every edge becomes the first of a push at some time,
        which is always sent.
        """
        moved = False
        refused: dict[Edge, None] = {}
        sent = items[: len(held)]
        for (edge, task), is_held in zip(sent, held, strict=True):
            if not is_held:
                refused[edge] = None
            elif self._delivered[edge] == task.seq:
                self._delivered[edge] = task.seq + 1
                moved = True
        self._refused = (self._refused - {edge for edge, _ in sent}) | set(refused)
        if refused:
            self._let_others_go_first(next(iter(refused)))
        return moved

    def _let_others_go_first(self, first: Edge) -> None:
        """Move refused edges behind the others, and the first of the refused edges to the very end."""
        for edges in self._edges_to.values():
            edges.sort(key=lambda edge: (edge in self._refused) + (edge == first))

    def report(self, channel: ChannelName) -> tuple[tuple[Edge, int], ...]:
        """A channel's deliveries that the GCS does not know yet, to be sent with its next commit."""
        return tuple(
            (edge, self._delivered[edge])
            for edge in self._graph.edges_from(channel)
            if edge in self._delivered and self._delivered[edge] > self._reported[edge]
        )

    def report_ended(self) -> tuple[tuple[Edge, int], ...]:
        """The same for ended channels, which have no next commit, once they have nothing more to send."""
        news: list[tuple[Edge, int]] = []
        for channel in sorted(self._ended - self._told):
            if self._is_through(channel):
                found = self.report(channel)
                if not found:
                    self._told.add(channel)
                news += found
        return tuple(news)

    def _is_through(self, channel: ChannelName) -> bool:
        """Has an ended channel sent everything? An edge with nothing due stays so, and is not checked again."""
        edges, at = self._edges_of.get(channel, ()), self._through.get(channel, 0)
        while at < len(edges) and not self._is_due(edges[at]):
            at += 1
        self._through[channel] = at
        return at == len(edges)

    def _begin_anew(self, channel: ChannelName) -> None:
        """Reset a channel that may have something to send again."""
        self._through.pop(channel, None)
        self._told.discard(channel)

    def reported(self, news: tuple[tuple[Edge, int], ...]) -> None:
        """Note that the GCS now has these deliveries."""
        for edge, count in news:
            if edge in self._reported:
                self._reported[edge] = max(self._reported[edge], count)

    def waiting(self) -> tuple[tuple[Edge, WorkerId, int, int, bool], ...]:
        """The edges with something due: the target, the range of outputs, and whether the last attempt was refused."""
        return tuple(
            (
                edge,
                target,
                self._delivered[edge],
                self._published[self._graph.producer(edge)],
                edge in self._refused,
            )
            for target, edges in self._edges_to.items()
            for edge in edges
            if self._is_due(edge)
        )

    def delivered(self) -> Mapping[Edge, int]:
        """What this worker considers delivered in this epoch."""
        return self._delivered

    def known_to_gcs(self) -> Mapping[Edge, int]:
        """For checks: what this worker believes the GCS to know."""
        return self._reported

    def refused(self) -> Set[Edge]:
        """For checks: the edges whose window was full at the last attempt."""
        return self._refused

    def published(self, channel: ChannelName) -> int:
        """Outputs below this number may leave."""
        return self._published.get(channel, 0)
