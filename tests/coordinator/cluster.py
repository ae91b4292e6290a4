"""A store in memory, workers that answer or do not, and a coordinator whose effects are performed at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.builders import Driven, W, pipeline

from wallaby.coordinator.coordinator import Coordinator, CoordinatorSettings
from wallaby.coordinator.effects import (
    AddMember,
    Expel,
    Freeze,
    Ping,
    ReadStatus,
    Remove,
    Resume,
    SnapshotReply,
    TakeSnapshot,
    Watch,
)
from wallaby.coordinator.query import Query
from wallaby.gcs.interface import Commit, QueryStatus
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.lineage.effects import Pause
from wallaby.lineage.names import HEAD, QueryId, TaskName, WorkerId
from wallaby.lineage.snapshot import Snapshot
from wallaby.lineage.verdict import Verdict

Q = QueryId("q")
A, B, C = W[:3]
GRAPH = pipeline()
S0, S1, SINK = GRAPH.channels
SETTINGS = CoordinatorSettings()
DAY_MS = 86_400_000
Lose = Callable[[Any], bool]


def nothing(_: Any) -> bool:
    return False


class Cluster:
    """A store, the workers that answer a ping, and a coordinator whose effects are performed at once."""

    def __init__(self, *workers: WorkerId, start_ms: int = 1000) -> None:
        self.now_ms = start_ms
        self.store = MemoryStore(lambda: self.now_ms)
        self.gcs = MemoryGcs(self.store)
        for worker in workers:
            self.gcs.register(worker, f"{worker}:1", DAY_MS)
        self.answering = set(workers)
        self.gcs.submit(Q, GRAPH, {S0: workers[0], S1: workers[-1], SINK: HEAD})
        self.query = Query(Q, GRAPH)
        self.restart()

    def restart(self, settings: CoordinatorSettings = SETTINGS) -> None:
        """A new coordinator; the query is the driver's and stays."""
        self.coordinator = Coordinator(settings, {Q: self.query}, lambda: self.now_ms)

    def perform(self, effect: Any) -> object:
        match effect:
            case Watch():
                return self.gcs.workers()
            case Ping(worker):
                return worker in self.answering
            case Expel(worker):
                self.gcs.expel(worker)
                return True
            case ReadStatus(query):
                return self.gcs.status(query)
            case AddMember(query, worker):
                return self.gcs.join(query, worker)
            case Freeze(query, lost, draining):
                return self.gcs.freeze(query, lost, draining)
            case TakeSnapshot(query):
                return SnapshotReply(self.gcs.snapshot(query))
            case Resume(query, plan, version):
                return self.gcs.resume(query, plan, version)
            case Remove(query):
                self.gcs.remove(query)
                return True
            case unknown:
                raise AssertionError(unknown)

    def round(self, *, unsent: Lose = nothing, unanswered: Lose = nothing) -> list[Any]:
        """One round of the loop. An effect may get lost before it is done, or its answer after."""
        run = Driven(self.coordinator.run())
        while not isinstance(run.now, Pause) and run.now is not None:
            assert len(run.seen) < 50, "the round does not end"
            if unsent(run.now):
                run.answer(None)
            else:
                answer = self.perform(run.now)
                run.answer(None if unanswered(run.seen[-1]) else answer)
        return [effect for effect in run.seen if not isinstance(effect, Pause)]

    def rounds_until_open(self) -> None:
        for _ in range(5):
            if self.status.gate_open:
                return
            self.round()
        raise AssertionError("the gate stays closed")

    @property
    def status(self) -> QueryStatus:
        return self.gcs.status(Q)

    @property
    def snapshot(self) -> Snapshot:
        found = self.gcs.snapshot(Q)
        assert found is not None
        return found

    def kill(self, *workers: WorkerId) -> None:
        """Expelled in an earlier round: the leases know them no more."""
        for worker in workers:
            self.gcs.expel(worker)
            self.answering.discard(worker)

    def commit(self, worker: WorkerId, task: TaskName, record: bytes, *, final: bool = False) -> None:
        since = self.snapshot.channels[task.of].since_epoch
        commit = Commit(task, record, final, since_epoch=since)
        (reply,) = self.gcs.commit(Q, worker, self.status.epoch, (commit,))
        assert reply.verdict is Verdict.DONE


def only_once(kind: type) -> Lose:
    """The first effect of this kind, and no other."""
    left = [True]

    def strikes(effect: Any) -> bool:
        if isinstance(effect, kind) and left[0]:
            left[0] = False
            return True
        return False

    return strikes


def is_a(kind: type) -> Lose:
    return lambda effect: isinstance(effect, kind)
