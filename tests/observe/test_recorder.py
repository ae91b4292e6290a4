"""A worker's recorder: what it tells of tasks, commits and pushes, within bounds, and whether it arrives."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from tests.builders import W

from wallaby.batches.task_timing import Lap, lap, spilled
from wallaby.errors import EncodingError, QueryError
from wallaby.lineage.effects import CommitTask, Execute, Executed, FailPoint, Output, Push, PushReply, Slice
from wallaby.lineage.lineage import LineageRecord, encode
from wallaby.lineage.names import Edge, QueryId, TaskName
from wallaby.lineage.verdict import CommitReply, Verdict
from wallaby.observe import recorder as module
from wallaby.observe.event_batch import (
    EVENT_BATCH_BYTES_MAX,
    Carried,
    EventBatch,
    StageTotals,
    decode_event_batch,
    encode_event_batch,
)
from wallaby.observe.recorder import EventRecorder

QUERY = QueryId("q-1")
TASK = TaskName(1, 0, 7)


class Clock:
    """Every look takes a second."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


class Wire:
    """Takes batches, unless it is down."""

    def __init__(self) -> None:
        self.up = True
        self.batches: list[EventBatch] = []

    def send(self, body: bytes) -> bool:
        if self.up:
            self.batches.append(decode_event_batch(body))
        return self.up

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for batch in self.batches for line in batch.lines.splitlines()]


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def recorder(wire: Wire) -> EventRecorder:
    return EventRecorder(QUERY, W[1], wire.send, Clock())


def body(rows: int) -> tuple[pa.RecordBatch, ...]:
    return (pa.RecordBatch.from_pydict({"a": list(range(rows))}),)


def execution(point: FailPoint = FailPoint.EXECUTE, task: TaskName = TASK) -> Execute:
    given = Slice(TaskName(0, 0, 3), Edge(0, 0, 0), False, 80, body(10))
    return Execute(point, task, None, None, None, (given,), {}, False)


def hashed() -> Output:
    """Rows for two consumers, and the same rows again over a second link."""
    first, second = body(3), body(2)
    slices: dict[Edge, tuple[int, object]] = {
        Edge(1, 0, 0): (24, first),
        Edge(1, 0, 1): (16, second),
        Edge(2, 0, 0): (40, body(5)),
    }
    return Output(7, slices)


def test_a_task_tells_its_time_rows_and_inputs(recorder: EventRecorder, wire: Wire) -> None:
    state, output = recorder.watched(lambda _: Executed("state", hashed()))(execution())
    recorder.flush()
    assert state == "state"
    assert output.checksum == 7
    assert wire.events == [
        {
            "event": "task",
            "at": 1002.0,
            "worker": "w1",
            "seconds": 1.0,
            "task": "s1.c0.t7",
            "how": "execute",
            "queued": 1.0,
            "rows": 5,
            "bytes": 40,
            "inputs": 1,
            "input_rows": 10,
            "input_bytes": 80,
        }
    ]


def test_a_broadcast_output_is_counted_once(recorder: EventRecorder, wire: Wire) -> None:
    shared = body(4)
    output = Output(7, {Edge(1, 0, consumer): (32, shared) for consumer in range(5)})
    recorder.watched(lambda _: Executed(None, output))(execution())
    recorder.flush()
    assert (wire.events[0]["rows"], wire.events[0]["bytes"]) == (4, 32)


def test_a_task_that_fails_is_told_too_and_its_error_goes_on(recorder: EventRecorder, wire: Wire) -> None:
    def fails(_: Execute) -> Executed:
        raise QueryError("no")

    with pytest.raises(QueryError):
        recorder.watched(fails)(execution())
    recorder.flush()
    assert wire.events[0]["error"] == "QueryError"


def test_totals_count_repeated_tasks_apart(recorder: EventRecorder, wire: Wire) -> None:
    run = recorder.watched(lambda _: Executed(None, hashed()))
    for point in (FailPoint.EXECUTE, FailPoint.RETRACE, FailPoint.REREAD):
        run(execution(point))
    recorder.flush()
    totals = wire.batches[0].totals[1]
    assert (totals.tasks, totals.rows, totals.retraced, totals.reread) == (1, 5, 1, 1)
    assert [event["how"] for event in wire.events] == ["execute", "retrace", "re-read"]


def test_commits_and_pushes_say_what_was_refused(recorder: EventRecorder, wire: Wire) -> None:
    commits = [CommitTask(TaskName(1, 0, seq), b"", False, (), 1) for seq in range(3)]
    replies = (CommitReply(Verdict.DONE), CommitReply(Verdict.FROZEN), CommitReply(Verdict.FROZEN))
    recorder.committed(999.0, commits, replies)
    recorder.committed(999.0, commits[:1], None)
    push = Push(FailPoint.DELIVER, 1, W[1], W[2], ((Edge(1, 0, 0), TASK), (Edge(1, 0, 1), TASK)))
    slices = [Slice(TASK, edge, False, 10) for edge, _ in push.items]
    recorder.pushed(999.0, push, slices, PushReply(True, (True, False)), "flight")
    recorder.pushed(999.0, push, slices, None, "flight")
    recorder.flush()
    first, second, third, fourth = wire.events
    assert first["tasks"] == ["s1.c0.t0", "s1.c0.t1", "s1.c0.t2"]
    assert (first["refused"], second["refused"]) == ({"frozen": 2}, {"no answer": 1})
    assert (third["outputs"], third["bytes"], third["held"]) == (2, 20, 1)
    assert fourth["held"] == 0
    assert wire.batches[0].pushed_bytes == 10, "what was not held was not sent"


def test_what_a_worker_does_beside_its_tasks_is_counted(recorder: EventRecorder, wire: Wire) -> None:
    commits = [CommitTask(TaskName(1, 0, seq), b"record", False, (), 1) for seq in range(3)]
    replies = (CommitReply(Verdict.DONE), CommitReply(Verdict.ALREADY), CommitReply(Verdict.FROZEN))
    recorder.committed(1000.0, commits, replies)
    recorder.asked(1001.0)
    recorder.spilled(1002.0, TASK, 44)
    recorder.close()
    told = wire.batches[-1]
    assert (told.carried.commits, told.carried.lineage_bytes) == (2, 18)
    assert (told.carried.store_calls, told.carried.store_seconds) == (3, 2.0), "one to get to know the query"
    assert (told.carried.backup_seconds, told.totals[1].spilled_bytes) == (1.0, 44)


def test_states_that_were_saved_and_committed_are_counted(recorder: EventRecorder, wire: Wire) -> None:
    records = [encode(LineageRecord(1, split=seq, saved=seq > 0)) for seq in range(3)]
    commits = [CommitTask(TaskName(1, 0, seq), record, False, (), 1) for seq, record in enumerate(records)]
    replies = (CommitReply(Verdict.DONE), CommitReply(Verdict.DONE), CommitReply(Verdict.FROZEN))
    recorder.committed(1000.0, commits, replies)
    recorder.close()
    assert wire.batches[-1].carried.checkpoints == 1


def test_a_task_tells_what_its_parts_took(recorder: EventRecorder, wire: Wire) -> None:
    def work(_: Execute) -> Executed:
        with lap(Lap.SCAN):
            spilled(7)
        return Executed(None, hashed())

    with lap(Lap.PARTITION):
        pass  # of another task, before this one
    recorder.watched(work)(execution())
    recorder.close()
    totals = wire.batches[-1].totals[1]
    assert totals.scan_seconds > 0
    assert (totals.partition_seconds, totals.spilled_bytes) == (0.0, 7)


def test_what_did_not_arrive_is_sent_again_in_order(recorder: EventRecorder, wire: Wire) -> None:
    wire.up = False
    for seq in range(3):
        recorder.watched(lambda _: Executed(None, hashed()))(execution(task=TaskName(1, 0, seq)))
        recorder.flush()
    wire.up = True
    recorder.close()
    assert [event["task"] for event in wire.events] == ["s1.c0.t0", "s1.c0.t1", "s1.c0.t2"]
    assert [batch.last for batch in wire.batches] == [True]


def test_the_buffer_is_bounded_and_what_found_no_room_is_counted(
    recorder: EventRecorder, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVENTS_MAX", 5)
    for _ in range(8):
        recorder.watched(lambda _: Executed(None, hashed()))(execution())
    recorder.close()
    assert len(wire.events) == 5
    assert wire.batches[-1].dropped == 3
    assert wire.batches[-1].totals[1].tasks == 8


def test_many_events_go_in_several_calls_of_which_the_last_says_so(
    recorder: EventRecorder, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVENTS_PER_CALL", 3)
    for _ in range(7):
        recorder.watched(lambda _: Executed(None, hashed()))(execution())
    recorder.close()
    assert len(wire.events) == 7
    assert [batch.last for batch in wire.batches] == [False, False, True]


def test_a_recorder_with_nothing_to_say_still_says_its_last(recorder: EventRecorder, wire: Wire) -> None:
    recorder.flush()
    recorder.close()
    assert [(batch.last, batch.lines) for batch in wire.batches] == [(True, b"")]


def test_a_batch_comes_back_as_it_was() -> None:
    batch = EventBatch(
        QUERY,
        W[1],
        b'{"a":1}\n{"b":2}\n',
        3,
        True,
        44,
        {2: StageTotals(1, 2, 3, seconds=0.5)},
        Carried(lineage_bytes=9),
        {(2, 1): 0.5},
    )
    assert decode_event_batch(encode_event_batch(batch, ('{"a":1}', '{"b":2}'))) == batch


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\x80\x04\x95",
        b"[]\n",
        b'{"version":4}\n',
        b'{"version":3,"query":"q","worker":"w","dropped":0,"last":false,"pushed_bytes":0,"totals":{},"carried":[]}\n',
        b'{"version":4,"query":"q","worker":"w","dropped":0,"last":false,"pushed_bytes":0,"totals":{},"carried":[],"channels":[]}\nhalf',
        b'{"version":4,"query":"q","worker":"w","dropped":0,"last":false,"pushed_bytes":0,"totals":{"0":7},"carried":[],"channels":[]}\n',
        b"x" * (EVENT_BATCH_BYTES_MAX + 1),
    ],
    ids=["empty", "pickle", "list", "fields", "version", "half a line", "totals", "too long"],
)
def test_what_is_no_batch_is_refused(bad: bytes) -> None:
    with pytest.raises(EncodingError):
        decode_event_batch(bad)
