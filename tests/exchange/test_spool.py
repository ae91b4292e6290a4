"""Outputs in the durable store come back slice by slice as they were, found by their records."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.spoiling import SPOILS

from wallaby.errors import DurableStoreError
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.lazy_body import fetched
from wallaby.exchange.spool import Spool
from wallaby.lineage.lineage import LineageRecord
from wallaby.lineage.names import Edge, QueryId, TaskName

TASK = TaskName(2, 1, 7)


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


@pytest.fixture
def store(tmp_path: Path) -> DurableStore:
    return DurableStore(str(tmp_path), "e")


def test_slices_come_back_with_their_batches_and_a_broadcast_is_written_once(store: DurableStore) -> None:
    spool = Spool(store, QueryId("q"))
    whole, part = (batch(1, 2), batch(3)), (batch(4),)
    output = {Edge(0, 1, 0): part, Edge(0, 1, 1): None, Edge(1, 1, 0): whole, Edge(1, 1, 1): whole}
    written = spool.keep(TASK, 99, output, final=True)
    once = Spool(store, QueryId("other")).keep(
        TASK, 99, {Edge(1, 1, 0): whole, Edge(0, 1, 0): part}, final=True
    )
    assert written - once < 100, "the same bodies, and a longer index"
    record = LineageRecord(99, final=True)
    other = Spool(store, QueryId("q"))  # of another worker, which has only the record
    for edge, body in output.items():
        (found,) = fetched([other.slice_of(TASK, edge, record)])
        assert (found.task, found.edge, found.final) == (TASK, edge, True)
        assert found.body == body
        assert found.size_bytes == sum(b.nbytes for b in body or ())


def test_attempts_that_made_different_outputs_do_not_meet(store: DurableStore) -> None:
    spool = Spool(store, QueryId("q"))
    for checksum, final, number in ((1, False, 10), (2, False, 20), (1, True, 30)):
        spool.keep(TASK, checksum, {Edge(0, 1, 0): (batch(number),)}, final=final)
    (found,) = fetched([spool.slice_of(TASK, Edge(0, 1, 0), LineageRecord(1))])
    assert found.body == (batch(10),)


def test_what_is_not_there_is_an_error_that_names_it(store: DurableStore) -> None:
    spool = Spool(store, QueryId("q"))
    with pytest.raises(DurableStoreError, match=r"s2\.c1\.t7"):
        spool.slice_of(TASK, Edge(0, 1, 0), LineageRecord(1))
    spool.keep(TASK, 1, {Edge(0, 1, 0): None}, final=False)
    with pytest.raises(DurableStoreError, match=r"s2\.c1\.t7"):
        spool.slice_of(TASK, Edge(5, 1, 0), LineageRecord(1))


@pytest.mark.parametrize("how", SPOILS)
def test_a_spoilt_output_is_an_error_that_names_it_and_never_another_output(
    store: DurableStore, tmp_path: Path, how: str
) -> None:
    spool = Spool(store, QueryId("q"))
    tasks = [TaskName(2, 1, seq) for seq in range(3)]
    edges = [Edge(0, 1, consumer) for consumer in range(2)]
    for task in tasks:
        output = {edge: (batch(task.seq, edge.consumer), batch(*range(50))) for edge in edges}
        spool.keep(task, task.seq, output, final=False)
    SPOILS[how](sorted(path for path in tmp_path.rglob("*") if path.is_file()))
    for task in tasks:
        errors = 0
        for edge in edges:
            try:
                (found,) = fetched([spool.slice_of(task, edge, LineageRecord(task.seq))])
            except DurableStoreError as error:
                errors += 1
                assert f"q/outputs/{task}-" in str(error)  # noqa: PT017 - one of the two may come
            else:
                assert found.body == (batch(task.seq, edge.consumer), batch(*range(50)))
        assert errors == (1 if how == "changed" else 2)


def test_a_broadcast_that_several_edges_need_at_a_time_is_read_once(store: DurableStore) -> None:
    spool, body = Spool(store, QueryId("q")), (batch(1, 2),)
    edges = [Edge(0, 1, consumer) for consumer in range(3)]
    spool.keep(TASK, 1, dict.fromkeys(edges, body), final=False)
    one, *others = fetched([spool.slice_of(TASK, edge, LineageRecord(1)) for edge in edges])
    assert one.body == body
    assert all(other.body is one.body for other in others)
