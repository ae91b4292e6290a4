"""Outputs that outlive their worker: in the store before the commit, found by another worker through the record."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.builders import pipeline

from wallaby.errors import DurableStoreError
from wallaby.exchange.backup import Backup
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.lazy_body import fetched
from wallaby.exchange.memory import ByteBudget
from wallaby.gcs.interface import Commit
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.lineage.choose import Dynamic
from wallaby.lineage.effects import BackUp, FailPoint, Output
from wallaby.lineage.lineage import LineageRecord, encode
from wallaby.lineage.names import HEAD, ChannelName, Edge, QueryId, TaskName, WorkerId
from wallaby.lineage.tolerance import POLICIES
from wallaby.node.outputs.durable_outputs import DurableOutputs
from wallaby.node.session import QuerySession, QuerySessionSettings

QUERY, ME, OTHER = QueryId("q"), WorkerId("me"), WorkerId("other")
GRAPH = pipeline()
READER, EDGE = ChannelName(0, 0), Edge(0, 0, 0)
TASK = TaskName(*READER, 0)
MANY = 1 << 30


@pytest.fixture
def gcs() -> MemoryGcs:
    """A query whose reader is hosted by `ME`."""
    found = MemoryGcs(MemoryStore(lambda: 0))
    hosts = {name: HEAD if name == GRAPH.collector else ME for name in GRAPH.channels}
    found.submit(QUERY, GRAPH, hosts)
    return found


def durable(directory: Path, gcs: MemoryGcs, worker: WorkerId = ME) -> DurableOutputs:
    settings = QuerySessionSettings(Dynamic(1), 1, POLICIES["spool"])
    session = QuerySession(worker, GRAPH, settings, lambda: None)
    return DurableOutputs(DurableStore(str(directory), "e"), QUERY, session, gcs, 0)


def backup(size: int = MANY) -> Backup:
    return Backup(ByteBudget(size), (), 0)


def back_up(point: FailPoint = FailPoint.BACK_UP, number: int = 7) -> BackUp:
    body = (pa.record_batch({"n": [number]}),)
    return BackUp(point, TASK, Output(number, {EDGE: (8, body)}), final=False)


def committed(gcs: MemoryGcs, checksum: int) -> None:
    (reply,) = gcs.commit(
        QUERY, ME, 1, (Commit(TASK, encode(LineageRecord(checksum, split=0)), final=False),)
    )
    assert reply.verdict.value == "done"


def test_an_output_is_sent_from_memory_while_it_is_there_and_else_from_the_store(
    tmp_path: Path, gcs: MemoryGcs
) -> None:
    here, local = durable(tmp_path, gcs), backup()
    assert here.keep(local, back_up()) > 8
    assert here.slices_of(local, ((EDGE, TASK),), 1, MANY)[0].body == back_up().output.slices[EDGE][1]
    committed(gcs, 7)
    for memory in (backup(), backup(0)):  # of a worker that did not make it, and of one without room
        (found,) = fetched(here.slices_of(memory, ((EDGE, TASK),), 1, MANY))
        assert (found.body, found.final) == (back_up().output.slices[EDGE][1], False)


def test_a_repeated_output_is_not_written_again(tmp_path: Path, gcs: MemoryGcs) -> None:
    assert durable(tmp_path, gcs).keep(backup(), back_up(FailPoint.RETRACE_BACK_UP)) == 0
    assert not list(tmp_path.rglob("*"))


def test_the_record_says_which_attempt_counts(tmp_path: Path, gcs: MemoryGcs) -> None:
    here = durable(tmp_path, gcs)
    for number in (7, 8):
        here.keep(backup(0), back_up(number=number))
    committed(gcs, 8)
    (found,) = fetched(here.slices_of(backup(), ((EDGE, TASK),), 1, MANY))
    assert found.body == back_up(number=8).output.slices[EDGE][1]


def test_without_a_record_there_is_nothing_to_send_yet(tmp_path: Path, gcs: MemoryGcs) -> None:
    here = durable(tmp_path, gcs)
    here.keep(backup(0), back_up())
    with pytest.raises(LookupError, match="cannot be read now"):
        here.slices_of(backup(), ((EDGE, TASK),), 1, MANY)
    committed(gcs, 7)
    with pytest.raises(LookupError, match="stale"):
        here.slices_of(backup(), ((EDGE, TASK),), 9, MANY)
    with pytest.raises(LookupError, match=r"expelled|not host"):
        durable(tmp_path, gcs, OTHER).slices_of(backup(), ((EDGE, TASK),), 1, MANY)


def test_an_output_that_the_store_has_lost_is_an_error(tmp_path: Path, gcs: MemoryGcs) -> None:
    committed(gcs, 7)
    with pytest.raises(DurableStoreError, match=r"s0\.c0\.t0"):
        durable(tmp_path, gcs).slices_of(backup(), ((EDGE, TASK),), 1, MANY)
