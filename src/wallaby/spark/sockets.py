"""All listening sockets of an engine, as the operating system sees them: for `wallaby doctor` and for tests."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psutil

from wallaby.node.worker_address import WorkerAddress


@dataclass(frozen=True, slots=True)
class Listening:
    """One listening socket."""

    #: Its owner: a worker's id, `redis`, `head data`, `lifelines`, or `driver` for sockets that are not Wallaby's.
    owner: str
    pid: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.owner} (pid {self.pid}) listens on {self.host}:{self.port}"


def listening(pid: int) -> tuple[tuple[str, int], ...]:
    """The addresses on which a process of this host listens; none if it has ended or cannot be inspected."""
    try:
        connections = psutil.Process(pid).net_connections(kind="inet")
    except psutil.Error:
        return ()
    return tuple(
        (c.laddr.ip.removeprefix("::ffff:"), c.laddr.port)  # gRPC writes IPv4 addresses in the form of IPv6
        for c in connections
        if c.status == psutil.CONN_LISTEN
    )


def engine_sockets(
    ours: Mapping[int, str], redis_pid: int | None, workers: Iterable[tuple[str, WorkerAddress]]
) -> tuple[Listening, ...]:
    """All sockets of the driver, of the embedded Redis and of the TaskManagers that are on this host.

    `ours` says which of the driver's ports are for what.
    """
    driver = os.getpid()
    found = [Listening(ours.get(port, "driver"), driver, host, port) for host, port in listening(driver)]
    if redis_pid is not None:
        found += [Listening("redis", redis_pid, host, port) for host, port in listening(redis_pid)]
    here = socket.gethostname()
    for name, place in workers:
        if place.host == here:
            found += [Listening(name, place.pid, host, port) for host, port in listening(place.pid)]
    return tuple(found)
