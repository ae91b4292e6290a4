"""The observations of an engine's queries: the head passes on its calls to the store and their answers.

The coordinator does not know about it. Its effects and their answers pass the head, and contain everything of interest:
losses in freezes, repairs in resumes, commits in looks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wallaby.coordinator import effects as coordinating
from wallaby.errors import EncodingError
from wallaby.gcs.interface import QueryStatus, WorkerLease
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby.node.worker_address import WorkerAddress
from wallaby.observe.event_batch import decode_event_batch
from wallaby.observe.log import open_log
from wallaby.observe.observation import Observation, Whereabouts
from wallaby.plan.physical import PhysicalPlan

_log = logging.getLogger(__name__)


class Observer:
    """Observes all queries of one engine. `log_directory` is for their event logs, if there are any."""

    def __init__(self, log_directory: Path | None = None) -> None:
        self._log_directory = log_directory
        self._observations: dict[QueryId, Observation] = {}
        self._whereabouts: dict[WorkerId, Whereabouts] = {}
        #: Called with every effect of the coordinator and its answer, to check them.
        self.witness: Callable[[Any, Any], None] = lambda _effect, _answer: None

    def begin(
        self, query: QueryId, plan: PhysicalPlan, hosts: Mapping[ChannelName, WorkerId], *, detailed: bool
    ) -> Observation:
        """A query is about to be submitted."""
        log = open_log(self._log_directory, query) if detailed else None
        observation = Observation(query, plan, detailed=detailed, log=log)
        self._observations[query] = observation
        members = set(hosts.values())
        observation.began(hosts, {w: at for w, at in self._whereabouts.items() if w in members})
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
        self.witness(effect, answer)
        if isinstance(effect, coordinating.Watch):
            self.met(answer)
            self._forget_settled()
            return answer
        observation = self._observations.get(getattr(effect, "query", None))  # type: ignore[arg-type]
        if observation is not None:
            observation.asked()
            self._tell(observation, effect, answer)
        return answer

    def met(self, leases: tuple[WorkerLease, ...]) -> None:
        """Note the present workers."""
        for lease in leases:
            if lease.worker not in self._whereabouts:
                place = WorkerAddress.decode(lease.address)
                self._whereabouts[lease.worker] = Whereabouts(place.host, place.pid)

    def _tell(self, observation: Observation, effect: Any, answer: Any) -> None:
        match effect:
            case coordinating.ReadStatus() if isinstance(answer, QueryStatus):
                observation.saw(answer)
            case coordinating.AddMember(worker=worker) if answer is Verdict.DONE:
                observation.joined(worker, self._whereabouts)
            case coordinating.Freeze(lost=lost, draining=draining) if answer is Verdict.DONE:
                observation.froze(lost, draining, self._whereabouts)
            case coordinating.TakeSnapshot() if isinstance(answer, coordinating.SnapshotReply):
                observation.took(answer.snapshot)
            case coordinating.Resume(plan=plan) if answer is Verdict.DONE:
                observation.resumed(plan, self._whereabouts)
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
        """The engine is closed."""
        for observation in list(self._observations.values()):
            observation.close()

    def _forget_settled(self) -> None:
        for query, observation in list(self._observations.items()):
            if observation.is_settled():
                del self._observations[query]
