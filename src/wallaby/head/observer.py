"""The observations of an engine's queries: the head passes on its calls to the store and their answers.

The coordinator does not know about it. Its effects and their answers pass the head, and contain everything of interest:
losses in freezes, repairs in resumes, commits in looks.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wallaby.coordinator import effects as coordinating
from wallaby.errors import EncodingError
from wallaby.gcs.interface import QueryStatus, WorkerLease
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby.node.worker_address import WorkerAddress
from wallaby.observe.about import NOTHING_KNOWN, About
from wallaby.observe.event_batch import decode_event_batch
from wallaby.observe.lines import KeptLines
from wallaby.observe.log import open_log
from wallaby.observe.observation import Observation, WorkerProcess
from wallaby.plan.physical import PhysicalPlan

_log = logging.getLogger(__name__)
#: How many losses are remembered, so that each is reported once.
LOSSES_MAX = 64


class Observer:
    """Observes all queries of one engine. `log_directory` is for their event logs, if there are any."""

    def __init__(
        self, log_directory: Path | None = None, is_watched: Callable[[], bool] = lambda: False
    ) -> None:
        """If `is_watched`, somebody may look at queries while they run, so their events are kept in memory."""
        self._log_directory = log_directory
        self._is_watched = is_watched
        self._observations: dict[QueryId, Observation] = {}
        self._processes: dict[WorkerId, WorkerProcess] = {}
        #: Workers that were asked to leave; and whether all of them are about to end, with the engine.
        self._leaving: set[WorkerId] = set()
        self._all_leave = False
        #: The latest losses that a query has reported.
        self._told: deque[tuple[WorkerId, ...]] = deque(maxlen=LOSSES_MAX)
        #: Called with every effect of the coordinator and its answer; see `inspection`.
        self._listeners: tuple[Callable[[Any, Any], None], ...] = ()

    def watch(self, listener: Callable[[Any, Any], None]) -> Callable[[], None]:
        """Call `listener` with every effect of the coordinator and its answer; returns a function that ends it."""
        self._listeners = (*self._listeners, listener)

        def end() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return end

    def begin(
        self,
        query: QueryId,
        plan: PhysicalPlan,
        hosts: Mapping[ChannelName, WorkerId],
        about: About = NOTHING_KNOWN,
        *,
        detailed: bool,
    ) -> Observation:
        """Begin to observe a query that is about to be submitted."""
        log = open_log(self._log_directory, query) if detailed else None
        observation = Observation(
            query,
            plan,
            detailed=detailed,
            log=log,
            about=about,
            lines=KeptLines() if self._is_watched() else None,
            reported=self._reported,
        )
        self._observations[query] = observation
        members = set(hosts.values())
        observation.began(hosts, {w: at for w, at in self._processes.items() if w in members})
        return observation

    def take(self, body: bytes) -> None:
        """Receive events of a worker; those of a query that ended long ago are dropped."""
        try:
            batch = decode_event_batch(body)
        except EncodingError as error:
            _log.warning("dropped some events: %s", error)
            return
        observation = self._observations.get(batch.query)
        if observation is not None:
            observation.received(batch)

    def noticed(self, effect: Any, answer: Any) -> Any:
        """Note the store's answer to an effect of the coordinator, and pass it on."""
        for listener in self._listeners:
            listener(effect, answer)
        if isinstance(effect, coordinating.Watch):
            self.met(answer)
            self._forget_settled()
            return answer
        if isinstance(effect, coordinating.AskToDrain):
            self._leaving.add(effect.worker)
        elif isinstance(effect, coordinating.Expel) and answer:
            self._expelled(effect.worker)
        observation = self._observations.get(getattr(effect, "query", None))  # type: ignore[arg-type]
        if observation is not None:
            observation.asked()
            self._tell(observation, effect, answer)
        return answer

    def expect_ends(self) -> None:
        """Note that all workers are about to end with the engine, so that they do not count as lost."""
        self._all_leave = True

    def _expelled(self, worker: WorkerId) -> None:
        """Log the loss of a worker for good, unless a query that needs it reports the loss with its cost."""
        reported = any(each.will_report(worker) for each in list(self._observations.values()))
        if not (reported or self._all_leave or worker in self._leaving):
            host = self._processes.get(worker, WorkerProcess("unknown")).host
            # A warning, because Python shows warnings even if no logging is configured.
            _log.warning("lost %s on host %s; no query needed it, and Spark starts another", worker, host)
        self._leaving.discard(worker)

    def _reported(self, lost: tuple[WorkerId, ...]) -> bool:
        """Has a query reported this loss before? Also notes that one has now."""
        before = lost in self._told
        self._told.append(lost)
        return before

    def met(self, leases: tuple[WorkerLease, ...]) -> None:
        """Note the present workers."""
        for lease in leases:
            if lease.worker not in self._processes:
                place = WorkerAddress.decode(lease.address)
                self._processes[lease.worker] = WorkerProcess(place.host, place.pid)

    def _tell(self, observation: Observation, effect: Any, answer: Any) -> None:
        match effect:
            case coordinating.ReadStatus() if isinstance(answer, QueryStatus):
                observation.saw(answer)
            case coordinating.AddMember(worker=worker) if answer is Verdict.DONE:
                observation.joined(worker, self._processes)
            case coordinating.Freeze(lost=lost, draining=draining) if answer is Verdict.DONE:
                observation.froze(lost, draining, self._processes)
            case coordinating.TakeSnapshot() if isinstance(answer, coordinating.SnapshotReply):
                observation.took(answer.snapshot)
            case coordinating.Resume(plan=plan) if answer is Verdict.DONE:
                observation.resumed(plan, self._processes)
            case _:
                pass

    def ended(self, query: QueryId, error: BaseException | None) -> None:
        """Note that a query has ended."""
        observation = self._observations.get(query)
        if observation is not None:
            observation.ended(error)

    def has_whole_result(self, query: QueryId) -> None:
        """Note that a query's client has all its rows."""
        observation = self._observations.get(query)
        if observation is not None:
            observation.has_whole_result()

    def close(self) -> None:
        """End all observations, because the engine is closed."""
        for observation in list(self._observations.values()):
            observation.close()

    def _forget_settled(self) -> None:
        for query, observation in list(self._observations.items()):
            if observation.is_settled():
                del self._observations[query]
