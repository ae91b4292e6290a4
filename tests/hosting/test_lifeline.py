"""Lifelines: either side's end is noticed at once, and strangers are cut off."""

from __future__ import annotations

import contextlib
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from tests.hosting.support import until

from wallaby.lineage.names import WorkerId
from wallaby.worker.lifeline import NONCE_BYTES, Lifeline, Lifelines

TOKEN = "a-token-of-some-length"


@pytest.fixture
def lost() -> queue.SimpleQueue[WorkerId]:
    return queue.SimpleQueue()


@pytest.fixture
def lifelines(lost: queue.SimpleQueue[WorkerId]) -> Iterator[Lifelines]:
    made = Lifelines("127.0.0.1", TOKEN, lost.put)
    made.start()
    yield made
    made.close()


def test_a_worker_that_lets_go_is_lost(lifelines: Lifelines, lost: queue.SimpleQueue[WorkerId]) -> None:
    line = Lifeline(lifelines.address, TOKEN, WorkerId("w0-a"))
    assert lifelines.held() == {"w0-a"}
    assert line.local_host == "127.0.0.1"
    line.close()
    assert lost.get(timeout=10) == "w0-a"
    assert lifelines.held() == frozenset()


def test_a_killed_worker_is_lost_at_once(lifelines: Lifelines, lost: queue.SimpleQueue[WorkerId]) -> None:
    script = (
        "import sys, time; from wallaby.worker.lifeline import Lifeline; "
        "Lifeline(sys.argv[1], sys.argv[2], 'w1-b'); print('up', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, lifelines.address, TOKEN], stdout=subprocess.PIPE
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"up\n"
        worker.kill()
        assert lost.get(timeout=10) == "w1-b"


def test_a_worker_notices_that_the_head_is_gone(lifelines: Lifelines) -> None:
    gone = threading.Event()
    line = Lifeline(lifelines.address, TOKEN, WorkerId("w0-a"))
    line.watch(gone.set)
    assert not gone.wait(0.1)
    lifelines.close()
    assert gone.wait(10)
    line.close()
    with pytest.raises(OSError, match="refused"):
        Lifeline(lifelines.address, TOKEN, WorkerId("w0-b"))


def test_a_wrong_token_is_cut_off(lifelines: Lifelines, lost: queue.SimpleQueue[WorkerId]) -> None:
    with pytest.raises(OSError, match=r"closed|reset"):
        Lifeline(lifelines.address, "another-token-entirely", WorkerId("w0-a"))
    assert lifelines.held() == frozenset()
    assert lost.empty()


@pytest.mark.parametrize("greeting", [b"\xff" * 300, b"\x00" + b"x" * 32, b"\x02w0" + b"x" * 33])
def test_bytes_that_are_no_greeting_are_cut_off(
    lifelines: Lifelines, lost: queue.SimpleQueue[WorkerId], greeting: bytes
) -> None:
    host, _, port = lifelines.address.partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as stranger:
        assert len(stranger.recv(NONCE_BYTES)) == NONCE_BYTES
        stranger.sendall(greeting)
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    assert lost.empty()


def test_a_worker_that_goes_on_talking_is_cut_off(
    lifelines: Lifelines, lost: queue.SimpleQueue[WorkerId]
) -> None:
    line = Lifeline(lifelines.address, TOKEN, WorkerId("w0-a"))
    line._socket.sendall(b"more")
    assert lost.get(timeout=10) == "w0-a"
    line.close()


def test_the_token_is_not_on_the_wire(lifelines: Lifelines) -> None:
    heard = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as between:

        def relay() -> None:
            worker, _ = between.accept()
            host, _, port = lifelines.address.partition(":")
            with worker, socket.create_connection((host, int(port))) as head:
                worker.sendall(head.recv(64))
                heard.extend(worker.recv(256))
                head.sendall(heard)
                worker.sendall(head.recv(64))

        thread = threading.Thread(target=relay, daemon=True)
        thread.start()
        line = Lifeline(f"127.0.0.1:{between.getsockname()[1]}", TOKEN, WorkerId("w0-a"))
        line.close()
        thread.join(10)
    assert heard
    assert TOKEN.encode() not in heard


def test_many_come_and_go(lifelines: Lifelines, lost: queue.SimpleQueue[WorkerId]) -> None:
    lines = [Lifeline(lifelines.address, TOKEN, WorkerId(f"w{at}-x")) for at in range(50)]
    assert len(lifelines.held()) == 50
    began = time.monotonic()
    for line in lines:
        line.close()
    assert {lost.get(timeout=10) for _ in lines} == {f"w{at}-x" for at in range(50)}
    assert time.monotonic() - began < 10
    assert until(lambda: not lifelines.held(), 10)
