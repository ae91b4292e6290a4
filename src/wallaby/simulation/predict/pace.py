"""A simulated cluster in which things take their time: one waits for kernel threads, network cards and the store.

The generators are the same as everywhere, and so is the control store in memory; what differs from the simulation of
faults is only how long an effect takes. No invariant is checked: that is what the other one is for.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any, Final

from wallaby.lineage import effects as protocol
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.names import WorkerId
from wallaby.simulation.perform import Performer, _Ticket
from wallaby.simulation.process import Actor
from wallaby.simulation.world import World

#: How the generators that deliver are named, before the worker that they deliver to.
DELIVERING: Final = "deliver to "


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a prediction is made for."""

    workers: int
    threads: int
    #: Cores that all workers share; 0: every worker has as many as threads.
    shared_cores: int = 0
    #: Of each worker's network card, and of the durable store for each worker.
    network_bytes_per_second: float = 1.25e9
    store_bytes_per_second: float = 0.2e9
    store_seconds: float = 0.02


@dataclass(slots=True)
class Queues:
    """When the kernel threads, the network card and the store connection of each worker are free again."""

    kernels: dict[WorkerId | None, list[int]] = field(default_factory=dict)
    network: dict[WorkerId, int] = field(default_factory=dict)
    store: dict[WorkerId, int] = field(default_factory=dict)


class PacedWorld(World):
    """A world without checks."""

    cluster: Cluster

    def check(self) -> None:
        """Nothing is checked here."""


class PacedPerformer(Performer):
    """Performs effects in the time that they take on a given cluster."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._queues = Queues()

    @property
    def _cluster(self) -> Cluster:
        assert isinstance(self._world, PacedWorld)
        return self._world.cluster

    def _wait(self, actor: Actor, effect: protocol.Await) -> None:
        """Who delivers and has nothing to deliver is woken by what is published; there are very many of them."""
        target = actor.name.removeprefix(DELIVERING)
        outbox = actor.serving.session.host.outbox if actor.serving is not None else None
        if target != actor.name and outbox is not None and not outbox.due(WorkerId(target), 1):
            actor.parked, actor.patient = True, False
            return
        super()._wait(actor, effect)

    def _execute(self, actor: Actor, effect: protocol.Execute) -> None:
        assert actor.serving is not None
        workload: Any = self._world.running[actor.serving.query.id].workload
        cluster, now_us = self._cluster, self._world.agenda.now_us
        key = None if cluster.shared_cores else actor.process.id
        kernels = self._queues.kernels.setdefault(key, [0] * (cluster.shared_cores or cluster.threads))
        ends_us = max(now_us, heapq.heappop(kernels)) + int(workload.seconds(effect) * 1e6)
        heapq.heappush(kernels, ends_us)
        if effect.point is protocol.FailPoint.RETRACE:
            self._world.tally.retraced += 1
        self._world.agenda.after(ends_us - now_us, self._world.answer, actor, effect, workload.step(effect))

    def _back_up(self, actor: Actor, effect: protocol.BackUp) -> None:
        assert actor.serving is not None
        serving = actor.serving
        serving.backups[effect.task] = (effect.output, effect.final)
        delay_us = 100
        if serving.query.tolerance.durable and effect.point is protocol.FailPoint.BACK_UP:
            running = self._world.running[serving.query.id]
            running.spooled[effect.task, effect.output.checksum, effect.final] = effect.output
            size = sum(size for size, _ in effect.output.slices.values())
            delay_us = self._stored_us(actor, size)
        self._world.agenda.after(delay_us, self._world.answer, actor, effect, True)

    def _stored_us(self, actor: Actor, size_bytes: int) -> int:
        cluster, now_us = self._cluster, self._world.agenda.now_us
        begins_us = max(now_us, self._queues.store.get(actor.process.id, 0))
        ends_us = begins_us + int(size_bytes / cluster.store_bytes_per_second * 1e6)
        self._queues.store[actor.process.id] = ends_us
        return ends_us - now_us + int(cluster.store_seconds * 1e6)

    def _push(self, actor: Actor, effect: protocol.Push) -> None:
        assert actor.serving is not None
        world, serving = self._world, actor.serving
        pieces: list[Slice] = []
        for edge, task in effect.items:
            found = self._found(serving, task)
            if found is None:
                world.agenda.after(1_000, world.answer, actor, effect, PushReply(accepted=False))
                return
            output, final = found
            pieces.append(Slice(task, edge, final, output.slices[edge][0]))
        ticket = _Ticket(world, actor, effect)
        delay_us = 20
        if effect.target != actor.process.id:
            world.agenda.after(60_000_000, ticket.settle, None)
            begins_us = max(world.agenda.now_us, self._queues.network.get(actor.process.id, 0))
            size = sum(piece.size_bytes for piece in pieces)
            ends_us = begins_us + int(size / self._cluster.network_bytes_per_second * 1e6)
            self._queues.network[actor.process.id] = ends_us
            delay_us = ends_us - world.agenda.now_us + 300
        world.agenda.after(delay_us, self._arrive, ticket, serving.query.id, tuple(pieces), True)
