"""A client that is slower than its query: the collector waits for it, and nobody waits for ever."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wallaby.errors import QueryError, ResultSizeError, WallabyError
from wallaby.head.collected import UNTAKEN_BYTES_MAX, Collected
from wallaby.lineage.effects import Slice
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.names import Edge, QueryId, TaskName

GRAPH = StageGraph((Stage(StageKind.READ, 1, splits=1), Stage(StageKind.COLLECT, 1)), (Link(0, 1),))
BATCH = pa.record_batch([pa.nulls(UNTAKEN_BYTES_MAX // 17, pa.int64()).fill_null(0)], names=["a"])


def collected() -> Collected:
    return Collected(QueryId("q"), GRAPH, lambda _because: None)


def piece(*batches: pa.RecordBatch) -> tuple[Slice, ...]:
    return (Slice(TaskName(0, 0, 0), Edge(0, 0, 0), False, 0, batches),)


def test_the_collector_goes_on_while_there_is_room() -> None:
    gone_on: list[int] = []
    collected().add(piece(BATCH), lambda: gone_on.append(1))
    assert gone_on == [1]


def test_the_collector_waits_until_rows_were_taken() -> None:
    gone_on: list[int] = []
    result = collected()
    result.add(piece(BATCH, BATCH, BATCH), lambda: gone_on.append(1))
    assert gone_on == []
    stream = result.batches()
    next(stream)
    assert gone_on == [1]


def test_the_end_of_a_query_lets_everybody_go() -> None:
    gone_on: list[int] = []
    result = collected()
    result.add(piece(BATCH, BATCH, BATCH), lambda: gone_on.append(1))
    result.end(None)
    assert gone_on == [1]
    assert len(list(result.batches())) == 3


def test_whoever_asks_is_told_of_the_end_once_be_it_over_already() -> None:
    told: list[BaseException | None] = []
    result = collected()
    result.when_over(told.append)
    assert told == []
    error = QueryError("a reason")
    result.end(error)
    result.end(None)
    result.when_over(told.append)
    assert told == [error, error]


def test_rows_that_were_dropped_as_too_many_are_never_taken_for_none() -> None:
    cancelled: list[WallabyError | None] = []
    result = Collected(QueryId("q"), GRAPH, cancelled.append, held_back=True, whole_bytes_max=1)
    result.add(piece(BATCH), lambda: None)
    assert isinstance(cancelled[0], ResultSizeError)
    result.end(None)  # all of them had come before anybody could cancel it
    with pytest.raises(ResultSizeError):
        list(result.batches())


def test_a_query_that_goes_on_after_a_roll_back_keeps_the_rows_that_a_snapshot_covers() -> None:
    result = collected()
    result.add(piece(BATCH), lambda: None)
    result.begin_again(QueryId("q-2"), goes_on=True)
    result.add(piece(BATCH), lambda: None)
    result.end(None)
    assert len(list(result.batches())) == 2
    assert (result.query, result.figures.restarts) == ("q-2", 1)


def test_rows_that_a_client_may_have_are_never_given_again() -> None:
    with pytest.raises(AssertionError, match="not taken back"):
        collected().begin_again(QueryId("q-2"))
