"""What the GCS tests share: one embedded Redis for the whole run, and proof that no other is left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from wallaby.gcs.connection import Connection, connect
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.gcs.redis import RedisGcs

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def redis_server() -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis() as server:
        yield server


@pytest.fixture
def connection(redis_server: EmbeddedRedis) -> Iterator[Connection]:
    with connect(redis_server.url, password=redis_server.password) as connection:
        yield connection


@pytest.fixture(scope="module", autouse=True)
def _no_server_is_left_behind(redis_server: EmbeddedRedis) -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    yield
    left = set(psutil.Process().children(recursive=True)) - before
    running = [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
    assert not [process for process in running if "redis-server" in " ".join(process.cmdline())]


@pytest.fixture
def redis_gcs(connection: Connection) -> Iterator[RedisGcs]:
    """The store in Redis, empty before and after."""
    yield RedisGcs(connection, "an engine")
    cursor = -1
    while cursor != 0:
        cursor, keys = connection.command("SCAN", max(cursor, 0), "MATCH", "wallaby:*", "COUNT", 1000)
        if keys:
            connection.command("UNLINK", *keys)
