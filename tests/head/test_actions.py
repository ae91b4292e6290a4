"""The head's actions on the store, and how they fail."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from wallaby.coordinator.effects import Freeze, ReadNeed, Submit
from wallaby.errors import EncodingError, GcsLostError, GcsUnavailableError, WallabyError
from wallaby.gcs.interface import Verdict
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.head.actions import ACTIONS
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId

GRAPH = StageGraph((Stage(StageKind.READ, 1, 1), Stage(StageKind.COLLECT, 1)), (Link(0, 1),))
QUERY, WORKER, OTHER = QueryId("q"), WorkerId("w1"), WorkerId("w2")
SUBMIT = Submit(QUERY, GRAPH, {ChannelName(0, 0): WORKER, GRAPH.collector: HEAD}, b"")


class Failing(MemoryGcs):
    """A store that answers submissions with an error."""

    def __init__(self, error: WallabyError) -> None:
        super().__init__(MemoryStore(lambda: 0))
        self._error = error

    def submit(
        self, query: QueryId, graph: StageGraph, hosts: Mapping[ChannelName, WorkerId], payload: bytes = b""
    ) -> Verdict:
        raise self._error


def test_an_error_of_a_submission_is_its_answer_and_not_taken_for_silence() -> None:
    error = EncodingError("The payload is too large.")
    assert ACTIONS[Submit](Failing(error), SUBMIT) is error


@pytest.mark.parametrize(
    "error", [GcsUnavailableError("no answer"), GcsLostError("lost")], ids=["silent", "lost"]
)
def test_a_store_that_is_silent_or_lost_gives_no_answer_to_a_submission(error: WallabyError) -> None:
    with pytest.raises(type(error)):
        ACTIONS[Submit](Failing(error), SUBMIT)


def test_a_worker_is_needed_as_long_as_any_query_has_it_even_if_it_is_about_to_leave() -> None:
    gcs = MemoryGcs(MemoryStore(lambda: 0))
    ACTIONS[Submit](gcs, SUBMIT)
    gcs.submit(QueryId("p"), GRAPH, {ChannelName(0, 0): OTHER, GRAPH.collector: HEAD})
    assert ACTIONS[ReadNeed](gcs, ReadNeed(WORKER))
    ACTIONS[Freeze](gcs, Freeze(QUERY, (), (WORKER,)))
    assert ACTIONS[ReadNeed](gcs, ReadNeed(WORKER))
    ACTIONS[Freeze](gcs, Freeze(QUERY, (WORKER,), ()))
    assert not ACTIONS[ReadNeed](gcs, ReadNeed(WORKER))
    assert ACTIONS[ReadNeed](gcs, ReadNeed(OTHER))
