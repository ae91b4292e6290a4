"""The head node: coordinator and collectors on one control loop, in the driver's process.

It is a node like a worker's, without kernels: the collector is the only channel of the last stage, and its input goes
straight to the client. The coordinator is one more actor, whose effects are added to the node's performer here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich.console import Console

from wallaby.coordinator.coordinator import Coordinator, CoordinatorSettings
from wallaby.coordinator.query import Query, QueryPhase
from wallaby.coordinator.requests import draining, submitting
from wallaby.coordinator.stalls import StallWatch
from wallaby.errors import (
    GcsError,
    GcsLostError,
    NoWorkersError,
    QueryCancelledError,
    QueryError,
    QueryTimeoutError,
    WallabyError,
    WorkerLostError,
)
from wallaby.exchange.kept_questions import LOCATE
from wallaby.faults.injection import WORKERS_FAILURES, FaultInjector
from wallaby.faults.orders import FaultOrders
from wallaby.gcs.interface import Gcs, WorkerLease
from wallaby.head.actions import COORDINATORS_FAILURES
from wallaby.head.beginning import new_query, place
from wallaby.head.collected import Collected
from wallaby.head.inquiry import Inquiry
from wallaby.head.kept import KeptResults, sizes_of
from wallaby.head.observer import Observer
from wallaby.head.performing import CoordinatorsPerformer
from wallaby.head.submission import Submission
from wallaby.lineage.effects import Effects, Slice
from wallaby.lineage.kept import KeptChannels
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.node.actors import COORDINATOR, STALL_WATCH, ActorKind, ActorName
from wallaby.node.directory import Directory
from wallaby.node.node import EngineNode, Performs, WorkerQuery
from wallaby.node.payload import QueryPayload
from wallaby.node.perform import Backups, NodeSettings, Performer
from wallaby.node.pushing import Peers
from wallaby.node.session import QuerySession
from wallaby.observe.progress import ProgressBoard, is_wanted
from wallaby.plan.physical import PhysicalPlan

_log = logging.getLogger(__name__)
#: How long a worker has to answer a ping. With lease and poll, a silent worker is detected within 1.75 s by default.
PING_SECONDS = 0.4
WAIT_FOR_WORKER_SECONDS = 0.02


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
        orders: FaultOrders | None = None,
        forget: Callable[[QueryId], None] = lambda _query: None,
        run_elsewhere: Callable[[Submission, Collected], None] | None = None,
    ) -> None:
        self._gcs = gcs
        self._settings = settings
        self._orders = orders
        #: Called once for every ended query, on a thread that may wait.
        self._forget = forget
        #: Takes over a query that is to be run again on another store, and so by another head. It must not block.
        self._run_elsewhere = run_elsewhere
        self.observer = observer or Observer()
        console = Console(stderr=True)
        self._board = ProgressBoard(gcs, console) if shows_progress and is_wanted(console) else None
        self._ping_address = ping
        self._peers = peers
        self._directory = Directory(gcs)
        self._queries: dict[QueryId, Query] = {}
        self._collected: dict[QueryId, Collected] = {}
        self._submissions: dict[QueryId, Submission] = {}
        #: The failure that ended the loop of this node, if any.
        self._failure: BaseException | None = None
        self._coordinator = self._new_coordinator()
        self.node = EngineNode(HEAD, self._node_ended)
        self.node.take_events = self.observer.take
        self.node.take_loss = self._worker_lost_store
        self.node.answer_reader = self._answer_reader
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
        self._kept = KeptResults(gcs, self._directory)
        self._effects = CoordinatorsPerformer(
            self.node,
            self._performer,
            self.observer,
            Inquiry(self.node, peers, self._directory, self._performer.calls),
            self._collected,
            self._submissions,
            self._sweep_ended,
            self._nudge,
            self._ping,
        )

    def start(self) -> None:
        """Start coordinating."""
        actors = {COORDINATOR: self._coordinator.run()}
        if self._settings.stall_ms:
            actors[STALL_WATCH] = StallWatch(self._settings.stall_ms, self._queries, _now_ms).run()
        self.node.start(self._armed(), actors)

    def _new_coordinator(self) -> Coordinator:
        return Coordinator(self._settings, self._queries, _now_ms)

    def restart_coordinator(self) -> None:
        """Drop the coordinator at any point, and start a new one. Only for the loop's thread.

        The new one knows only the store and the queries; see invariant 9.
        """
        self._coordinator = self._new_coordinator()
        self.node.spawn(None, COORDINATOR, self._coordinator.run())

    def _armed(self) -> Performs:
        """The performer of effects; with chaos, faults may strike first."""
        if self._orders is None:
            return self._performer
        failures = {**WORKERS_FAILURES, **COORDINATORS_FAILURES}
        return FaultInjector(self._performer, self.node, self._orders, failures, self.restart_coordinator)

    def stop(self, wait_seconds: float) -> None:
        """End the head and every running query."""
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
        store_losses_max: int = 0,
        whole_bytes_max: int = 0,
    ) -> Collected:
        """Start a query on the present workers; 0 means no limit, of time or of what the driver may hold.

        If its rows are held back, the client gets none before the result is complete, as a query needs that may run
        again.

        Raises:
            GcsError: the store was lost, and this head with it.
            QueryError: the head has failed, and can run no more queries.
        """
        self._require_alive()
        hosts = place(plan, self._members())
        query = new_query(plan, payload)
        submission = Submission(plan, payload, timeout_seconds, query, begins_again, store_losses_max)
        collected = Collected(
            submission.query.id,
            plan.graph,
            partial(self._cancel, submission),
            held_back=held_back or begins_again or store_losses_max > 0,
            whole_bytes_max=whole_bytes_max,
        )
        try:
            entered = self._run(submission, collected, hosts)
            while not entered.wait(WAIT_FOR_WORKER_SECONDS):
                if self.node.loop.is_stopped:
                    if submission.query.id not in self._collected:
                        return collected  # it has ended, or was taken over, and `collected` has been told
                    self._require_alive()
                    raise QueryCancelledError(
                        "The engine was closed while the query started.", fix="Attach again."
                    )
        except BaseException:
            self._cancel(submission)  # the waiting client is gone
            raise
        if submission.query.is_over:
            assert submission.query.error is not None, "a query that has not begun ends for a reason"
            raise submission.query.error
        return collected

    def take_over(self, submission: Submission, collected: Collected) -> None:
        """Run a query again that was lost with another head's store; `collected` gets the outcome."""
        self._run_again(submission, collected)

    def _run(
        self, submission: Submission, collected: Collected, hosts: dict[ChannelName, WorkerId]
    ) -> threading.Event:
        """Put a query into the store and begin it; the event is set once that has succeeded or failed."""
        query, plan, payload = submission.query, submission.plan, submission.payload
        query.phase = QueryPhase.ENTERING
        if self._board is not None:
            collected.on_wait = partial(self._board.follow, query.id, plan.graph)
        collected.observation = self.observer.begin(query.id, plan, hosts, detailed=payload.observed)
        self._collected[query.id] = collected
        self._submissions[query.id] = submission
        entered = threading.Event()
        if self._failure is not None:  # it has ended all queries, including this one, or ended just before
            if self._collected.pop(query.id, None) is not None:
                self._require_alive()
            entered.set()
            return entered
        self.node.loop.post(self._enter, submission, hosts, entered)
        return entered

    def _enter(
        self, submission: Submission, hosts: dict[ChannelName, WorkerId], entered: threading.Event
    ) -> None:
        query = submission.query
        self._queries[query.id] = query
        if submission.timeout_seconds:
            left_seconds = submission.began_seconds + submission.timeout_seconds - time.monotonic()
            self.node.loop.after(max(left_seconds, 0), self._expire, query, submission.timeout_seconds)

        def entering() -> Effects[None]:
            payload = submission.payload.encode()
            yield from submitting(query, hosts, payload, self._settings, _now_ms)
            if not query.is_over:
                self._begin(submission)
                self._nudge(set(hosts.values()))
            self.node.wake_named(COORDINATOR)
            entered.set()

        self.node.spawn(None, ActorName(ActorKind.SUBMIT, query.id), entering())

    def _run_again(self, submission: Submission, collected: Collected) -> None:
        """Run a query again from the start, under another name, because its records, if any, are lost."""
        try:
            self._require_alive()
            hosts = place(submission.plan, self._members())
            before = submission.query
            submission.query = new_query(submission.plan, submission.payload)
            submission.query.cancelled |= before.cancelled
            submission.query.cancelled_because = before.cancelled_because
            collected.begin_again(submission.query.id)
            self._run(submission, collected, hosts)
            if self.node.loop.is_stopped:  # nothing is left that would end it
                raise QueryCancelledError("The engine was closed while the query ran.", fix="Attach again.")
        except WallabyError as error:
            if not self._goes_elsewhere(submission, collected, error):
                collected.end(error)
                collected.removed.set()

    def _require_alive(self) -> None:
        if self.lost_store is not None:
            raise self.lost_store
        if self._failure is not None:
            raise QueryError(
                f"The engine has failed: {self._failure}.", fix="Close it and attach again."
            ) from self._failure

    def _members(self) -> list[WorkerId]:
        """The workers that can get work; after the loss of all of them, those that come next."""
        deadline = time.monotonic() + self._settings.no_workers_ms / 1000
        while True:
            leases = self.workers()
            self.observer.met(leases)
            members = [lease.worker for lease in leases if lease.remaining_ms > 0 and not lease.draining]
            if members:
                return members
            if time.monotonic() > deadline or self.node.loop.is_stopped:
                raise NoWorkersError(
                    "There is no TaskManager to run the query.",
                    fix="Check the executors' logs, or raise spark.wallaby.noWorkersTimeout.",
                )
            time.sleep(WAIT_FOR_WORKER_SECONDS)

    def _begin(self, submission: Submission) -> None:
        query = submission.query
        settings = submission.payload.session_settings()
        session = QuerySession(HEAD, query.graph, settings, lambda: self._whole_result_is_there(query))
        self.node.begin_serving(WorkerQuery(query.id, session))

    def _cancel(self, submission: Submission, because: WallabyError | None = None) -> None:
        query = submission.query
        query.cancelled_because = query.cancelled_because or because
        query.cancelled = not query.is_whole  # what is there as a whole is done, whoever has had enough
        self.node.loop.post(self.node.wake_named, COORDINATOR)

    def _expire(self, query: Query, timeout_seconds: float) -> None:
        """Its time is over: end it, unless it has ended."""
        if not (query.is_whole or query.is_over or query.cancelled):
            query.cancelled_because = QueryTimeoutError(
                f"Query {query.id} took longer than {timeout_seconds:g} s and was ended.",
                fix="Raise spark.wallaby.timeout, or set it to 0 for no limit.",
                query=query.id,
                timeout_seconds=timeout_seconds,
            )
            query.cancelled = True
            self.node.wake_named(COORDINATOR)

    # --- results that stay ---------------------------------------------------------------------------

    def _answer_reader(self, action: str, question: bytes) -> bytes | None:
        return self._kept.answer(question) if action == LOCATE else self._kept.note_reach(question)

    @property
    def kept(self) -> KeptResults:
        """The results that stay with the workers. From any thread."""
        return self._kept

    def kept_sizes(
        self, query: QueryId, channels: KeptChannels
    ) -> Mapping[ChannelName, Sequence[tuple[int, int]]]:
        """Rows and bytes of every output of a result that stays. From any thread."""
        return sizes_of(query, channels, self._peers, self._directory)

    def release(self, query: QueryId) -> None:
        """Let go of a result that has stayed with the workers, or that is on its way there. From any thread."""
        self._kept.released(query)
        self.node.loop.post(self._release, query)

    def _release(self, query_id: QueryId) -> None:
        query = self._queries.get(query_id)
        if query is not None:
            query.collected = query.kept
            query.cancelled = not query.kept
            self.node.wake_named(COORDINATOR)

    # --- workers -------------------------------------------------------------------------------------

    def workers(self) -> tuple[WorkerLease, ...]:
        """The workers as the store sees them."""
        return self._gcs.workers()

    def drain(self, worker: WorkerId, timeout_seconds: float) -> bool:
        """Let a worker leave: ask it to drain, wait until no query needs it, and dismiss it."""
        deadline = time.monotonic() + timeout_seconds
        over, left = threading.Event(), []

        def leaving() -> Effects[None]:
            left.append((yield from draining(worker, lambda: time.monotonic() > deadline)))
            over.set()

        self.node.loop.post(self.node.spawn, None, ActorName(ActorKind.DRAIN, worker), leaving())
        while not over.wait(WAIT_FOR_WORKER_SECONDS):
            if self.node.loop.is_stopped:
                return False
        if left[0]:
            self._nudge({worker})
        return left[0]

    def hint(self, worker: WorkerId) -> None:
        """Note Spark's hint that a worker is gone."""
        self.node.loop.post(self._hint, worker)

    def _hint(self, worker: WorkerId) -> None:
        self._coordinator.detector.hint(worker)
        self.node.wake_named(COORDINATOR)

    def _collect(self, query: QueryId, slices: tuple[Slice, ...], go_on: Callable[[], None]) -> None:
        collected = self._collected.get(query)
        if collected is None:
            go_on()  # the query has ended while its rows were under way: they are not needed
        else:
            collected.add(slices, go_on)

    def _whole_result_is_there(self, query: Query) -> None:
        if query.graph.keeps:
            query.kept = True
            self._kept.add(query)
        else:
            query.collected = True
        self.observer.has_whole_result(query.id)
        collected = self._collected.get(query.id)
        if collected is not None:
            collected.end(None)
        self.node.loop.post(self.node.wake_named, COORDINATOR)

    def _sweep_ended(self) -> None:
        """Tell the clients of queries that have ended; forget them here."""
        for query in [query for query in self._queries.values() if query.ended]:
            del self._queries[query.id]
            submission = self._submissions.pop(query.id, None)
            collected = self._collected.pop(query.id, None)
            if submission is None or collected is None:
                continue  # its client was told when this head failed
            self.observer.ended(query.id, query.error)
            self._kept.ended(query.id, query.error)
            self._performer.calls.submit(partial(self._forget, query.id))
            self._nudge(self._effects.present)
            error = submission.ends_with(query.error, self._settings.strained_losses_max)
            if self._begins_again(submission, error, collected):
                self._performer.calls.submit(partial(self._run_again, submission, collected))
                continue
            collected.end(error)
            collected.removed.set()

    def _begins_again(self, submission: Submission, error: WallabyError | None, collected: Collected) -> bool:
        """Should an ended query be run again? Only a few times, because it may itself kill its workers."""
        if isinstance(error, GcsLostError):  # the store has forgotten it, but works otherwise
            return self._may_be_repeated(submission, error)
        if not (submission.begins_again and isinstance(error, WorkerLostError)):
            return False
        again = collected.figures.restarts + 1 < self._settings.task_worker_losses_max
        return again and not submission.query.cancelled

    @property
    def lost_store(self) -> GcsError | None:
        """The store's failure, if that ended this head: a new head can continue on another store."""
        return self._failure if isinstance(self._failure, GcsError) else None

    def lose_store(self, error: GcsLostError) -> None:
        """Note that a client has found the store lost before the coordinator did. Any thread may call this."""
        self._failure = self._failure or error
        self.node.loop.post(self._node_ended, error)

    def _worker_lost_store(self, why: str) -> None:
        """Note that a worker has found another store than the shared one. Any thread may call this.

        Each side may be connected to its own store, and both would continue: so neither does.
        """
        lost = GcsLostError(f"A TaskManager has lost the control store. {why}", fix="Run the query again.")
        self.node.loop.post(self._node_ended, lost)

    def _node_ended(self, error: BaseException | None) -> None:
        error = error or self._coordinator.lost
        if error is not None and self._failure is None:
            self._failure = error
            _log.error("the coordinator failed: %s", error)
        self._end_all(error)
        if error is not None:  # further work would be for nobody
            self.node.loop.post(self.node.stop_actor, None, COORDINATOR)

    def _end_all(self, error: BaseException | None) -> None:
        """End everything that is still open with an error: half a result must never look like a whole one."""
        for query_id in list(self._collected):
            query = self._queries.get(query_id)
            known = query.error if query is not None else None
            why = error or known or QueryError("The engine ended while the query ran.")
            whole = query is not None and query.is_whole
            self._kept.ended(query_id, why if isinstance(why, WallabyError) else None)
            collected = self._collected.pop(query_id, None)
            if collected is None:
                continue  # another thread has found it too
            submission = self._submissions[query_id]
            self.observer.ended(query_id, None if whole else why)
            self._performer.calls.submit(partial(self._forget, query_id))
            if not whole and self._goes_elsewhere(submission, collected, why):
                continue
            collected.end(None if whole else why)
            collected.removed.set()

    def _goes_elsewhere(self, submission: Submission, collected: Collected, why: BaseException) -> bool:
        """Hand a query that was lost with the store over to be run again on another store, if that is allowed."""
        if self._run_elsewhere is None or not self._may_be_repeated(submission, why):
            return False
        self._run_elsewhere(submission, collected)
        return True

    def _may_be_repeated(self, submission: Submission, why: BaseException | None) -> bool:
        """Was it lost with the store, and may it be run again? Uses up one of its retries."""
        lost = isinstance(why, GcsLostError) and not submission.query.cancelled
        if not lost or submission.store_losses_left == 0:
            return False
        submission.store_losses_left -= 1
        return True

    def _nudge(self, workers: set[WorkerId]) -> None:
        """Let workers look at the store now. Only a hint: they would look a little later anyway."""
        for worker in sorted(workers - {HEAD}):
            self._performer.calls.submit(lambda worker=worker: self._ping(worker))  # type: ignore[misc, arg-type]

    def _ping(self, worker: WorkerId) -> bool:
        address = self._directory.address_of(worker)
        return address is not None and self._ping_address(address, PING_SECONDS) is not None


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
