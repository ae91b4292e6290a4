"""A simulated cluster with realistic durations: tasks wait for kernel threads, network cards and the store.

The generators are the same as everywhere, and so is the control store in memory; only the durations of effects differ
from the simulation of faults. No invariant is checked here.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Final, NamedTuple

from wallaby.gcs.interface import Commit
from wallaby.gcs.memory import MemoryGcs
from wallaby.lineage import effects as protocol
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby.node.actors import ActorKind
from wallaby.node.perform import priority
from wallaby_lab.simulation.world.committing import GroupTicket
from wallaby_lab.simulation.world.perform import PING_TIMEOUT_US, SimulatedPerformer
from wallaby_lab.simulation.world.process import Process, SimulatedActor
from wallaby_lab.simulation.world.ticket import Ticket
from wallaby_lab.simulation.world.world import World

#: The prefix of the names of delivering generators, before the worker that they deliver to.
ROUND_TRIP_US: Final = 300
#: The time of each further commit in a call to the control store, as a share of the call.
MORE_COMMITS: Final = 0.25


@dataclass(frozen=True, slots=True)
class PredictedCluster:
    """The cluster of a prediction."""

    workers: int
    threads: int
    #: Cores that all workers share; 0: every worker has one for each thread.
    shared_cores: int = 0
    #: The speeds of each worker's network card, and of the durable store for each worker.
    network_bytes_per_second: float = 1.25e9
    store_bytes_per_second: float = 0.2e9
    store_seconds: float = 0.02
    #: The one control store: how many calls it answers per second, and the round-trip time of a call.
    gcs_calls_per_second: float = 20_000
    gcs_seconds: float = 0.0005
    #: The time until a lost worker is noticed: a lease, unless it is noticed earlier.
    detection_seconds: float = 1.25
    #: Channels of a stage per worker; 0: one for each of its threads. With fewer, its threads share each task.
    channels: int = 0
    #: With checkpoints: the minimum time between two checkpoints of a channel's state.
    checkpoint_seconds: float = 2.0

    @property
    def slots(self) -> int:
        """The number of tasks that a worker executes at a time, and of its channels per stage."""
        return self.channels or self.threads

    @property
    def speed(self) -> float:
        """The number of threads per task."""
        return self.threads / self.slots


class Job(NamedTuple):
    """A task that waits for a kernel thread, or has one; the first in order runs next."""

    urgency: tuple[int, ...]
    number: int
    actor: SimulatedActor
    effect: protocol.Execute
    takes_us: int


@dataclass(slots=True)
class Kernels:
    """The kernel threads of a worker, or of all of them."""

    free: int
    waiting: list[Job] = field(default_factory=list)


@dataclass(slots=True)
class Commits:
    """The commits that a worker is about to send."""

    under_way: bool = False
    waiting: list[tuple[SimulatedActor, protocol.CommitTask]] = field(default_factory=list)


@dataclass(slots=True)
class CheckpointPace:
    """For a channel at a worker: when the next checkpoint is due, and what of its state has been written."""

    due_us: int
    written_bytes: int = 0


@dataclass(slots=True)
class Queues:
    """When the network card and the store connection of each worker, and the control store, become free."""

    sending: dict[WorkerId, int] = field(default_factory=dict)
    receiving: dict[WorkerId, int] = field(default_factory=dict)
    store: dict[WorkerId, int] = field(default_factory=dict)
    gcs: float = 0.0


class PacedWorld(World):
    """A world without checks, in which a lost worker is noticed after a given time and is not replaced."""

    cluster: PredictedCluster

    def after_crash(self, process: Process) -> None:
        """Delay the hint of a crash, because a worker that is asked has some time to answer."""
        noticed_us = int(self.cluster.detection_seconds * 1e6) - PING_TIMEOUT_US
        self.agenda.after(max(0, noticed_us), self.hint, process.id)

    def check(self) -> None:
        """Nothing is checked here."""


class _PartTicket(Ticket[protocol.Push]):
    """A push of which only the accepted slices are sent."""

    def __init__(
        self, world: World, actor: SimulatedActor, effect: protocol.Push, wanted: tuple[bool, ...]
    ) -> None:
        super().__init__(world, actor, effect)
        self._wanted = wanted

    def settle(self, value: PushReply | None) -> None:
        """Extend the answer for the sent slices to all slices."""
        super().settle(value.of_all(self._wanted) if value is not None else None)


class PacedPerformer(SimulatedPerformer):
    """Performs effects with the durations of a given cluster."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._methods |= {
            protocol.BackUp: self._back_up,
            protocol.SaveState: self._save_state,
            protocol.RestoreState: self._restore_state,
        }
        self._queues = Queues()
        self._kernels: dict[WorkerId | None, Kernels] = {}
        self._commits: dict[tuple[WorkerId, int], Commits] = {}
        self._checkpoints: dict[tuple[WorkerId, ChannelName], CheckpointPace] = {}
        self._asked = 0

    @property
    def _cluster(self) -> PredictedCluster:
        assert isinstance(self._world, PacedWorld)
        return self._world.cluster

    def _wait(self, actor: SimulatedActor, effect: protocol.Await) -> None:
        """Wait; idle deliveries are woken only by publications, because there are very many of them."""
        outbox = actor.worker_query.session.context.outbox if actor.worker_query is not None else None
        delivers = actor.name.kind is ActorKind.DELIVERY
        if delivers and outbox is not None and not outbox.due(WorkerId(str(actor.name.of)), 1):
            actor.park(patient=False)
            return
        super()._wait(actor, effect)

    def _execute(self, actor: SimulatedActor, effect: protocol.Execute) -> None:
        assert actor.worker_query is not None
        workload: Any = self._world.running[actor.worker_query.query.id].workload
        cluster = self._cluster
        key = None if cluster.shared_cores else actor.process.id
        if key not in self._kernels:
            self._kernels[key] = Kernels(cluster.shared_cores or cluster.slots)
        self._asked += 1
        job = Job(
            priority(effect), self._asked, actor, effect, int(workload.seconds(effect) / cluster.speed * 1e6)
        )
        heapq.heappush(self._kernels[key].waiting, job)
        self._begin(self._kernels[key])

    def _begin(self, kernels: Kernels) -> None:
        """Give free threads work, the most urgent first, as a worker's own pool does."""
        while kernels.free and kernels.waiting:
            job = heapq.heappop(kernels.waiting)
            if job.actor.alive:
                kernels.free -= 1
                self._world.agenda.after(job.takes_us, self._end, kernels, job)

    def _end(self, kernels: Kernels, job: Job) -> None:
        kernels.free += 1
        if job.actor.worker_query is not None and job.actor.alive:
            if job.effect.point is protocol.FailPoint.RETRACE:
                self._world.tally.retraced += 1
            workload: Any = self._world.running[job.actor.worker_query.query.id].workload
            self._world.answer(job.actor, job.effect, workload.step(job.effect))
        self._begin(kernels)

    def _back_up(self, actor: SimulatedActor, effect: protocol.BackUp) -> None:
        assert actor.worker_query is not None
        worker_query = actor.worker_query
        worker_query.backups[effect.task] = (effect.output, effect.final, effect.since_epoch)
        delay_us = 100
        if worker_query.query.tolerance.durable and effect.point is protocol.FailPoint.BACK_UP:
            running = self._world.running[worker_query.query.id]
            running.spooled[effect.task, effect.output.checksum, effect.final] = effect.output
            size = sum(size for size, _ in effect.output.slices.values())
            delay_us = self._stored_us(actor, size)
        self._world.agenda.after(delay_us, self._world.answer, actor, effect, True)

    def _save_state(self, actor: SimulatedActor, effect: protocol.SaveState) -> None:
        """Save a state as `Checkpoints` does: periodically, and only what an earlier one has not written."""
        assert actor.worker_query is not None
        now_us, every_us = self._world.agenda.now_us, int(self._cluster.checkpoint_seconds * 1e6)
        key = actor.process.id, effect.task.of
        pace = self._checkpoints.setdefault(key, CheckpointPace(now_us + every_us))
        if now_us < pace.due_us:
            self._world.agenda.after(0, self._world.answer, actor, effect, False)
            return
        size = effect.state.size_bytes
        takes_us = self._stored_us(actor, max(0, size - pace.written_bytes))
        self._checkpoints[key] = CheckpointPace(now_us + takes_us + every_us, size)
        self._world.running[actor.worker_query.query.id].saved[effect.task, effect.key] = (
            protocol.RestoredState(effect.state, dict(effect.totals))
        )
        self._world.agenda.after(takes_us, self._world.answer, actor, effect, True)

    def _restore_state(self, actor: SimulatedActor, effect: protocol.RestoreState) -> None:
        assert actor.worker_query is not None
        saved = self._world.running[actor.worker_query.query.id].saved[effect.task, effect.key]
        takes_us = self._stored_us(actor, saved.state.size_bytes)
        self._world.agenda.after(takes_us, self._world.answer, actor, effect, saved)

    def _stored_us(self, actor: SimulatedActor, size_bytes: int) -> int:
        cluster, now_us = self._cluster, self._world.agenda.now_us
        begins_us = max(now_us, self._queues.store.get(actor.process.id, 0))
        ends_us = begins_us + int(size_bytes / cluster.store_bytes_per_second * 1e6)
        self._queues.store[actor.process.id] = ends_us
        return ends_us - now_us + int(cluster.store_seconds * 1e6)

    def _push(self, actor: SimulatedActor, effect: protocol.Push) -> None:
        assert actor.worker_query is not None
        world, worker_query = self._world, actor.worker_query
        pieces: list[Slice] = []
        for edge, task in effect.items:
            found = self._found(worker_query, task)
            if found is None:
                world.agenda.after(1_000, world.answer, actor, effect, PushReply(accepted=False))
                return
            output, final = found
            pieces.append(Slice(task, edge, final, output.slices[edge][0]))
        if effect.target == actor.process.id:
            ticket = Ticket(world, actor, effect)
            world.agenda.after(20, self._arrive, ticket, worker_query.query.id, tuple(pieces), True)
        else:
            self._send(actor, effect, tuple(pieces), worker_query.query.id)

    def _send(
        self, actor: SimulatedActor, effect: protocol.Push, pieces: tuple[Slice, ...], query: QueryId
    ) -> None:
        """Ask the other side what it has room for, and send that through both network cards."""
        world = self._world
        target = world.processes[effect.target].worker_queries.get(query)
        wanted = (True,) * len(pieces)
        if target is not None:
            reply = target.session.preview(effect.epoch, effect.target, pieces)
            if not (reply.accepted and any(reply.held)):
                world.agenda.after(ROUND_TRIP_US, world.answer, actor, effect, reply)
                return
            wanted = reply.held
        sent = tuple(compress(pieces, wanted))
        ticket = _PartTicket(world, actor, effect, wanted)
        world.agenda.after(60_000_000, ticket.settle, None)
        size = sum(piece.size_bytes for piece in sent)
        delay_us = self._carried_us(actor.process.id, effect.target, size) + ROUND_TRIP_US
        world.agenda.after(delay_us, self._arrive, ticket, query, sent, True)

    def _carried_us(self, sender: WorkerId, receiver: WorkerId, size_bytes: int) -> int:
        """The time until bytes have left one card and reached the other, including queues."""
        now_us, takes_us = (
            self._world.agenda.now_us,
            size_bytes / self._cluster.network_bytes_per_second * 1e6,
        )
        leaves_us = max(now_us, self._queues.sending.get(sender, 0))
        self._queues.sending[sender] = int(leaves_us + takes_us)
        enters_us = max(leaves_us, self._queues.receiving.get(receiver, 0))
        self._queues.receiving[receiver] = int(enters_us + takes_us)
        return int(enters_us + takes_us) - now_us

    def _call(
        self,
        actor: SimulatedActor,
        effect: Any,
        action: Callable[[MemoryGcs], Any],
        ticket: Ticket[Any] | GroupTicket | None = None,
    ) -> None:
        """Call the control store, which answers one call after the other."""
        ticket, reached_us = ticket or Ticket(self._world, actor, effect), self._gcs_reached_us(1)
        replies_us = reached_us + self._gcs_way_us
        self._world.agenda.after(
            reached_us - self._world.agenda.now_us, self._reach_store, ticket, action, replies_us
        )

    @property
    def _gcs_way_us(self) -> int:
        return int(self._cluster.gcs_seconds / 2 * 1e6)

    def _gcs_reached_us(self, calls: float) -> int:
        """When the control store has finished work of this many calls."""
        takes_us = calls * 1e6 / self._cluster.gcs_calls_per_second
        self._queues.gcs = max(self._world.agenda.now_us + self._gcs_way_us, self._queues.gcs) + takes_us
        return int(self._queues.gcs)

    def _commit(self, actor: SimulatedActor, effect: protocol.CommitTask) -> None:
        """Commit; a worker has one commit call under way at a time, and later commits share the next."""
        commits = self._commits.setdefault((actor.process.id, effect.epoch), Commits())
        commits.waiting.append((actor, effect))
        if not commits.under_way:
            self._send_commits(commits)

    def _send_commits(self, commits: Commits) -> None:
        sent, commits.waiting = commits.waiting, []
        commits.under_way = bool(sent)
        if sent:
            reached_us = self._gcs_reached_us(1 + MORE_COMMITS * (len(sent) - 1))
            self._world.agenda.after(
                reached_us - self._world.agenda.now_us, self._reach_with_commits, commits, sent
            )

    def _reach_with_commits(
        self, commits: Commits, sent: Sequence[tuple[SimulatedActor, protocol.CommitTask]]
    ) -> None:
        actor, first = sent[0]
        if actor.worker_query is None or not actor.process.alive:
            return
        requests = tuple(
            Commit(each.task, each.record, each.final, each.delivered, each.since_epoch, each.next_split)
            for _, each in sent
        )
        query = actor.worker_query.query.id
        replies = actor.process.gcs.commit(query, actor.process.id, first.epoch, requests)
        for (one, effect), reply in zip(sent, replies, strict=True):
            self._world.agenda.after(self._gcs_way_us, self._world.answer, one, effect, reply)
        self._world.agenda.after(self._gcs_way_us, self._send_commits, commits)
