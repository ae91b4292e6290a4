"""Perform effects in production: kernels, backup, Flight and the store, each on its own threads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from wallaby.errors import (
    REPORT_IT,
    STEP_FAILED,
    GcsLostError,
    GcsUnavailableError,
    KernelError,
    MemoryLimitError,
    QueryError,
    WorkerLeavesError,
)
from wallaby.errors.files import FULL
from wallaby.errors.text import write_error
from wallaby.gcs.interface import Commit, Gcs
from wallaby.lineage import effects as protocol
from wallaby.lineage.barriers import BarrierDue, RestoreCut, SaveCut
from wallaby.lineage.effects import Answer, Effect, Slice
from wallaby.lineage.names import QueryId, TaskName, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby.node import effects as working
from wallaby.node.node import Actor, EngineNode, WorkerQuery, worker_query_of
from wallaby.node.outputs.cuts import bodies_of
from wallaby.node.outputs.disk_full import no_room_beside_results
from wallaby.node.outputs.durable_outputs import DurableOutputs
from wallaby.node.pools import CallPool, GroupCommitter, KernelPool
from wallaby.node.ports import Backups, Work
from wallaby.node.pushing import Peers, Pushing
from wallaby.observe.recorder import SEND_SECONDS

_log = logging.getLogger(__name__)
EffectT = TypeVar("EffectT", bound=Effect[Any])


#: The longest wait before an actor checks again.
AWAIT_SECONDS_MAX = 0.5
#: Nobody announces room at another worker, so a refused delivery checks more often.
RETRY_SECONDS_MAX = 0.1


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Threads and waits of one node."""

    kernel_threads: int
    push_threads: int = 4
    #: The largest push, unless a single slice is larger.
    push_bytes: int = 64 << 20
    call_threads: int = 4
    #: Threads that wait for the durable store.
    durable_threads: int = 4
    lease_ms: int = 1250
    #: How long a channel with too little input waits before it takes what has arrived.
    await_seconds: float = 0.005
    #: How long a refused delivery or commit waits before it is tried again.
    retry_seconds: float = 0.02


class Performer:
    """Performs effects for one node; `lineage.effects` defines them."""

    def __init__(
        self,
        node: EngineNode,
        gcs: Gcs,
        backups: Backups,
        peers: Peers,
        address_of: Callable[[WorkerId], str | None],
        open_serving: Callable[[QueryId], WorkerQuery | None],
        collect: Callable[[QueryId, tuple[Slice, ...], Callable[[], None]], None],
        settings: NodeSettings,
        address: str = "",
    ) -> None:
        self._node = node
        self._gcs = gcs
        self._backups = backups
        self._open_serving = open_serving
        #: The queries that are being opened; touched by the loop only.
        self._opening: set[QueryId] = set()
        self._collect_slices = collect
        self._settings = settings
        self._address = address
        name = f"wallaby-{node.worker}"
        self.kernels = KernelPool(name, settings.kernel_threads, node.end)
        self.calls = CallPool(f"{name}-call", settings.call_threads, node.end)
        # Leases have their own thread, so that a worker does not look dead because its other calls wait.
        self._renewals = CallPool(f"{name}-lease", 1, node.end)
        self._pushes = CallPool(f"{name}-push", settings.push_threads, node.end)
        self._pushing = Pushing(node, backups, peers, address_of, self._pushes, settings.push_bytes)
        self._disk = CallPool(f"{name}-disk", 1, node.end)
        self._durable = CallPool(f"{name}-durable", settings.durable_threads, node.end)
        self._committer = GroupCommitter(name, self._commit_group, node.end)
        self._methods: dict[type[Effect[Any]], Callable[[Actor, Any], None]] = {
            protocol.Await: self._await,
            protocol.Pause: self._pause,
            protocol.Execute: self._execute,
            protocol.BackUp: self._back_up,
            protocol.SaveState: self._save_state,
            protocol.RestoreState: self._restore_state,
            BarrierDue: self._tell_due,
            SaveCut: self._save_cut,
            RestoreCut: self._restore_state,
            protocol.Advance: self._advance,
            protocol.Push: self._pushing.push,
            protocol.Collect: self._collect,
            protocol.Leave: self._leave,
            protocol.ReadRecords: self._read_records,
            protocol.CommitTask: self._commit,
            protocol.CloseEarly: self._close_early,
            protocol.Acknowledge: self._acknowledge,
            protocol.ClaimReRead: self._claim,
            protocol.Fail: self._fail,
            working.Register: self._register,
            working.Renew: self._renew,
            working.Discover: self._discover,
            working.OpenSession: self._open_session,
            working.Look: self._look,
            working.Spawn: self._spawn,
            working.Stop: self._stop,
            working.Complain: self._complain,
        }

    def teach(self, effect: type[EffectT], method: Callable[[Actor, EffectT], None]) -> None:
        """Add a kind of effect: those of the coordinator, on the head."""
        self._methods[effect] = method

    def perform(self, actor: Actor, effect: Effect[Any]) -> None:
        """Perform an effect; its answer is posted to the node."""
        self._methods[type(effect)](actor, effect)

    def close(self, worker_query: WorkerQuery) -> None:
        """A query has ended: drop its backups, and send its last events."""
        if worker_query.recorder is not None:
            self.calls.submit(worker_query.recorder.close)
        self.calls.submit(lambda: self._backups.drop(worker_query.query))
        if worker_query.work is not None:
            self.calls.submit(worker_query.work.close)

    def has_idle_kernel(self) -> bool:
        """Is there a thread with nothing to execute?"""
        return self.kernels.has_idle()

    def has_busy_kernel(self) -> bool:
        """Is there a thread that executes something?"""
        return self.kernels.has_busy()

    def stop(self, wait_seconds: float) -> None:
        """End all threads."""
        pools = (
            self.kernels,
            self._disk,
            self._durable,
            self._pushes,
            self._committer,
            self._renewals,
            self.calls,
        )
        for pool in pools:
            pool.stop(wait_seconds)

    # --- waiting and computing -----------------------------------------------------------------------

    def _await(self, actor: Actor, effect: protocol.Await) -> None:
        """Wait longer the longer nothing arrives: arrivals wake the actor, and the limit is for lost wakes."""
        retries = actor.name.kind.sends
        limit_seconds = self._settings.retry_seconds if retries else self._settings.await_seconds
        most_seconds = RETRY_SECONDS_MAX if retries else AWAIT_SECONDS_MAX
        self._node.park(actor, min(limit_seconds * 2**actor.idle, most_seconds), patient=False)
        actor.idle = min(actor.idle + 1, 10)

    def _pause(self, actor: Actor, effect: protocol.Pause) -> None:
        self._node.park(actor, effect.limit_ms / 1000, patient=True)

    def _execute(self, actor: Actor, effect: protocol.Execute) -> None:
        worker_query = worker_query_of(actor)
        work: Work = worker_query.work
        keeps_results = self._keeps_results()
        execute = (
            work.execute if worker_query.recorder is None else worker_query.recorder.watched(work.execute)
        )
        step = object()
        worker_query.steps.add(step)

        def job() -> None:
            try:
                run()
            finally:
                worker_query.steps.discard(step)

        def run() -> None:
            try:
                answer: protocol.Executed | QueryError = execute(effect)
            except QueryError as error:
                error.fields.setdefault("task", effect.task)
                answer = _without_rows(error)
            except MemoryError as error:
                # An allocation failed: Spark limits the address space of Python (spark.executor.pyspark.memory).
                answer = MemoryLimitError(
                    f"A step of stage {effect.task.stage} needed more memory than is available: {error}",
                    fix="Raise spark.wallaby.memory, or spark.executor.pyspark.memory if it is set.",
                    task=effect.task,
                )
            except Exception as error:  # noqa: BLE001 - see below
                if isinstance(error, OSError) and error.errno in FULL and keeps_results:
                    self._node.answer(actor, effect, self._no_room(effect.task))
                    return
                if isinstance(error, OSError) and error.errno in FULL:
                    # Other workers may have room for what this one cannot spill, as for a backup.
                    self._node.end(
                        WorkerLeavesError(f"{self._node.worker} leaves: no room to spill {effect.task}.")
                    )
                    return
                # Whatever a library raised: it would come again on any worker, so the query ends and says so.
                _log.exception("%s failed", effect.task)
                answer = KernelError(
                    STEP_FAILED, fix=REPORT_IT, task=effect.task, detail=f"{type(error).__name__}: {error}"
                )
            self._node.answer(actor, effect, answer)

        self.kernels.submit(priority(effect), job)

    def _keeps_results(self) -> bool:
        """Are kept results on this worker, whole or not? Then it does not leave when its disk is full.

        The results would be lost with it, and others would have to make them again, perhaps on the same disk.
        """
        return any(query.session.graph.keeps for query in self._node.worker_queries.values())

    def _no_room(self, task: TaskName) -> QueryError:
        return no_room_beside_results(self._node.worker, task, self._backups.directories)

    def _back_up(self, actor: Actor, effect: protocol.BackUp) -> None:
        query, recorder = worker_query_of(actor).query, worker_query_of(actor).recorder
        untracked, durable = worker_query_of(actor).untracked, worker_query_of(actor).durable_outputs
        if durable is not None and durable.spools:
            self._backups.release(query, durable.released.of(effect.task.of))
            self._write_durably(actor, effect, lambda: durable.keep(self._backups, effect))
            return
        if untracked is not None:
            self._backups.release(query, untracked.released.of(effect.task.of))
        bodies = bodies_of(effect.output.slices)
        since = effect.since_epoch
        if self._backups.keep_in_memory(query, effect.task, bodies, final=effect.final, since_epoch=since):
            self._node.answer(actor, effect, True)
            return

        keeps_results = self._keeps_results()

        def job() -> None:
            started = recorder.now() if recorder is not None else 0.0
            before = self._backups.disk_bytes_of(query)
            kept = self._backups.keep(query, effect.task, bodies, final=effect.final, since_epoch=since)
            if recorder is not None:
                written = max(self._backups.disk_bytes_of(query) - before, 0)  # it may be dropped meanwhile
                recorder.spilled(started, effect.task, written)
            self._node.answer(actor, effect, kept or (self._no_room(effect.task) if keeps_results else False))

        self._disk.submit(job)

    def _save_state(self, actor: Actor, effect: protocol.SaveState) -> None:
        durable = worker_query_of(actor).durable_outputs
        if durable is None or not durable.checkpoints.is_due(effect.task.of):
            self._node.answer(actor, effect, False)
            return
        checkpoints = durable.checkpoints
        self._write_durably(actor, effect, lambda: checkpoints.save(effect))

    def _tell_due(self, actor: Actor, effect: BarrierDue) -> None:
        self._node.answer(actor, effect, _durable_of(actor).cuts.due(effect.passed))

    def _save_cut(self, actor: Actor, effect: SaveCut) -> None:
        cuts = _durable_of(actor).cuts
        self._write_durably(actor, effect, lambda: cuts.save(effect))

    def _restore_state(self, actor: Actor, effect: protocol.RestoreState | RestoreCut) -> None:
        durable = _durable_of(actor)

        def job() -> None:
            try:
                answer: Any = (
                    durable.cuts.restore(effect)
                    if isinstance(effect, RestoreCut)
                    else durable.checkpoints.restore(effect)
                )
            except QueryError as error:
                answer = error
            self._node.answer(actor, effect, answer)

        self._durable.submit(job)

    def _write_durably(
        self, actor: Actor, effect: protocol.BackUp | protocol.SaveState | SaveCut, write: Callable[[], int]
    ) -> None:
        """Write to the durable store; the answer is True, or the error that ends the query."""
        recorder = worker_query_of(actor).recorder

        def job() -> None:
            started = recorder.now() if recorder is not None else 0.0
            try:
                written = write()
                answer: bool | QueryError = True
                if recorder is not None:
                    recorder.stored(started, effect.task, written)
                    if isinstance(effect, SaveCut):
                        recorder.snapped()
            except QueryError as error:
                answer = error
            self._node.answer(actor, effect, answer)

        self._durable.submit(job)

    def _advance(self, actor: Actor, effect: protocol.Advance) -> None:
        self._node.answer(actor, effect, None)

    def _collect(self, actor: Actor, effect: protocol.Collect) -> None:
        """Hand rows to the client; the answer comes when there is room for more, and the collector waits for it."""
        query = worker_query_of(actor).query
        self._collect_slices(query, effect.slices, lambda: self._node.answer(actor, effect, None))

    def _leave(self, actor: Actor, effect: protocol.Leave) -> None:
        self._node.end(WorkerLeavesError(f"{self._node.worker} leaves: {effect.reason}."))

    def _spawn(self, actor: Actor, effect: working.Spawn) -> None:
        self._node.spawn(worker_query_of(actor), effect.name, effect.effects)
        self._node.answer(actor, effect, None)

    def _stop(self, actor: Actor, effect: working.Stop) -> None:
        self._node.stop_actor(worker_query_of(actor), effect.name)
        self._node.answer(actor, effect, None)

    def _open_session(self, actor: Actor, effect: working.OpenSession) -> None:
        """Open a query, but only once: if an earlier answer was lost, the query is open or about to be."""
        query = effect.query
        if query in self._node.worker_queries or query in self._opening:
            self._node.answer(actor, effect, query in self._node.worker_queries)
            return
        self._opening.add(query)

        def job() -> None:
            worker_query = self._open_serving(query)
            self._node.loop.post(self._opened, query, worker_query)
            self._node.answer(actor, effect, worker_query is not None)

        self.calls.submit(job)

    def _opened(self, query: QueryId, worker_query: WorkerQuery | None) -> None:
        self._opening.discard(query)
        if worker_query is not None:
            self._node.begin_query(worker_query)
            self._send_events(worker_query)

    def _send_events(self, worker_query: WorkerQuery) -> None:
        """Send events periodically while an observed query runs."""
        if worker_query.recorder is not None and not worker_query.session.over:
            self.calls.submit(worker_query.recorder.flush)
            self._node.loop.after(SEND_SECONDS, self._send_events, worker_query)

    # --- the store -----------------------------------------------------------------------------------

    def call(
        self,
        actor: Actor,
        effect: Effect[Answer | None],
        action: Callable[[Gcs], Answer | BaseException],
        pool: CallPool | None = None,
    ) -> None:
        """Call the store; None if it does not answer. A lost store is thrown into the caller's generator."""
        recorder = actor.worker_query.recorder if actor.worker_query is not None else None

        def job() -> None:
            started = recorder.now() if recorder is not None else 0.0
            answer = _answered(lambda: action(self._gcs))
            if recorder is not None:
                recorder.asked(started)
            self._node.answer(actor, effect, answer)

        (pool or self.calls).submit(job)

    def _commit(self, actor: Actor, effect: protocol.CommitTask) -> None:
        untracked = worker_query_of(actor).untracked
        if untracked is not None:
            self._node.answer(actor, effect, untracked.commit(effect))
            return
        self._committer.submit((worker_query_of(actor).query, effect.epoch), (actor, effect))

    def _commit_group(
        self, group: tuple[QueryId, int], requests: list[tuple[Actor, protocol.CommitTask]]
    ) -> None:
        query, epoch = group
        commits = tuple(
            Commit(e.task, e.record, e.final, e.delivered, e.since_epoch, e.next_split) for _, e in requests
        )
        recorder = worker_query_of(requests[0][0]).recorder
        started = recorder.now() if recorder is not None else 0.0
        replies = _answered(lambda: self._gcs.commit(query, self._node.worker, epoch, commits))
        if recorder is not None:
            recorder.committed(started, [effect for _, effect in requests], replies)
        for at, (actor, effect) in enumerate(requests):
            self._node.answer(actor, effect, replies[at] if isinstance(replies, tuple) else replies)

    def _read_records(self, actor: Actor, effect: protocol.ReadRecords) -> None:
        query, worker = worker_query_of(actor).query, self._node.worker
        self.call(actor, effect, lambda gcs: gcs.records(query, worker, effect.epoch, effect.channel))

    def _close_early(self, actor: Actor, effect: protocol.CloseEarly) -> None:
        worker_query, worker = worker_query_of(actor), self._node.worker
        if (
            worker_query.untracked is not None
        ):  # without records it is unknown which channels have ended, so those before the limit run to their end
            self._node.answer(actor, effect, Verdict.DONE)
            return
        candidates = worker_query.session.graph.closable_above(effect.channel)
        self.call(
            actor, effect, lambda gcs: gcs.close_early(worker_query.query, worker, effect.epoch, candidates)
        )

    def _acknowledge(self, actor: Actor, effect: protocol.Acknowledge) -> None:
        if worker_query_of(actor).untracked is not None:
            self._node.answer(actor, effect, Verdict.DONE)
            return
        query, worker = worker_query_of(actor).query, self._node.worker
        self.call(actor, effect, lambda gcs: gcs.acknowledge(query, worker, effect.epoch, effect.delivered))

    def _claim(self, actor: Actor, effect: protocol.ClaimReRead) -> None:
        query, worker = worker_query_of(actor).query, self._node.worker
        self.call(
            actor, effect, lambda gcs: gcs.claim(query, worker, effect.epoch, effect.slot, effect.completed)
        )

    def _fail(self, actor: Actor, effect: protocol.Fail) -> None:
        query, worker = worker_query_of(actor).query, self._node.worker
        assert isinstance(effect.error, QueryError), "a session guards against nothing else"
        said = write_error(effect.error)
        self.call(actor, effect, lambda gcs: gcs.fail(query, worker, effect.epoch, said))

    def _register(self, actor: Actor, effect: working.Register) -> None:
        worker, address, lease_ms = self._node.worker, self._address, self._settings.lease_ms
        self.call(actor, effect, lambda gcs: gcs.register(worker, address, lease_ms))

    def _renew(self, actor: Actor, effect: working.Renew) -> None:
        worker, lease_ms = self._node.worker, self._settings.lease_ms
        self.call(actor, effect, lambda gcs: gcs.renew(worker, lease_ms), self._renewals)

    def _discover(self, actor: Actor, effect: working.Discover) -> None:
        self.call(actor, effect, lambda gcs: gcs.queries())

    def _look(self, actor: Actor, effect: working.Look) -> None:
        query, worker = worker_query_of(actor).query, self._node.worker
        self.call(actor, effect, lambda gcs: gcs.look(query, worker))

    def _complain(self, actor: Actor, effect: working.Complain) -> None:
        query, worker = worker_query_of(actor).query, self._node.worker
        self.call(actor, effect, lambda gcs: gcs.complain(worker, effect.accused, effect.reachable, query))


def _durable_of(actor: Actor) -> DurableOutputs:
    durable = worker_query_of(actor).durable_outputs
    assert durable is not None, "states are taken up only where they are saved"
    return durable


def _without_rows(error: QueryError) -> QueryError:
    """Remove the frames from an error, because they hold the rows of the step."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _answered(action: Callable[[], Answer]) -> Answer | GcsLostError | None:
    """The store's answer, None if there was none, or the error that the store is lost."""
    try:
        return action()
    except GcsUnavailableError as error:
        _log.debug("the store did not answer: %s", error)
        return None
    except GcsLostError as lost:
        return lost


def priority(effect: protocol.Execute) -> tuple[int, ...]:
    """The priority of a step: repairs of a loss first, because others wait for them; then consuming before producing.

    So later stages come first; among readers the earlier stage, which is the build side.
    """
    reads = effect.split is not None
    repairs = effect.point in (protocol.FailPoint.RETRACE, protocol.FailPoint.REREAD)
    order = (1, effect.task.stage) if reads else (0, -effect.task.stage)
    return (0 if repairs else 1, *order)
