"""Hosts of network namespaces: what they need, what a cut or pulled cable does, and that nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from wallaby_lab.hosts.network import Host, HostsError, Network, remove_abandoned, require_what_hosts_need

PORT = 5000
SECONDS = 2.0
_SERVER = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    while connection.recv(1 << 20):
        pass
    connection.close()
"""
_CLIENT = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3]))
connection.sendall(b"x" * int(sys.argv[4]))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""


def test_without_root_hosts_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/sbin/{program}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostsError, match=r"Hosts need root.*sudo"):
        require_what_hosts_need()


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None if program == "tc" else program)
    with pytest.raises(HostsError, match=r"need tc of iproute2.*apt-get install iproute2"):
        require_what_hosts_need()


@contextlib.contextmanager
def server(host: Host) -> Iterator[None]:
    command = host.command(sys.executable, "-c", _SERVER, host.address, str(PORT))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        try:
            yield
        finally:
            process.kill()


def reaches(sender: Host, receiver: Host, count: int = 1) -> bool:
    """Can one host send the other so many bytes, with an answer within the time limit?"""
    arguments = (receiver.address, str(PORT), str(SECONDS), str(count))
    command = sender.command(sys.executable, "-c", _CLIENT, *arguments)
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0


def namespaces() -> set[str]:
    listed = subprocess.run(("ip", "netns", "list"), check=True, capture_output=True, text=True, timeout=20)
    return {line.split(" ")[0] for line in listed.stdout.splitlines()}


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with Network(3) as made:
        yield made


@pytest.mark.hosts
def test_a_cut_loses_what_one_host_sends_to_another_and_nothing_else(network: Network) -> None:
    one, other, third = network.hosts
    with server(other):
        assert reaches(one, other)
        with network.cuts((one, other)):
            assert not reaches(one, other)
            assert reaches(third, other)
        with network.cuts((other, one)):
            assert not reaches(one, other), "the answers are lost"
        assert reaches(one, other)
        to_port = network.cut(one, other, PORT)
        assert not reaches(one, other)
        network.mend(to_port)
        elsewhere = network.cut(one, other, PORT + 1)
        assert reaches(one, other)
        network.mend(elsewhere)


@pytest.mark.hosts
def test_a_cable_can_be_pulled_out_and_put_back(network: Network) -> None:
    one, other, _ = network.hosts
    with server(other):
        network.pull(other)
        assert not reaches(one, other)
        network.plug(other)
        assert reaches(one, other)


@pytest.mark.hosts
def test_a_slow_cable_lets_no_more_through_than_its_rate(network: Network) -> None:
    one, other, _ = network.hosts
    with server(other):
        network.set_rate(one, 8)
        began = time.monotonic()
        assert reaches(one, other, 1_500_000)
        assert time.monotonic() - began > 1.0, (
            "a MB takes a second at 8 Mbit/s, but for what the queue takes at once"
        )
        network.set_rate(one, None)


@pytest.mark.hosts
def test_hosts_of_a_program_that_was_killed_are_removed_by_the_next_network() -> None:
    program = "import os; from wallaby_lab.hosts.network import Network; Network(1); os.kill(os.getpid(), 9)"
    with subprocess.Popen((sys.executable, "-c", program)) as killed:
        killed.wait(60)
    left = {f"wallaby-{killed.pid}-0-host0", f"wallaby-{killed.pid}-0-switch"}
    assert left <= namespaces()
    assert left <= set(remove_abandoned())
    assert not left & namespaces()


@pytest.mark.hosts
def test_a_closed_network_leaves_nothing() -> None:
    before = namespaces()
    with Network(2) as made:
        assert namespaces() - before >= {host.namespace for host in made.hosts}
    assert namespaces() == before
