"""Stop a running task from outside: at its next statement, at its next batch, or inside DuckDB.

A computing thread cannot be killed. But a step consists of statements and batches that do not take too long, and a
DuckDB statement can be interrupted. So every task is registered here while it runs, and checks between its parts
whether it should stop. A statement is interrupted only while it belongs to the task that should stop, never to the next
task on the same thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wallaby.errors import QueryError


@dataclass(slots=True, eq=False)
class Task:
    """A task that is running on a thread."""

    owner: object
    #: Its name, and the memory of the process when it began.
    name: object
    before_bytes: int
    #: The error with which it should end; set once it should stop.
    error: QueryError | None = None
    #: Interrupts the running statements, if there are any.
    interrupt: Callable[[], None] | None = None
    #: The number of open statements: one whose rows feed another stays open as long as that one.
    statements: int = 0


class _Here(threading.local):
    task: Task | None = None


_here = _Here()
_running: dict[int, Task] = {}
_lock = threading.Lock()


@contextmanager
def stoppable(owner: object, name: object = None, before_bytes: int = 0) -> Iterator[Task]:
    """Let the owner stop what runs inside on this thread; any exception that results becomes the given error."""
    task = Task(owner, name, before_bytes)
    with _lock:
        _running[threading.get_ident()] = task
    _here.task = task
    try:
        yield task
    except Exception as error:
        if task.error is not None and error is not task.error:
            raise task.error from error
        raise
    finally:
        _here.task = None
        with _lock:
            del _running[threading.get_ident()]


def check() -> None:
    """Raise if the task of this thread should stop. Called between the parts of a step."""
    task = _here.task
    if task is not None and task.error is not None:
        raise task.error


@contextmanager
def statement(interrupt: Callable[[], None]) -> Iterator[None]:
    """Register a statement of this thread's task, and how to interrupt all open statements of the task."""
    task = _here.task
    if task is None:
        yield
        return
    with _lock:
        task.interrupt = interrupt
        task.statements += 1
    try:
        check()
        yield
    finally:
        with _lock:
            task.statements -= 1
            if not task.statements:
                task.interrupt = None


def running(owner: object) -> tuple[Task, ...]:
    """The running tasks of an owner, on all threads."""
    with _lock:
        return tuple(task for task in _running.values() if task.owner is owner)


def stop(owner: object, error: QueryError) -> int:
    """Stop all running tasks of an owner; returns their number. Repeat it: a task may be between two statements."""
    with _lock:
        tasks = [task for task in _running.values() if task.owner is owner]
        for task in tasks:
            task.error = error
            if task.interrupt is not None:
                task.interrupt()
    return len(tasks)
