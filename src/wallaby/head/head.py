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
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rich.console import Console

from wallaby.coordinator import effects as coordinating
from wallaby.coordinator.coordinator import Coordinator, CoordinatorSettings, Query
from wallaby.errors import (
    NoWorkersError,
    QueryCancelledError,
    QueryError,
    QueryTimeoutError,
    WallabyError,
    WorkerLostError,
)
from wallaby.gcs.interface import Gcs, WorkerLease
from wallaby.head.collected import Collected
from wallaby.head.observer import Observer
from wallaby.lineage.effects import Slice
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby.observe.progress import ProgressBoard, is_wanted
from wallaby.plan.physical import PhysicalPlan
from wallaby.worker.directory import Directory
from wallaby.worker.node import Actor, Node, Performs, Serving
from wallaby.worker.orders import OrderBook
from wallaby.worker.payload import QueryPayload
from wallaby.worker.perform import Backups, NodeSettings, Performer
from wallaby.worker.pushing import Peers
from wallaby.worker.session import Session
from wallaby.worker.striking import WORKERS_FAILURES, Failures, StrikingPerformer, no_answer, refusal

_log = logging.getLogger(__name__)
#: How long a worker that is asked whether it lives has to answer. With the lease and the coordinator's poll, it is how
#: soon a silent one is found: 1.75 s at most by default, and two seconds are promised.
PING_SECONDS = 0.4
WAIT_FOR_WORKER_SECONDS = 0.02
#: How the coordinator's effects fail, where faults are ordered.
COORDINATORS_FAILURES: Failures = {
    coordinating.Watch: no_answer,
    coordinating.Expel: no_answer,
    coordinating.ReadStatus: no_answer,
    coordinating.Join: no_answer,
    coordinating.Freeze: no_answer,
    coordinating.TakeSnapshot: no_answer,
    coordinating.Resume: no_answer,
    coordinating.Remove: no_answer,
    coordinating.Ping: refusal,
}


@dataclass(slots=True)
class Submission:
    """What a client has asked for, and the query that runs for it now."""

    plan: PhysicalPlan
    payload: QueryPayload
    timeout_seconds: float
    query: Query
    #: Is it run again if it ends with the loss of a worker?
    begins_again: bool = False
    began_seconds: float = field(default_factory=time.monotonic)


class Head:
    """The driver's side of one engine."""

    def __init__(
        self,
        gcs: Gcs,
        backups: Backups,
        peers: Peers,
        ping: Callable[[str, float], object],
        settings: CoordinatorSettings,
        observer: Observer | None = None,
        shows_progress: bool = False,
        orders: OrderBook | None = None,
        forget: Callable[[QueryId], None] = lambda _query: None,
    ) -> None:
        self._gcs = gcs
        self._settings = settings
        self._orders = orders
        #: Called once for every query that has ended, on a thread that may wait.
        self._forget = forget
        self.observer = observer or Observer()
        console = Console(stderr=True)
        self._board = ProgressBoard(gcs, console) if shows_progress and is_wanted(console) else None
        self._ping_address = ping
        self._directory = Directory(gcs)
        #: The workers whose leases were good when the coordinator looked last.
        self._present: set[WorkerId] = set()
        self._queries: dict[QueryId, Query] = {}
        self._collected: dict[QueryId, Collected] = {}
        self._submissions: dict[QueryId, Submission] = {}
        #: What ended the loop of this node, if something did.
        self._failure: BaseException | None = None
        self._no_workers_seconds = settings.no_workers_ms / 1000
        self._coordinator = self._new_coordinator()
        self.node = Node(HEAD, self._node_ended)
        self.node.take_events = self.observer.take
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
        self.node.start(self._armed(), {"coordinator": self._coordinator.run()})

    def _new_coordinator(self) -> Coordinator:
        return Coordinator(self._settings, self._queries, lambda: int(time.monotonic() * 1000))

    def restart_coordinator(self) -> None:
        """Forget the coordinator, wherever it is, and begin with a new one. On the loop's thread.

        It knows what the store and the queries say, and nothing else; see invariant 9.
        """
        self._coordinator = self._new_coordinator()
        self.node.spawn(None, "coordinator", self._coordinator.run())

    def _armed(self) -> Performs:
        """What carries effects out; with chaos, unless a fault strikes first."""
        if self._orders is None:
            return self._performer
        failures = {**WORKERS_FAILURES, **COORDINATORS_FAILURES}
        return StrikingPerformer(self._performer, self.node, self._orders, failures, self.restart_coordinator)

    def stop(self, wait_seconds: float) -> None:
        """End, and with it every query that still runs."""
        self.node.stop()
        self._performer.stop(wait_seconds)
        self._end_all(QueryCancelledError("The engine was closed while the query ran.", fix="Attach again."))
        self.observer.close()

    # --- queries -------------------------------------------------------------------------------------

    def submit(
        self,
        plan: PhysicalPlan,
        payload: QueryPayload,
        timeout_seconds: float = 0.0,
        *,
        held_back: bool = False,
        begins_again: bool = False,
    ) -> Collected:
        """Start a query on the workers that are there now; 0 is no time limit.

        If its rows are held back, none of them is given away before all are there. So it is with a query that begins
        again if it ends with the loss of a worker.

        Raises:
            QueryError: the head has failed, and can run no more queries.
        """
        self._require_alive()
        hosts = place(plan, self._members())
        submission = Submission(plan, payload, timeout_seconds, _new_query(plan, payload), begins_again)
        collected = Collected(
            submission.query.id,
            plan.graph,
            lambda: self._cancel(submission),
            held_back=held_back or begins_again,
        )
        self._run(submission, collected, hosts)
        return collected

    def _run(self, submission: Submission, collected: Collected, hosts: dict[ChannelName, WorkerId]) -> None:
        query, plan, payload = submission.query, submission.plan, submission.payload
        self._gcs.submit(query.id, plan.graph, hosts, payload.encode())
        if self._board is not None:
            collected.on_wait = partial(self._board.follow, query.id, plan.graph)
        collected.observation = self.observer.begin(query.id, plan, hosts, detailed=payload.observed)
        self._collected[query.id] = collected
        self._submissions[query.id] = submission
        self._require_alive()  # or it has ended all queries just before this one came
        self.node.loop.post(self._begin, submission)
        self._nudge(set(hosts.values()))

    def _run_again(self, submission: Submission, collected: Collected) -> None:
        """A query of which nothing was written down has lost a worker: from the start, under another name."""
        try:
            hosts = place(submission.plan, self._members())
            cancelled = submission.query.cancelled
            submission.query = _new_query(submission.plan, submission.payload)
            submission.query.cancelled |= cancelled
            collected.begin_again(submission.query.id)
            self._run(submission, collected, hosts)
            if self.node.loop.is_stopped:  # nobody is there any more who would end it
                raise QueryCancelledError("The engine was closed while the query ran.", fix="Attach again.")
        except WallabyError as error:
            collected.end(error)
            collected.removed.set()

    def _require_alive(self) -> None:
        if self._failure is not None:
            raise QueryError(
                f"The engine has failed: {self._failure}.", fix="Close it and attach again."
            ) from self._failure

    def _members(self) -> list[WorkerId]:
        """The workers that can be given work; after a loss of all of them, those that come next."""
        deadline = time.monotonic() + self._no_workers_seconds
        while True:
            leases = self.workers()
            self.observer.met(leases)
            members = [lease.worker for lease in leases if lease.remaining_ms > 0 and not lease.draining]
            if members:
                return members
            if time.monotonic() > deadline or self.node.loop.is_stopped:
                raise NoWorkersError(
                    "There is no TaskManager to run the query.",
                    fix="Look at the executors' logs, or raise spark.wallaby.noWorkersTimeout.",
                )
            time.sleep(WAIT_FOR_WORKER_SECONDS)

    def _begin(self, submission: Submission) -> None:
        query, timeout_seconds = submission.query, submission.timeout_seconds
        self._queries[query.id] = query
        if timeout_seconds:
            left_seconds = max(submission.began_seconds + timeout_seconds - time.monotonic(), 0)
            self.node.loop.after(left_seconds, self._expire, query, timeout_seconds)
        settings = submission.payload.session_settings()
        session = Session(HEAD, query.graph, settings, lambda: self._whole_result_is_there(query))
        self.node.begin_serving(Serving(query.id, session))

    def _cancel(self, submission: Submission) -> None:
        query = submission.query
        query.cancelled = not query.collected  # what is there as a whole is done, whoever has had enough
        self.node.loop.post(self.node.wake_named, "coordinator")

    def _expire(self, query: Query, timeout_seconds: float) -> None:
        """Its time is over: end it, unless it has ended."""
        if not (query.collected or query.ending or query.cancelled):
            query.cancelled_because = QueryTimeoutError(
                f"Query {query.id} took longer than {timeout_seconds:g} s and was ended.",
                fix="Raise spark.wallaby.timeout, or set it to 0 for no limit.",
                query=query.id,
                timeout_seconds=timeout_seconds,
            )
            query.cancelled = True
            self.node.wake_named("coordinator")

    def workers(self) -> tuple[WorkerLease, ...]:
        """The workers as the store sees them."""
        return self._gcs.workers()

    def drain(self, worker: WorkerId, timeout_seconds: float) -> bool:
        """Let a worker leave: ask for it, wait until no query needs anything of it, and dismiss it."""
        self._gcs.ask_to_drain(worker)
        self.node.loop.post(self.node.wake_named, "coordinator")
        deadline = time.monotonic() + timeout_seconds
        while self._is_needed(worker):
            if time.monotonic() > deadline or self.node.loop.is_stopped:
                return False
            time.sleep(WAIT_FOR_WORKER_SECONDS)
        self._gcs.expel(worker)
        self._nudge({worker})
        return True

    def _is_needed(self, worker: WorkerId) -> bool:
        found = [self._gcs.status(query) for query in self._gcs.queries()]
        return any(worker in (*status.members, *status.draining) for status in found)

    def hint(self, worker: WorkerId) -> None:
        """Spark says that a worker is gone."""
        self.node.loop.post(self._hint, worker)

    def _hint(self, worker: WorkerId) -> None:
        self._coordinator.detector.hint(worker)
        self.node.wake_named("coordinator")

    def _collect(self, query: QueryId, slices: tuple[Slice, ...], go_on: Callable[[], None]) -> None:
        collected = self._collected.get(query)
        if collected is None:
            go_on()  # the query has ended while its rows were on their way: nobody wants them
        else:
            collected.add(slices, go_on)

    def _whole_result_is_there(self, query: Query) -> None:
        query.collected = True
        self.observer.has_whole_result(query.id)
        collected = self._collected.get(query.id)
        if collected is not None:
            collected.end(None)
        self.node.loop.post(self.node.wake_named, "coordinator")

    def _sweep_ended(self) -> None:
        """Tell the clients of queries that have ended; forget them here."""
        for query in [query for query in self._queries.values() if query.ended]:
            del self._queries[query.id]
            submission = self._submissions.pop(query.id)
            collected = self._collected.pop(query.id)
            self.observer.ended(query.id, query.error)
            self._performer.calls.submit(partial(self._forget, query.id))
            self._nudge(self._present)
            if self._begins_again(submission, query.error, collected):
                self._performer.calls.submit(partial(self._run_again, submission, collected))
                continue
            collected.end(query.error)
            collected.removed.set()

    def _begins_again(self, submission: Submission, error: WallabyError | None, collected: Collected) -> bool:
        """Is a query that has ended to be run again? Not for ever: it may be the query that kills its workers."""
        if not (submission.begins_again and isinstance(error, WorkerLostError)):
            return False
        again = collected.figures.restarts + 1 < self._settings.task_worker_losses_max
        return again and not submission.query.cancelled

    def _node_ended(self, error: BaseException | None) -> None:
        if error is not None:
            self._failure = error
            _log.error("the coordinator failed: %s", error)
        self._end_all(error)

    def _end_all(self, error: BaseException | None) -> None:
        """Whatever is still open ends with an error: half a result must never look like a whole one."""
        for query_id in list(self._collected):
            query = self._queries.get(query_id)
            known = query.error if query is not None else None
            why = error or known or QueryError("The engine ended while the query ran.")
            whole = query is not None and query.collected
            collected = self._collected.pop(query_id)
            collected.end(None if whole else why)
            self.observer.ended(query_id, None if whole else why)
            collected.removed.set()

    def _nudge(self, workers: set[WorkerId]) -> None:
        """Let workers look at the store now. Only a hint: they would look by themselves a little later."""
        for worker in sorted(workers - {HEAD}):
            self._performer.calls.submit(lambda worker=worker: self._ping(worker))  # type: ignore[misc, arg-type]

    def _ping(self, worker: WorkerId) -> bool:
        address = self._directory.address_of(worker)
        return address is not None and self._ping_address(address, PING_SECONDS) is not None

    # --- the coordinator's effects -------------------------------------------------------------------

    def _teach(self) -> None:
        call, teach = self._performer.call, self._performer.teach

        def asks(action: Callable[[Gcs, Any], Any]) -> Callable[[Actor, Any], None]:
            def carry_out(actor: Actor, effect: Any) -> None:
                self._sweep_ended()
                call(actor, lambda gcs: self.observer.noticed(effect, action(gcs, effect)))

            return carry_out

        def expel(gcs: Gcs, effect: coordinating.Expel) -> bool:
            gcs.expel(effect.worker)
            return True

        def remove(gcs: Gcs, effect: coordinating.Remove) -> bool:
            self._measure(gcs, effect.query)
            gcs.remove(effect.query)
            return True

        def resume(gcs: Gcs, effect: coordinating.Resume) -> Any:
            verdict = gcs.resume(effect.query, effect.plan, effect.version)
            collected = self._collected.get(effect.query)
            if collected is not None and verdict is Verdict.DONE:
                collected.figures.recoveries += 1
            self._nudge(self._present)
            self.node.loop.post(self.node.wake_sessions)
            return verdict

        def snapshot(gcs: Gcs, effect: coordinating.TakeSnapshot) -> Any:
            # The gate is closed: no record is committed between the two.
            found = gcs.snapshot(effect.query)
            return found, gcs.history(effect.query) if effect.with_records else {}

        def watch(gcs: Gcs, _: coordinating.Watch) -> tuple[WorkerLease, ...]:
            leases = gcs.workers()
            self._present = {lease.worker for lease in leases if lease.remaining_ms > 0}
            return leases

        teach(coordinating.Watch, asks(watch))
        teach(coordinating.Expel, asks(expel))
        teach(coordinating.ReadStatus, asks(lambda gcs, effect: gcs.status(effect.query)))
        teach(coordinating.Join, asks(lambda gcs, effect: gcs.join(effect.query, effect.worker)))
        teach(
            coordinating.Freeze,
            asks(lambda gcs, effect: gcs.freeze(effect.query, effect.lost, effect.draining)),
        )
        teach(coordinating.TakeSnapshot, asks(snapshot))
        teach(coordinating.Resume, asks(resume))
        teach(coordinating.Remove, asks(remove))
        teach(coordinating.Ping, self._ask)

    def _measure(self, gcs: Gcs, query: QueryId) -> None:
        """Note what the store knows of a query that is about to be removed from it."""
        collected = self._collected.get(query)
        if collected is not None:
            collected.figures.tasks = gcs.status(query).commits or collected.figures.tasks
            collected.figures.seconds = time.monotonic() - self._submissions[query].began_seconds

    def _ask(self, actor: Actor, effect: coordinating.Ping) -> None:
        self._performer.calls.submit(lambda: self.node.answer(actor, self._ping(effect.worker)))


def _new_query(plan: PhysicalPlan, payload: QueryPayload) -> Query:
    return Query(QueryId(f"q-{uuid.uuid4().hex[:12]}"), plan.graph, tolerance=payload.tolerance)


def place(plan: PhysicalPlan, members: list[WorkerId]) -> dict[ChannelName, WorkerId]:
    """The channels of each stage in turn over the workers; the collector on the head."""
    hosts = {name: members[name.channel % len(members)] for name in plan.graph.channels}
    return {**hosts, plan.graph.collector: HEAD}
