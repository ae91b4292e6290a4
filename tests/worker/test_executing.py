"""Errors of tasks on their way from a kernel thread to the session: typed, and without the rows they came through."""

from __future__ import annotations

import gc
import queue
import weakref
from typing import Any

import pyarrow as pa
import pytest

from wallaby.errors import KernelError, MemoryLimitError, QueryError
from wallaby.lineage.effects import Execute, FailPoint
from wallaby.lineage.names import ChannelName, QueryId, TaskName, WorkerId
from wallaby.node.actors import ActorKind, ActorName
from wallaby.node.node import Actor, EngineNode, WorkerQuery
from wallaby.node.perform import NodeSettings, Performer

LIMIT_SECONDS = 10.0
EFFECT = Execute(FailPoint.EXECUTE, TaskName(1, 0, 2), None, None, None, (), {}, last=False)


class Rows:
    """Stands for the rows of a step."""


class Work:
    """A query's work whose step raises, with rows in its frame."""

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self.rows: weakref.ref[Rows] | None = None

    def execute(self, effect: Execute) -> Any:
        rows = Rows()
        self.rows = weakref.ref(rows)
        try:
            raise ValueError("a cause, with the same frame")
        except ValueError as cause:
            raise self._error from cause


def answer_to(work: Work) -> object:
    """What the session is answered when the step raises."""
    nothing: Any = None
    node = EngineNode(WorkerId("w0-1"), lambda _: None)
    answers: queue.SimpleQueue[object] = queue.SimpleQueue()
    node.answer = lambda actor, effect, value: answers.put(value)  # type: ignore[method-assign]
    performer = Performer(
        node, nothing, nothing, nothing, nothing, nothing, nothing, NodeSettings(kernel_threads=1)
    )
    try:
        performer.perform(
            Actor(
                ActorName(ActorKind.CHANNEL, ChannelName(1, 0)),
                nothing,
                WorkerQuery(nothing, QueryId("q"), work),
            ),
            EFFECT,
        )
        return answers.get(timeout=LIMIT_SECONDS)
    finally:
        performer.stop(LIMIT_SECONDS)


@pytest.mark.parametrize("error", [MemoryLimitError("too much"), KernelError("no")])
def test_an_error_does_not_hold_the_rows_of_its_step(error: QueryError) -> None:
    work = Work(error)
    assert answer_to(work) is error
    gc.collect()
    assert work.rows is not None
    assert work.rows() is None


@pytest.mark.parametrize("error", [MemoryError("no more"), pa.lib.ArrowMemoryError("malloc of 7 failed")])
def test_an_allocation_that_fails_is_an_error_of_memory(error: MemoryError) -> None:
    answer = answer_to(Work(error))
    assert isinstance(answer, MemoryLimitError)
    assert answer.fields["task"] == EFFECT.task
