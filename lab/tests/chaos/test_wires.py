"""The network between two workers can be cut, both ways, and nothing else is."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from wallaby_lab.chaos.wires import HostWires

LIMIT_SECONDS = 10.0
ADDRESS = "127.0.0.1"


class Net(HostWires):
    """Proxies without an engine: who is at the other end is said, not looked up."""

    def __init__(self) -> None:
        super().__init__(_NoEngine())  # type: ignore[arg-type]
        self.callers = ""

    def _install(self, engine: Any) -> None:
        pass

    def _owner(self, _port: int) -> str:
        return self.callers

    def carry(self, worker: str, port: int) -> int:
        listener = socket.create_server((ADDRESS, 0))
        self._listeners.append(listener)
        threading.Thread(target=self._accept, args=(listener, worker, port), daemon=True).start()
        return int(listener.getsockname()[1])


class _NoEngine:
    def workers(self) -> list[Any]:
        return []


@contextmanager
def echo() -> Iterator[int]:
    """A server that says everything back."""
    with socket.create_server((ADDRESS, 0)) as listener:

        def answer(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def net() -> Iterator[Net]:
    made = Net()
    yield made
    made.close()


def is_answered(connection: socket.socket) -> bool:
    """Does what is said come back? Neither if the connection is reset nor if nothing comes for a while."""
    try:
        connection.sendall(b"hello")
        return connection.recv(100) == b"hello"
    except OSError:
        return False


@pytest.mark.parametrize("caller", ["w0", "w2", ""])
@pytest.mark.parametrize("silent", [False, True])
def test_only_what_is_between_the_two_is_cut(net: Net, caller: str, silent: bool) -> None:
    net.callers, is_cut = caller, caller == "w0"
    with echo() as server, socket.create_connection((ADDRESS, net.carry("w1", server))) as connection:
        connection.settimeout(LIMIT_SECONDS)
        assert is_answered(connection)
        assert net.cut("w1", "w0", silent=silent) == is_cut
        connection.settimeout(0.3 if is_cut else LIMIT_SECONDS)
        assert is_answered(connection) != is_cut
        assert (net.held_back > 0) == (is_cut and silent), "nothing comes through a connection that is reset"


def test_a_connection_that_is_made_later_is_cut_too(net: Net) -> None:
    net.callers = "w0"
    with echo() as server:
        port = net.carry("w1", server)
        net.cut("w0", "w1", silent=False)
        answered = False
        with (
            contextlib.suppress(OSError),
            socket.create_connection((ADDRESS, port), LIMIT_SECONDS) as connection,
        ):
            answered = is_answered(connection)
        assert not answered
        assert net.held_back == 1
