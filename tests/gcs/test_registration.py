"""Several engines in one Redis: they do not see each other, and what a killed one left is swept."""

from __future__ import annotations

import pytest
from tests.gcs.test_redis import GRAPH, HOSTS, A, Q, do_everything, keys_in

from wallaby.gcs.connection import Connection
from wallaby.gcs.keys import alive_key
from wallaby.gcs.redis import RedisGcs
from wallaby.gcs.registration import LOOK_SECONDS, Registration, sweep_keys

pytestmark = [pytest.mark.redis, pytest.mark.timeout(60)]


@pytest.fixture(autouse=True)
def _empty(redis_gcs: RedisGcs) -> None:
    """The store is empty before and after."""


def test_two_engines_do_not_see_each_others_workers_and_queries(connection: Connection) -> None:
    one, other = RedisGcs(connection, "one"), RedisGcs(connection, "other")
    one.register(A, "here", 60_000)
    one.submit(Q, GRAPH, HOSTS)
    assert (len(one.workers()), one.queries()) == (1, (Q,))
    assert (other.workers(), other.queries(), other.snapshot(Q)) == ((), (), None)
    other.remove(Q)
    other.expel(A)
    assert one.renew(A, 60_000)
    assert one.snapshot(Q) is not None


def test_an_engine_that_ends_leaves_no_key_and_spares_the_others(connection: Connection) -> None:
    registrations = [Registration(connection, engine) for engine in ("one", "other")]
    for engine in ("one", "other"):
        gcs = RedisGcs(connection, engine)
        gcs.register(A, "here", 60_000)
        do_everything(gcs, Q)
    registrations[0].end()
    assert not [key for key in keys_in(connection) if key.startswith(b"wallaby:one:")]
    assert RedisGcs(connection, "other").snapshot(Q) is not None
    registrations[1].end()
    assert keys_in(connection) == []


def test_what_a_killed_engine_left_is_swept_once_it_is_known_to_be_gone(connection: Connection) -> None:
    connection.command("SET", alive_key("living"), "1", "EX", 60)
    for engine in ("killed", "living"):
        do_everything(RedisGcs(connection, engine), Q)
    assert sweep_keys(connection) > 5
    assert RedisGcs(connection, "killed").snapshot(Q) is None
    assert RedisGcs(connection, "living").snapshot(Q) is not None
    assert sweep_keys(connection) == 0


def test_a_living_engine_stays_alive(connection: Connection) -> None:
    stay = Registration(connection, "one", alive_seconds=1)
    stay._over.wait(1.5)
    assert connection.command("EXISTS", alive_key("one")) == 1
    stay.end()
    assert keys_in(connection) == []


@pytest.mark.parametrize("renews", [True, False])
def test_an_engine_whose_workers_renew_their_leases_is_not_swept_whatever_has_expired(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, renews: bool
) -> None:
    """As after a jump of the server's clock, which lets keys expire that were renewed in time."""
    gcs = RedisGcs(connection, "one")
    gcs.register(A, "here", 60_000)
    gcs.submit(Q, GRAPH, HOSTS)

    def meanwhile(seconds: float) -> None:
        assert seconds == LOOK_SECONDS
        if renews:
            gcs.renew(A, 90_000)

    monkeypatch.setattr("wallaby.gcs.registration.time.sleep", meanwhile)
    assert (sweep_keys(connection) == 0) is renews
    assert (gcs.snapshot(Q) is not None) is renews


def test_what_an_engine_was_called_before_is_removed_at_once(connection: Connection) -> None:
    connection.command("SET", alive_key("formerly"), "1", "EX", 60)
    do_everything(RedisGcs(connection, "formerly"), Q)
    Registration(connection, "now", ("formerly",)).end()
    assert keys_in(connection) == []
