"""Real stores that are lost while a query runs: a typed error, or the whole answer if asked; the engine goes on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from tests.engine.test_ends import LONG, nothing_is_left_of_queries, until
from tests.redises import RedisServer, Switchboard, primary_and_replica
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import GcsError, GcsLostError, QueryCancelledError
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.results.result import Result
from wallaby_lab.compare import require_same

Pair = tuple[RedisServer, RedisServer, Switchboard]
SETTINGS = {"workers": 2, "threads": 1, "split": 1}


@pytest.fixture
def pair(tmp_path: Path, engines: Engines) -> Iterator[Pair]:
    with primary_and_replica(tmp_path) as found:
        yield found
        engines.close()  # while its store is still there


def running(engine: Engine, spark: SparkSession) -> Result:
    """A query that has begun to commit."""
    result = engine.run(spark.sql(LONG))
    until(lambda: engine._parts.gcs.status(result._collected.query).commits > 20)
    return result


def require_well(engine: Engine, spark: SparkSession) -> None:
    """The engine runs queries again, on all its TaskManagers, and nothing is left of the one before."""
    df = spark.sql(LONG.replace("short", "few"))
    require_same(engine.run(df).arrow(), df.toArrow())
    until(lambda: len(engine.workers()) == 2)
    until(lambda: nothing_is_left_of_queries(engine))


def keys_of_queries(server: RedisServer) -> list[bytes]:
    return [key for key in server.command("KEYS", "wallaby:*") if b":q:{" in key]


def head_ports() -> tuple[int, ...]:
    """The ports of this process's own connections."""
    return tuple(found.laddr.port for found in psutil.Process().net_connections("tcp"))


# --- what may happen to an external store --------------------------------------------------------------------


def fail_over(pair: Pair) -> None:
    _, replica, board = pair
    replica.promote()
    assert board.lead_to(replica.port)


def fail_over_for_workers(pair: Pair) -> None:
    """Split brain: TaskManagers are led to the promoted replica, the head stays at the old primary."""
    _, replica, board = pair
    replica.promote()
    assert board.lead_to(replica.port, spare=head_ports())


def fail_over_for_the_head(pair: Pair) -> None:
    _, replica, board = pair
    replica.promote()
    theirs = {
        found.laddr.port
        for process in psutil.Process().children(recursive=True)
        for found in process.net_connections("tcp")
    }
    assert board.lead_to(replica.port, spare=tuple(theirs))


def demote_and_fail_over(pair: Pair) -> None:
    """The connections to the old primary survive; it takes no more writes."""
    primary, replica, board = pair
    replica.promote()
    primary.command("REPLICAOF", "127.0.0.1", replica.port)
    board.lead_to(replica.port, cut=False)


def demote_and_promote_again(pair: Pair) -> None:
    """The same server, run and connections, and the last commits are gone."""
    primary, replica, _ = pair
    replica.promote()
    primary.replicate(replica)
    primary.promote()


def empty(pair: Pair) -> None:
    pair[0].command("FLUSHALL")


TROUBLES: list[Callable[[Pair], None]] = [
    fail_over,
    fail_over_for_workers,
    fail_over_for_the_head,
    demote_and_fail_over,
    demote_and_promote_again,
    empty,
]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_store_that_is_lost_ends_the_query_and_the_engine_goes_on(
    engines: Engines, spark: SparkSession, pair: Pair, trouble: Callable[[Pair], None]
) -> None:
    engine = engines.get(**SETTINGS, gcs_url=pair[2].url)
    result = running(engine, spark)
    trouble(pair)
    with pytest.raises(GcsLostError):
        result.arrow()
    require_well(engine, spark)
    engines.close()
    at = pair[2]._target
    assert all(keys_of_queries(server) == [] for server in pair[:2] if server.port == at)


@pytest.mark.parametrize("trouble", [fail_over, demote_and_promote_again, empty])
def test_a_query_is_run_again_if_asked(
    engines: Engines, spark: SparkSession, pair: Pair, trouble: Callable[[Pair], None]
) -> None:
    engine = engines.get(**SETTINGS, gcs_url=pair[2].url, retry_on_gcs_loss=True)
    expected = spark.sql(LONG).toArrow()
    result = running(engine, spark)
    before = result._collected.query
    trouble(pair)
    require_same(result.arrow(), expected)
    assert result.stats.restarts == 1
    assert result._collected.query != before
    require_well(engine, spark)


@pytest.mark.parametrize("tail", ["whole", "cut off"])
def test_a_store_restored_from_its_log_is_lost(
    engines: Engines, spark: SparkSession, tmp_path: Path, tail: str
) -> None:
    server = RedisServer(tmp_path / "aof", "appendonly yes", "appendfsync everysec", "aof-load-truncated yes")
    try:
        engine = engines.get(**SETTINGS, gcs_url=server.url)
        result = running(engine, spark)
        server.kill()
        log = server.directory / "appendonly.aof"
        if tail == "cut off":
            data = log.read_bytes()
            log.write_bytes(data[: data.rindex(b"RPUSH")])
        server.start()
        assert keys_of_queries(server), "it has come back with the query in it"
        with pytest.raises(GcsLostError):
            result.arrow()
        require_well(engine, spark)
        assert keys_of_queries(server) == [], "what was left of the query is swept"
    finally:
        engines.close()
        server.stop()


def test_a_store_that_sleeps_for_a_while_costs_time_and_nothing_else(
    engines: Engines, spark: SparkSession, pair: Pair
) -> None:
    engine = engines.get(**SETTINGS, gcs_url=pair[2].url)
    expected = spark.sql(LONG).toArrow()
    result = running(engine, spark)
    pair[0].command("DEBUG", "SLEEP", "4")
    require_same(result.arrow(), expected)


def test_a_store_that_stays_away_ends_the_query_and_is_said_to_be_away(
    engines: Engines, spark: SparkSession, tmp_path: Path
) -> None:
    server = RedisServer(tmp_path / "redis")
    try:
        engine = engines.get(**SETTINGS, gcs_url=server.url, gcs_timeout=2)
        result = running(engine, spark)
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(GcsLostError, match="has not answered"):
            result.arrow()
        server.kill()
        with pytest.raises(GcsError, match="No Redis answers"):
            engine.collect(spark.table("nation"))
        server.start()
        require_well(engine, spark)
    finally:
        engines.close()
        server.stop()


# --- the embedded store --------------------------------------------------------------------------------------


def kill_embedded(engine: Engine) -> None:
    store = engine.inspection.embedded_store
    assert isinstance(store, EmbeddedRedis)
    os.kill(store.pid, signal.SIGKILL)


def test_an_embedded_store_that_dies_is_lost_and_the_next_query_has_another(
    engines: Engines, spark: SparkSession
) -> None:
    engine = engines.get(**SETTINGS, channels=3)
    result = running(engine, spark)
    kill_embedded(engine)
    with pytest.raises(GcsLostError):
        result.arrow()
    require_well(engine, spark)


def test_an_embedded_store_that_dies_between_queries_costs_none(
    engines: Engines, spark: SparkSession
) -> None:
    engine = engines.get(**SETTINGS, channels=3)
    require_well(engine, spark)
    kill_embedded(engine)
    require_well(engine, spark)


def test_a_query_is_run_again_on_another_embedded_store(engines: Engines, spark: SparkSession) -> None:
    engine = engines.get(**SETTINGS, channels=3, retry_on_gcs_loss=True)
    expected = spark.sql(LONG).toArrow()
    result = running(engine, spark)
    kill_embedded(engine)
    require_same(result.arrow(), expected)
    assert result.stats.restarts == 1


def waits_for_another_store() -> bool:
    return any(thread.name == "wallaby-again" for thread in threading.enumerate())


def test_a_query_that_waits_for_another_store_can_be_cancelled(engines: Engines, spark: SparkSession) -> None:
    engine = engines.get(**SETTINGS, channels=3, retry_on_gcs_loss=True)
    result = running(engine, spark)
    head = engine._parts.head
    kill_embedded(engine)
    until(waits_for_another_store)  # cancelled before, it would need no store any more
    result.cancel()
    with pytest.raises(QueryCancelledError):
        result.arrow()
    require_well(engine, spark)  # this query brings another store, unless the cancelled one has begun to
    assert engine._parts.head is not head


def redis_servers() -> set[int]:
    """The Redis servers of this process."""
    return {
        child.pid for child in psutil.Process().children(recursive=True) if "redis-server" in child.name()
    }


def test_an_engine_that_is_closed_while_a_query_waits_for_another_store_leaves_nothing(
    engines: Engines, spark: SparkSession
) -> None:
    others = redis_servers()  # of tests that share theirs
    engine = engines.get(**SETTINGS, channels=3, retry_on_gcs_loss=True)
    result = running(engine, spark)
    head = engine._parts.head
    kill_embedded(engine)
    until(lambda: head.lost_store is not None)
    engines.close()
    with pytest.raises(Exception, match="closed"):
        result.arrow()
    until(lambda: not waits_for_another_store())
    until(lambda: redis_servers() <= others)
