"""Algorithm 2: from the state of a frozen query in the GCS to the plan that lets it continue. A pure function.

From the last stage to the first, so that every consumer is decided before its producers:

- a channel *needs* its inputs if it has not ended, is being rewound, or still owes outputs, because then it may be in
  the middle of an earlier retrace; a reader's channel also while its stage has re-reads, because a worker that re-reads
  uses the side inputs of the channel that it hosts;
- an edge is *behind* if its consumer needs it and not all committed outputs are delivered;
- a lost channel is rewound if it has not ended or if an edge from it is behind. It then needs all its inputs
  again, those that its records name and those that had arrived unconsumed: its incoming edges count as
  delivered up to nothing. A live producer delivers again from its backup, a lost one is behind in its turn;
- a lost reader is not rewound but moved: what edges are behind on becomes re-reads, shared by all workers of
  the stage, and its new host goes on with its next split;
- a live channel is never rewound, except off a worker that is draining, or if it went on from a saved state and
  somebody now needs outputs from before that;
- where the result stays with the workers, all of it is needed until it is released: a lost channel that made a part of
  it is rewound although it has ended, and so is one on a worker that is draining;
- where states are saved, a channel is rewound to the newest one before which nobody needs its outputs, and its inputs
  count as delivered up to what had been consumed by then;
- where outputs outlive their workers, they need not be made again: a lost channel that has ended only moves, and so
  does a reader; any other is rewound only for its state;
- a channel whose consumers have all ended is closed: nobody will draw from it again (early end).

Rewound and moved channels are spread over all members: different stages and different channels of one stage
to different workers as far as there are any, by the work they have to repeat. A plan holds channels, edges
and ranges. Reconciling the result of a plan changes nothing (invariants 5, 8 and 9).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from wallaby.errors import InternalError
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, Edge, Upstream, WorkerId
from wallaby.lineage.recoverable import INITIAL, NOTHING, Checkpoint, Recoverable
from wallaby.lineage.snapshot import RecoveryPlan, ReRead, Snapshot

#: One edge's need for outputs `[first, end)` of its producer.
_Need = tuple[int, int, Edge]


def reconcile(graph: StageGraph, snapshot: Snapshot, left: Recoverable = NOTHING) -> RecoveryPlan:
    """Make the plan for a snapshot. There must be a member that can host the lost channels."""
    if not snapshot.members:
        raise InternalError("A query without members cannot be reconciled: wait for one.")
    return _Reconciliation(graph, snapshot, left).plan()


def drained(graph: StageGraph, snapshot: Snapshot, worker: WorkerId, left: Recoverable = NOTHING) -> bool:
    """May a draining worker leave without the loss of anything that is still needed?"""
    if not snapshot.members:
        return False
    without = replace(snapshot, draining=tuple(w for w in snapshot.draining if w != worker))
    plan = reconcile(graph, without, left)
    return not any(snapshot.channels[name].host == worker for name in plan.hosts)


class _Reconciliation:
    """One walk from the last stage to the first, and its decisions."""

    def __init__(self, graph: StageGraph, snapshot: Snapshot, left: Recoverable) -> None:
        self._graph = graph
        self._before = snapshot
        self._left = left
        self._bases: dict[ChannelName, int] = {}
        self._alive = frozenset(
            (*snapshot.members, *snapshot.draining, snapshot.channels[graph.collector].host)
        )
        self._delivered = dict(snapshot.delivered)
        self._closed = _closed(graph, snapshot)
        self._rewound: list[ChannelName] = []
        self._moved: list[ChannelName] = []
        self._needing: set[ChannelName] = {graph.collector}
        self._emptied: set[ChannelName] = set()
        self._rereads: list[ReRead] = []

    def plan(self) -> RecoveryPlan:
        for stage in reversed(range(len(self._graph.stages) - 1)):
            names = [ChannelName(stage, c) for c in range(self._graph.stages[stage].channels)]
            if self._graph.is_reader(stage):
                self._decide_readers(names)
            else:
                for name in names:
                    self._decide_stateful(name)
        before = self._before
        changed = {e: n for e, n in self._delivered.items() if n != before.delivered[e]}
        return RecoveryPlan(
            hosts=self._placed(),
            bases={name: base for name, base in self._bases.items() if base != before.channels[name].base},
            delivered=changed,
            losses=self._losses(),
            closed=tuple(sorted(self._closed)),
            rereads=tuple(sorted(self._rereads, key=lambda r: (r.channel, r.first))),
            rewound=tuple(self._rewound),
        )

    def _ended(self, name: ChannelName) -> bool:
        return self._before.channels[name].ended or name in self._closed

    def _must_leave(self, name: ChannelName) -> bool:
        """Is its host lost, or about to be and the channel still at work, or what it made still to be read?"""
        host = self._before.channels[name].host
        if host not in self._alive:
            return True
        return host in self._before.draining and (not self._ended(name) or self._graph.is_kept(name))

    def _behind(self, name: ChannelName) -> list[Edge]:
        length = self._before.channels[name].length
        return [
            edge
            for edge in self._graph.edges_from(name)
            if self._graph.consumer(edge) in self._needing and self._delivered[edge] < length
        ]

    def _lost_below(self, name: ChannelName) -> int:
        """The first output of a channel that is not lost: earlier ones have to be made again if they are needed."""
        channel = self._before.channels[name]
        leaves = self._must_leave(name)
        return self._left.tolerance.lost_below(channel.base, channel.length, leaves=leaves)

    def _rests(self, name: ChannelName) -> bool:
        return self._left.tolerance.rests(ended=self._ended(name))

    def _decide_stateful(self, name: ChannelName) -> None:
        behind, lost_below, leaves = self._behind(name), self._lost_below(name), self._must_leave(name)
        lost = [self._delivered[edge] for edge in behind if self._delivered[edge] < lost_below]
        if lost or (leaves and not self._ended(name)):
            self._rewound.append(name)
            start = self._left.newest(name, min(lost, default=self._before.channels[name].length))
            self._bases[name] = start.seq
            self._starts_empty(name, start)
        elif leaves and behind:
            self._moved.append(name)
        elif not (leaves or self._rests(name)) and (behind or not self._ended(name)):
            self._needing.add(name)

    def _starts_empty(self, name: ChannelName, start: Checkpoint = INITIAL) -> None:
        """Nothing has arrived at the new host: the channel needs all inputs, from the first or a saved state on."""
        self._needing.add(name)
        self._emptied.add(name)
        for edge in self._graph.edges_into(name):
            self._delivered[edge] = start.consumed.get(Upstream(edge.link, edge.producer), 0)

    def _decide_readers(self, names: list[ChannelName]) -> None:
        waiting = {name: self._still_waiting(name) for name in names}
        for name in names:
            needs, behind, lost_below = waiting[name], self._behind(name), self._lost_below(name)
            for edge in behind:
                if self._delivered[edge] < lost_below:
                    needs.append((self._delivered[edge], lost_below, edge))
                    self._delivered[edge] = lost_below
            if self._must_leave(name) and (not self._ended(name) or needs or behind):
                self._moved.append(name)
                self._bases[name] = lost_below
            self._rereads.extend(_grouped(name, needs))
        stage_rereads = any(r.channel.stage == names[0].stage for r in self._rereads)
        for name in names:
            if name in self._moved and not self._rests(name):
                self._starts_empty(name)
            elif not self._must_leave(name) and (stage_rereads or not self._ended(name)):
                self._needing.add(name)

    def _still_waiting(self, name: ChannelName) -> list[_Need]:
        """The uncompleted re-reads of an earlier recovery that are still needed.

        Others are forgotten, and `delivered` of their edges is as it was without them, because the consumer may come to
        need them after all.
        """
        needs: list[_Need] = []
        for reread in self._before.rereads:
            if reread.channel != name:
                continue
            for edge in reread.edges:
                if self._graph.consumer(edge) not in self._needing:
                    self._delivered[edge] = min(self._delivered[edge], reread.first)
                elif self._graph.consumer(edge) in self._emptied:
                    continue  # what it needs is counted from where it starts
                elif self._delivered[edge] >= reread.end:
                    needs.append((reread.first, reread.end, edge))
        return needs

    def _placed(self) -> dict[ChannelName, WorkerId]:
        """Place channels on the member with the fewest of the stage, then the least work, then the fewest channels."""
        members = self._before.members
        gone = {*self._rewound, *self._moved}
        hosted = dict.fromkeys(members, 0)
        for name, channel in self._before.channels.items():
            if channel.host in hosted and name not in gone and not self._ended(name):
                hosted[channel.host] += 1
        work = dict.fromkeys(members, 0)
        of_stage: dict[tuple[WorkerId, int], int] = {}
        hosts: dict[ChannelName, WorkerId] = {}
        for name in sorted(gone, key=lambda n: (-self._before.channels[n].length, n)):
            host = min(members, key=lambda w: (of_stage.get((w, name.stage), 0), work[w], hosted[w]))
            hosts[name] = host
            of_stage[host, name.stage] = of_stage.get((host, name.stage), 0) + 1
            work[host] += 1 + self._before.channels[name].length
            hosted[host] += 1
        return hosts

    def _losses(self) -> dict[ChannelName, int]:
        """Count, for each outstanding task, the workers that were lost unannounced while it ran."""
        return {
            name: self._before.channels[name].losses + 1
            for name in (*self._rewound, *self._moved)
            if not self._ended(name) and self._before.departed.get(self._before.channels[name].host) is False
        }


def _closed(graph: StageGraph, snapshot: Snapshot) -> set[ChannelName]:
    """The channels to close: they have not ended, but all their consumers have."""
    closed: set[ChannelName] = set()

    def ended(name: ChannelName) -> bool:
        return snapshot.channels[name].ended or name in closed

    for name in reversed(graph.channels):
        if name != graph.collector and not ended(name):
            consumers = [graph.consumer(edge) for edge in graph.edges_from(name)]
            if all(ended(consumer) for consumer in consumers):
                closed.add(name)
    return closed


def _grouped(name: ChannelName, needs: Iterable[_Need]) -> list[ReRead]:
    """Group needs into ranges that do not overlap, each with all edges that need it."""
    needs = list(needs)
    bounds = sorted({bound for first, end, _ in needs for bound in (first, end)})
    ranges: list[ReRead] = []
    for first, end in pairwise(bounds):
        edges = tuple(sorted({edge for lo, hi, edge in needs if lo <= first and end <= hi}))
        if edges and ranges and ranges[-1].end == first and ranges[-1].edges == edges:
            ranges[-1] = replace(ranges[-1], end=end)
        elif edges:
            ranges.append(ReRead(name, first, end, edges))
    return ranges
