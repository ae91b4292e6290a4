"""The invariants of docs/protocol.md as code: they must hold whatever fails.

Each check raises `InvariantViolation` with the invariant's number and the names of what broke it. `Audit`
follows one query from its submission to its end: it is notified of what is executed, what leaves a worker and what
reaches the client, and it checks the store and every worker after each step. It shares no code with the algorithms that
it checks; in particular it computes independently which channels a loss forces to be rewound.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache

from wallaby.lineage.attempt import ChannelPhase, ChannelRun
from wallaby.lineage.effects import Output, Slice
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.lineage import LineageRecord, Watermark, advance, decode
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, Upstream, WorkerId
from wallaby.lineage.reconcile import reconcile
from wallaby.lineage.recoverable import NOTHING, Recoverable
from wallaby.lineage.snapshot import ChannelState, RecoveryPlan, Snapshot
from wallaby_lab.invariants import InvariantViolation
from wallaby_lab.invariants.placed import check_losses, check_placed
from wallaby_lab.invariants.resumed import resumed
from wallaby_lab.invariants.sighting import StoreState, WorkerState
from wallaby_lab.invariants.smallest import SmallestRecovery, pieces_of

__all__ = ["Audit", "InvariantViolation", "check_smallest", "decoded"]

#: More than the records between the commit of one and the last check that looks at it.
_RECENT = 256


@lru_cache(maxsize=_RECENT)
def decoded(data: bytes) -> LineageRecord:
    """The record of these bytes, decoded once: it is a value, and several checks look at the same one."""
    return decode(data)


class Audit:
    """All observations of one query, and the checks against them."""

    def __init__(self, graph: StageGraph) -> None:
        self._graph = graph
        self._records: dict[ChannelName, list[bytes]] = {name: [] for name in graph.channels}
        self._decoded: dict[ChannelName, list[LineageRecord]] = {name: [] for name in graph.channels}
        self._watermarks: dict[ChannelName, Watermark] = {name: {} for name in graph.channels}
        #: What had been consumed before each task; the last entry is the present watermark.
        self._consumed: dict[ChannelName, list[Watermark]] = {name: [{}] for name in graph.channels}
        #: The inputs of every channel: the edge, its producer, and the producer as the consumer sees it.
        self._inputs = {
            name: tuple((e, graph.producer(e), Upstream(e.link, e.producer)) for e in graph.edges_into(name))
            for name in graph.channels
        }
        #: The channels, producers first, each with its edges and their consumers.
        self._outputs = tuple(
            (name, tuple((edge, graph.consumer(edge)) for edge in graph.edges_from(name)))
            for name in graph.channels
        )
        self._consumers_first = self._outputs[::-1]
        #: The last state of each channel; states are never changed in place.
        self._seen: dict[ChannelName, ChannelState] = {}
        self._names = [
            tuple(ChannelName(s, c) for c in range(stage.channels)) for s, stage in enumerate(graph.stages)
        ]
        #: Per reader stage, the last state that passed the check.
        self._splits: dict[int, object] = {}
        self._contents: dict[tuple[TaskName, Edge], int] = {}
        self._checksums: dict[TaskName, int] = {}
        #: The host of each channel, the epoch of its arrival there, and its base.
        self._assigned: dict[ChannelName, tuple[WorkerId, int, int]] = {}
        self._final: set[ChannelName] = set()
        self._closed: dict[ChannelName, int] = {}
        self._collected: dict[Upstream, int] = {}
        self._epoch, self._gate_open = 0, False

    # --- events --------------------------------------------------------------------------------------

    def executing(self, task: TaskName, inputs: Iterable[Slice], sides: Iterable[Slice]) -> None:
        """A task is about to run on these slices (invariants 1 and 4)."""
        for piece in (*inputs, *sides):
            if self._graph.consumer(piece.edge) != task.of and not self._graph.is_reader(task.stage):
                raise InvariantViolation(1, f"{task} runs on {piece.task}, which was sent to another channel")
            self._check_content(piece, f"{task} consumes")
        seen: dict[Upstream, int] = {}
        for piece in inputs:
            upstream = Upstream(piece.edge.link, piece.edge.producer)
            at = seen.get(upstream, self._drawn_before(task, upstream))
            if piece.task.seq != at:
                raise InvariantViolation(1, f"{task} consumes {piece.task} where output {at} is due")
            seen[upstream] = at + 1

    def _drawn_before(self, task: TaskName, upstream: Upstream) -> int:
        """How many outputs the records before a task have drawn from an upstream channel."""
        consumed = self._consumed[task.of]
        if len(consumed) <= task.seq:
            raise InvariantViolation(2, f"{task} runs before {len(consumed) - 1} is committed")
        return consumed[task.seq].get(upstream, 0)

    def committing(self, task: TaskName, output: Output, *, final: bool) -> None:
        """An output is committed: from now on this is the content of its name (invariant 2)."""
        for edge, (_, body) in output.slices.items():
            self._contents[task, edge] = hash((body, final))

    def leaving(self, pieces: Iterable[Slice]) -> None:
        """Slices leave their worker (invariant 1): committed, and always the same bytes (invariant 2)."""
        for piece in pieces:
            self._check_content(piece, "a worker sends")

    def _check_content(self, piece: Slice, what: str) -> None:
        records = self._records[piece.task.of]
        if piece.task.seq >= len(records):
            raise InvariantViolation(1, f"{what} {piece.task}, which is not committed")
        content = hash((piece.body, piece.final))
        known = self._contents.setdefault((piece.task, piece.edge), content)
        if known != content:
            raise InvariantViolation(
                2, f"{what} {piece.task} over {piece.edge} with other content than before"
            )

    def made(self, task: TaskName, checksum: int) -> None:
        """An output that was committed before is made again (invariant 4)."""
        if task.seq < len(self._decoded[task.of]):
            committed = self._decoded[task.of][task.seq].checksum
            if self._checksums.setdefault(task, committed) != checksum:
                raise InvariantViolation(4, f"{task} was made again with another checksum and kept")

    def collecting(self, pieces: Iterable[Slice]) -> None:
        """The client gets slices: each once, in order, never taken back (invariant 7)."""
        for piece in pieces:
            self._check_content(piece, "the client is given")
            upstream = Upstream(piece.edge.link, piece.edge.producer)
            at = self._collected.get(upstream, 0)
            if piece.task.seq != at:
                raise InvariantViolation(7, f"the client is given {piece.task} where output {at} is due")
            self._collected[upstream] = at + 1

    def planned(self, snapshot: Snapshot, plan: RecoveryPlan, left: Recoverable = NOTHING) -> None:
        """A plan is about to be applied: it must be the smallest (8) and leave nothing to do (9)."""
        check_smallest(self._graph, snapshot, plan, left)
        check_placed(snapshot, plan)
        check_losses(snapshot, plan)
        self._check_states(left)
        after = resumed(snapshot, plan)
        again = reconcile(self._graph, after, left)
        if again.hosts or again.delivered or again.losses or again.closed or again.rereads != after.rereads:
            raise InvariantViolation(9, f"reconcile of its own result still changes something: {again}")
        self._check_forgotten(snapshot, after)

    def _check_states(self, left: Recoverable) -> None:
        """The saved states are those that records name, with what the tasks before them have consumed (invariant 3)."""
        for name, states in left.states.items():
            saved = [seq + 1 for seq, record in enumerate(self._decoded[name]) if record.saved]
            consumed = [self._consumed[name][seq] for seq in saved]
            if [each.seq for each in states] != saved or [dict(each.consumed) for each in states] != consumed:
                raise InvariantViolation(3, f"the states of {name} are {states}, not {saved} with {consumed}")

    def _check_forgotten(self, before: Snapshot, after: Snapshot) -> None:
        """A re-read that was dropped does not count as delivered (invariant 3)."""
        coming = {(e, seq) for r in after.rereads for e in r.edges for seq in range(r.first, r.end)}
        for reread, edge in ((r, edge) for r in before.rereads for edge in r.edges):
            name = self._graph.consumer(edge)
            upstream = Upstream(edge.link, edge.producer)
            first = max(reread.first, self._needed_from(name, after.channels[name], upstream))
            for seq in range(first, min(reread.end, after.delivered[edge])):
                if (edge, seq) not in coming:
                    raise InvariantViolation(
                        3, f"{edge}: {seq} counts as delivered, and was only to be re-read"
                    )

    # --- the store -----------------------------------------------------------------------------------

    def check_store(self, state: StoreState) -> None:
        """The store's state is well formed, and follows from its state before."""
        self._check_epoch(state)
        delivered, channels, gate_open, members = (
            state.delivered,
            state.channels,
            state.gate_open,
            state.members,
        )
        for name, edges in self._outputs:
            channel = channels[name]
            if self._seen.get(name) is not channel or state.records[name] != self._records[name]:
                self._check_records(name, channel, state.records[name])
                self._seen[name] = channel
                if self._assigned.get(name, ("", 0, 0))[0::2] != (channel.host, channel.base):
                    self._assigned[name] = (channel.host, state.epoch, channel.base)
            if (
                gate_open
                and not (channel.final or channel.closed)
                and channel.host not in members
                and channel.host != HEAD
            ):
                raise InvariantViolation(5, f"{name} is assigned to {channel.host}, which is no member")
            length = channel.length
            for edge, _ in edges:
                if not 0 <= delivered[edge] <= length:
                    raise InvariantViolation(3, f"{edge}: {delivered[edge]} delivered of {channel.length}")
        self._check_splits(state)

    def _check_epoch(self, state: StoreState) -> None:
        """The epoch never falls, and it rises whenever the gate opens or closes; claims are of members."""
        if state.epoch < self._epoch or (state.epoch == self._epoch and state.gate_open != self._gate_open):
            raise InvariantViolation(6, f"the gate was opened or closed without a new epoch ({state.epoch})")
        self._epoch, self._gate_open = state.epoch, state.gate_open
        for worker, _ in state.claims if state.gate_open else ():
            if worker not in state.members:
                raise InvariantViolation(5, f"{worker}, which is no member, holds the claim on a re-read")

    def _check_records(self, name: ChannelName, channel: ChannelState, records: Sequence[bytes]) -> None:
        known = self._records[name]
        if len(records) > self._closed.get(name, len(records)):
            raise InvariantViolation(2, f"{name} has a record after it was closed")
        if channel.closed:
            self._closed.setdefault(name, len(records))
        if channel.losses and len(records) > len(known):
            raise InvariantViolation(7, f"losses of an earlier task of {name} count for its next one")
        if channel.length != len(records) or (records != known and list(records[: len(known)]) != known):
            raise InvariantViolation(2, f"the records of {name} were changed or have a gap")
        for data in records[len(known) :]:
            if name in self._final:
                raise InvariantViolation(2, f"{name} has a record after its final one")
            record = decoded(data)
            known.append(data)
            self._decoded[name].append(record)
            advance(self._watermarks[name], record.draw)
            self._consumed[name].append(dict(self._watermarks[name]))
            self._check_draw(name, record)
            if record.final:
                self._final.add(name)
        if channel.final != (name in self._final):
            raise InvariantViolation(2, f"{name} is marked final={channel.final} against its records")

    def _check_draw(self, name: ChannelName, record: LineageRecord) -> None:
        """A record draws only what is committed, from one link, a build side before its probe side."""
        if record.draw is None:
            return
        phases = self._graph.phases(name.stage)
        for phase in phases[: next(i for i, links in enumerate(phases) if record.draw.link in links)]:
            for upstream in (u for link in phase for u in self._graph.upstreams(name, link)):
                producer = ChannelName(self._graph.links[upstream.link].producer, upstream.channel)
                whole = producer in self._final and self._watermarks[name].get(upstream, 0) == len(
                    self._records[producer]
                )
                if not whole:
                    raise InvariantViolation(
                        1, f"{name} draws {record.draw} before its build side is consumed"
                    )
        for upstream, _ in record.draw.upstreams:
            producer = ChannelName(self._graph.links[upstream.link].producer, upstream.channel)
            if self._watermarks[name][upstream] > len(self._records[producer]):
                raise InvariantViolation(
                    3, f"the watermark of {name} is beyond what {producer} has committed"
                )

    def _check_splits(self, state: StoreState) -> None:
        """Every split that was given out is in exactly one record, or is the next task of one channel.

        The same holds for the rest of a split, which its channel must read next.
        """
        for stage, given in state.next_split.items():
            names = self._names[stage]
            seen = (given, [(len(self._decoded[name]), state.channels[name].split) for name in names])
            if self._splits.get(stage) == seen:
                continue
            self._splits[stage] = seen
            taken = [r.split for name in names for r in self._decoded[name] if r.split is not None]
            claimed = [state.channels[name].split for name in names]
            taken += [split for split in claimed if split is not None]
            splits = self._graph.stages[stage].splits
            begun = sorted(split for split in taken if split < splits)
            if begun != list(range(given)) or len(set(taken)) < len(taken):
                raise InvariantViolation(
                    2, f"splits {sorted(taken)} of stage {stage} are read, but {given} given out"
                )
            for name, next_ in zip(names, claimed, strict=True):
                read = [r.split for r in self._decoded[name] if r.split is not None]
                read += [next_] if next_ is not None else []
                for before, split in itertools.pairwise(read):
                    if split >= splits and split % splits != before % splits:
                        raise InvariantViolation(
                            2, f"{name} reads {split} after {before}, of which it is not left"
                        )

    # --- the workers ---------------------------------------------------------------------------------

    def check_worker(self, state: StoreState, worker: WorkerId, seen: WorkerState) -> None:
        """A worker that knows the present epoch agrees with the store about its channels (invariant 3)."""
        if not state.gate_open or seen.epoch != state.epoch:
            return
        if worker not in state.members and worker != HEAD:
            raise InvariantViolation(6, f"{worker} takes part in epoch {state.epoch} but is no member")
        collector = self._graph.collector
        for name, run in seen.runs.items():
            if state.channels[name].host != worker:
                raise InvariantViolation(
                    6, f"{worker} runs {name}, which belongs to {state.channels[name].host}"
                )
            # A closed channel ends without having repeated all that it has committed
            rests = run.closed and run.seq < run.length
            if run.phase is ChannelPhase.CHOOSING and name != collector and not rests:
                self._check_watermark(name, run)

    def _check_watermark(self, name: ChannelName, run: ChannelRun) -> None:
        expected = self._watermarks[name]
        consumed_of = run.inbox.consumed
        if run.drawing is not None and run.seq >= len(self._records[name]):
            expected = dict(expected)
            advance(expected, run.drawing)
        for _, _, upstream in self._inputs[name]:
            consumed = consumed_of(upstream)
            if consumed != expected.get(upstream, 0):
                raise InvariantViolation(
                    3,
                    f"{name} has consumed {consumed} of {upstream}, its records say {expected.get(upstream, 0)}",
                )

    def check_reachable(
        self,
        state: StoreState,
        workers: Mapping[WorkerId, WorkerState],
        only: Container[WorkerId] | None = None,
    ) -> None:
        """Nothing waits for an output that nobody will send (invariant 5); checked only while the gate is open.

        `only`: since the last check, only arrivals at these workers have changed.
        """
        if not state.gate_open:
            return
        rereads = (*state.rereads, *state.claims.values())
        coming = {(edge, seq) for r in rereads for edge in r.edges for seq in range(r.first, r.end)}
        rereading = {r.channel.stage for r in rereads}
        needing = self._needing(state, workers)
        for name, channel in state.channels.items():
            if only is not None and channel.host not in only:
                continue
            needs = name in needing
            if needs or name.stage in rereading:
                self._check_inputs(state, workers, name, channel, coming, needs)

    def _needing(self, state: StoreState, workers: Mapping[WorkerId, WorkerState]) -> set[ChannelName]:
        """The channels at work: not ended, or retracing what another channel at work still lacks."""
        needing: set[ChannelName] = set()
        delivered = state.delivered
        channels = state.channels
        for name, edges in self._consumers_first:
            channel = channels[name]
            if not (channel.final or channel.closed):
                needing.add(name)
                continue
            seen = workers.get(channel.host)
            run = seen.runs.get(name) if seen is not None else None
            if run is None or run.phase is not ChannelPhase.RETRACING:
                continue
            if any(consumer in needing and delivered[edge] < channel.length for edge, consumer in edges):
                needing.add(name)
        return needing

    def _check_inputs(
        self,
        state: StoreState,
        workers: Mapping[WorkerId, WorkerState],
        name: ChannelName,
        channel: ChannelState,
        coming: set[tuple[Edge, int]],
        needs: bool,
    ) -> None:
        seen = workers.get(channel.host)
        if seen is None or (not needs and channel.host not in state.members):
            return  # the detector finds a crashed host, and then everything is decided anew
        run = seen.runs.get(name) if seen.epoch >= self._assigned[name][1] else None
        if run is None and seen.epoch == state.epoch:
            raise InvariantViolation(5, f"{channel.host} knows epoch {state.epoch} but does not run {name}")
        if run is not None and run.phase is ChannelPhase.ENDED and not self._graph.is_reader(name.stage):
            return
        channels, given_up = state.channels, seen.given_up
        lanes = run.inbox.lanes() if run is not None else {}
        for edge, producer, upstream in self._inputs[name]:
            if run is not None and (name, run.since_epoch, edge.link) in given_up:
                continue
            length = channels[producer].length
            if run is None:
                lacks: Sequence[int] = range(length)
            elif length <= lanes[upstream].consumed:
                continue
            else:
                lacks = run.inbox.lacks(upstream, length)
            if lacks:
                first = self._needed_from(name, channel, upstream)
                lacking = [seq for seq in lacks if seq >= first and (edge, seq) not in coming]
                if lacking:
                    self._check_sender(state, workers, edge, producer, lacking, name)

    def _needed_from(self, name: ChannelName, channel: ChannelState, upstream: Upstream) -> int:
        """The first input that a channel needs: what its saved state had consumed is not needed any more."""
        if self._graph.is_reader(name.stage) or not channel.base:
            return 0
        return self._drawn_before(TaskName(*name, channel.base), upstream)

    def _check_sender(
        self,
        state: StoreState,
        workers: Mapping[WorkerId, WorkerState],
        edge: Edge,
        producer: ChannelName,
        lacking: Sequence[int],
        name: ChannelName,
    ) -> None:
        """These outputs will be sent over this edge: its producer's host has them, or will make them again."""
        first = lacking[0]

        def broken(number: int, seq: int, why: str) -> InvariantViolation:
            return InvariantViolation(number, f"{name} lacks {TaskName(*producer, seq)}{why}")

        if first < state.delivered[edge]:
            raise broken(5, first, ", which counts as delivered")
        host = state.channels[producer].host
        if host not in state.members:
            raise broken(5, first, f", and its host {host} is no member")
        seen = workers.get(host)
        if seen is None or seen.epoch != state.epoch:
            return
        if first < seen.outbox.delivered().get(edge, 0):
            raise broken(3, first, f", but {host} takes it as delivered")
        run = seen.runs.get(producer)
        if run is None:
            raise broken(5, first, f", and its host {host} does not run {producer}")
        published = seen.outbox.published(producer)
        for seq in lacking:
            if seq < published:
                if TaskName(*producer, seq) not in seen.backups:
                    raise broken(5, seq, f", and {host} has it published but not backed up")
            elif not run.retracing and seq < run.seq:
                raise broken(5, seq, f", and {host} has passed it without publishing it")


def check_smallest(
    graph: StageGraph, snapshot: Snapshot, plan: RecoveryPlan, left: Recoverable = NOTHING
) -> None:
    """A plan rewinds no more than the loss requires, and each channel no further than it must (invariant 8)."""
    least = SmallestRecovery(graph, snapshot, left)
    reread = set(pieces_of(plan.rereads))
    if (set(plan.hosts), set(plan.rewound), reread) != (least.emptied, least.rewound, least.reread):
        raise InvariantViolation(
            8, f"rewound or moved {sorted(plan.hosts)} where {sorted(least.emptied)} must be"
        )
    for name in sorted(least.rewound):
        base = plan.bases.get(name, snapshot.channels[name].base)
        if base != least.starts[name].seq:
            raise InvariantViolation(
                8, f"{name} goes on from {base} where {least.starts[name].seq} is enough"
            )
