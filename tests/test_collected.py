"""A client that is slower than its query: the collector waits for it, and nobody waits for ever."""

from __future__ import annotations

import pyarrow as pa

from wallaby.head.collected import UNTAKEN_BYTES_MAX, Collected
from wallaby.lineage.effects import Slice
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.names import Edge, QueryId, TaskName

GRAPH = StageGraph((Stage(StageKind.READ, 1, splits=1), Stage(StageKind.COLLECT, 1)), (Link(0, 1),))
BATCH = pa.record_batch([pa.nulls(UNTAKEN_BYTES_MAX // 17, pa.int64()).fill_null(0)], names=["a"])


def collected() -> Collected:
    return Collected(QueryId("q"), GRAPH, lambda: None)


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
