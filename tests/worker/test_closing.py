"""The end of a query ends what is still computed for it."""

from __future__ import annotations

import queue
import threading
from typing import Any

import pytest

from wallaby.errors import MemoryLimitError, QueryCancelledError, QueryError
from wallaby.lineage.names import TaskName
from wallaby.statements.connection import DuckDbSession, KernelSettings
from wallaby.worker.execution import QueryWork

ENDLESS = "SELECT sum(a.range * b.range) AS n FROM range(1000000) a, range(1000000) b"
TASK = TaskName(1, 0, 2)
LIMIT_SECONDS = 30.0


class States:
    """Stands for what channels have collected."""

    def __init__(self) -> None:
        self.dropped: list[tuple[object, int]] = []

    def drop(self, work: QueryWork) -> None:
        self.dropped.append((work, len(work.tasks())))


def made() -> tuple[QueryWork, States]:
    nothing: Any = None
    states: Any = States()
    return QueryWork(nothing, KernelSettings(), states), states


@pytest.mark.parametrize("before", [None, MemoryLimitError("too much")])
def test_a_step_that_never_ends_is_stopped_when_its_query_ends(before: QueryError | None) -> None:
    """Also if it was to stop before, between two statements, with an error of its own."""
    work, states = made()
    begun = threading.Event()
    ended: queue.SimpleQueue[object] = queue.SimpleQueue()

    def run() -> None:
        session = DuckDbSession(KernelSettings())
        try:
            with work.running(TASK):
                begun.set()
                ended.put(session.query(ENDLESS, {}))
        except QueryError as error:
            ended.put(error)
        finally:
            session.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert begun.wait(LIMIT_SECONDS)
    if before is not None:
        work.stop(before)
    work.close()
    found = ended.get(timeout=LIMIT_SECONDS)
    thread.join(LIMIT_SECONDS)
    assert isinstance(found, QueryCancelledError) if before is None else found is before
    assert states.dropped == [(work, 0)], "what its tasks collect is dropped when none runs any more"


def test_nothing_is_computed_for_a_query_that_has_ended() -> None:
    work, _ = made()
    work.close()
    with pytest.raises(QueryCancelledError), work.running(TASK):
        raise AssertionError("it began")
