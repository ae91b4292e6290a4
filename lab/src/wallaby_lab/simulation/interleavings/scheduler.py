"""A scheduler for real threads: one runs at a time, and it may switch after any line of the code under test.

Locks, conditions, queues and threads of the modules under test are replaced by ones that call the scheduler; a trace
function calls it before every line. A seed determines which thread runs next, in one of two ways: at random, or by
priorities. With priorities, the first thread runs as long as it can, but at a few randomly drawn lines the running
thread gets the lowest priority, and is delayed as long as possible. In some runs a thread may also sleep at any line. A
scene may itself plan before which lines threads get the lowest priority; see `planning`.

Time does not advance while any thread can run, and jumps to the next timeout when none can. If there is no timeout, the
threads are deadlocked.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

from wallaby_lab.simulation.interleavings.touching import Touch, touch_of

#: A run with more switches than this counts as endless.
SWITCHES_MAX = 400_000


class StuckError(Exception):
    """All threads wait and nothing will wake them, or they never end."""


class _Stopped(BaseException):
    """Unwinds a thread that must not continue."""


class ScheduledTask:
    """One thread under the scheduler."""

    def __init__(self, name: str, do: Callable[[], None], owner: str) -> None:
        self.name = name
        self.do = do
        self.owner = owner
        self.turn = threading.Semaphore(0)
        self.is_done = False
        self.is_dead = False
        #: What it waits for, and until when.
        self.until: Callable[[], bool] | None = None
        self.deadline: float | None = None
        self.timed_out = False
        self.priority = 0.0
        #: The number of lines of the code under test that it has run, and, if recorded, the accesses of each.
        self.lines = 0
        self.touches: list[Touch] = []
        self.thread: threading.Thread | None = None

    def can_go(self) -> bool:
        """Can the thread run now?"""
        return not (self.is_done or self.is_dead) and (self.until is None or self.until())


class Scheduler:
    """Schedules threads; see the module. `files` are the files whose lines are steps."""

    def __init__(self, seed: int, files: frozenset[str]) -> None:
        self._random = Random(seed)
        self._files = files
        self._tasks: list[ScheduledTask] = []
        self._control = threading.Semaphore(0)
        self._current: ScheduledTask | None = None
        self._owner = ""
        self._stopping = False
        self.now = 0.0
        self.switches = 0
        self.error: BaseException | None = None
        self._lines = 0
        self._in_order = False
        self._records = False
        self._planned: set[tuple[str, int]] = set()
        self._by_priority = self._random.random() < 0.6
        #: The share of lines before which the thread may be switched; and the lines at which it gets the lowest
        #: priority.
        self._share = self._random.choice((0.02, 0.1, 0.3))
        longest = 10 ** self._random.uniform(1.5, 4.3)
        self._turns = {int(self._random.random() * longest) for _ in range(self._random.choice((1, 2, 3, 6)))}
        self._sleepy = self._random.choice((0.0, 0.0, 0.002, 0.01))

    # --- tasks ---------------------------------------------------------------------------------------

    def spawn(self, name: str, do: Callable[[], None], owner: str = "") -> ScheduledTask:
        """Add a thread; by default it has the owner of the thread that starts it."""
        task = ScheduledTask(name, do, owner or (self._current.owner if self._current else self._owner))
        task.priority = -len(self._tasks) / 1000 if self._in_order else self._random.random()
        task.thread = threading.Thread(target=self._run, args=(task,), name=name, daemon=True)
        self._tasks.append(task)
        task.thread.start()
        return task

    def keep_order(self, *, record: bool = False) -> None:
        """Run threads in the order in which they are started; perhaps record the accesses of their lines."""
        self._by_priority = self._in_order = True
        self._sleepy, self._turns = 0.0, set()
        self._records = record

    def preempt(self, task: str, line: int) -> None:
        """In a run with a fixed order, give a thread the lowest priority before one of its lines."""
        self._planned.add((task, line))

    def touches(self) -> dict[str, Sequence[Touch]]:
        """The recorded accesses of each thread's lines."""
        return {task.name: task.touches for task in self._tasks}

    def _is_planned(self, task: ScheduledTask, frame: FrameType) -> bool:
        task.lines += 1
        if self._records:
            task.touches.append(touch_of(frame.f_code, frame.f_lineno))
        return (task.name, task.lines) in self._planned

    def owned_by(self, owner: str) -> None:
        """Assign everything that is started from outside from now on to this owner."""
        self._owner = owner

    def kill(self, owner: str) -> None:
        """Never run the threads of an owner again."""
        for task in self._tasks:
            task.is_dead |= task.owner == owner
        if self._current is not None and self._current.is_dead:
            self.wait(lambda: False)

    def run(self, done: Callable[[], bool]) -> None:
        """Run threads until a condition holds; `StuckError` if it never does."""
        while not done() and self.error is None:
            ready = [task for task in self._tasks if task.can_go()]
            if not ready and not self._jump():
                waiting = ", ".join(t.name for t in self._tasks if not (t.is_done or t.is_dead))
                raise StuckError(f"nobody can go on: {waiting}")
            if ready:
                self._give_turn(self._choose(ready))
            self.switches += 1
            if self.switches > SWITCHES_MAX:
                raise StuckError("there is no end")
        if self.error is not None:
            raise self.error

    def _choose(self, ready: list[ScheduledTask]) -> ScheduledTask:
        if not self._by_priority:
            return self._random.choice(ready)
        return max(ready, key=lambda task: task.priority)

    def _jump(self) -> bool:
        """Jump to the next timeout."""
        waiting = [t for t in self._tasks if t.deadline is not None and not (t.is_done or t.is_dead)]
        if not waiting:
            return False
        task = min(waiting, key=lambda t: t.deadline or 0.0)
        self.now = max(self.now, task.deadline or 0.0)
        task.until, task.deadline, task.timed_out = None, None, True
        return True

    def _give_turn(self, task: ScheduledTask) -> None:
        self._current = task
        task.turn.release()
        self._control.acquire()
        self._current = None

    def _run(self, task: ScheduledTask) -> None:
        task.turn.acquire()
        try:
            if not self._stopping:
                sys.settrace(self._trace)
                task.do()
        except _Stopped:
            pass
        except BaseException as error:  # noqa: BLE001 - it ends the run, and is told there
            self.error = self.error or error
        finally:
            sys.settrace(None)
            task.is_done = True
            self._control.release()

    def stop(self) -> None:
        """Unwind all threads, including dead ones, one after the other."""
        self._stopping = True
        for task in self._tasks:
            while not task.is_done:
                self._give_turn(task)
            if task.thread is not None:
                task.thread.join(10.0)

    # --- what threads ask ----------------------------------------------------------------------------

    def _trace(self, frame: FrameType, _event: str, _value: Any) -> Any:
        return self._trace_line if frame.f_code.co_filename in self._files else None

    def _trace_line(self, frame: FrameType, event: str, _value: Any) -> Any:
        if event == "line" and not self._stopping and self._current is not None:
            self._lines += 1
            if self._sleepy and self._random.random() < self._sleepy:
                self.wait(_never, self._random.choice((0.01, 0.1, 0.5)))
            elif self._by_priority:
                if self._lines in self._turns or (self._in_order and self._is_planned(self._current, frame)):
                    self._current.priority = -self._lines
                    self.pause()
            elif self._random.random() < self._share:
                self.pause()
        return self._trace_line

    def pause(self) -> None:
        """Let others run first."""
        task = self._current
        if task is None:
            return  # not a scheduled thread: the one that runs the scheduler
        self._control.release()
        task.turn.acquire()
        if self._stopping:
            raise _Stopped

    def wait(self, until: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait for a condition; False after a timeout."""
        task = self._current
        if task is None or self._stopping:
            if self._stopping and task is not None:
                raise _Stopped
            return until()
        if until():
            return True
        task.until, task.timed_out = until, False
        task.deadline = None if timeout is None else self.now + max(timeout, 0.0)
        self.pause()
        task.until = task.deadline = None
        return not task.timed_out

    @property
    def current(self) -> ScheduledTask | None:
        """The running thread."""
        return self._current


def _never() -> bool:
    return False


class FakeLock:
    """A lock that calls the scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_taken = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, when it is free."""
        if not blocking and self._is_taken:
            return False
        self._scheduler.pause()
        while self._is_taken:
            if not self._scheduler.wait(lambda: not self._is_taken, None if timeout < 0 else timeout):
                return False
        self._is_taken = True
        return True

    def release(self) -> None:
        """Release the lock."""
        self._is_taken = False

    def __enter__(self) -> FakeLock:
        self.acquire()
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()


class FakeCondition(FakeLock):
    """A condition that calls the scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self._waiting: deque[list[bool]] = deque()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait to be notified, without the lock."""
        told = [False]
        self._waiting.append(told)
        self.release()
        came = self._scheduler.wait(lambda: told[0], timeout)
        self.acquire()
        return came

    def notify(self, n: int = 1) -> None:
        """Wake some waiting threads."""
        for _ in range(min(n, len(self._waiting))):
            self._waiting.popleft()[0] = True

    def notify_all(self) -> None:
        """Wake all waiting threads."""
        self.notify(len(self._waiting))


class FakeQueue:
    """A queue that calls the scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._entries: deque[Any] = deque()

    def put(self, entry: Any) -> None:
        """Add to the end."""
        self._scheduler.pause()
        self._entries.append(entry)

    def get(self, timeout: float | None = None) -> Any:
        """Take from the front, when there is something."""
        if not self._scheduler.wait(lambda: bool(self._entries), timeout) or not self._entries:
            raise queue.Empty
        return self._entries.popleft()

    def get_nowait(self) -> Any:
        """Take from the front, if there is something."""
        self._scheduler.pause()
        if not self._entries:
            raise queue.Empty
        return self._entries.popleft()


class FakeThread:
    """A thread that the scheduler runs."""

    def __init__(
        self,
        scheduler: Scheduler,
        target: Callable[..., None],
        args: tuple[Any, ...] = (),
        name: str = "",
        daemon: bool = True,
    ) -> None:
        self._scheduler = scheduler
        self._do = lambda: target(*args)
        self.name = name
        self.daemon = daemon
        self.task: ScheduledTask | None = None

    def start(self) -> None:
        """Begin."""
        self.task = self._scheduler.spawn(self.name, self._do)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        self._scheduler.wait(lambda: self.task is None or self.task.is_done, timeout)

    def is_alive(self) -> bool:
        """Is the thread still running?"""
        return self.task is not None and not self.task.is_done


def replace_threads(scheduler: Scheduler, modules: list[ModuleType]) -> Callable[[], None]:
    """Let modules use the scheduler's threads, locks and clock; the returned function undoes it."""
    fake_threading = SimpleNamespace(
        Lock=lambda: FakeLock(scheduler),
        Condition=lambda: FakeCondition(scheduler),
        Thread=lambda **arguments: FakeThread(scheduler, **arguments),
        current_thread=lambda: SimpleNamespace(name=scheduler.current.name if scheduler.current else "main"),
        get_ident=lambda: id(scheduler.current),
    )
    fake_queue = SimpleNamespace(SimpleQueue=_Subscripted(lambda: FakeQueue(scheduler)), Empty=queue.Empty)
    fake_time = SimpleNamespace(monotonic=lambda: scheduler.now)
    fakes = {"threading": fake_threading, "queue": fake_queue, "time": fake_time}
    before = [(m, name, getattr(m, name)) for m in modules for name in fakes if hasattr(m, name)]
    for module, name, _ in before:
        setattr(module, name, fakes[name])

    def undo() -> None:
        for module, name, value in before:
            setattr(module, name, value)

    return undo


class _Subscripted:
    """A class whose type parameter does not matter."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __call__(self) -> Any:
        return self._make()

    def __getitem__(self, _parameter: object) -> _Subscripted:
        return self
