"""Carry out the coordinator's effects on the head: call the store, and record what is observed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from wallaby.coordinator import effects as coordinating
from wallaby.gcs.interface import Gcs, WorkerLease
from wallaby.head.actions import ACTIONS
from wallaby.head.collected import Collected
from wallaby.head.inquiry import Inquiry
from wallaby.head.observer import Observer
from wallaby.head.submission import Submission
from wallaby.lineage.barriers import Cover, Start
from wallaby.lineage.kept import KeptChannels, ReadKept, kept_channels
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby.node.node import Actor, EngineNode, worker_query_of
from wallaby.node.perform import Performer


class CoordinatorsPerformer:
    """Adds the effects that only a head has to the node's performer. It runs on the loop's thread, or on its behalf."""

    def __init__(
        self,
        node: EngineNode,
        performer: Performer,
        observer: Observer,
        inquiry: Inquiry,
        collected: Mapping[QueryId, Collected],
        submissions: Mapping[QueryId, Submission],
        sweep: Callable[[], None],
        nudge: Callable[[set[WorkerId]], None],
        ping: Callable[[WorkerId], bool],
    ) -> None:
        """`sweep` is called before every call to the store, `nudge` lets workers look at it, `ping` asks one worker."""
        self._node = node
        self._performer = performer
        self._observer = observer
        self._collected = collected
        self._submissions = submissions
        self._sweep = sweep
        self._nudge = nudge
        self._ping = ping
        #: The workers whose leases were valid when the coordinator last looked.
        self.present: set[WorkerId] = set()
        teach = performer.teach
        teach(coordinating.Watch, self._asks(self._watch))
        teach(coordinating.Resume, self._asks(self._resume))
        teach(coordinating.Remove, self._asks(self._remove))
        for effect, action in ACTIONS.items():
            teach(effect, self._asks(action))
        teach(coordinating.Ping, self._ask)
        teach(coordinating.Inquire, inquiry.answer)
        teach(ReadKept, self._read_kept)
        teach(Cover, self._cover)

    def _asks(self, action: Callable[[Gcs, Any], Any]) -> Callable[[Actor, Any], None]:
        def carry_out(actor: Actor, effect: Any) -> None:
            self._sweep()
            self._performer.call(
                actor, effect, lambda gcs: self._observer.noticed(effect, action(gcs, effect))
            )

        return carry_out

    def _remove(self, gcs: Gcs, effect: coordinating.Remove) -> bool:
        self._measure(gcs, effect.query)
        gcs.remove(effect.query, barred=effect.barred)
        return True

    def _resume(self, gcs: Gcs, effect: coordinating.Resume) -> Any:
        verdict = gcs.resume(effect.query, effect.plan, effect.version)
        collected = self._collected.get(effect.query)
        if collected is not None and verdict is Verdict.DONE:
            collected.recovered()
        self._nudge(self.present)
        self._node.loop.post(self._node.wake_sessions)
        return verdict

    def _watch(self, gcs: Gcs, _: coordinating.Watch) -> tuple[WorkerLease, ...]:
        leases = gcs.workers()
        self.present = {lease.worker for lease in leases if lease.remaining_ms > 0}
        return leases

    def _measure(self, gcs: Gcs, query: QueryId) -> None:
        """Record the figures of a query before it is removed from the store."""
        collected = self._collected.get(query)
        if collected is not None:
            collected.figures.tasks = gcs.status(query).commits or collected.figures.tasks
            collected.figures.seconds = time.monotonic() - self._submissions[query].began_seconds

    def _ask(self, actor: Actor, effect: coordinating.Ping) -> None:
        self._performer.calls.submit(lambda: self._node.answer(actor, effect, self._ping(effect.worker)))

    def _read_kept(self, actor: Actor, effect: ReadKept) -> None:
        worker_query = worker_query_of(actor)

        def read(gcs: Gcs) -> KeptChannels:
            found = gcs.snapshot(worker_query.query)
            return {} if found is None else kept_channels(worker_query.session.graph, found)

        self._performer.call(actor, effect, read)

    def _cover(self, actor: Actor, effect: Cover) -> None:
        """Give out the rows before a complete snapshot, and remember the snapshot, in one step of the loop.

        A query that was rolled back meanwhile has neither any more: its rows come again.
        """
        query = worker_query_of(actor).query
        collected, submission = self._collected.get(query), self._submissions.get(query)

        def go_on() -> None:
            self._node.answer(actor, effect, None)

        if collected is None or submission is None:
            go_on()
            return
        if effect.whole:
            submission.query.becomes_whole()
        else:
            submission.covers(Start(query, effect.number, effect.ended), collected.figures.restarts)
        collected.add(effect.slices, go_on)
