"""Real drivers, real clusters and a look at what they leave behind. Only what was started here is ever killed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from wallaby_lab.bench.machines import Machines
from wallaby_lab.hosts.network import Host

#: A busy machine may take this long to start Spark and attach.
ANSWER_SECONDS = 400.0
GONE_SECONDS = 60.0


def until(condition: Callable[[], bool], seconds: float = GONE_SECONDS) -> bool:
    """Wait for a condition; does it hold in the end?"""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


class Driver:
    """A driver program (`driver.py`) and all processes below it."""

    def __init__(
        self,
        master: str,
        data: Path,
        scratch: Path,
        *,
        conf: dict[str, str] | None = None,
        host: Host | None,
        **settings: object,
    ) -> None:
        self.scratch = scratch
        scratch.mkdir(parents=True, exist_ok=True)
        base = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": "768m",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        }
        order = {"master": master, "data": str(data), "settings": settings, "conf": base | (conf or {})}
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
        environment["TMPDIR"] = str(scratch)
        command: tuple[str, ...] = (
            sys.executable,
            str(Path(__file__).with_name("driver.py")),
            json.dumps(order),
        )
        if host is not None:
            environment["SPARK_LOCAL_IP"] = host.address
            command = host.command(*command)
        self.log = scratch / "driver.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=scratch,
                env=environment,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._seen: dict[int, psutil.Process] = {}

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.decode())
        self._lines.put("")

    def tell(self, name: str, argument: object = None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, argument]).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """The next JSON line; Spark may say something on standard output too."""
        while True:
            line = self._lines.get(timeout=ANSWER_SECONDS)
            assert line, f"the driver has ended: {self.log.read_text(errors='replace')[-2000:]}"
            with contextlib.suppress(ValueError):
                self.remember()
                return json.loads(line)

    def ask(self, name: str, argument: object = None) -> Any:
        self.tell(name, argument)
        answer = self.answer()
        return answer.get("answer", answer)

    def remember(self) -> None:
        """Note every process that there is below the driver now."""
        with contextlib.suppress(psutil.Error):
            me = psutil.Process(self.pid)
            self._seen |= {process.pid: process for process in (me, *me.children(recursive=True))}

    def processes(self) -> list[str]:
        """What is still there of all that was ever seen below the driver."""
        found = []
        for process in self._seen.values():
            with contextlib.suppress(psutil.Error):
                if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline())[:200])
        return found

    def texts(self) -> Iterator[tuple[str, str]]:
        """Arguments and environments of all processes, for secrets to be looked for."""
        for process in self._seen.values():
            with contextlib.suppress(psutil.Error):
                yield f"arguments of {process.pid}", " ".join(process.cmdline())
                yield f"environment of {process.pid}", str(process.environ())

    def send(self, number: signal.Signals) -> None:
        self.remember()
        os.kill(self.pid, number)

    def wait(self, seconds: float = 60.0) -> int:
        return self._process.wait(seconds)

    def quit(self) -> None:
        """End it in the ordinary way, or in the other."""
        self.remember()
        with contextlib.suppress(OSError, ValueError):
            self.tell("quit")
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._close_pipes()
        for process in self._seen.values():
            with contextlib.suppress(psutil.Error):
                if process.is_running() and process.pid != self.pid:
                    process.kill()

    def _close_pipes(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._reader.join(10)
        self._process.stdout.close()

    def leftovers(self) -> list[str]:
        """Files of Wallaby's below its directory."""
        return [str(path) for path in self.scratch.rglob("wallaby-*")]


@contextlib.contextmanager
def driver(
    master: str, data: Path, scratch: Path, *, conf: dict[str, str] | None = None, **settings: object
) -> Iterator[Driver]:
    made = Driver(master, data, scratch, conf=conf, host=None, **settings)
    try:
        yield made
    finally:
        made.quit()


@contextlib.contextmanager
def driver_on(
    host: Host, master: str, data: Path, scratch: Path, *, conf: dict[str, str], **settings: object
) -> Iterator[Driver]:
    """A driver program on a host of a network."""
    made = Driver(master, data, scratch, conf=conf, host=host, **settings)
    try:
        yield made
    finally:
        made.quit()


def address_of_this_host() -> str:
    """An address that is not loopback if the host has one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


@contextlib.contextmanager
def standalone(
    directory: Path, workers: int, cores: int, *, own_addresses: bool = False
) -> Iterator[tuple[str, str]]:
    """A standalone cluster from PySpark's own wheel: the master's URL and the host's address.

    With `own_addresses`, each worker is a host of its own to Spark, with an address on the loopback.
    """
    host = "127.0.0.1" if own_addresses else address_of_this_host()
    with Machines(workers, cores, 1024, host, directory, own_addresses=own_addresses) as machines:
        yield machines.url, host
