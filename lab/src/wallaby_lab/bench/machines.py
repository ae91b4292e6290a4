"""Machines that can be lost: a standalone Spark cluster in which each worker daemon represents a machine.

It uses PySpark's own files. All daemons are on this host, or each on one of the hosts of a network
(`wallaby_lab.hosts`). A machine is lost when its daemon, the daemon's executor and all their descendants get SIGKILL at
once. Nothing replaces it until a new machine is requested.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil
import pyspark

from wallaby.errors import WallabyError
from wallaby_lab.hosts.network import Host

START_SECONDS: Final = 60.0
END_SECONDS: Final = 15.0
_SPARK_HOME: Final = Path(pyspark.__file__).parent
_DAEMON: Final = {
    "SPARK_HOME": str(_SPARK_HOME),
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
_DEPLOY: Final = "org.apache.spark.deploy"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"
_POLL_SECONDS: Final = 0.05
#: The master's port on a host of a network, where no other program runs.
_MASTER_PORT: Final = 7077


class MachinesError(WallabyError):
    """The cluster did not start."""

    condition = "WALLABY_BENCH_CLUSTER"


class Machines:
    """A master and a number of worker daemons."""

    def __init__(
        self,
        count: int,
        cores: int,
        megabytes: int,
        host: str = "127.0.0.1",
        directory: Path | None = None,
        *,
        own_addresses: bool = False,
        hosts: Sequence[Host] = (),
    ) -> None:
        """Start them, each with cores and MiB for executors.

        To Spark, all are one host, unless they have `own_addresses` on the loopback. With `hosts`, the master runs on
        the first of them, and the machines on the others in turn.

        Raises:
            MachinesError: they do not start; the message has their last output.
        """
        self.count = count
        self._cores, self._megabytes, self._address = cores, megabytes, host
        self._own_addresses, self._hosts = own_addresses, tuple(hosts)
        self._own_directory = None if directory else tempfile.TemporaryDirectory(prefix="wallaby-machines-")
        self._directory = directory or Path(self._own_directory.name if self._own_directory else "")
        self._directory.mkdir(parents=True, exist_ok=True)
        self._started = 0
        self._workers: list[subprocess.Popen[bytes]] = []
        self._places: dict[int, Host] = {}
        atexit.register(self.close)  # the caller may fail before it has a reference to them
        place = self._hosts[0] if self._hosts else None
        address = place.address if place else host
        port = _MASTER_PORT if place else _free_port(host)
        self.url = f"spark://{address}:{port}"
        named = ("--host", address, "--port", str(port), "--webui-port", "0")
        self._master, log = self._start("master", place, f"{_DEPLOY}.master.Master", *named)
        try:
            _await(log, "elected leader")
            self.restore()
        except MachinesError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def executors(self) -> int:
        """The number of machines with an executor."""
        return sum(bool(_executors(process.pid)) for process in self._workers)

    def lose_one(self) -> float:
        """Kill the oldest machine; returns the time."""
        return self._lose(self._workers[0])

    def lose(self, host: Host) -> float:
        """Kill the machine on a host; returns the time."""
        return self._lose(next(each for each in self._workers if self._places[each.pid] == host))

    def _lose(self, lost: subprocess.Popen[bytes]) -> float:
        self._workers.remove(lost)
        doomed = [psutil.Process(lost.pid), *psutil.Process(lost.pid).children(recursive=True)]
        at = time.time()
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        lost.wait()
        return at

    def restore(self) -> None:
        """Start a machine for each that is missing."""
        logs = []
        for _ in range(self.count - len(self._workers)):
            name = f"worker{self._started}"
            self._started += 1
            place = self._vacant()
            address = place.address if place else self._address
            if self._own_addresses:
                address = f"127.0.0.{1 + self._started}"
            process, log = self._start(
                name, place, f"{_DEPLOY}.worker.Worker", "--host", address, "--cores", str(self._cores),
                "--memory", f"{self._megabytes}m", "--webui-port", "0",
                "--work-dir", str(self._directory / f"{name}-work"), self.url,
            )  # fmt: skip
            self._workers.append(process)
            if place is not None:
                self._places[process.pid] = place
            logs.append(log)
        for log in logs:
            _await(log, "registered with master")

    def close(self) -> None:
        """End all machines."""
        atexit.unregister(self.close)
        processes = [*self._workers, self._master]
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._workers.clear()
        if self._own_directory is not None:
            self._own_directory.cleanup()

    def _vacant(self) -> Host | None:
        """The host with the fewest machines; none if all machines are on this host."""
        taken = [self._places[process.pid] for process in self._workers if process.pid in self._places]
        return min(self._hosts[1:], key=taken.count, default=None)

    def _start(self, name: str, place: Host | None, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self._directory / f"{name}.log"
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))
        }
        environment = {**inherited, **_DAEMON, "SPARK_LOCAL_DIRS": str(self._directory / name)}
        command = (str(_SPARK_HOME / "bin" / "spark-class"), *arguments)
        if place is not None:
            environment["SPARK_LOCAL_IP"] = place.address
            command = place.command(*command)
        with log.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603 - Spark's own program, and no shell
                command,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, cwd=self._directory,
            )  # fmt: skip
        return process, log


def _executors(pid: int) -> list[psutil.Process]:
    """The executors below a process."""
    found = []
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.name() == "java" and any(_EXECUTOR in part for part in process.cmdline()):
                    found.append(process)
    return found


def _await(log: Path, word: str) -> None:
    until = time.monotonic() + START_SECONDS
    while word not in (said := log.read_text(errors="replace")):
        if time.monotonic() > until:
            last = (said.strip().splitlines() or ["nothing"])[-1]
            raise MachinesError(f"Spark's {log.stem} did not start in {START_SECONDS:.0f} s; it said: {last}")
        time.sleep(_POLL_SECONDS)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
