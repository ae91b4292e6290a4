"""The lease keeper: a TaskManager that cannot renew its lease keeps it while it is at work, and only then."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest

from wallaby.gcs.connection import connect
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.gcs.redis import RedisGcs
from wallaby.lineage.names import WorkerId
from wallaby.worker.bootstrap import Bootstrap
from wallaby.worker.lease_keeper import (
    HELP_SECONDS_MAX,
    MISSED_LEASES,
    LeaseHelp,
    LeaseKeeper,
    ProcessAccount,
    attend,
)
from wallaby.worker.lifeline import Lifelines

LEASE_MS = 1000
WORKER = WorkerId("w0-busy")
BUSY = "while True: pass"
ASLEEP = "import time; time.sleep(600)"


@pytest.fixture
def store() -> Iterator[tuple[RedisGcs, Bootstrap]]:
    with EmbeddedRedis() as server, connect(server.url, password=server.password) as connection:
        gcs = RedisGcs(connection, "an engine")
        assert gcs.register(WORKER, "somewhere", LEASE_MS)
        yield (
            gcs,
            Bootstrap("an engine", server.url, server.password, "", lease_ms=LEASE_MS),
        )


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a TaskManager whose Python's lock is held."""
    with subprocess.Popen([sys.executable, "-c", request.param]) as started:
        yield started
        started.kill()


def remaining_ms(gcs: RedisGcs) -> int:
    return next(lease.remaining_ms for lease in gcs.workers() if lease.worker == WORKER)


def await_lease(gcs: RedisGcs, *, renewed: bool) -> None:
    """Until a lease that had run out is there again, or one that was there has run out."""
    until = time.monotonic() + 30
    while (remaining_ms(gcs) > 0) is not renewed:
        assert time.monotonic() < until, "nothing has changed"
        time.sleep(0.02)


def await_work(account: ProcessAccount, expected: bool) -> None:
    until = time.monotonic() + 30
    while account.is_at_work() is not expected:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("process", [BUSY], indirect=True)
def test_a_busy_process_keeps_its_lease_without_a_beat_until_it_is_stopped(
    store: tuple[RedisGcs, Bootstrap], process: subprocess.Popen[bytes]
) -> None:
    gcs, bootstrap = store
    await_lease(gcs, renewed=False)
    keeper = LeaseKeeper(bootstrap, WORKER, process.pid)
    try:
        await_lease(gcs, renewed=True)
        os.kill(process.pid, signal.SIGSTOP)
        await_lease(gcs, renewed=False)
        os.kill(process.pid, signal.SIGCONT)
        await_lease(gcs, renewed=True)
    finally:
        keeper.close()


@pytest.mark.parametrize("process", [ASLEEP], indirect=True)
def test_a_process_that_sleeps_is_not_at_work(process: subprocess.Popen[bytes]) -> None:
    account = ProcessAccount(process.pid)
    await_work(account, False)
    process.kill()
    process.wait()
    assert not account.is_at_work()


@pytest.mark.parametrize("process", [BUSY], indirect=True)
def test_a_stopped_process_is_not_at_work(process: subprocess.Popen[bytes]) -> None:
    account = ProcessAccount(process.pid)
    await_work(account, True)
    os.kill(process.pid, signal.SIGSTOP)
    await_work(account, False)
    os.kill(process.pid, signal.SIGCONT)
    await_work(account, True)


def test_help_is_given_when_beats_stay_away_but_not_for_ever() -> None:
    attendance = LeaseHelp(1.0, now=0.0)
    assert not attendance.helps(MISSED_LEASES / 2)
    assert attendance.helps(MISSED_LEASES)
    attendance.beat(now=5.0)
    assert not attendance.helps(5.0 + MISSED_LEASES / 2)
    assert attendance.helps(5.0 + HELP_SECONDS_MAX)
    assert not attendance.helps(6.0 + HELP_SECONDS_MAX)


@pytest.mark.parametrize("process", [BUSY], indirect=True)
def test_while_beats_come_the_lease_is_none_of_its_affair(process: subprocess.Popen[bytes]) -> None:
    ours, theirs = os.pipe()
    renewals: list[float] = []

    def renew() -> bool:
        renewals.append(time.monotonic())
        return True

    attendance = LeaseHelp(3600.0, time.monotonic())  # a beat's worth is longer than this test can take
    running = threading.Thread(
        target=attend,
        args=(ours, attendance, ProcessAccount(process.pid), 0.01, renew),
    )
    running.start()
    for _ in range(5):
        os.write(theirs, b".")
        time.sleep(0.02)
    os.close(theirs)
    running.join(30)
    os.close(ours)
    assert not running.is_alive()
    assert renewals == []


@pytest.mark.parametrize("process", [BUSY], indirect=True)
def test_a_lease_that_is_refused_is_asked_for_again(process: subprocess.Popen[bytes]) -> None:
    ours, theirs = os.pipe()
    asked: list[bool] = []

    def renew() -> bool:
        asked.append(False)
        if len(asked) == 3:
            os.close(theirs)
        return asked[-1]

    attend(ours, LeaseHelp(0.001, time.monotonic()), ProcessAccount(process.pid), 0.01, renew)
    os.close(ours)
    assert len(asked) == 3


@pytest.mark.parametrize("process", [BUSY], indirect=True)
def test_a_pulse_outlives_the_time_before_its_taskmanager_is_registered(
    store: tuple[RedisGcs, Bootstrap], process: subprocess.Popen[bytes]
) -> None:
    gcs, bootstrap = store
    late = WorkerId("w1-late")
    keeper = LeaseKeeper(bootstrap, late, process.pid)
    try:
        time.sleep(
            2 * MISSED_LEASES * LEASE_MS / 1000
        )  # it has tried meanwhile, or tries later: both must do
        assert gcs.register(late, "somewhere", 1)
        until = time.monotonic() + 30
        while not any(lease.worker == late and lease.remaining_ms > 1 for lease in gcs.workers()):
            assert time.monotonic() < until, "nobody renews it"
            time.sleep(0.02)
    finally:
        keeper.close()


@pytest.mark.parametrize("process", [ASLEEP], indirect=True)
def test_closing_leaves_no_process(
    store: tuple[RedisGcs, Bootstrap], process: subprocess.Popen[bytes]
) -> None:
    before = set(psutil.Process().children(recursive=True))
    keeper = LeaseKeeper(store[1], WORKER, process.pid)
    keeper.start()
    assert set(psutil.Process().children(recursive=True)) - before
    keeper.close()
    assert not set(psutil.Process().children(recursive=True)) - before


@pytest.mark.parametrize("process", [ASLEEP], indirect=True)
def test_it_keeps_no_connection_of_its_taskmanager_open(
    store: tuple[RedisGcs, Bootstrap], process: subprocess.Popen[bytes]
) -> None:
    """Whoever holds the other end would not learn of the TaskManager's death."""
    ours, theirs = socket.socketpair()
    keeper = LeaseKeeper(store[1], WORKER, process.pid)
    try:
        ours.close()
        theirs.settimeout(30)
        assert theirs.recv(1) == b"", "the end of the connection"
        assert psutil.pid_exists(keeper.process_id)
    finally:
        keeper.close()
        theirs.close()


@pytest.mark.parametrize("process", [ASLEEP], indirect=True)
@pytest.mark.parametrize("dies", ["the TaskManager", "the lease keeper"])
def test_the_head_hears_of_a_death_though_connections_of_the_dead_are_still_open(
    store: tuple[RedisGcs, Bootstrap], process: subprocess.Popen[bytes], dies: str
) -> None:
    heard: queue.Queue[WorkerId] = queue.Queue()
    lifelines = Lifelines("127.0.0.1", "a token", heard.put)
    lifelines.start()
    before = set(psutil.Process().children(recursive=True))
    bootstrap = replace(store[1], lifeline_address=lifelines.address, token="a token")
    keeper = LeaseKeeper(bootstrap, WORKER, process.pid)
    try:
        (beside,) = set(psutil.Process().children(recursive=True)) - before
        await_held(lifelines)
        assert heard.empty()
        # Nobody waits for it: it stays a zombie, which is as far as its lease keeper can tell one whose end takes long.
        (process if dies == "the TaskManager" else beside).kill()
        assert heard.get(timeout=30) == WORKER
        assert not lifelines.held()
    finally:
        keeper.close()
        lifelines.close()


def await_held(lifelines: Lifelines) -> None:
    until = time.monotonic() + 30
    while WORKER not in lifelines.held():
        assert time.monotonic() < until, "the lease keeper has no lifeline"
        time.sleep(0.02)


@pytest.mark.parametrize("process", [ASLEEP], indirect=True)
def test_a_process_ends_from_the_moment_it_is_killed(process: subprocess.Popen[bytes]) -> None:
    account = ProcessAccount(process.pid)
    assert not account.is_ending()
    process.kill()
    until = time.monotonic() + 30
    while not account.is_ending():
        assert time.monotonic() < until
        time.sleep(0.001)
