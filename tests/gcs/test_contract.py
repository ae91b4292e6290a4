"""The same random scripts of actions on both stores: every answer, and all that they hold, must be equal.

One store is in memory, the other in Redis.

Half of what is drawn is right and half is wrong in some way: old epochs, workers that do not belong, records
sent twice, changed, out of order or too late, plans of another version, queries that are gone or never were.
The last test shows that the scripts reach every answer of every action.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from wallaby.gcs.interface import Commit, Gcs, Verdict, WorkerLease
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import HEAD, ChannelName, Edge, QueryId, TaskName, WorkerId
from wallaby.lineage.snapshot import RecoveryPlan, ReRead

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]

SEEDS = 30
ACTIONS = 150
HOUR_MS = 3_600_000

WORKERS = tuple(WorkerId(f"worker {n}/é") for n in range(5))
QUERIES = (QueryId("first"), QueryId("se{co}nd: *?[x]"))

READ, EXECUTE, COLLECT = StageKind.READ, StageKind.EXECUTE, StageKind.COLLECT
GRAPHS = (
    StageGraph((Stage(READ, 2, 3), Stage(COLLECT, 1)), (Link(0, 1),)),
    StageGraph(
        (Stage(READ, 3, 0), Stage(EXECUTE, 3), Stage(COLLECT, 1)),
        (Link(0, 1, routing=Routing.PASS_THROUGH), Link(1, 2)),
    ),
    StageGraph(
        (Stage(READ, 1, 2), Stage(READ, 2, 9), Stage(EXECUTE, 2), Stage(COLLECT, 1)),
        (
            Link(0, 1, LinkKind.SIDE, required=False, routing=Routing.BROADCAST),
            Link(0, 2),
            Link(1, 2, phase=1),
            Link(2, 3),
        ),
    ),
)


class Drawn:
    """Draws the next action, mostly from what the store in memory holds."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.store = MemoryStore(now_ms=lambda: 0)
        self.memory = MemoryGcs(self.store)

    def action(self) -> tuple[str, tuple[Any, ...]]:
        about_workers = ["register", "renew", "expel", "ask_to_drain", "complain"]
        rare = ["submit", "join", "remove", "fail", "freeze", "close_early", "strain", *about_workers]
        common = ["commit"] * 8 + ["acknowledge", "claim", "claim", "claim", "records", "resume", "resume"]
        name = self.random.choice(rare if self.chance(0.25) else common)
        if not self.memory.queries() and self.chance(0.7):
            name = "submit"
        elif name == "remove" and self.chance(0.8):
            name = "look"
        elif name not in rare and self.chance(0.4) and self.frozen():
            name = "resume"
        elif self.frozen() and self.chance(0.03):
            name = "fail"  # a closed gate does not last
        return name, getattr(self, f"_{name}")()

    def frozen(self) -> bool:
        return any(not state.gate_open for state in self.store.queries.values())

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # --- what is right more often than not -----------------------------------------------------------

    def query(self) -> QueryId:
        held = self.memory.queries()
        return self.random.choice(held) if held and self.chance(0.9) else self.random.choice(QUERIES)

    def worker(self) -> WorkerId:
        return self.random.choice((*WORKERS, HEAD))

    def graph(self, query: QueryId) -> StageGraph:
        return self.store.queries[query].graph if query in self.store.queries else GRAPHS[0]

    def epoch(self, query: QueryId) -> int:
        now = self.memory.status(query).epoch
        return now if self.chance(0.85) else max(0, now + self.random.choice((-1, 1, -2)))

    def channel(self, query: QueryId) -> ChannelName:
        return self.random.choice(self.graph(query).channels)

    def host(self, query: QueryId, channel: ChannelName) -> WorkerId:
        state = self.store.queries.get(query)
        return state.channels[channel].host if state is not None and self.chance(0.85) else self.worker()

    def delivered(self, query: QueryId, channel: ChannelName) -> tuple[tuple[Edge, int], ...]:
        edges = list(self.graph(query).edges_from(channel))
        if self.chance(0.1):
            edges += self.graph(query).edges_from(self.channel(query))
        drawn = self.random.sample(edges, self.random.randint(0, len(edges)))
        return tuple((edge, self.random.randint(0, 12)) for edge in drawn)

    # --- the actions' arguments ----------------------------------------------------------------------

    def _register(self) -> tuple[Any, ...]:
        return self.worker(), self.random.choice(("host:1", "host:1", "host:2 ")), self.lease_ms()

    def _renew(self) -> tuple[Any, ...]:
        return self.worker(), self.lease_ms()

    def lease_ms(self) -> int:
        """Ended for long, or for long not ended: the two clocks need not agree."""
        return self.random.choice((-HOUR_MS, HOUR_MS))

    def _expel(self) -> tuple[Any, ...]:
        return (self.worker() if self.chance(0.2) else WorkerId("nobody"),)

    def _ask_to_drain(self) -> tuple[Any, ...]:
        return (self.worker(),)

    def _complain(self) -> tuple[Any, ...]:
        lasts_ms = HOUR_MS if self.chance(0.8) else -HOUR_MS
        return self.worker(), self.worker(), self.chance(0.3), self.query(), lasts_ms

    def _submit(self) -> tuple[Any, ...]:
        graph = self.random.choice(GRAPHS)
        workers = self.random.sample(WORKERS, self.random.randint(1, 4))
        hosts = {name: self.random.choice(workers) for name in graph.channels[:-1]}
        payload = bytes(range(200)) * (len(hosts) % 3)
        return self.random.choice(QUERIES), graph, {**hosts, graph.collector: HEAD}, payload

    def _join(self) -> tuple[Any, ...]:
        return self.query(), self.random.choice(WORKERS)

    def _remove(self) -> tuple[Any, ...]:
        return (self.query(),)

    def _freeze(self) -> tuple[Any, ...]:
        lost = self.random.sample(WORKERS, self.random.choice((0, 0, 1, 1, 2)))
        query = self.query()
        held = self.memory.snapshot(query)
        if held is not None and held.strained and self.chance(0.5):
            lost = list(held.strained)
        return query, tuple(lost), tuple(self.random.sample(WORKERS, self.random.choice((0, 0, 1))))

    def _resume(self) -> tuple[Any, ...]:
        query = self.query()
        snapshot = self.memory.snapshot(query)
        if snapshot is None:
            return query, RecoveryPlan(), 1
        graph, draw = self.graph(query), self.random
        members = snapshot.members or WORKERS
        channels = draw.sample(graph.channels, draw.randint(0, len(graph.channels)))
        plan = RecoveryPlan(
            hosts={name: draw.choice(members) for name in graph.channels[:-1] if self.chance(0.5)},
            bases={name: draw.randint(0, 3) for name in channels if self.chance(0.3)},
            delivered={
                edge: draw.randint(0, 5)
                for name in channels
                for edge in graph.edges_from(name)
                if self.chance(0.5)
            },
            losses={name: draw.randint(0, 3) for name in channels if self.chance(0.3)},
            closed=tuple(name for name in channels if self.chance(0.1)),
            rereads=tuple(self.rereads(query)),
        )
        return query, plan, snapshot.version + (0 if self.chance(0.9) else draw.choice((-1, 1)))

    def rereads(self, query: QueryId) -> list[ReRead]:
        graph, draw = self.graph(query), self.random
        found = []
        for name, records in self.store.queries[query].records.items():
            if records and graph.is_reader(name.stage) and self.chance(0.7):
                first = draw.randrange(len(records))
                edges = graph.edges_from(name)
                some = tuple(draw.sample(edges, draw.randint(1, len(edges))))
                found.append(ReRead(name, first, draw.randint(first + 1, len(records)), some))
        return found

    def _look(self) -> tuple[Any, ...]:
        return self.query(), self.worker()

    def _records(self) -> tuple[Any, ...]:
        query = self.query()
        channel = self.channel(query)
        return query, self.host(query, channel), self.epoch(query), channel

    def _commit(self) -> tuple[Any, ...]:
        query = self.query()
        channel = self.channel(query)
        worker = self.host(query, channel)
        commits = [self.commit(query, channel)]
        while self.chance(0.4):
            commits.append(self.commit(query, self.channel(query)))
        if self.chance(0.2):
            first = commits[0]
            commits.append(
                replace(
                    first, task=TaskName(*channel, first.task.seq + self.random.randint(0, 1)), record=b"next"
                )
            )
        return query, worker, self.epoch(query), tuple(commits)

    def commit(self, query: QueryId, channel: ChannelName) -> Commit:
        state = self.store.queries.get(query)
        records = state.records[channel] if state is not None else []
        seq = len(records) + (0 if self.chance(0.7) else self.random.choice((-2, -1, 1)))
        record = bytes(self.random.randrange(256) for _ in range(self.random.randint(0, 12)))
        if 0 <= seq < len(records) and self.chance(0.7):
            record = records[seq]
        since = state.channels[channel].since_epoch if state is not None and self.chance(0.9) else 1
        return Commit(
            TaskName(*channel, max(0, seq)), record, self.chance(0.07), self.delivered(query, channel), since
        )

    def _acknowledge(self) -> tuple[Any, ...]:
        query = self.query()
        channel = self.channel(query)
        return query, self.host(query, channel), self.epoch(query), self.delivered(query, channel)

    def _claim(self) -> tuple[Any, ...]:
        query = self.query()
        state = self.store.queries.get(query)
        worker, slot = self.host(query, self.channel(query)), self.random.randint(0, 1)
        if state is not None and state.rereads and self.chance(0.7):
            stage = self.random.choice(state.rereads).channel.stage
            worker = self.random.choice([c.host for name, c in state.channels.items() if name.stage == stage])
        completed = TaskName(*self.channel(query), self.random.randint(0, 3)) if self.chance(0.2) else None
        if state is not None and state.claims and self.chance(0.6):
            (worker, slot), held = self.random.choice(list(state.claims.items()))
            if self.chance(0.7):
                completed = TaskName(*held.channel, held.first)
        return query, worker, self.epoch(query), slot, completed

    def _close_early(self) -> tuple[Any, ...]:
        query = self.query()
        channel = self.channel(query)
        candidates = list(self.graph(query).closable_above(channel))
        if self.chance(0.3):
            self.random.shuffle(candidates)
            candidates.append((channel, ()))
        return query, self.worker(), self.epoch(query), tuple(candidates)

    def _fail(self) -> tuple[Any, ...]:
        query = self.query()
        return query, self.worker(), self.epoch(query), self.random.choice(("", "wrong\n\udc80", "worse"))

    def _strain(self) -> tuple[Any, ...]:
        query = self.query()
        members = self.memory.status(query).members
        worker = self.random.choice(members) if members and self.chance(0.8) else self.worker()
        return query, worker, self.chance(0.8)


def comparable(answer: object) -> object:
    """An answer with nothing of either clock in it."""
    if isinstance(answer, tuple) and answer and isinstance(answer[0], WorkerLease):
        return [
            (
                lease.worker,
                lease.address,
                lease.remaining_ms > 0,
                lease.draining,
                [who for who, _ in lease.complaints],
            )
            for lease in answer
        ]
    return answer


def held(gcs: Gcs, looks: WorkerId) -> list[tuple[object, ...]]:
    """Everything a store holds, as the coordinator and one worker see it."""
    queries = [
        (gcs.dump(q), gcs.status(q), gcs.snapshot(q), gcs.look(q, looks), gcs.payload(q)) for q in QUERIES
    ]
    return [*queries, (gcs.queries(), comparable(gcs.workers()))]


def in_order(gcs: Gcs) -> list[object]:
    """What is compared without order above but must be in order too."""
    orders: list[object] = []
    for query in QUERIES:
        snapshot = gcs.snapshot(query)
        if snapshot is not None:
            orders += [list(snapshot.channels), list(snapshot.delivered)]
            orders += [list(gcs.look(query, worker).routes or ()) for worker in WORKERS]
    return orders


@pytest.mark.parametrize("seed", range(SEEDS))
def test_both_stores_answer_and_hold_the_same(seed: int, redis_gcs: Gcs) -> None:
    drawn = Drawn(seed)
    story = []
    for number in range(ACTIONS):
        name, arguments = drawn.action()
        story.append(f"{number}: {name}{arguments}")
        where = f"seed {seed}, " + "\n".join(story[-3:])
        expected = getattr(drawn.memory, name)(*arguments)
        assert comparable(getattr(redis_gcs, name)(*arguments)) == comparable(expected), where
        looks = (*WORKERS, HEAD)[number % 6]
        assert held(redis_gcs, looks) == held(drawn.memory, looks), where
    assert in_order(redis_gcs) == in_order(drawn.memory)
    for query in QUERIES:
        redis_gcs.remove(query)


def verdicts(answer: object) -> list[str]:
    if isinstance(answer, tuple):
        found = [getattr(each, "verdict", each) for each in answer]
        return [each.value for each in found if isinstance(each, Verdict)]
    found_one = getattr(answer, "verdict", answer)
    return [found_one.value if isinstance(found_one, Verdict) else str(found_one)]


def test_the_random_scripts_reach_every_answer_of_every_action() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    claimed = splits = lost_strained = 0
    for seed in range(SEEDS):
        drawn = Drawn(seed)
        for _ in range(ACTIONS):
            name, arguments = drawn.action()
            action: Callable[..., object] = getattr(drawn.memory, name)
            answer = action(*arguments)
            seen.update((name, verdict) for verdict in verdicts(answer))
            claimed += name == "claim" and getattr(answer, "task", None) is not None
            snapshots = [drawn.memory.snapshot(query) for query in QUERIES]
            lost_strained += sum(len(held.lost_strained) for held in snapshots if held is not None)
            splits += name == "commit" and any(reply.split is not None for reply in answer)  # type: ignore[attr-defined]
    fences = ("done", "gone", "expelled", "frozen", "stale")
    expected = {
        "register": ("True", "False"),
        "renew": ("True", "False"),
        "submit": ("done", "already"),
        "join": ("done", "already", "gone", "expelled"),
        "freeze": ("done", "gone"),
        "strain": ("done", "gone", "expelled"),
        "resume": ("done", "gone", "conflict"),
        "look": ("done", "gone", "expelled", "not host", "frozen"),
        "records": (*fences, "not host"),
        "commit": (*fences, "not host", "already", "diverged", "out of order", "closed"),
        "acknowledge": (*fences, "not host"),
        "claim": fences,
        "close_early": fences,
        "fail": (*fences, "already"),
    }
    missing = [
        (action, answer) for action, all_ in expected.items() for answer in all_ if not seen[action, answer]
    ]
    assert not missing
    assert claimed > SEEDS
    assert splits > SEEDS
    assert lost_strained > SEEDS
