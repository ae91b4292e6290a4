"""How a task that runs is stopped from outside: at its next statement, at its next batch, or inside DuckDB.

A thread that computes cannot be ended. But a step works through statements and batches, each of them not too long, and
a statement of DuckDB's can be interrupted. So whoever runs a task says so here, and the task looks between its parts
whether it should stop. A statement is interrupted only while its own task is the one to be stopped: never that of the
next task on the same thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wallaby.errors import QueryError


@dataclass(slots=True, eq=False)
class Task:
    """A task that runs on some thread."""

    owner: object
    #: Its name, and what the process had in memory when it began.
    name: object
    before_bytes: int
    #: Set once it should stop: what it ends with.
    error: QueryError | None = None
    #: Ends the statements that are being run, while there are any.
    interrupt: Callable[[], None] | None = None
    #: A statement whose rows go into another is open as long as that one is.
    statements: int = 0


class _Here(threading.local):
    task: Task | None = None


_here = _Here()
_running: dict[int, Task] = {}
_lock = threading.Lock()


@contextmanager
def stoppable(owner: object, name: object = None, before_bytes: int = 0) -> Iterator[Task]:
    """What runs in here on this thread can be stopped by its owner; whatever it raises then becomes that error."""
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
    """Go on, unless the task of this thread should stop. Called between the parts of a step."""
    task = _here.task
    if task is not None and task.error is not None:
        raise task.error


@contextmanager
def statement(interrupt: Callable[[], None]) -> Iterator[None]:
    """A statement of this thread's task, and how to interrupt all that the task has open."""
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
    """The tasks of an owner that run now, on all threads."""
    with _lock:
        return tuple(task for task in _running.values() if task.owner is owner)


def stop(owner: object, error: QueryError) -> int:
    """Stop all tasks of an owner that run now; how many do. To be repeated: a task may be between two statements."""
    with _lock:
        tasks = [task for task in _running.values() if task.owner is owner]
        for task in tasks:
            task.error = error
            if task.interrupt is not None:
                task.interrupt()
    return len(tasks)
