"""Real servers that fail over, are demoted, restored, emptied or made to evict: never trusted, always said."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.gcs.test_redis import ENGINE, GRAPH, HOSTS, R0, A, Q
from tests.redises import RedisServer, Switchboard, primary_and_replica, seen

from wallaby.errors import GcsError, GcsLostError, GcsUnavailableError
from wallaby.gcs.connection import Connection, ConnectionLimits, connect
from wallaby.gcs.interface import Commit, Verdict
from wallaby.gcs.keys import QueryKeys
from wallaby.gcs.redis import RedisGcs
from wallaby.lineage.names import Edge, TaskName, WorkerId
from wallaby.lineage.snapshot import RecoveryPlan

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]
QUICK = ConnectionLimits(connect_seconds=2.0, read_seconds=2.0, pool_seconds=2.0)

#: Every action there is: none may be carried out by a store of another incarnation.
ACTIONS: dict[str, Callable[[RedisGcs], object]] = {
    "register": lambda gcs: gcs.register(WorkerId("new"), "new:1", 1000),
    "renew": lambda gcs: gcs.renew(A, 1000),
    "expel": lambda gcs: gcs.expel(A),
    "ask_to_drain": lambda gcs: gcs.ask_to_drain(A),
    "complain": lambda gcs: gcs.complain(A, WorkerId("b"), reachable=False),
    "workers": lambda gcs: gcs.workers(),
    "submit": lambda gcs: gcs.submit(Q, GRAPH, HOSTS),
    "payload": lambda gcs: gcs.payload(Q),
    "join": lambda gcs: gcs.join(Q, WorkerId("c")),
    "status": lambda gcs: gcs.status(Q),
    "freeze": lambda gcs: gcs.freeze(Q, (A,), ()),
    "snapshot": lambda gcs: gcs.snapshot(Q),
    "resume": lambda gcs: gcs.resume(Q, RecoveryPlan(), 1),
    "look": lambda gcs: gcs.look(Q, A),
    "records": lambda gcs: gcs.records(Q, A, 1, R0),
    "commit": lambda gcs: gcs.commit(Q, A, 1, (commit(1),)),
    "acknowledge": lambda gcs: gcs.acknowledge(Q, A, 1, ((Edge(0, 0, 0), 1),)),
    "claim": lambda gcs: gcs.claim(Q, A, 1, 0, None),
    "close_early": lambda gcs: gcs.close_early(Q, A, 1, ()),
    "fail": lambda gcs: gcs.fail(Q, A, 1, "error"),
    "strain": lambda gcs: gcs.strain(Q, A, strained=True),
    "remove": lambda gcs: gcs.remove(Q),
}


def commit(seq: int, record: bytes = b"x") -> Commit:
    return Commit(TaskName(*R0, seq), record, final=False)


def begin(gcs: RedisGcs) -> None:
    assert gcs.register(A, "a:1", 1000)
    assert gcs.submit(Q, GRAPH, HOSTS) is Verdict.DONE
    assert gcs.commit(Q, A, 1, (commit(0),))[0].verdict is Verdict.DONE


def held(server: RedisServer) -> dict[bytes, bytes]:
    return {key: server.command("DUMP", key) for key in server.command("KEYS", "*")}


def is_refused(gcs: RedisGcs, action: Callable[[RedisGcs], object], why: str = "") -> bool:
    try:
        action(gcs)
    except GcsLostError as lost:
        return why in lost.what
    return False


def refused_by_all(gcs: RedisGcs, server: RedisServer) -> None:
    """Every action is refused, and nothing has changed."""
    before = held(server)
    for name, action in ACTIONS.items():
        assert is_refused(gcs, action), f"{name} was carried out"
    assert held(server) == before


Pair = tuple[RedisServer, RedisServer, Switchboard]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with primary_and_replica(tmp_path) as found:
        yield found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path / "redis")
    yield found
    found.stop()


def test_every_action_is_in_the_list() -> None:
    folder = Path(__file__).parents[2] / "src" / "wallaby" / "gcs" / "scripts"
    assert {path.stem for path in folder.glob("*.lua")} == {"_common", *ACTIONS}


def test_a_promoted_replica_is_not_trusted_even_if_it_has_everything(pair: Pair) -> None:
    primary, replica, board = pair
    with connect(board.url, limits=QUICK) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        replica.catch_up(primary)
        replica.promote()
        assert board.lead_to(replica.port) >= 1
        with pytest.raises((GcsLostError, GcsUnavailableError)):  # the connections that were cut
            gcs.status(Q)
        refused_by_all(gcs, replica)


def test_whoever_comes_later_is_told_which_store_it_must_be(pair: Pair) -> None:
    """A TaskManager that starts after the failover, while the head is still connected to the old primary."""
    primary, replica, board = pair
    with connect(board.url, limits=QUICK) as head:
        begin(RedisGcs(head, ENGINE))
        replica.catch_up(primary)
        replica.promote()
        board.lead_to(replica.port, cut=False)
        with pytest.raises(GcsLostError, match="restarted or replaced"):
            connect(board.url, limits=QUICK, incarnation=head.incarnation)
        assert RedisGcs(head, ENGINE).status(Q).verdict is Verdict.DONE, "the head has noticed nothing"


def test_a_demoted_primary_is_lost_over_connections_that_survive(pair: Pair) -> None:
    primary, replica, _ = pair
    with connect(primary.url, limits=QUICK) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        replica.promote()
        primary.command("REPLICAOF", "127.0.0.1", replica.port)
        for name, action in ACTIONS.items():
            assert is_refused(gcs, action, "a replica now"), f"{name} was carried out"


def test_a_demoted_primary_is_lost_to_whoever_connects_again(pair: Pair) -> None:
    primary, replica, _ = pair
    with connect(primary.url, limits=QUICK) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        primary.command("REPLICAOF", "127.0.0.1", replica.port)
        connection.close()
        refused_by_all(gcs, primary)
        with pytest.raises(GcsLostError, match="is a replica"):
            connect(primary.url, limits=QUICK, incarnation=connection.incarnation)
        with pytest.raises(GcsError, match="is a replica") as caught:
            connect(primary.url, limits=QUICK)
        assert not isinstance(caught.value, GcsLostError), "who comes for the first time has lost nothing"


def test_a_primary_that_was_demoted_and_promoted_again_has_the_same_run_and_is_lost(pair: Pair) -> None:
    """Its connections have survived, its run id is the same, and its last commit is gone."""
    primary, replica, _ = pair
    with connect(primary.url, limits=QUICK) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        replica.catch_up(primary)
        replica.promote()
        assert gcs.commit(Q, A, 1, (commit(1),))[0].verdict is Verdict.DONE, (
            "acknowledged, and not replicated"
        )
        primary.replicate(replica)
        primary.promote()
        assert primary.info("run_id") == connection.server.run_id
        assert primary.command("LLEN", QueryKeys.of(ENGINE, Q).records_of(R0)) == 1, "the commit is lost"
        refused_by_all(gcs, primary)


@pytest.mark.parametrize("tail", ["whole", "cut off"])
def test_a_server_restored_from_its_log_is_lost(tmp_path: Path, tail: str) -> None:
    server = RedisServer(tmp_path / "aof", "appendonly yes", "appendfsync everysec", "aof-load-truncated yes")
    try:
        with connect(server.url, limits=QUICK) as connection:
            gcs = RedisGcs(connection, ENGINE)
            begin(gcs)
            seen(lambda: log_of(server).stat().st_size > 0, "nothing is written")
            server.kill()
            if tail == "cut off":
                data = log_of(server).read_bytes()
                log_of(server).write_bytes(data[: data.rindex(b"RPUSH")])
            server.start()
            kept = server.command("EXISTS", QueryKeys.of(ENGINE, Q).query)
            assert kept == 1, "the query is still there, in part or as a whole"
            with pytest.raises((GcsLostError, GcsUnavailableError)):  # over the broken connection
                gcs.status(Q)
            refused_by_all(gcs, server)
    finally:
        server.stop()


def log_of(server: RedisServer) -> Path:
    return server.directory / "appendonly.aof"


def test_a_server_that_was_emptied_has_no_query_and_brings_none_back(server: RedisServer) -> None:
    with connect(server.url, limits=QUICK) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        server.command("FLUSHALL")
        assert gcs.status(Q).verdict is Verdict.GONE
        assert gcs.commit(Q, A, 1, (commit(1),))[0].verdict is Verdict.GONE
        assert not gcs.renew(A, 1000), "its workers are nobody's either"
        assert held(server) == {}


def test_a_server_that_has_evicted_keys_is_lost_whatever_its_policy_is_now(server: RedisServer) -> None:
    with connect(server.url, limits=QUICK) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        server.command("SET", "ballast", "x" * 1_000_000)
        server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        server.command("CONFIG", "SET", "maxmemory", 1)
        seen(lambda: server.info("evicted_keys") > 0, "nothing is evicted")
        server.command("CONFIG", "SET", "maxmemory", 0)
        server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        refused_by_all(gcs, server)


@pytest.mark.parametrize("deleted", ["splits", "records"])
def test_a_key_that_somebody_deleted_is_a_loss_and_not_an_end_of_the_input(
    server: RedisServer, deleted: str
) -> None:
    with connect(server.url, limits=QUICK) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        keys = QueryKeys.of(ENGINE, Q)
        server.command("DEL", keys.splits if deleted == "splits" else keys.records_of(R0))
        before = held(server)
        with pytest.raises(GcsLostError):
            gcs.commit(Q, A, 1, (commit(1),))
        if deleted == "records":
            with pytest.raises(GcsLostError):
                gcs.records(Q, A, 1, R0)
        assert held(server) == before


def test_a_first_replica_that_comes_counts_as_a_loss(server: RedisServer, tmp_path: Path) -> None:
    """The replication id changes, as it does after a promotion: nothing tells the two apart for certain."""
    replica = RedisServer(tmp_path / "replica")
    try:
        with connect(server.url, limits=QUICK) as connection:
            gcs = RedisGcs(connection, ENGINE)
            begin(gcs)
            replica.replicate(server)
            with pytest.raises(GcsLostError, match="replication began anew"):
                gcs.status(Q)
    finally:
        replica.stop()


def test_a_server_that_sleeps_is_unavailable_and_then_the_same(server: RedisServer) -> None:
    limits = ConnectionLimits(connect_seconds=1.0, read_seconds=0.2, pool_seconds=1.0)
    with connect(server.url, limits=limits) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        sleeping: Connection = connect(server.url, limits=limits)
        with pytest.raises(GcsUnavailableError):
            sleeping.command("DEBUG", "SLEEP", "1")
        with pytest.raises(GcsUnavailableError):
            gcs.status(Q)
        seen(lambda: server.command("PING"), "it does not wake")
        assert gcs.status(Q).verdict is Verdict.DONE
        sleeping.close()


def test_a_server_of_ours_that_is_known_to_have_ended_is_lost_at_once(server: RedisServer) -> None:
    gone = False
    with connect(server.url, limits=QUICK, is_gone=lambda: gone) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        with server.paused(), pytest.raises(GcsUnavailableError):
            gcs.status(Q)
        gone = True
        with server.paused(), pytest.raises(GcsLostError, match="has ended"):
            gcs.status(Q)


def test_a_server_of_ours_whose_port_is_closed_has_ended(server: RedisServer) -> None:
    with connect(server.url, limits=QUICK, is_gone=lambda: False) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        server.kill()
        with pytest.raises(GcsLostError, match="has ended"):
            gcs.status(Q)


def test_a_server_of_ours_that_dies_while_it_is_asked_has_ended(server: RedisServer) -> None:
    with connect(server.url, limits=QUICK, is_gone=lambda: False) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        os.kill(server.pid, signal.SIGSTOP)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(gcs.status, Q)
            time.sleep(0.2)  # the question is with the server, which does not answer it
            server.kill()
            with pytest.raises(GcsLostError, match="has ended"):
                asked.result()


def test_the_closed_port_of_a_server_elsewhere_says_nothing(server: RedisServer) -> None:
    with connect(server.url, limits=QUICK) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        server.kill()
        with pytest.raises(GcsUnavailableError):
            gcs.status(Q)


def test_an_unreplicated_write_is_refused_where_replicas_are_required(server: RedisServer) -> None:
    with connect(server.url, limits=QUICK) as connection:
        gcs = RedisGcs(connection, ENGINE)
        begin(gcs)
        server.command("CONFIG", "SET", "min-replicas-to-write", 1)
        with pytest.raises(GcsError, match="replicas") as caught:
            gcs.commit(Q, A, 1, (commit(1),))
        assert not isinstance(caught.value, GcsLostError)
