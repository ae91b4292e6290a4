"""The head node: coordinator and collectors on one control loop, in the driver's process.

It is a node like a worker's, without kernels: the collector is the last stage's one channel, and what reaches
it goes straight to the client. The coordinator is one more actor, whose effects are taught to the node's
performer here.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from typing import Any

from wallaby.coordinator import effects as coordinating
from wallaby.coordinator.coordinator import Coordinator, CoordinatorSettings, Query
from wallaby.gcs.interface import Gcs, WorkerLease
from wallaby.head.collected import Collected

from wallaby.lineage.effects import Slice
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.plan.physical import PhysicalPlan
from wallaby.worker.directory import Directory
from wallaby.worker.node import Actor, Node, Serving
from wallaby.worker.payload import QueryPayload
from wallaby.worker.perform import Backups, NodeSettings, Peers, Performer
from wallaby.worker.session import Session

_log = logging.getLogger(__name__)
#: How long a worker that is asked whether it lives has to answer.
PING_SECONDS = 0.5


class Head:
    """The driver's side of one engine."""

    def __init__(
        self, gcs: Gcs, backups: Backups, peers: Peers, ping: Callable[[str, float], object], settings: CoordinatorSettings
    ) -> None:
        self._gcs = gcs
        self._ping_address = ping
        self._directory = Directory(gcs)
        self._queries: dict[QueryId, Query] = {}
        self._collected: dict[QueryId, Collected] = {}
        self._payloads: dict[QueryId, QueryPayload] = {}
        self._coordinator = Coordinator(settings, self._queries, lambda: int(time.monotonic() * 1000))
        self.node = Node(HEAD, self._node_ended)
        self._performer = Performer(
            self.node,
            gcs,
            backups,
            peers,
            self._directory.address_of,
            lambda _query: None,
            self._collect,
            NodeSettings(kernel_threads=0, lease_ms=settings.lease_ms),
        )
        self._teach()

    def start(self) -> None:
        """Begin to coordinate."""
        self.node.start(self._performer, {"coordinator": self._coordinator.run()})

    def stop(self, wait_seconds: float) -> None:
        """End, and with it every query that still runs."""
        self.node.stop()
        self._performer.stop(wait_seconds)
        for collected in self._collected.values():
            collected.end(None)

    # --- queries -------------------------------------------------------------------------------------

    def submit(self, plan: PhysicalPlan, payload: QueryPayload) -> Collected:
        """Start a query on the workers that are there now."""
        query = Query(QueryId(f"q-{uuid.uuid4().hex[:12]}"), plan.graph)
        members = [lease.worker for lease in self.workers() if lease.remaining_ms > 0 and not lease.draining]
        hosts = place(plan, members)
        collected = Collected(query.id, plan.graph, lambda: self._cancel(query))
        self._collected[query.id] = collected
        self._payloads[query.id] = payload
        self._gcs.submit(query.id, plan.graph, hosts, payload.encode())
        self.node.loop.post(self._begin, query)
        self._nudge(set(hosts.values()))
        return collected

    def _begin(self, query: Query) -> None:
        self._queries[query.id] = query
        settings = self._payloads[query.id].session_settings()
        session = Session(HEAD, query.graph, settings, lambda: self._whole_result_is_there(query))
        self.node.begin_serving(Serving(query.id, session))

    def _cancel(self, query: Query) -> None:
        query.cancelled = True
        self.node.loop.post(self.node.wake_named, "coordinator")

    def workers(self) -> tuple[WorkerLease, ...]:
        """The workers as the store sees them."""
        return self._gcs.workers()

    def hint(self, worker: WorkerId) -> None:
        """Spark says that a worker is gone."""
        self.node.loop.post(self._hint, worker)

    def _hint(self, worker: WorkerId) -> None:
        self._coordinator.detector.hint(worker)
        self.node.wake_named("coordinator")

    def _collect(self, query: QueryId, slices: tuple[Slice, ...]) -> None:
        self._collected[query].add(slices)

    def _whole_result_is_there(self, query: Query) -> None:
        query.collected = True
        self._collected[query.id].end(None)
        self.node.loop.post(self.node.wake_named, "coordinator")

    def _sweep_ended(self) -> None:
        """Tell the clients of queries that have ended; forget them here."""
        for query in [query for query in self._queries.values() if query.ended]:
            del self._queries[query.id]
            self._payloads.pop(query.id, None)
            self._collected.pop(query.id).end(query.error)
            self._nudge(set(self._directory.known()))

    def _node_ended(self, error: BaseException | None) -> None:
        if error is not None:
            _log.error("the coordinator failed: %s", error)
        for query_id in list(self._collected):
            self._collected.pop(query_id).end(error)

    def _nudge(self, workers: set[WorkerId]) -> None:
        """Let workers look at the store now. Only a hint: they would look by themselves a little later."""
        for worker in sorted(workers - {HEAD}):
            self._performer.calls.submit(lambda worker=worker: self._ping(worker))  # type: ignore[misc]

    def _ping(self, worker: WorkerId) -> bool:
        address = self._directory.address_of(worker)
        return address is not None and self._ping_address(address, PING_SECONDS) is not None

    # --- the coordinator's effects -------------------------------------------------------------------

    def _teach(self) -> None:
        call, teach = self._performer.call, self._performer.teach

        def asks(action: Callable[[Gcs, Any], Any]) -> Callable[[Actor, Any], None]:
            def carry_out(actor: Actor, effect: Any) -> None:
                self._sweep_ended()
                call(actor, lambda gcs: action(gcs, effect))

            return carry_out

        def expel(gcs: Gcs, effect: coordinating.Expel) -> bool:
            gcs.expel(effect.worker)
            return True

        def remove(gcs: Gcs, effect: coordinating.Remove) -> bool:
            gcs.remove(effect.query)
            return True

        def resume(gcs: Gcs, effect: coordinating.Resume) -> Any:
            verdict = gcs.resume(effect.query, effect.plan, effect.version)
            self._nudge(set(self._directory.known()))
            self.node.loop.post(self.node.wake_sessions)
            return verdict

        teach(coordinating.Watch, asks(lambda gcs, _: gcs.workers()))
        teach(coordinating.Expel, asks(expel))
        teach(coordinating.ReadStatus, asks(lambda gcs, effect: gcs.status(effect.query)))
        teach(coordinating.Join, asks(lambda gcs, effect: gcs.join(effect.query, effect.worker)))
        teach(
            coordinating.Freeze,
            asks(lambda gcs, effect: gcs.freeze(effect.query, effect.lost, effect.draining)),
        )
        teach(coordinating.TakeSnapshot, asks(lambda gcs, effect: (gcs.snapshot(effect.query),)))
        teach(coordinating.Resume, asks(resume))
        teach(coordinating.Remove, asks(remove))
        teach(coordinating.Ping, self._ask)

    def _ask(self, actor: Actor, effect: coordinating.Ping) -> None:
        self._performer.calls.submit(lambda: self.node.answer(actor, self._ping(effect.worker)))


def place(plan: PhysicalPlan, members: list[WorkerId]) -> dict[ChannelName, WorkerId]:
    """The channels of each stage in turn over the workers; the collector on the head."""
    hosts = {name: members[name.channel % len(members)] for name in plan.graph.channels}
    return {**hosts, plan.graph.collector: HEAD}


