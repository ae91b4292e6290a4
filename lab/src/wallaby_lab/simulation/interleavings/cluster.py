"""A small query on real nodes: loop, node, performer, pools, group commits, pushes, backup, and receiving pushes.

Only the network and the kernels are replaced. Calls between nodes use the real client's and server's code directly:
headers and bodies are encoded, cut into chunks and assembled again. A step computes what the simulation's queries
compute, on Arrow data. While the query runs, its epoch changes, a worker may be lost, calls to the store may fail or
lose their answers, and pushes may break off. The answer must be correct; a commit must carry its own epoch, and get its
own reply; and slices that are reported as held must be held.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from wallaby.errors import EncodingError, GcsUnavailableError
from wallaby.exchange import client as client_module
from wallaby.exchange.backup import Backup
from wallaby.exchange.client import PeerClient
from wallaby.exchange.incoming import CARRIER, IncomingPushes, ServerLimits
from wallaby.exchange.memory import ByteBudget
from wallaby.exchange.wire import decode_push, decode_reply, encode_push, encode_reply
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.lineage.choose import Dynamic, Static
from wallaby.lineage.effects import (
    BackUp,
    CommitTask,
    Effect,
    Execute,
    Executed,
    Push,
    PushReply,
    Slice,
)
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import HEAD, QueryId, Upstream, WorkerId
from wallaby.lineage.reconcile import reconcile
from wallaby.node.actors import DISCOVERY, TASK_MANAGER
from wallaby.node.node import Actor, EngineNode, WorkerQuery
from wallaby.node.perform import NodeSettings, Performer
from wallaby.node.session import QuerySession, QuerySessionSettings
from wallaby.worker.taskmanager import TaskManager
from wallaby_lab.simulation.drawn.workload import Row, ToyWorkload, draw_workload
from wallaby_lab.simulation.interleavings.backup_threads import PLENTY_BYTES, require
from wallaby_lab.simulation.interleavings.scheduler import FakeQueue, Scheduler

QUERY = QueryId("q1")
#: The shares of calls to the store that fail, and whose answer is lost.
FAILING = 0.02
#: Larger queries would take longer, and show nothing more.
ROWS_MAX, CHANNELS_MAX = 40, 9
CALL_SECONDS = 5.0


class _Work:
    """Steps on Arrow data, with batches as input and output."""

    def __init__(self, workload: ToyWorkload) -> None:
        self._workload = workload

    def execute(self, effect: Execute) -> Executed:
        plain = replace(
            effect,
            inputs=tuple(map(_plain, effect.inputs)),
            sides={link: tuple(map(_plain, pieces)) for link, pieces in effect.sides.items()},
        )
        state, output = self._workload.step(plain)
        slices = {}
        known: dict[object, tuple[pa.RecordBatch, ...]] = {}
        for edge, (_, rows) in output.slices.items():
            body = known.setdefault(rows, _batches(rows)) if rows else None
            slices[edge] = (sum(batch.nbytes for batch in body or ()), body)
        return Executed(state, replace(output, slices=slices))

    def close(self) -> None:
        """Nothing is kept."""


def _batches(rows: Any) -> tuple[pa.RecordBatch, ...]:
    """Rows in batches of two, whose boundaries must be preserved everywhere."""
    parts = [rows[at : at + 2] for at in range(0, len(rows), 2)]
    return tuple(
        pa.record_batch([pa.array([r[i] for r in part], pa.int64()) for i in (0, 1)], ["k", "v"])
        for part in parts
    )


def rows_of(piece: Slice) -> tuple[Row, ...]:
    """The rows of a slice, which must have preserved its batches."""
    batches: Any = piece.body or ()
    require(all(b.num_rows == 2 for b in batches[:-1]), f"{piece.task} came in other batches")
    return tuple(row for b in batches for row in zip(*(c.to_pylist() for c in b.columns), strict=True))


def _plain(piece: Slice) -> Slice:
    return replace(piece, body=rows_of(piece) or None)


class _Door:
    """The server's code, without a server."""

    def __init__(self, receive: Any, limits: ServerLimits) -> None:
        self._pushes = IncomingPushes(receive, limits)

    def push(self, command: bytes, chunks: list[pa.RecordBatch]) -> bytes:
        """Receive a push."""
        reply = self._pushes.take_in(decode_push(command), _Stream(chunks))
        require(self._pushes.incoming_bytes >= 0, "more was given back than was taken")
        return encode_reply(reply)


class _Stream:
    schema = CARRIER

    def __init__(self, chunks: list[pa.RecordBatch]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[Any]:
        for chunk in self._chunks:
            yield type("Message", (), {"data": chunk})


class _Peers(PeerClient):
    """The client's code, over calls that the scheduler makes."""

    def __init__(self, cluster: InterleavedCluster) -> None:
        super().__init__("a token for no server")
        self._cluster = cluster

    def _push(self, address: str, batch: Any) -> PushReply | None:
        chunks = list(batch.chunks())
        if self._cluster.random.random() < self._cluster.breaking:
            chunks = chunks[: self._cluster.random.randrange(len(chunks) + 1)]
        command = encode_push(batch.header)
        return self._called(address, batch.header, lambda door, _: door.push(command, chunks))

    def _ask(self, address: str, header: Any) -> PushReply | None:
        pieces = tuple(Slice(s.task, s.edge, s.final, s.size_bytes, ()) for s in header.slices)

        def ask(_: _Door, member: Member) -> bytes:
            asked = decode_push(encode_push(header))
            return encode_reply(
                member.on_loop(lambda: member.node.preview(asked.query, asked.epoch, asked.target, pieces))
            )

        return self._called(address, header, ask)

    def _called(self, address: str, header: Any, call: Callable[[_Door, Member], bytes]) -> PushReply | None:
        member, scheduler = self._cluster.members[WorkerId(address)], self._cluster.scheduler
        answer: list[bytes | None] = []

        def serve() -> None:
            try:
                answer.append(call(member.door, member))
            except EncodingError:
                answer.append(None)  # it broke off

        scheduler.spawn(f"call of {address}", serve, owner=address)
        if not scheduler.wait(lambda: bool(answer), CALL_SECONDS) or answer[0] is None:
            return None
        reply = decode_reply(answer[0])
        require(not reply.accepted or len(reply.held) == len(header.slices), "a reply to other slices")
        return reply


class _Store:
    """A connection to the store that sometimes fails, and checks that commits carry their own epoch."""

    def __init__(self, cluster: InterleavedCluster, worker: WorkerId) -> None:
        self._cluster = cluster
        self._worker = worker
        self._gcs = MemoryGcs(cluster.store)

    def __getattr__(self, name: str) -> Any:
        action = getattr(self._gcs, name)

        def ask(*arguments: Any) -> Any:
            chance = self._cluster.random.random()
            if chance < FAILING:
                raise GcsUnavailableError("It does not answer.")
            if name == "commit":
                self._check(*arguments)
            answer = action(*arguments)
            if name == "commit":
                for commit, reply in zip(arguments[3], answer, strict=True):
                    self._cluster.replies[self._worker, commit.task] = reply
            if chance > 1 - FAILING:
                raise GcsUnavailableError("Its answer was lost.")
            return answer

        return ask

    def _check(self, _query: QueryId, worker: WorkerId, epoch: int, commits: tuple[Any, ...]) -> None:
        for commit in commits:
            asked = self._cluster.commits.get((worker, commit.task))
            require(
                asked is not None and asked.epoch == epoch and asked.record == commit.record,
                f"{commit.task} is committed in epoch {epoch}, and was asked for as {asked}",
            )


class _Node(EngineNode):
    """A node that checks the answers to its actors."""

    cluster: InterleavedCluster

    def answer(self, actor: Actor, effect: Effect[Any], value: Any) -> None:
        asked = self.cluster.asked.pop(id(actor), None)
        require(asked is effect, f"{actor.name} is answered twice, or about something else: {value}")
        match effect:
            case CommitTask(task=task) if value is not None and not isinstance(value, Exception):
                reply = self.cluster.replies.get((self.worker, task))
                require(value is reply, f"{task} is answered {value}, and the store said {reply}")
            case Push() if isinstance(value, PushReply) and value.accepted:
                self.cluster.check_held(effect, value)
            case BackUp() if value is True and actor.alive and QUERY in self.worker_queries:
                kept = self.cluster.members[self.worker].backup.has(QUERY, effect.task)
                require(kept, f"{effect.task} is said to be kept, and is not")
            case _:
                pass
        super().answer(actor, effect, value)


class _Performer(Performer):
    """A performer that notes the effects."""

    cluster: InterleavedCluster

    def perform(self, actor: Actor, effect: Effect[Any]) -> None:
        self.cluster.asked[id(actor)] = effect
        self.cluster.actors.append(actor)  # so that its id is not reused
        if isinstance(effect, CommitTask):
            self.cluster.commits[self._node.worker, effect.task] = effect
        super().perform(actor, effect)


class Member:
    """One node and everything that belongs to it."""

    def __init__(self, cluster: InterleavedCluster, worker: WorkerId, folder: Path) -> None:
        self._cluster = cluster
        random = cluster.random
        self.worker = worker
        cluster.scheduler.owned_by(worker)
        self.node = _Node(worker, self._ended)
        self.node.cluster = cluster
        self.budget = ByteBudget(random.choice((0, 100, 500, 1 << 20)))
        segment_bytes = random.choice((1, 1_000, 1 << 20))
        self.backup = Backup(self.budget, [folder], PLENTY_BYTES, owner=worker, segment_bytes=segment_bytes)
        self.door = _Door(self._receive, cluster.limits)
        self.performer = _Performer(
            self.node,
            _Store(cluster, worker),
            self.backup,
            _Peers(cluster),
            lambda target: str(target) if random.random() < 0.98 else None,
            lambda _query: self.worker_query(),
            cluster.collect,
            cluster.settings,
            address=worker,
        )
        self.performer.cluster = cluster
        manager = TaskManager(100)
        actors = {TASK_MANAGER: manager.run(), DISCOVERY: manager.discover()}
        self.node.start(self.performer, actors if worker != HEAD else {})

    def worker_query(self) -> WorkerQuery:
        """The query at this node."""
        cluster = self._cluster
        session = QuerySession(self.worker, cluster.workload.graph, cluster.session, cluster.end)
        return WorkerQuery(session, QUERY, _Work(cluster.workload))

    def on_loop(self, ask: Callable[[], PushReply]) -> PushReply:
        """Compute an answer on the loop's thread."""
        answer = FakeQueue(self._cluster.scheduler)
        self.node.loop.post(lambda: answer.put(ask()))
        reply: PushReply = answer.get()
        return reply

    def _receive(
        self, query: QueryId, epoch: int, _sender: WorkerId, target: WorkerId, slices: Any
    ) -> PushReply:
        return self.on_loop(lambda: self.node.receive(query, epoch, target, slices))

    def _ended(self, error: BaseException | None) -> None:
        if error is not None and isinstance(error, Exception):
            self._cluster.scheduler.error = self._cluster.scheduler.error or error


class InterleavedCluster:
    """A cluster of interleaved nodes; see the module."""

    def __init__(self, scheduler: Scheduler, random: Random, folder: Path) -> None:
        self.scheduler = scheduler
        self.random = random
        self.store = MemoryStore(lambda: int(scheduler.now * 1000))
        self.workload = _drawn(random)
        policy = random.choice((Dynamic(16), Dynamic(200), Static(2), Dynamic(64, several=False)))
        self.session = QuerySessionSettings(
            policy,
            random.choice((16, 64, 1_000)),
            outputs_per_push=random.choice((1, 3, 32)),
            look_every_ms=50,
        )
        self.settings = NodeSettings(
            kernel_threads=random.choice((1, 2)),
            push_threads=2,
            push_bytes=random.choice((1, 40, 200, 1 << 20)),
            call_threads=1,
            durable_threads=1,
        )
        self.limits = ServerLimits(
            incoming_bytes=random.choice((1, 600, 1 << 20)), offer_bytes=random.choice((0, 1, 300, 1 << 20))
        )
        self.breaking = random.choice((0.0, 0.0, 0.1))
        self.asked: dict[int, Any] = {}
        self.actors: list[Actor] = []
        self.commits: dict[tuple[WorkerId, Any], CommitTask] = {}
        self.replies: dict[tuple[WorkerId, Any], Any] = {}
        self.collected: Counter[Row] = Counter()
        self.is_collected = False
        self.is_over = False
        self.lost: WorkerId | None = None
        self.members: dict[WorkerId, Member] = {}
        for worker in (HEAD, *(WorkerId(f"w{n + 1}") for n in range(random.choice((1, 2, 2, 3))))):
            (folder / worker).mkdir()
            self.members[worker] = Member(self, worker, folder / worker)
        scheduler.owned_by("driver")

    @property
    def graph(self) -> StageGraph:
        """The query."""
        return self.workload.graph

    def collect(self, _query: QueryId, slices: tuple[Slice, ...], answer: Callable[[], None]) -> None:
        """Take rows, as the client."""
        for piece in slices:
            self.collected.update(rows_of(piece))
        answer()

    def end(self) -> None:
        """The result is complete."""
        self.is_collected = True

    def check_held(self, push: Push, reply: PushReply) -> None:
        """Check that what a reply reports as held is held."""
        require(1 <= len(reply.held) <= len(push.items), "a reply to another number of slices")
        worker_query = self.members[push.target].node.worker_queries.get(QUERY)
        if worker_query is None or worker_query.session.context.epoch != push.epoch:
            return
        for (edge, task), is_held in zip(push.items, reply.held, strict=False):
            run = worker_query.session.runs.get(self.graph.consumer(edge))
            if not is_held or run is None or run.ended:
                continue
            lane = run.inbox.lanes()[Upstream(edge.link, edge.producer)]
            there = task.seq < lane.consumed or task.seq in lane.held
            require(there, f"{push.target} is said to hold {task} over {edge}, and does not")

    def run(self) -> None:
        """Submit the query, change its epoch while it runs, and check the answer."""
        self.scheduler.spawn("driver", self._drive, owner="driver")
        self.scheduler.spawn("coordinator", self._coordinate, owner="driver")
        self.scheduler.run(lambda: self.is_over)
        difference = self.workload.explain_difference(self.collected)
        require(not difference, f"the result is wrong: {difference}")
        for worker, member in self.members.items():
            if worker != self.lost:
                left = (member.backup.bytes_in_memory, member.backup.bytes_on_disk, member.budget.used_bytes)
                require(left == (0, 0, 0), f"{worker} keeps {left} bytes when all is over")

    def _drive(self) -> None:
        workers = [worker for worker in self.members if worker != HEAD]
        self.scheduler.wait(lambda: len(self.store.workers) == len(workers))
        hosts = {
            name: HEAD if name == self.graph.collector else workers[at % len(workers)]
            for at, name in enumerate(self.graph.channels)
        }
        gcs = MemoryGcs(self.store)
        gcs.submit(QUERY, self.graph, hosts)
        head = self.members[HEAD]
        head.node.loop.post(head.node.begin_query, head.worker_query())
        self.scheduler.wait(lambda: self.is_collected)
        gcs.remove(QUERY)
        alive = [member for worker, member in self.members.items() if worker != self.lost]
        self.scheduler.wait(
            lambda: (
                not any(m.node.worker_queries or m.budget.used_bytes or m.backup.bytes_on_disk for m in alive)
            )
        )
        self.is_over = True

    def _coordinate(self) -> None:
        """Freeze and resume after certain numbers of commits; a worker may be lost."""
        workers = [worker for worker in self.members if worker != HEAD]
        loses = len(workers) > 1 and self.random.random() < 0.5
        moments = sorted(self.random.randrange(12) for _ in range(self.random.choice((0, 1, 2, 3))))
        for at, moment in enumerate(moments):
            self.scheduler.wait(lambda moment=moment: self._is_past(moment))  # type: ignore[misc]
            if self.is_collected or QUERY not in self.store.queries:
                return
            lost: tuple[WorkerId, ...] = ()
            if loses and at == len(moments) - 1:
                lost = (self.random.choice(workers),)
                self.lost = lost[0]
                self.scheduler.kill(self.lost)
            self._recover(lost)

    def _is_past(self, moment: int) -> bool:
        query = self.store.queries.get(QUERY)
        return self.is_collected or (query is not None and query.commits >= moment)

    def _recover(self, lost: tuple[WorkerId, ...]) -> None:
        gcs = MemoryGcs(self.store)
        for worker in lost:
            gcs.expel(worker)
        gcs.freeze(QUERY, lost, ())
        for _ in range(self.random.choice((0, 3, 20))):
            self.scheduler.pause()
        snapshot = gcs.snapshot(QUERY)
        if snapshot is not None:
            gcs.resume(QUERY, reconcile(self.graph, snapshot), snapshot.version)


def _drawn(random: Random) -> ToyWorkload:
    while True:
        workload = draw_workload(random)
        rows = sum(len(split) for table in workload.tables.values() for split in table)
        if (
            rows <= ROWS_MAX
            and len(workload.graph.channels) <= CHANNELS_MAX
            and workload.answer().total() <= ROWS_MAX
        ):
            return workload


def run_cluster(scheduler: Scheduler, random: Random) -> None:
    """Run one seed; raises if anything is wrong."""
    folder = Path(tempfile.mkdtemp(prefix="wallaby-cluster-"))
    names = ("ASK_BYTES", "CALL_BYTES", "CHUNK_BYTES")
    before = {name: getattr(client_module, name) for name in names}
    try:
        client_module.ASK_BYTES = random.choice((0, 100, before["ASK_BYTES"]))
        client_module.CALL_BYTES = random.choice((1, 200, before["CALL_BYTES"]))
        client_module.CHUNK_BYTES = random.choice((50, 700, before["CHUNK_BYTES"]))
        InterleavedCluster(scheduler, random, folder).run()
    finally:
        for name, value in before.items():
            setattr(client_module, name, value)
        shutil.rmtree(folder, ignore_errors=True)
