"""The smallest recovery that a loss requires, computed from below; plans are compared with it (invariant 8).

`reconcile` walks once, from the last stage to the first. This module finds the smallest set of channels that satisfies
the same rules, in rounds: which channels take inputs, what they lack, what of that is lost, and which channels have to
start again to make it; until a round finds nothing new. The two share no code except the questions to the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, Upstream
from wallaby.lineage.recoverable import INITIAL, Checkpoint, Recoverable
from wallaby.lineage.snapshot import ReRead, Snapshot

#: An output for one edge.
Piece = tuple[TaskName, Edge]


def pieces_of(rereads: Iterable[ReRead]) -> Iterator[Piece]:
    """The outputs of re-reads, one by one."""
    for reread in rereads:
        for seq in range(reread.first, reread.end):
            yield from ((TaskName(*reread.channel, seq), edge) for edge in reread.edges)


class SmallestRecovery:
    """The least that has to be done."""

    def __init__(self, graph: StageGraph, snapshot: Snapshot, left: Recoverable) -> None:
        self._graph, self._before, self._left = graph, snapshot, left
        self._ended = _ended(graph, snapshot)
        self._gone = self._find_gone()
        self._resting = {name for name in self._ended if left.tolerance.rests(ended=True)}
        self._pending = set(pieces_of(snapshot.rereads))
        self._lacking: set[Piece] = set()
        #: The channels that move to another host, or start again in place.
        self.emptied: set[ChannelName] = set()
        #: The newest state from which each of them can continue, if it has one.
        self.starts: dict[ChannelName, Checkpoint] = {}
        #: The outputs that have to be read again, and for which edges.
        self.reread: set[Piece] = set()
        while self._grow():
            pass

    @property
    def rewound(self) -> set[ChannelName]:
        """The channels that have to repeat tasks."""
        return {name for name in self.emptied if not self._graph.is_reader(name.stage)} - self._resting

    def _find_gone(self) -> set[ChannelName]:
        """The channels whose host is lost, or leaves while they are at work, or while what they made is kept."""
        alive, draining = {*self._before.members, *self._before.draining, HEAD}, self._before.draining
        hosts = {name: channel.host for name, channel in self._before.channels.items()}
        busy = {n for n in hosts if n not in self._ended or self._graph.is_kept(n)}
        return {n for n, h in hosts.items() if h not in alive or (h in draining and n in busy)}

    def _grow(self) -> bool:
        """One round; False if it finds nothing new."""
        lacking = self._find_lacking()
        lost = {(task, edge) for task, edge in lacking if task.seq < self._lost_below(task.of)}
        reread = {(task, edge) for task, edge in lost if self._graph.is_reader(task.stage)}
        owing = {task.of for task, _ in lacking}
        emptied = {name for name in self._gone if name not in self._ended or name in owing}
        emptied |= {task.of for task, _ in lost - reread}
        starts = {
            name: self._newest(name, self._first_lost(name, lost))
            for name in emptied | self.emptied
            if not self._graph.is_reader(name.stage)
        }
        if (reread, emptied, starts, lacking) == (self.reread, self.emptied, self.starts, self._lacking):
            return False
        self.reread, self.emptied = self.reread | reread, self.emptied | emptied
        self.starts, self._lacking = starts, lacking
        return True

    def _lost_below(self, name: ChannelName) -> int:
        channel, leaves = self._before.channels[name], name in self._gone
        return self._left.tolerance.lost_below(channel.base, channel.length, leaves=leaves)

    def _first_lost(self, name: ChannelName, lost: set[Piece]) -> int:
        length = self._before.channels[name].length
        return min((task.seq for task, _ in lost if task.of == name), default=length)

    def _newest(self, name: ChannelName, end: int) -> Checkpoint:
        """The state after the most tasks, of those after which nothing lost is needed."""
        usable = {each.seq: each for each in self._left.states.get(name, ()) if each.seq < end + 1}
        return usable[max(usable)] if usable else INITIAL

    def _find_lacking(self) -> set[Piece]:
        """Find the inputs that the takers lack."""
        takers, found = self._find_takers(), set[Piece]()
        for edge in self._before.delivered:
            taker, producer = self._graph.consumer(edge), self._graph.producer(edge)
            if taker in takers:
                missing = range(self._first_lacking(taker, edge), self._before.channels[producer].length)
                found |= {(TaskName(*producer, seq), edge) for seq in missing}
        waiting = takers - self.emptied
        return found | {(task, edge) for task, edge in self._pending if self._graph.consumer(edge) in waiting}

    def _find_takers(self) -> set[ChannelName]:
        """Find the channels that take inputs: they start again, are at work, owe outputs, or may have to re-read."""
        owing = {task.of for task, _ in self._lacking if not self._graph.is_reader(task.stage)}
        rereading = {task.stage for task, _ in self.reread}
        takers = {
            name
            for name in self._before.channels.keys() - self._gone
            if name not in self._ended
            or name in owing
            or (self._graph.is_reader(name.stage) and name.stage in rereading)
        }
        return (takers | self.emptied) - self._resting

    def _first_lacking(self, taker: ChannelName, edge: Edge) -> int:
        if taker not in self.emptied:
            return self._before.delivered[edge]
        return self.starts.get(taker, INITIAL).consumed.get(Upstream(edge.link, edge.producer), 0)


def _ended(graph: StageGraph, snapshot: Snapshot) -> set[ChannelName]:
    """The channels that have ended, or whose consumers all have."""
    ended = {name for name, channel in snapshot.channels.items() if channel.ended}
    for name in reversed(graph.channels):
        if name != graph.collector and {graph.consumer(edge) for edge in graph.edges_from(name)} <= ended:
            ended.add(name)
    return ended
