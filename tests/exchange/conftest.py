"""Servers and clients on 127.0.0.1, and proof that none of them is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from tests.exchange.parts import TARGET, Receiver

from wallaby.exchange.client import PeerClient, new_token
from wallaby.exchange.server import FlightDataServer

StartServer = Callable[..., FlightDataServer]


def listening() -> set[tuple[str, int]]:
    connections = psutil.Process().net_connections(kind="inet")
    # gRPC listens on IPv4 addresses through IPv6 sockets: "::ffff:127.0.0.1" is 127.0.0.1 and nothing more.
    return {
        (c.laddr.ip.removeprefix("::ffff:"), c.laddr.port)
        for c in connections
        if c.status == psutil.CONN_LISTEN
    }


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    ports, threads = listening(), set(threading.enumerate())
    yield
    assert listening() <= ports
    left = [t for t in threading.enumerate() if t not in threads and "Dummy" not in t.name]
    assert not left


@pytest.fixture
def token() -> str:
    return new_token()


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def start(token: str, receiver: Receiver) -> Iterator[StartServer]:
    """Starts servers with the given options; all end with the test."""
    servers: list[FlightDataServer] = []

    def begin(**options: Any) -> FlightDataServer:
        servers.append(FlightDataServer("127.0.0.1", token, TARGET, receiver, **options))
        return servers[-1]

    yield begin
    for server in servers:
        assert server.close(timeout_seconds=10)
        assert server.incoming_bytes == 0


@pytest.fixture
def server(start: StartServer) -> FlightDataServer:
    return start()


@pytest.fixture
def client(token: str) -> Iterator[PeerClient]:
    client = PeerClient(token, timeout_seconds=20)
    yield client
    client.close()
