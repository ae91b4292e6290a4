"""Distribute work to several processes, each with its own session, which take parts one after the other.

A query of few rows waits for the JVM, then for workers, then for the JVM again, so one session leaves cores idle. The
result of a part is returned as soon as it is known; parts that were begun are finished.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from wallaby.errors import InternalError

#: How long a process may take to end its session.
_END_SECONDS = 60.0
Part = TypeVar("Part")
Found = TypeVar("Found")
#: The types of a part and of its result.
Part_contra = TypeVar("Part_contra", contravariant=True)
Found_co = TypeVar("Found_co", covariant=True)
Say = Callable[[str], None]


class CrewWork(Protocol[Part_contra, Found_co]):
    """Work that can be distributed; it must be picklable."""

    def begin(self, say: Say) -> AbstractContextManager[Callable[[Part_contra], Found_co]]:
        """Prepare for parts; messages go to `say`."""


@dataclass(frozen=True, slots=True)
class _Free:
    """A process is free; with the result of its last part."""

    found: Any = None


def shared_out(
    work: CrewWork[Part, Found], parts: Iterable[Part], say: Say, processes: int = 1
) -> Iterator[tuple[Part, Found]]:
    """Yield each part and its result, in the order of completion.

    With one process, the work is done in this process. The next part is taken from `parts` only when a process is free.

    Raises:
        InternalError: a process has ended before it finished its part.
    """
    if processes == 1:
        with work.begin(say) as do:
            for part in parts:
                yield part, do(part)
        return
    crew = dict(_hired(work) for _ in range(processes))
    busy: dict[Connection, Part] = {}
    upcoming = iter(parts)
    try:
        free = list(crew)
        while free or busy:
            for pipe in wait(list(busy.keys() | set(free))):
                assert isinstance(pipe, Connection)
                message = _heard(pipe, crew[pipe], busy.get(pipe))
                if isinstance(message, str):
                    say(message)
                    continue
                if pipe in busy:
                    yield busy.pop(pipe), message.found
                else:
                    free.remove(pipe)
                for part in islice(upcoming, 1):
                    busy[pipe] = part
                pipe.send(busy.get(pipe))
        for process in crew.values():
            process.join(_END_SECONDS)
    finally:
        for process in crew.values():
            process.terminate()


def _hired(work: CrewWork[Any, Any]) -> tuple[Connection, BaseProcess]:
    # A fork would share the sockets of a session that this process may have.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_member, args=(work, theirs), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _member(work: CrewWork[Any, Any], pipe: Connection) -> None:
    with work.begin(pipe.send) as do:
        pipe.send(_Free())
        while (part := pipe.recv()) is not None:
            pipe.send(_Free(do(part)))


def _heard(pipe: Connection, process: BaseProcess, part: object) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        process.join(_END_SECONDS)
        what = "before it began" if part is None else f"in the middle of {part}"
        raise InternalError(f"A process ended {what}, with {process.exitcode}.") from None
