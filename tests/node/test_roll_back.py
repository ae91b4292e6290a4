"""Coordinated snapshots by real nodes and a real head, in one process: a lost worker rolls the whole query back."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.builders import pipeline

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.errors import WorkerLostError
from wallaby.exchange.backup import Backup
from wallaby.exchange.body import decode, encode
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.memory import ByteBudget
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.head.head import Head
from wallaby.lineage.barriers import Start
from wallaby.lineage.choose import Dynamic
from wallaby.lineage.effects import Execute, Executed, Output, PushReply, Slice
from wallaby.lineage.names import HEAD, QueryId, Upstream, WorkerId
from wallaby.lineage.tolerance import POLICIES
from wallaby.node.actors import DISCOVERY, TASK_MANAGER
from wallaby.node.node import EngineNode, WorkerQuery
from wallaby.node.outputs.durable_outputs import DurableOutputs
from wallaby.node.outputs.untracked import Untracked
from wallaby.node.perform import NodeSettings, Performer
from wallaby.node.session import QuerySession, QuerySessionSettings
from wallaby.operators.state import EMPTY
from wallaby.worker.taskmanager import TaskManager

SPLITS = 60
GRAPH = pipeline(readers=2, executors=2, splits=SPLITS)
#: In a run that is to lose a worker, a read before the awaited snapshot takes this long. After it, reads wait for the
#: loss: not earlier, because a channel that waits in a read passes no barrier on.
READ_SECONDS = 0.05
TOLERANCE = POLICIES["checkpoint"]
LEASE_MS = 400


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64())})


@dataclass(frozen=True)
class Payload:
    """What a query says to its workers: from which snapshot it goes on."""

    start: Start | None = None
    tolerance = TOLERANCE
    observed = False

    def encode(self) -> bytes:
        return json.dumps(None if self.start is None else asdict(self.start)).encode()

    def session_settings(self) -> QuerySessionSettings:
        return QuerySessionSettings(Dynamic(64), 1000, TOLERANCE, look_every_ms=50, start=self.start)

    @staticmethod
    def decode(data: bytes) -> Payload:
        said = json.loads(data)
        if said is None:
            return Payload()
        ended = tuple(Upstream(*upstream) for upstream in said["ended"])
        return Payload(Start(QueryId(said["query"]), said["number"], ended))


class Toy:
    """Reads numbers, doubles them, and in the end says how many each channel has seen, which is its state."""

    def __init__(
        self,
        query: QueryId,
        reads: Counter[QueryId],
        gates: list[threading.Event],
        has_snapshot: Callable[[], bool],
    ) -> None:
        self._query = query
        self._reads = reads
        self._gates = gates
        self._has_snapshot = has_snapshot

    def execute(self, effect: Execute) -> Executed:
        edges = GRAPH.edges_from(effect.task.of)
        if GRAPH.is_reader(effect.task.stage):
            self._reads[self._query] += effect.split is not None
            run = list(self._reads).index(self._query)
            if run < len(self._gates):
                self._gates[run].wait(60 if self._has_snapshot() else READ_SECONDS)
            mine = () if effect.split is None else (batch(effect.split),)
            return _made(
                effect.state, {e: mine if e.consumer == (effect.split or 0) % 2 else () for e in edges}
            )
        state = effect.state or EMPTY
        seen = sum(each.num_rows for each in state.combined)
        arrived = [each for piece in effect.inputs for each in piece.body or ()]  # type: ignore[attr-defined]
        values = [2 * value for each in arrived for value in each.column(0).to_pylist()]
        if effect.last:
            values.append(-seen)
        made = (batch(*values),) if values else ()
        return _made(replace(state, combined=(*state.combined, *arrived)), dict.fromkeys(edges, made))

    def close(self) -> None:
        """Nothing is left."""


def _made(state: Any, bodies: dict[Any, tuple[pa.RecordBatch, ...]]) -> Executed:
    return Executed(
        state, Output(0, {edge: (sum(b.nbytes for b in of), of or None) for edge, of in bodies.items()})
    )


class Cluster:
    """A head and workers that share a process; what they send each other passes the encoding of bodies."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._store = MemoryStore(lambda: int(time.monotonic() * 1000))
        self._nodes: dict[str, EngineNode] = {}
        self._performers: list[Performer] = []
        self.reads: Counter[QueryId] = Counter()
        #: For each loss: has it happened?
        self.gates: list[threading.Event] = []
        settings = CoordinatorSettings(lease_ms=LEASE_MS, poll_ms=30, recovers=TOLERANCE.survives_losses)
        backups = Backup(ByteBudget(1), (), 0, owner="head")
        self.forgotten: list[QueryId] = []
        peers: Any = self
        self.head = Head(
            MemoryGcs(self._store),
            backups,
            peers,
            lambda address, _seconds: True if address in self._nodes else None,
            settings,
            forget=self.forgotten.append,
        )
        self._nodes[HEAD] = self.head.node
        self.head.start()

    def start(self, name: str) -> None:
        worker, gcs = WorkerId(name), MemoryGcs(self._store)
        node = EngineNode(worker, lambda _error: None)
        peers: Any = self
        backups = Backup(ByteBudget(0), (self._directory,), 1 << 30, owner=name)  # all of it goes to files
        performer = Performer(
            node,
            gcs,
            backups,
            peers,
            str,
            lambda query: self._open(worker, gcs, query),
            lambda _query, _slices, go_on: go_on(),
            NodeSettings(kernel_threads=1, lease_ms=LEASE_MS),
            name,
        )
        manager = TaskManager(LEASE_MS // 4)
        self._nodes[name] = node
        self._performers.append(performer)
        node.start(performer, {TASK_MANAGER: manager.run(), DISCOVERY: manager.discover()})

    def kill(self, name: str) -> None:
        self._nodes.pop(name).stop()

    def _open(self, worker: WorkerId, gcs: MemoryGcs, query: QueryId) -> WorkerQuery | None:
        data = gcs.payload(query)
        if data is None:
            return None
        session = QuerySession(worker, GRAPH, Payload.decode(data).session_settings(), lambda: None)
        durable = DurableOutputs(DurableStore(str(self._directory / "store"), "e"), query, session, gcs, 0)
        return WorkerQuery(
            session,
            query,
            Toy(query, self.reads, self.gates, self.has_snapshot_of_present_run),
            None,
            Untracked(session),
            durable,
        )

    def push(
        self,
        address: str,
        query: QueryId,
        epoch: int,
        _sender: WorkerId,
        target: WorkerId,
        slices: tuple[Slice, ...],
    ) -> PushReply | None:
        node = self._nodes.get(address)
        if node is None:
            return None
        answer: Future[PushReply] = Future()
        sent = tuple(_sent(piece) for piece in slices)
        node.loop.post(lambda: answer.set_result(node.receive(query, epoch, target, sent)))
        try:
            return answer.result(5)
        except FutureTimeoutError:
            return None

    def has_snapshot_of_present_run(self) -> bool:
        """Has the present run passed its fourth snapshot, before which each reader has read some splits?"""
        found = [(each.query.id, each.covered) for each in tuple(self.head._submissions.values())]
        return any(start is not None and start.query == run and start.number > 3 for run, start in found)

    def stop(self) -> None:
        self.head.stop(1)
        for node in self._nodes.values():
            node.stop()
        for performer in self._performers:
            performer.stop(1)


def _sent(piece: Slice) -> Slice:
    body: Any = piece.body
    if not isinstance(body, tuple) and body is not None:
        body = body.read()
    return replace(piece, body=None if not body else decode(encode(body), len(body)))


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    found.start("w0")
    found.start("w1")
    until(lambda: len(found.head.workers()) == 2)
    yield found
    found.stop()


@pytest.mark.parametrize("losses", [0, 1, 2])
def test_rows_are_given_once_and_what_a_snapshot_covers_is_not_read_again(
    cluster: Cluster, losses: int
) -> None:
    plan: Any = SimpleNamespace(graph=GRAPH)
    payload: Any = Payload()
    cluster.gates += [threading.Event() for _ in range(losses)]
    collected = cluster.head.submit(plan, payload, begins_again=True)
    got: list[int] = []

    def take() -> None:
        for each in collected.batches():
            got.extend(each.column(0).to_pylist())

    client = threading.Thread(target=take)
    client.start()
    for loss in range(losses):
        until(cluster.has_snapshot_of_present_run)
        rows_before = len(got)
        cluster.kill(f"w{loss}")
        cluster.gates[loss].set()
        cluster.start(f"w{loss + 2}")
        until(lambda loss=loss: collected.figures.restarts > loss or collected.is_over)  # type: ignore[misc]
        assert len(got) >= rows_before
    client.join(60)
    assert collected.is_over
    values = Counter(value for value in got if value >= 0)
    assert values == Counter(2 * split for split in range(SPLITS))
    assert -sum(value for value in got if value < 0) == SPLITS, "states went on"
    assert collected.figures.restarts == losses
    assert len(cluster.reads) == losses + 1
    if losses:
        _, *later = cluster.reads.values()
        assert min(later) < SPLITS, "not from the beginning"
    until(lambda: len(cluster.forgotten) == losses + 1)


def test_a_query_that_always_loses_its_worker_ends_with_that_error(cluster: Cluster) -> None:
    plan: Any = SimpleNamespace(graph=GRAPH)
    payload: Any = Payload()
    settings = cluster.head._settings
    cluster.head._settings = replace(settings, task_worker_losses_max=1)
    collected = cluster.head.submit(plan, payload, begins_again=True)
    cluster.kill("w0")
    with pytest.raises(WorkerLostError):
        list(collected.batches())
