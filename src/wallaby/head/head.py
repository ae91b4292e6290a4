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
from wallaby.coordinator.query import Query, QueryPhase, ResultState
from wallaby.coordinator.requests import draining, submitting
from wallaby.coordinator.stalls import StallWatch
from wallaby.errors import (
    GcsError,
    GcsLostError,
    QueryError,
    WallabyError,
)
from wallaby.exchange.kept_questions import LOCATE
from wallaby.faults.injection import WORKERS_FAILURES, FaultInjector
from wallaby.faults.orders import FaultOrders
from wallaby.gcs.interface import Gcs, WorkerLease
from wallaby.head.actions import COORDINATORS_FAILURES
from wallaby.head.awaiting import WAIT_FOR_WORKER_SECONDS, await_members, closed_while
from wallaby.head.collected import Collected
from wallaby.head.inquiry import Inquiry
from wallaby.head.kept import KeptResults, sizes_of
from wallaby.head.moves import STANDING_SECONDS, KeptMoves
from wallaby.head.observer import Observer
from wallaby.head.performing import CoordinatorsPerformer
from wallaby.head.submission import Submission, new_query, place
from wallaby.head.time_limit import NO_LIMIT, TimeLimit
from wallaby.lineage.effects import Effects, Slice
from wallaby.lineage.kept import KeptChannels
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.node.actors import COORDINATOR, STALL_WATCH, ActorKind, ActorName
from wallaby.node.directory import Directory
from wallaby.node.node import EngineNode, Performs, WorkerQuery
from wallaby.node.payload import QueryPayload
from wallaby.node.perform import NodeSettings, Performer
from wallaby.node.ports import Backups
from wallaby.node.pushing import Peers
from wallaby.node.session import QuerySession
from wallaby.node.standing import Standing, ask_standing
from wallaby.observe.about import NOTHING_KNOWN, About
from wallaby.observe.progress import ProgressBoard, is_wanted
from wallaby.plan.physical import PhysicalPlan

_log = logging.getLogger(__name__)
#: How long a worker has to answer a ping. With lease and poll, a silent worker is detected within 1.75 s by default.
PING_SECONDS = 0.4


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
        #: Takes over a query that is to be restarted on another store, and so by another head. It must not block.
        self._run_elsewhere = run_elsewhere
        self.observer = observer or Observer()
        console = Console(stderr=True)
        self._board = ProgressBoard(gcs, console) if shows_progress and is_wanted(console) else None
        self._ping_address = ping
        self._peers = peers
        #: The addresses of workers, as the driver uses them.
        self.directory = Directory(gcs)
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
            self.directory.address_of,
            lambda _query: None,
            self._collect,
            NodeSettings(kernel_threads=0, lease_ms=settings.lease_ms),
        )
        self._kept = KeptResults(gcs, self.directory, KeptMoves(self._ask_standing, time.monotonic))
        self._inquiry = Inquiry(self.node, peers, self.directory)
        self._effects = CoordinatorsPerformer(
            self.node,
            self._performer,
            self.observer,
            self._inquiry,
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
            actors[STALL_WATCH] = StallWatch(
                self._settings.stall_ms, self._queries, _now_ms, self._ended_by_watch
            ).run()
        self.node.start(self._armed(), actors)

    def _new_coordinator(self) -> Coordinator:
        return Coordinator(self._settings, self._queries, _now_ms)

    def restart_coordinator(self) -> None:
        """Drop the coordinator at any point, and start a new one. Only for the loop's thread.

        The new one knows only the store and the queries; see invariant 9.
        """
        self._coordinator = self._new_coordinator()
        self.node.spawn(None, COORDINATOR, self._coordinator.run())

    def _ended_by_watch(self) -> None:
        """Restart a coordinator that is stuck: the stall watch had to end a query in its place."""
        _log.error("the coordinator does not end queries, and is restarted")
        self._sweep_ended()
        self.restart_coordinator()

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
        self._inquiry.stop(wait_seconds)
        self._end_all(closed_while("ran"))
        self.observer.close()

    # --- queries -------------------------------------------------------------------------------------

    def submit(
        self,
        plan: PhysicalPlan,
        payload: QueryPayload,
        *,
        limit: TimeLimit = NO_LIMIT,
        held_back: bool = False,
        begins_again: bool = False,
        store_losses_max: int = 0,
        whole_bytes_max: int = 0,
        about: About = NOTHING_KNOWN,
        known: Callable[[Collected], None] = lambda _collected: None,
    ) -> Collected:
        """Start a query on the present workers; 0 means no limit of what the driver may hold.

        If its rows are held back, the client gets none before the result is complete, as a query needs that may run
        again. `known` is called before anything is waited for, so that whoever may cancel the query can do so.

        Raises:
            GcsError: the store was lost, and this head with it.
            QueryError: the head has failed, and can run no more queries.
        """
        self._require_alive()
        query = new_query(plan, payload)
        submission = Submission(plan, payload, query, limit, begins_again, store_losses_max, about)
        collected = Collected(
            submission.query.id,
            plan.graph,
            partial(self._cancel, submission),
            held_back=held_back or payload.tolerance.holds_back or store_losses_max > 0,
            whole_bytes_max=whole_bytes_max,
        )
        try:
            known(collected)
            hosts = place(plan, self._members(submission))
            entered = self._run(submission, collected, hosts)
            while not entered.wait(WAIT_FOR_WORKER_SECONDS):
                if self.node.loop.is_stopped:
                    if submission.query.id not in self._collected:
                        return collected  # it has ended, or was taken over, and `collected` has been told
                    self._require_alive()
                    raise closed_while("started")
        except BaseException:
            self._cancel(submission)  # the waiting client is gone
            raise
        if submission.query.is_over and submission.query.error is not None:
            raise submission.query.error
        return collected  # whose rows may all be here by now: this thread may have woken late

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
        about = submission.about
        collected.observation = self.observer.begin(query.id, plan, hosts, about, detailed=payload.observed)
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
        if submission.limit.seconds:
            self.node.loop.after(submission.limit.left_seconds, self._expire, submission, query)

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
        """Run a query again under another name: from its last complete snapshot or, mostly, from the start."""
        try:
            self._require_alive()
            hosts = place(submission.plan, self._members(submission))
            submission.run_next()
            collected.begin_again(submission.query.id, goes_on=submission.goes_on)
            self._run(submission, collected, hosts)
            if self.node.loop.is_stopped:  # nothing is left that would end it
                raise closed_while("ran")
        except WallabyError as error:
            if not self._goes_elsewhere(submission, collected, error):
                self._forget_runs(submission)
                collected.end(error)
                collected.removed.set()

    def _require_alive(self) -> None:
        if self.lost_store is not None:
            raise self.lost_store
        if self._failure is not None:
            raise QueryError(
                f"The engine has failed: {self._failure}.", fix="Close it and attach again."
            ) from self._failure

    def _members(self, submission: Submission) -> list[WorkerId]:
        """The workers that can get work; the query waits for them."""

        def require_open() -> None:
            if self.node.loop.is_stopped:
                self._require_alive()
                raise closed_while("started")

        def workers() -> tuple[WorkerLease, ...]:
            leases = self.workers()
            self.observer.met(leases)
            return leases

        return await_members(submission, workers, require_open, self._settings.no_workers_ms / 1000)

    def _begin(self, submission: Submission) -> None:
        query = submission.query
        settings = submission.payload.session_settings()
        session = QuerySession(HEAD, query.graph, settings, lambda: self._whole_result_is_there(query))
        collected = self._collected.get(query.id)
        waits = collected.waits_for_client if collected is not None else lambda: False
        self.node.begin_query(WorkerQuery(session, query.id, waits_for_client=waits))

    def _cancel(self, submission: Submission, because: WallabyError | None = None) -> None:
        submission.query.cancel(because)
        self.node.loop.post(self.node.wake_named, COORDINATOR)

    def _expire(self, submission: Submission, query: Query) -> None:
        """End a query whose time limit has passed, unless it has ended."""
        if not (query.is_whole or query.is_over or query.cancelled):
            query.cancel(submission.took_too_long())
            self.node.wake_named(COORDINATOR)

    # --- kept results --------------------------------------------------------------------------------

    def _answer_reader(self, action: str, question: bytes) -> bytes | None:
        return self._kept.answer(question) if action == LOCATE else self._kept.note_reach(question)

    def _ask_standing(self, query: QueryId, worker: WorkerId) -> Standing | None:
        address = self.directory.address_of(worker)
        return None if address is None else ask_standing(self._peers, address, query, STANDING_SECONDS)

    @property
    def kept(self) -> KeptResults:
        """The kept results. Any thread may call this."""
        return self._kept

    def kept_sizes(
        self, query: QueryId, channels: KeptChannels
    ) -> Mapping[ChannelName, Sequence[tuple[int, int]]]:
        """Rows and bytes of every output of a kept result. Any thread may call this."""
        return sizes_of(query, channels, self._peers, self.directory)

    def release(self, query: QueryId) -> None:
        """Release a kept result, whether or not it is whole. Any thread may call this."""
        self._kept.released(query)
        self.node.loop.post(self._release, query)

    def _release(self, query_id: QueryId) -> None:
        query = self._queries.get(query_id)
        if query is not None:
            query.release()
            self.node.wake_named(COORDINATOR)

    def queries(self) -> tuple[QueryId, ...]:
        """The queries that are held here. Any thread may call this."""
        return tuple(self._queries)

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
        query.becomes_whole()
        if query.result is ResultState.KEPT:
            self._kept.add(query)
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
            self._nudge(self._effects.present)
            error = submission.ends_with(query.error, self._settings.strained_losses_max)
            losses_max = self._settings.task_worker_losses_max
            again = submission.runs_again_after(error, collected.figures.restarts, losses_max)
            self._forget_runs(submission, goes_on=again and submission.goes_on)
            if again:
                threading.Thread(
                    target=self._run_again, args=(submission, collected), name="wallaby-again", daemon=True
                ).start()
                continue
            collected.end(error)
            collected.removed.set()

    def _forget_runs(self, submission: Submission, *, goes_on: bool = False) -> None:
        for run in submission.forgettable(goes_on=goes_on):
            self._performer.calls.submit(partial(self._forget, run))

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

        Each side may be connected to a store of its own. Both would continue, so this ends both.
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
            self._forget_runs(submission)
            if not whole and self._goes_elsewhere(submission, collected, why):
                continue
            collected.end(None if whole else why)
            collected.removed.set()

    def _goes_elsewhere(self, submission: Submission, collected: Collected, why: BaseException) -> bool:
        """Pass on a query that was lost with the store, to be restarted on another one, if that is allowed."""
        if self._run_elsewhere is None or not submission.is_repeated_after(why):
            return False
        self._run_elsewhere(submission, collected)
        return True

    def _nudge(self, workers: set[WorkerId]) -> None:
        """Let workers look at the store now. Only a hint: they would look a little later anyway."""
        for worker in sorted(workers - {HEAD}):
            self._performer.calls.submit(lambda worker=worker: self._ping(worker))  # type: ignore[misc, arg-type]

    def _ping(self, worker: WorkerId) -> bool:
        address = self.directory.address_of(worker)
        return address is not None and self._ping_address(address, PING_SECONDS) is not None


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
