"""What only the store in Redis can get wrong: round trips, keys, threads, restarts, limits."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from wallaby.errors import GcsError, GcsLostError, GcsUnavailableError
from wallaby.gcs.connection import Connection, ConnectionLimits, Script, connect
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.gcs.interface import Commit, Gcs, Verdict
from wallaby.gcs.keys import QueryKeys
from wallaby.gcs.redis import RedisGcs
from wallaby.lineage.graph import Link, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import HEAD, ChannelName, Edge, QueryId, TaskName, WorkerId
from wallaby.lineage.snapshot import RecoveryPlan, ReRead

pytestmark = [pytest.mark.redis, pytest.mark.timeout(60)]

Q = QueryId("q")
ENGINE = "an engine"
A, B = WorkerId("a"), WorkerId("b")
R0, R1, SINK = ChannelName(0, 0), ChannelName(0, 1), ChannelName(1, 0)
GRAPH = StageGraph((Stage(StageKind.READ, 2, 4), Stage(StageKind.COLLECT, 1)), (Link(0, 1),))
HOSTS = {R0: A, R1: B, SINK: HEAD}


class Counting:
    """A connection that counts the scripts it runs."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.incarnation = connection.incarnation
        self.address = connection.address
        self.runs: list[tuple[str, Sequence[bytes]]] = []

    def run(self, script: Script, keys: Sequence[bytes], arguments: Sequence[bytes | str | int]) -> Any:
        self.runs.append((script.name, keys))
        return self.connection.run(script, keys, arguments)


def keys_in(connection: Connection) -> list[bytes]:
    found: list[bytes] = []
    cursor = -1
    while cursor != 0:
        cursor, keys = connection.command("SCAN", max(cursor, 0), "COUNT", 1000)
        found += keys
    return sorted(found)


def do_everything(gcs: Gcs, query: QueryId) -> None:
    """Every action on a query, so that every key of it is written."""
    gcs.submit(query, GRAPH, HOSTS)
    gcs.join(query, WorkerId("c"))
    gcs.commit(query, A, 1, (Commit(TaskName(*R0, 0), b"x", False, ((Edge(0, 0, 0), 1),)),))
    gcs.acknowledge(query, A, 1, ((Edge(0, 0, 0), 2),))
    gcs.close_early(query, A, 1, ((R1, (SINK,)),))
    gcs.fail(query, A, 1, "error")
    gcs.freeze(query, (WorkerId("c"),), (B,))
    snapshot = gcs.snapshot(query)
    assert snapshot is not None
    gcs.resume(query, RecoveryPlan(rereads=(ReRead(R0, 0, 1, (Edge(0, 0, 0),)),) * 2), snapshot.version)
    gcs.claim(query, A, 3, 0, None)
    gcs.records(query, A, 3, R0)
    gcs.look(query, A)
    gcs.status(query)


def test_every_action_is_one_round_trip(connection: Connection, redis_gcs: Gcs) -> None:
    counting = Counting(connection)
    gcs = RedisGcs(counting, ENGINE)  # type: ignore[arg-type]
    do_everything(gcs, Q)
    gcs.remove(Q)
    names = [name for name, _ in counting.runs]
    assert len(names) == len(set(names)) == 14


def test_all_keys_of_a_query_share_its_hash_tag_and_go_with_it(
    connection: Connection, redis_gcs: RedisGcs
) -> None:
    query = QueryId("a {strange} id:\n*")
    do_everything(redis_gcs, query)
    keys = keys_in(connection)
    prefix = b"wallaby:an%20engine:q:{a%20%7Bstrange%7D%20id%3A%0A%2A}:"
    assert {key.removeprefix(prefix) for key in keys} == {
        *(b"query", b"payload", b"members", b"departed", b"channels", b"links", b"splits"),
        *(b"delivered", b"rereads", b"claims", b"records:0.0"),
    }
    assert redis_gcs.queries() == (query,)
    redis_gcs.remove(query)
    assert keys_in(connection) == []


def test_every_script_declares_keys_of_one_slot_only(connection: Connection, redis_gcs: RedisGcs) -> None:
    counting = Counting(connection)
    do_everything(RedisGcs(counting, ENGINE), Q)  # type: ignore[arg-type]
    for name, keys in counting.runs:
        assert keys, name
        assert all(key.startswith(b"wallaby:an%20engine:q:{q}:") for key in keys), name


def test_many_threads_that_commit_the_same_task_append_it_once(redis_gcs: RedisGcs) -> None:
    redis_gcs.submit(Q, GRAPH, HOSTS)
    tasks, answers = 25, []
    start = threading.Barrier(4)

    def write() -> None:
        start.wait(10)
        for seq in range(tasks):
            commit = Commit(TaskName(*R0, seq), b"record %d" % seq, final=False)
            reply = redis_gcs.commit(Q, A, 1, (commit,))[0]
            while reply.verdict is Verdict.OUT_OF_ORDER:
                reply = redis_gcs.commit(Q, A, 1, (commit,))[0]
            answers.append((seq, reply.verdict))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(seq for seq, verdict in answers if verdict is Verdict.DONE) == list(range(tasks))
    assert len([1 for _, verdict in answers if verdict is Verdict.ALREADY]) == 3 * tasks
    assert redis_gcs.records(Q, A, 1, R0)[1] == tuple(b"record %d" % seq for seq in range(tasks))
    assert redis_gcs.status(Q).commits == tasks


def test_a_restarted_server_is_lost_to_every_client_that_knew_the_old_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _bytes: "the same for both")
    with EmbeddedRedis() as first:
        port = first.port
        connection = connect(first.url, password=first.password, limits=ConnectionLimits(1.0, 1.0, 1.0))
        gcs = RedisGcs(connection, ENGINE)
        gcs.submit(Q, GRAPH, HOSTS)
    with pytest.raises(GcsUnavailableError):
        gcs.status(Q)
    with EmbeddedRedis(port=port) as second:
        for action in (lambda: gcs.status(Q), lambda: gcs.look(Q, A), lambda: gcs.renew(A, 1), gcs.queries):
            with pytest.raises(GcsLostError):
                action()
        with connect(second.url, password=second.password) as another:
            assert RedisGcs(another, ENGINE).status(Q).verdict is Verdict.GONE
        connection.close()


def test_a_query_that_survived_a_restart_on_disk_is_not_trusted(
    connection: Connection, redis_gcs: RedisGcs
) -> None:
    redis_gcs.submit(Q, GRAPH, HOSTS)
    # What a server with an append-only file looks like after a restart: the data, and another run id.
    connection.command("HSET", QueryKeys.of(ENGINE, Q).query, "run", "0" * 40)
    before = [connection.command("DUMP", key) for key in keys_in(connection)]
    for action in (
        lambda: redis_gcs.submit(Q, GRAPH, HOSTS),
        lambda: redis_gcs.payload(Q),
        lambda: redis_gcs.join(Q, A),
        lambda: redis_gcs.status(Q),
        lambda: redis_gcs.freeze(Q, (A,), ()),
        lambda: redis_gcs.snapshot(Q),
        lambda: redis_gcs.resume(Q, RecoveryPlan(), 1),
        lambda: redis_gcs.look(Q, A),
        lambda: redis_gcs.records(Q, A, 1, R0),
        lambda: redis_gcs.commit(Q, A, 1, (Commit(TaskName(*R0, 0), b"", False),)),
        lambda: redis_gcs.acknowledge(Q, A, 1, ((Edge(0, 0, 0), 1),)),
        lambda: redis_gcs.claim(Q, A, 1, 0, None),
        lambda: redis_gcs.close_early(Q, A, 1, ()),
        lambda: redis_gcs.fail(Q, A, 1, "error"),
        lambda: redis_gcs.dump(Q),
    ):
        with pytest.raises(GcsLostError):
            action()
    assert [connection.command("DUMP", key) for key in keys_in(connection)] == before
    redis_gcs.remove(Q)
    assert keys_in(connection) == []


def test_a_call_with_an_unknown_channel_fails_before_it_writes(redis_gcs: RedisGcs) -> None:
    redis_gcs.submit(Q, GRAPH, HOSTS)
    before = redis_gcs.dump(Q)
    known, unknown = Commit(TaskName(*R0, 0), b"", False), Commit(TaskName(7, 7, 0), b"", False)
    with pytest.raises(GcsError, match=r"no channel 7\.7"):
        redis_gcs.commit(Q, A, 1, (known, unknown))
    with pytest.raises(GcsError, match=r"no channel 7\.7"):
        redis_gcs.close_early(Q, A, 1, ((R0, ()), (ChannelName(7, 7), ())))
    with pytest.raises(GcsError, match="no link 7"):
        redis_gcs.acknowledge(Q, A, 1, ((Edge(0, 0, 0), 1), (Edge(7, 0, 0), 1)))
    redis_gcs.freeze(Q, (), ())
    frozen = redis_gcs.dump(Q)
    with pytest.raises(GcsError, match=r"no channel 7\.7"):
        redis_gcs.resume(Q, RecoveryPlan(hosts={R0: B, ChannelName(7, 7): B}), 2)
    assert redis_gcs.dump(Q) == frozen
    assert before is not None
    assert frozen == {**before, "epoch": 2, "version": 2, "gate_open": False}


def test_a_full_server_refuses_a_commit_whole() -> None:
    with (
        EmbeddedRedis(maxmemory_bytes=2_000_000) as server,
        connect(server.url, password=server.password) as connection,
    ):
        gcs = RedisGcs(connection, ENGINE)
        gcs.submit(Q, GRAPH, HOSTS)
        done = 0

        def fill() -> None:
            nonlocal done
            for seq in range(1000):
                delivered = ((Edge(0, 0, 0), seq),)
                gcs.commit(Q, A, 1, (Commit(TaskName(*R0, seq), bytes(10_000), False, delivered),))
                done += 1

        with pytest.raises(GcsError, match="Raise its maxmemory") as caught:
            fill()
        assert not caught.value.retryable
        assert 0 < done < 1000
        status, (_, records) = gcs.status(Q), gcs.records(Q, A, 1, R0)
        assert status.commits == len(records) == done
        gcs.remove(Q)
        assert keys_in(connection) == []


def test_a_large_query_does_not_meet_lua_s_limits(redis_gcs: RedisGcs) -> None:
    graph = StageGraph(
        (Stage(StageKind.READ, 60, 5000), Stage(StageKind.EXECUTE, 3000), Stage(StageKind.COLLECT, 1)),
        (Link(0, 1, routing=Routing.HASH), Link(1, 2)),
    )
    hosts = {name: WorkerId(f"worker-{name.channel % 50}") for name in graph.channels[:-1]} | {
        graph.collector: HEAD
    }
    assert redis_gcs.submit(Q, graph, hosts) is Verdict.DONE
    view = redis_gcs.look(Q, WorkerId("worker-0"))
    assert len(view.assignments) == 62
    assert len(view.delivered or ()) == 2 * 3000 + 60
    assert len(view.routes or ()) == 3061
    channel = ChannelName(0, 0)
    delivered = tuple((edge, 1) for edge in graph.edges_from(channel))
    commits = tuple(Commit(TaskName(*channel, seq), b"record", False, delivered) for seq in range(3))
    replies = redis_gcs.commit(Q, WorkerId("worker-0"), 1, commits)
    assert [reply.verdict for reply in replies] == [Verdict.DONE] * 3
    redis_gcs.freeze(Q, (), ())
    snapshot = redis_gcs.snapshot(Q)
    assert snapshot is not None
    plan = RecoveryPlan(hosts=hosts, delivered=dict(delivered))
    assert redis_gcs.resume(Q, plan, snapshot.version) is Verdict.DONE
    redis_gcs.remove(Q)
