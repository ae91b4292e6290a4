"""The control loop wakes up for every job and every timer."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import wallaby
from wallaby.node.loop import Loop

LIMIT_SECONDS = 30.0
#: Of so many waits, some are cut off by the scheduler of the system just before they begin.
WAITS = 10_000
POSTS = 2_000


def raised(error: BaseException) -> None:
    raise error


def test_a_wait_ends_although_its_time_has_passed_before_it_began() -> None:
    """Python's `SimpleQueue` waits for ever then; see the loop."""
    over = threading.Event()

    def wait() -> None:
        for _ in range(WAITS):
            assert Loop("test", raised)._next(1e-6) is None
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    assert over.wait(LIMIT_SECONDS)


def test_every_posted_job_is_run_once_and_in_the_order_of_its_thread() -> None:
    loop, over = Loop("test", raised), threading.Event()
    ran: list[tuple[int, int]] = []
    loop.start()

    def post(number: int) -> None:
        for at in range(POSTS):
            loop.post(ran.append, (number, at))

    threads = [threading.Thread(target=post, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    loop.post(over.set)
    assert over.wait(LIMIT_SECONDS)
    loop.stop()
    for number in range(3):
        assert [at for one, at in ran if one == number] == list(range(POSTS))


def test_timers_go_off_in_the_order_of_their_times_without_any_job() -> None:
    loop, over = Loop("test", raised), threading.Event()
    ran: list[float] = []

    def begin() -> None:
        loop.after(0.02, over.set)
        for delay in (0.01, 0.0, 0.005):
            loop.after(delay, ran.append, delay)

    loop.start()
    loop.post(begin)
    assert over.wait(LIMIT_SECONDS)
    loop.stop()
    assert ran == [0.0, 0.005, 0.01]


def test_a_stopped_loop_ends_without_waiting_for_its_timers() -> None:
    loop = Loop("test", raised)
    loop.start()
    loop.post(loop.after, 3600.0, raised, AssertionError("too late"))
    loop.stop(LIMIT_SECONDS)
    assert loop.is_stopped
    assert not loop._thread.is_alive()


def test_no_simple_queue_is_waited_for_with_a_limit() -> None:
    """The same mistake elsewhere, which a busy machine shows only rarely."""
    for path in sorted(Path(wallaby.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "SimpleQueue" not in text:
            continue
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        gets = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "get"]
        limited = [call.lineno for call in gets if any(each.arg == "timeout" for each in call.keywords)]
        assert not limited, f"{path}, lines {limited}: it may wait for ever before Python 3.13"
