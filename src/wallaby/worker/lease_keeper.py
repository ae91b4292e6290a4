"""A small process beside a TaskManager that keeps its lease while it is busy, and reports its death.

A library that holds Python's lock for seconds, or a machine on which forty threads compete for two cores, keeps a
TaskManager from renewing its lease although it is healthy. If it were expelled, all its work would be lost, and a query
whose workers all seem dead in turn would fail. So a thread of the TaskManager sends a beat several times per lease. If
beats are missing, this process looks at the kernel's account of the TaskManager: if it computes, is ready to, or waits
for a disk, this process renews its lease, for a limited time. It does not do so for a TaskManager that was stopped or
in which everything sleeps.

While beats come, the TaskManager renews its lease itself.

Conversely, the kernel takes a second or more to free the gigabytes of a killed TaskManager, and closes its connections
only afterwards. So the lease keeper has its own lifeline, which ends as soon as the kernel has begun to end the
TaskManager; or at once, if the lease keeper is killed too.

Without `/proc` it only holds the lifeline.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from wallaby.errors import GcsError, GcsUnavailableError
from wallaby.gcs.connection import connect, tls_files
from wallaby.gcs.incarnation import incarnation_of
from wallaby.gcs.redis import RedisGcs
from wallaby.lineage.names import WorkerId
from wallaby.worker.bootstrap import Bootstrap
from wallaby.worker.lifeline import Lifeline

#: Beats, and checks of the lease keeper, per lease.
BEATS_PER_LEASE: Final = 10
#: Without a beat for this fraction of a lease, the lease keeper helps.
MISSED_LEASES: Final = 0.35
#: It helps no longer than this at a time: no healthy TaskManager is silent for longer.
HELP_SECONDS_MAX: Final = 30.0
_AT_WORK: Final = frozenset("RD")
_STOPPED: Final = frozenset("TtZXx")
_DEAD: Final = frozenset("ZXx")
#: The kernel's mark (PF_EXITING) of a thread that is being ended.
_ENDING: Final = 0x4


class LeaseKeeper:
    """The TaskManager's side: a thread that sends beats, and the process that counts them."""

    def __init__(self, bootstrap: Bootstrap, worker: WorkerId, process_id: int | None = None) -> None:
        self._every_seconds = bootstrap.lease_ms / 1000 / BEATS_PER_LEASE
        self._over = threading.Event()
        # The configuration of the new process contains a password, so it goes through a pipe, not on a command line.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "wallaby.worker.lease_keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        self._send(json.dumps(_told(bootstrap, worker, process_id or os.getpid())).encode() + b"\n")

    def start(self) -> None:
        """Start sending beats."""
        threading.Thread(target=self._beat, name="wallaby-lease-keeper", daemon=True).start()

    def close(self) -> None:
        """End both. The process has nothing to clean up, so it is killed."""
        self._over.set()
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None, "it was made with a pipe"
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def _beat(self) -> None:
        while not self._over.wait(self._every_seconds) and self._send(b"."):
            pass

    def _send(self, data: bytes) -> bool:
        """Send a beat. False: the process is gone, and the TaskManager continues without it."""
        assert self._process.stdin is not None, "it was made with a pipe"
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True


def _told(bootstrap: Bootstrap, worker: WorkerId, process_id: int) -> dict[str, Any]:
    return {
        "lifeline": bootstrap.lifeline_address,
        "token": bootstrap.token,
        "url": bootstrap.gcs_url,
        "password": bootstrap.gcs_password,
        "ca": bootstrap.gcs_tls_ca,
        "incarnation": bootstrap.gcs_incarnation,
        "engine": bootstrap.engine,
        "worker": worker,
        "lease_ms": bootstrap.lease_ms,
        "process_id": process_id,
    }


class ProcessAccount:
    """What the kernel says about a process."""

    def __init__(self, process_id: int) -> None:
        self._directory = Path("/proc") / str(process_id)
        self._ticks = 0
        self.note()

    def note(self) -> None:
        """Remember how much CPU time it has used so far."""
        self._ticks = self._look()[1]

    def is_at_work(self) -> bool:
        """Has it computed since the last check, or is it ready to? Also False if there is no such process."""
        state, ticks = self._look()
        computed, self._ticks = ticks > self._ticks, ticks
        if state in _STOPPED or not state:
            return False
        return computed or any(_state(thread) in _AT_WORK for thread in self._threads())

    def is_ending(self) -> bool:
        """Has the kernel begun to end it? Freeing its memory may take a while."""
        fields = _fields(self._directory / "stat")
        return len(fields) > 6 and (fields[0] in _DEAD or bool(int(fields[6]) & _ENDING))

    def _look(self) -> tuple[str, int]:
        fields = _fields(self._directory / "stat")
        return (fields[0], int(fields[11]) + int(fields[12])) if len(fields) > 12 else ("", 0)

    def _threads(self) -> list[Path]:
        try:
            return [thread / "stat" for thread in (self._directory / "task").iterdir()]
        except OSError:
            return []


def _fields(stat: Path) -> list[str]:
    """The fields of `/proc/…/stat` after the name, which may contain anything; empty if there is no such file."""
    try:
        return stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _state(stat: Path) -> str:
    return next(iter(_fields(stat)), "")


class LeaseHelp:
    """Decides when to help. Pure; time is passed in."""

    def __init__(self, lease_seconds: float, now: float) -> None:
        self._missed_seconds = lease_seconds * MISSED_LEASES
        self._beat_at = now

    def beat(self, now: float) -> None:
        """Note a beat of the TaskManager."""
        self._beat_at = now

    def helps(self, now: float) -> bool:
        """Have beats been missing, but not for too long?"""
        return self._missed_seconds <= now - self._beat_at <= HELP_SECONDS_MAX


def attend(
    pipe: int,
    attendance: LeaseHelp,
    account: ProcessAccount,
    every_seconds: float,
    renew: Callable[[], object],
) -> None:
    """Help until the other end of the pipe is closed, or its process dies.

    A refused renewal is no reason to end: a TaskManager that is just starting has no lease yet, and one that has lost
    its lease ends by itself.
    """
    while not account.is_ending():
        if select.select([pipe], [], [], every_seconds)[0]:
            if not os.read(pipe, 1 << 16):
                return
            attendance.beat(time.monotonic())
            time.sleep(every_seconds)
        if not attendance.helps(time.monotonic()):
            account.note()
        elif account.is_at_work():
            renew()


def main() -> None:
    """Run the process: its standard input has its configuration in one line, then beats."""
    told = json.loads(_line(0))
    lease_ms = int(told["lease_ms"])
    connection = connect(
        told["url"],
        password=told["password"] or None,
        incarnation=incarnation_of(told["incarnation"]),
        tls=tls_files(told["ca"]),
    )
    gcs = RedisGcs(connection, told["engine"])

    def renew() -> None:
        with contextlib.suppress(GcsUnavailableError):
            gcs.renew(WorkerId(told["worker"]), lease_ms)

    account = ProcessAccount(int(told["process_id"]))
    attendance = LeaseHelp(lease_ms / 1000, time.monotonic())
    with contextlib.suppress(GcsError), _lifeline(told):
        attend(0, attendance, account, lease_ms / 1000 / BEATS_PER_LEASE, renew)


def _lifeline(told: dict[str, Any]) -> contextlib.AbstractContextManager[object]:
    """Open a second lifeline besides the TaskManager's own; None if the head does not accept it."""
    if not told["lifeline"]:
        return contextlib.nullcontext()
    try:
        return contextlib.closing(Lifeline(told["lifeline"], told["token"], WorkerId(told["worker"])))
    except OSError:
        return contextlib.nullcontext()


def _line(pipe: int) -> bytes:
    """Read up to the first newline, and nothing after it."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(pipe, 1)
        if not byte:
            break
        line += byte
    return line


if __name__ == "__main__":
    main()
