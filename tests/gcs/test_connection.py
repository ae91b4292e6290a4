"""Connecting to Redis: whatever is wrong at the other end is a typed error that says what to do."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from wallaby.errors import (
    GcsAuthenticationError,
    GcsError,
    GcsLostError,
    GcsUnavailableError,
    GcsUnreachableError,
    GcsVersionError,
    InvalidArgumentError,
)
from wallaby.gcs.address import GcsAddress, parse_address
from wallaby.gcs.connection import Connection, ConnectionLimits, Script, connect
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.gcs.incarnation import Incarnation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.redis, pytest.mark.timeout(60)]

QUICK = ConnectionLimits(connect_seconds=1.0, read_seconds=1.0, pool_seconds=1.0)


class FakeRedis:
    """A server that speaks just enough of Redis' protocol to answer AUTH, INFO, PING and scripts as told."""

    def __init__(self, answers: dict[str, bytes], listener: socket.socket) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self._listener = listener
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connected, _ = self._listener.accept()
                connected.settimeout(10)
                with connected, connected.makefile("rb") as stream:
                    while command := self._read(stream):
                        self.asked.append(command)
                        connected.sendall(self.answers.get(command, b"+OK\r\n"))

    @staticmethod
    def _read(stream: object) -> str:
        head = stream.readline()  # type: ignore[attr-defined]
        if not head.startswith(b"*"):
            return ""
        words = []
        for _ in range(int(head[1:])):
            size = int(stream.readline()[1:])  # type: ignore[attr-defined]
            words.append(stream.read(size + 2)[:-2])  # type: ignore[attr-defined]
        return bytes(words[0]).decode().upper()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


def bulk(text: str) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text.encode())


def info(**fields: str) -> bytes:
    usual = {"redis_version": "6.2.0", "run_id": "a" * 40, "role": "master", "maxmemory_policy": "noeviction"}
    usual["master_replid"] = "c" * 40
    return bulk("# Server\r\n" + "".join(f"{key}:{value}\r\n" for key, value in {**usual, **fields}.items()))


@pytest.fixture
def fake() -> Iterator[FakeRedis]:
    server = FakeRedis({"INFO": info(), "PING": b"+PONG\r\n"}, socket.create_server(("127.0.0.1", 0)))
    yield server
    server.close()


def url_of(fake: FakeRedis) -> str:
    return f"redis://127.0.0.1:{fake._listener.getsockname()[1]}"


def script_of(text: str) -> Script:
    return Script.of("test", text)


def test_it_tells_what_it_is_connected_to(connection: Connection, redis_server: EmbeddedRedis) -> None:
    assert connection.server.process_id == redis_server.pid
    assert len(connection.server.run_id) == 40


def test_a_missing_password_is_asked_for(redis_server: EmbeddedRedis) -> None:
    with pytest.raises(
        GcsAuthenticationError, match=r"needs a password and none was given.*spark.wallaby.gcs.password"
    ):
        connect(redis_server.url)


def test_a_wrong_password_is_refused_and_not_shown(redis_server: EmbeddedRedis) -> None:
    with pytest.raises(GcsAuthenticationError, match="refused the password") as caught:
        connect(redis_server.url, password="open sesame")
    assert "open sesame" not in str(caught.value)


def test_a_password_in_the_url_works(redis_server: EmbeddedRedis) -> None:
    with connect(f"redis://:{redis_server.password}@{redis_server.address}") as connection:
        assert redis_server.password not in repr(connection)
        assert redis_server.password not in repr(connection.address)


def test_a_user_that_may_not_ask_is_told_so(fake: FakeRedis) -> None:
    fake.answers["INFO"] = b"-NOPERM this user has no permissions to run the 'info' command\r\n"
    with pytest.raises(GcsAuthenticationError, match="does not let user 'default'"):
        connect(url_of(fake), limits=QUICK)


def test_an_address_where_nothing_listens_is_unreachable() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        with pytest.raises(GcsUnreachableError, match="No Redis answers at") as caught:
            connect(f"redis://127.0.0.1:{reserved.getsockname()[1]}", limits=QUICK)
    assert not caught.value.retryable


def test_a_server_that_never_answers_is_unreachable() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(GcsUnreachableError, match="Timeout"),
    ):
        connect(f"redis://127.0.0.1:{silent.getsockname()[1]}", limits=QUICK)


def test_a_host_without_address_is_unreachable() -> None:
    with pytest.raises(GcsUnreachableError):
        connect("redis://no-such-host.invalid", limits=QUICK)


def test_a_server_that_is_no_redis_is_unreachable(fake: FakeRedis) -> None:
    fake.answers["INFO"] = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with pytest.raises(GcsUnreachableError):
        connect(url_of(fake), limits=QUICK)


def test_a_server_that_answers_info_with_nonsense_is_unreachable(fake: FakeRedis) -> None:
    fake.answers["INFO"] = b":42\r\n"
    with pytest.raises(GcsUnreachableError, match="not that of a Redis"):
        connect(url_of(fake), limits=QUICK)


@pytest.mark.parametrize("version", ["5.0.7", "6.0.16", "unstable", ""])
def test_a_server_that_is_too_old_is_refused_with_both_versions(fake: FakeRedis, version: str) -> None:
    fake.answers["INFO"] = info(redis_version=version)
    with pytest.raises(GcsVersionError, match=r"needs? 6\.2") as caught:
        connect(url_of(fake), limits=QUICK)
    assert caught.value.fields["found"] == version
    assert caught.value.fields["needed"] == "6.2"


@pytest.mark.parametrize("version", ["6.2.0", "7.0.15", "10.1"])
def test_a_server_that_is_new_enough_is_taken(fake: FakeRedis, version: str) -> None:
    fake.answers["INFO"] = info(redis_version=version)
    with connect(url_of(fake), limits=QUICK) as connection:
        assert connection.server.version == version


def test_a_server_that_evicts_is_refused_with_the_line_to_set(fake: FakeRedis) -> None:
    fake.answers["INFO"] = info(maxmemory_policy="allkeys-lru")
    with pytest.raises(GcsError, match="`maxmemory-policy noeviction`"):
        connect(url_of(fake), limits=QUICK)


def test_a_replica_is_refused(fake: FakeRedis) -> None:
    fake.answers["INFO"] = info(role="slave")
    with pytest.raises(GcsError, match="is a replica"):
        connect(url_of(fake), limits=QUICK)


@pytest.mark.parametrize("name", ["run_id", "master_replid"])
def test_a_server_that_does_not_tell_who_it_is_is_refused(fake: FakeRedis, name: str) -> None:
    fake.answers["INFO"] = info(**{name: ""})
    with pytest.raises(GcsError, match=f"does not report its {name}"):
        connect(url_of(fake), limits=QUICK)


@pytest.mark.parametrize("mode", ["cluster", "sentinel"])
def test_a_cluster_or_a_sentinel_is_refused(fake: FakeRedis, mode: str) -> None:
    fake.answers["INFO"] = info(redis_mode=mode)
    with pytest.raises(GcsError, match=f"runs as a {mode}.*to the primary itself"):
        connect(url_of(fake), limits=QUICK)


def test_a_server_that_still_loads_may_be_asked_again(fake: FakeRedis) -> None:
    fake.answers["INFO"] = b"-LOADING Redis is loading the dataset in memory\r\n"
    with pytest.raises(GcsUnavailableError, match="loading"):
        connect(url_of(fake), limits=QUICK)


def test_another_run_than_the_expected_one_is_lost(redis_server: EmbeddedRedis) -> None:
    with pytest.raises(GcsLostError, match="restarted or replaced"):
        connect(redis_server.url, password=redis_server.password, incarnation=Incarnation("b" * 40, "c" * 40))


def test_a_restart_between_two_calls_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _bytes: "the same for both")
    with EmbeddedRedis() as first:
        connection = connect(first.url, password=first.password, limits=QUICK)
        port = first.port
        assert connection.run(script_of("return 1"), [], []) == 1
    with pytest.raises(GcsUnavailableError):
        connection.run(script_of("return 1"), [], [])
    with EmbeddedRedis(port=port) as second:
        for _ in range(2):
            with pytest.raises(GcsLostError):
                connection.run(script_of("return 1"), [], [])
        with connect(second.url, password=second.password) as another:
            assert another.run(script_of("return 1"), [], []) == 1
        connection.close()


def test_a_lost_reply_is_unavailable_and_nothing_is_sent_twice(fake: FakeRedis) -> None:
    fake.answers["EVALSHA"] = b""
    with (
        connect(url_of(fake), limits=QUICK) as connection,
        pytest.raises(GcsUnavailableError, match="did not answer test") as caught,
    ):
        connection.run(script_of("return 1"), [], [])
    assert caught.value.retryable
    assert fake.asked.count("EVALSHA") == 1


def test_a_paused_server_is_unavailable_and_answers_again_when_it_goes_on() -> None:
    with EmbeddedRedis() as server, connect(server.url, password=server.password, limits=QUICK) as connection:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(GcsUnavailableError):
                connection.run(script_of("return 1"), [], [])
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert connection.run(script_of("return 2"), [], []) == 2


def test_a_script_that_the_server_does_not_know_is_sent_and_then_known(connection: Connection) -> None:
    script = script_of("return {KEYS[1], ARGV[1]} -- first seen here")
    connection.command("SCRIPT", "FLUSH")
    assert connection.run(script, [b"wallaby:key"], [b"\x00\xff"]) == [b"wallaby:key", b"\x00\xff"]
    connection.command("SCRIPT", "FLUSH")
    assert connection.run(script, [b"wallaby:key"], [7]) == [b"wallaby:key", b"7"]


def test_a_script_that_fails_says_which(connection: Connection) -> None:
    with pytest.raises(GcsError, match="refused test") as caught:
        connection.run(script_of("return redis.call('NOSUCH')"), [], [])
    assert not caught.value.retryable


def test_threads_share_a_connection(connection: Connection) -> None:
    answers: list[int] = []
    script = script_of("return tonumber(ARGV[1])")
    threads = [
        threading.Thread(target=lambda n=n: answers.append(connection.run(script, [], [n])))
        for n in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(answers) == list(range(40))


def test_a_unix_socket_is_reached_by_its_path(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "redis.sock"))
    listener.listen()
    fake = FakeRedis({"INFO": info(), "PING": b"+PONG\r\n"}, listener)
    with connect(f"unix://{tmp_path}/redis.sock", limits=QUICK) as connection:
        assert connection.server.version == "6.2.0"
    with pytest.raises(GcsUnreachableError):
        connect(f"unix://{tmp_path}/nothing.sock", limits=QUICK)
    fake.close()


def test_tls_to_a_server_without_tls_is_unreachable(redis_server: EmbeddedRedis) -> None:
    with pytest.raises(GcsUnreachableError):
        connect(f"rediss://{redis_server.address}", password=redis_server.password, limits=QUICK)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://host", GcsAddress(host="host")),
        ("redis://host:7000/3", GcsAddress(host="host", port=7000, database=3)),
        ("rediss://[::1]:7000", GcsAddress(host="::1", port=7000, tls=True)),
        ("redis://user:p%40ss@host", GcsAddress(host="host", username="user", password="p@ss")),
        ("unix:///run/redis.sock", GcsAddress(path="/run/redis.sock")),
        (
            "unix://:secret@/run/redis.sock?db=2",
            GcsAddress(path="/run/redis.sock", database=2, password="secret"),
        ),
    ],
)
def test_an_address_is_read_from_its_url(url: str, address: GcsAddress) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:6379",
        "http://host",
        "redis://",
        "redis://:secret@",
        "redis://host:port",
        "redis://host:99999",
        "redis://host/x",
        "redis://host?socket_timeout=9",
        "unix://",
        "unix:///path?timeout=3",
        "redis+sentinel://:secret@host:26379/mymaster",
        "redis://:secret@one:6379,two:6379",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Write redis://host:port/0") as caught:
        parse_address(url)
    assert "secret" not in str(caught.value)


def test_credentials_are_given_once() -> None:
    with pytest.raises(InvalidArgumentError, match="Give them once"):
        parse_address("redis://:secret@host", password="secret")
