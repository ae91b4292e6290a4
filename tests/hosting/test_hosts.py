"""A standalone cluster on hosts with a network between them, which is slow, cut or pulled out while queries run.

The driver, Spark's master and the control store are on the first host, and one executor is on each of the others. All
tests share them: each waits until there is a TaskManager on every host again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.hosting.support import Driver, driver_on, until

from wallaby_lab.bench.machines import Machines
from wallaby_lab.hosts.network import Host, Network

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

WORKERS = 3
LEASE_SECONDS = 3.0
#: Much shorter than a lease.
SHORT_SECONDS = 0.6
QUERY = 9


class Site:
    """The hosts, the cluster on them, and the driver."""

    def __init__(self, network: Network, machines: Machines, program: Driver) -> None:
        self.network, self.machines, self.program = network, machines, program
        self.head, *self.others = network.hosts
        self.attached: dict[str, Any] = program.ask("attach")
        assert "workers" in self.attached, self.attached

    def workers(self) -> dict[str, dict[str, Any]]:
        """The live TaskManagers, by the address of their host."""
        live = (worker for worker in self.program.ask("workers") if worker["state"] == "live")
        return {address_of(worker["pid"]): worker for worker in live}

    def is_complete(self) -> bool:
        return len(self.workers()) == WORKERS

    def begin(self, seconds: float) -> None:
        """Begin to run a query again and again for so long."""
        self._begin("run_for", [QUERY, seconds])

    def begin_until_gone(self, *workers: str) -> None:
        """Begin to run a query again and again, until one of these TaskManagers is gone, and once more."""
        self._begin("run_until_gone", [QUERY, workers])

    def _begin(self, name: str, order: object) -> None:
        self.program.tell(name, order)
        assert self.program.answer() == {"going": True}

    def ended(self) -> dict[str, Any]:
        """What came of it. No answer may be wrong."""
        answer: dict[str, Any] = self.program.answer()
        assert "answer" in answer, answer
        assert answer["answer"]["wrong"] == 0
        return dict(answer["answer"])


def address_of(pid: int) -> str:
    """The address of the host on which a process runs: the environment of Spark's daemons names it."""
    return str(psutil.Process(pid).environ()["SPARK_LOCAL_IP"])


@pytest.fixture(scope="module")
def site(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("hosts")
    with (
        Network(WORKERS + 1) as network,
        Machines(WORKERS, 2, 1024, directory=directory / "cluster", hosts=network.hosts) as machines,
    ):
        head = network.hosts[0]
        conf = {
            "spark.driver.host": head.address,
            "spark.driver.bindAddress": head.address,
            "spark.executor.memory": "512m",
            "spark.pyspark.python": sys.executable,
        }
        # every join exchanges both sides, so each worker sends to each
        settings = {"lease": LEASE_SECONDS, "attach_timeout": 120, "broadcast": 0, "channels": 6}
        with driver_on(head, machines.url, data, directory / "driver", conf=conf, **settings) as program:
            yield Site(network, machines, program)


@pytest.fixture(autouse=True)
def _all_hosts_take_part(site: Site) -> None:
    assert until(site.is_complete, 120), site.program.ask("workers")


_LISTENING = """
import json, psutil, sys
found = psutil.Process(int(sys.argv[1])).net_connections(kind="inet")
print(json.dumps([c.laddr.ip.removeprefix("::ffff:") for c in found if c.status == psutil.CONN_LISTEN]))
"""


def listening(host: Host, pid: int) -> set[str]:
    """The addresses on which a process listens, as seen from its host."""
    command = host.command(sys.executable, "-c", _LISTENING, str(pid))
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout))


@contextlib.contextmanager
def nearly_stopped(pid: int) -> Iterator[None]:
    """Let a process run for a tenth of the time: a host that is much slower than the others."""
    over = threading.Event()

    def slow() -> None:
        process = psutil.Process(pid)
        with contextlib.suppress(psutil.NoSuchProcess):
            while not over.wait(0.01):
                process.send_signal(signal.SIGSTOP)
                time.sleep(0.09)
                process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_each_host_has_a_taskmanager_and_answers_are_sparks(site: Site) -> None:
    assert set(site.workers()) == {host.address for host in site.others}
    assert [site.program.ask("run", number)["equal"] for number in (3, 6, 13, 18)] == [True] * 4


def test_nothing_listens_on_an_address_that_is_not_its_hosts(site: Site) -> None:
    workers = site.workers()
    for host in site.others:
        assert listening(host, workers[host.address]["pid"]) == {host.address}
    ours = {(each["host"], each["port"]) for each in site.attached["sockets"] if each["owner"] != "driver"}
    assert ours
    assert {host for host, _ in ours} <= {site.head.address, "127.0.0.1"}


def test_a_lost_host_costs_time_and_no_answer(site: Site) -> None:
    gone = site.others[0]
    there = site.workers()[gone.address]["id"]
    site.begin_until_gone(there)
    site.machines.lose(gone)
    try:
        assert site.ended()["gone"] == [there]
    finally:
        site.machines.restore()


def test_a_host_whose_cable_is_out_is_done_without_and_comes_back_as_another_worker(site: Site) -> None:
    pulled = site.others[1]
    there = site.workers()[pulled.address]["id"]
    site.begin_until_gone(there)
    site.network.pull(pulled)
    try:
        assert site.ended()["gone"] == [there], "queries go on while the cable is out"
    finally:
        site.network.plug(pulled)
    assert until(site.is_complete, 120)
    assert site.workers()[pulled.address]["id"] != there


def test_a_cable_that_is_out_for_a_moment_costs_no_worker(site: Site) -> None:
    before = site.workers()
    site.begin(6.0)
    for host in site.others:
        time.sleep(0.5)
        site.network.pull(host)
        time.sleep(SHORT_SECONDS)
        site.network.plug(host)
    site.ended()
    assert site.workers() == before


@pytest.mark.parametrize("both", [True, False], ids=["both ways", "one way"])
def test_of_two_workers_that_cannot_reach_each_other_one_has_to_go(site: Site, both: bool) -> None:
    one, other, third = site.others
    before = site.workers()
    ids = [before[host.address]["id"] for host in (one, other)]
    wires = [(one, other), (other, one)] if both else [(one, other)]
    site.begin_until_gone(*ids)
    with site.network.cuts(*wires):
        assert site.ended()["gone"], (
            "one end of the wire; the other as well if the wire stays cut to what replaces it"
        )
    assert site.workers()[third.address] == before[third.address], "nobody else"


def test_a_worker_that_cannot_reach_the_control_store_is_done_without(site: Site) -> None:
    cut_off = site.others[2]
    there = site.workers()[cut_off.address]["id"]
    (port,) = [each["port"] for each in site.attached["sockets"] if each["owner"] == "redis"]
    site.begin_until_gone(there)
    cut = site.network.cut(cut_off, site.head, port)
    try:
        assert site.ended()["gone"] == [there]
    finally:
        site.network.mend(cut)


def test_a_slow_cable_costs_time_and_no_worker(site: Site) -> None:
    before = site.workers()
    slow = site.others[0]
    site.network.set_rate(slow, 4)
    try:
        site.begin(1.0)
        site.ended()
    finally:
        site.network.set_rate(slow, None)
    assert site.workers() == before


def test_a_slow_host_costs_time_and_no_answer(site: Site) -> None:
    slow = site.workers()[site.others[1].address]
    site.begin(6.0)
    with nearly_stopped(slow["pid"]):
        site.ended()


def test_the_driver_that_is_killed_leaves_nothing_on_any_host(site: Site) -> None:
    pids = [psutil.Process(worker["pid"]) for worker in site.workers().values()]
    site.begin(60.0)
    time.sleep(1.0)
    site.program.send(signal.SIGKILL)
    assert until(lambda: not any(process.is_running() for process in pids))
    assert until(lambda: site.program.leftovers() == []), site.program.leftovers()
