"""Committing to the GCS, one task at a time and by the hundred, beside a bare MULTI of three writes each."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import redis

from wallaby.gcs.connection import connect
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.gcs.interface import Commit
from wallaby.gcs.redis import RedisGcs
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.lineage import LineageRecord, encode
from wallaby.lineage.names import HEAD, ChannelName, QueryId, TaskName, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby_lab.bench.blocks.block import Block, best_of

COMMITS: Final = 2_000
GROUPS: Final = (1, 100)
WORKER: Final = WorkerId("w0")
QUERY: Final = QueryId("q-bench")
GRAPH: Final = StageGraph(
    (Stage(StageKind.READ, 1, splits=1 << 30), Stage(StageKind.COLLECT, 1)), (Link(0, 1),)
)


def measure_commits(_data: Path, rounds: int) -> list[Block]:
    """Records of reads, each with the next split for its channel."""
    found = []
    with ExitStack() as stack:
        server = stack.enter_context(EmbeddedRedis())
        connection = stack.enter_context(connect(server.url, password=server.password))
        gcs = RedisGcs(connection, "e-bench")
        gcs.register(WORKER, "nowhere", 1 << 30)
        assert gcs.submit(QUERY, GRAPH, {ChannelName(0, 0): WORKER, GRAPH.collector: HEAD}) is Verdict.DONE
        client: Any = redis.Redis.from_url(server.url, password=server.password)
        stack.callback(client.close)
        tasks = count()
        record = encode(LineageRecord(1 << 63, split=7))

        def ours(group: int) -> None:
            for _ in range(COMMITS // group):
                commits = tuple(
                    Commit(TaskName(0, 0, next(tasks)), record, final=False) for _ in range(group)
                )
                replies = gcs.commit(QUERY, WORKER, 1, commits)
                assert all(reply.verdict is Verdict.DONE for reply in replies)

        def bare(group: int) -> None:
            for _ in range(COMMITS // group):
                with client.pipeline(transaction=True) as pipe:
                    for _ in range(group):
                        pipe.rpush("wallaby:bench:records", record)
                        pipe.hset("wallaby:bench:channels", "0.0", b"w0 7")
                        pipe.hincrby("wallaby:bench:query", "commits", 1)
                    pipe.execute()

        for group in GROUPS:
            seconds, bare_seconds = best_of(rounds, partial(ours, group), partial(bare, group))
            name = f"GCS commit, {group} in a call, {len(record)} bytes of lineage"
            found.append(Block(name, "bare Redis MULTI", seconds, bare_seconds, COMMITS, "tasks"))
    return found
