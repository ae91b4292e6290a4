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

It is forked from the TaskManager before that has threads, because loading Python and what this module needs would take
a third of a second of CPU time for each TaskManager, and 25 MiB.

Without `/proc` it only holds the lifeline.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

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
        served = process_id or os.getpid()
        beats, sent = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of libraries' threads, which the child does not need.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process_id = os.fork()
        if self.process_id == 0:
            _run(bootstrap, worker, served, beats)
        os.close(beats)
        self._sent = os.fdopen(sent, "wb", buffering=0)

    def start(self) -> None:
        """Start sending beats."""
        threading.Thread(target=self._beat, name="wallaby-lease-keeper", daemon=True).start()

    def close(self) -> None:
        """End both. The process has nothing to clean up, so it is killed."""
        self._over.set()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process_id, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.process_id, 0)
        self._sent.close()

    def _beat(self) -> None:
        while not self._over.wait(self._every_seconds):
            try:
                self._sent.write(b".")
            except (OSError, ValueError):  # the process is gone, and the TaskManager continues without it
                return


class ProcessAccount:
    """The kernel's account of a process."""

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


def _run(bootstrap: Bootstrap, worker: WorkerId, served: int, beats: int) -> NoReturn:
    """In the child: keep the lease, and exit without the clean-up that belongs to the TaskManager."""
    try:
        _leave_all_but(beats)
        _keep_lease(bootstrap, worker, served, beats)
    finally:
        os._exit(0)


def _leave_all_but(kept: int) -> None:
    """Let go of what belongs to the parent: its session, its handling of signals, and its files and connections.

    A connection that stayed open here would hide the parent's death from whoever holds the other end.
    """
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    for file in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        if file not in (0, 1, 2, kept):
            with contextlib.suppress(OSError):  # it was the listing's own
                os.close(file)


def _keep_lease(bootstrap: Bootstrap, worker: WorkerId, served: int, beats: int) -> None:
    connection = connect(
        bootstrap.gcs_url,
        password=bootstrap.gcs_password or None,
        incarnation=incarnation_of(bootstrap.gcs_incarnation),
        tls=tls_files(bootstrap.gcs_tls_ca),
    )
    gcs = RedisGcs(connection, bootstrap.engine)

    def renew() -> None:
        with contextlib.suppress(GcsUnavailableError):
            gcs.renew(worker, bootstrap.lease_ms)

    account = ProcessAccount(served)
    attendance = LeaseHelp(bootstrap.lease_ms / 1000, time.monotonic())
    with contextlib.suppress(GcsError), _lifeline(bootstrap, worker):
        attend(beats, attendance, account, bootstrap.lease_ms / 1000 / BEATS_PER_LEASE, renew)


def _lifeline(bootstrap: Bootstrap, worker: WorkerId) -> contextlib.AbstractContextManager[object]:
    """Open a second lifeline besides the TaskManager's own; None if the head does not accept it."""
    if not bootstrap.lifeline_address:
        return contextlib.nullcontext()
    try:
        return contextlib.closing(Lifeline(bootstrap.lifeline_address, bootstrap.token, worker))
    except OSError:
        return contextlib.nullcontext()
