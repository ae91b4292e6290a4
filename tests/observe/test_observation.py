"""What the driver sees of a query: its figures, its log, and the line about a lost worker."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.builders import W, at, pipeline, snapshot

from wallaby.coordinator import effects as coordinating
from wallaby.errors import ConfigurationError, QueryCancelledError, QueryError
from wallaby.gcs.interface import QueryStatus, WorkerLease
from wallaby.head.observer import Observer
from wallaby.lineage.names import HEAD, ChannelName, Edge, QueryId
from wallaby.lineage.snapshot import RecoveryPlan, ReRead
from wallaby.lineage.verdict import Verdict
from wallaby.observe.analyze import analyzed
from wallaby.observe.event_batch import EventBatch, StageTotals, encode_event_batch
from wallaby.observe.log import EventLog, log_directory
from wallaby.observe.observation import Observation
from wallaby.plan.physical import CollectFragment, PhysicalPlan

QUERY = QueryId("q-1")
GRAPH = pipeline(readers=2, executors=1, splits=5)
PLAN = PhysicalPlan(
    GRAPH, (CollectFragment(()),) * 3, ((), ()), (), ("scan t", "aggregate", "collect"), (None,) * 3
)
HOSTS = {
    ChannelName(0, 0): W[1],
    ChannelName(0, 1): W[2],
    ChannelName(1, 0): W[1],
    GRAPH.collector: HEAD,
}
LEASES = tuple(WorkerLease(W[n], f"grpc://127.0.0.1:{n}?host=node{n}&pid={n}0", 1000) for n in (1, 2, 3))


def events_of(directory: Path) -> list[dict[str, Any]]:
    (path,) = directory.iterdir()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def begin(observer: Observer, *, detailed: bool = True) -> Observation:
    observer.noticed(coordinating.Watch(), LEASES)
    return observer.begin(QUERY, PLAN, HOSTS, detailed=detailed)


def lose_w1(observer: Observer) -> None:
    plan = RecoveryPlan(
        hosts={ChannelName(1, 0): W[2], ChannelName(0, 0): W[2]},
        bases={ChannelName(0, 0): 3},
        delivered={Edge(0, 0, 0): 3, Edge(0, 1, 0): 0},
        rereads=(ReRead(ChannelName(0, 0), 0, 3, (Edge(0, 0, 0),)),),
        rewound=(ChannelName(1, 0),),
    )
    states = {(0, 0): at(W[1], 3), (0, 1): at(W[2], 4), (1, 0): at(W[1], 2)}
    before = snapshot(GRAPH, states, members=(W[2],), delivered={Edge(0, 0, 0): 2, Edge(0, 1, 0): 4})
    observer.noticed(coordinating.Freeze(QUERY, (W[1],), ()), Verdict.DONE)
    observer.noticed(coordinating.TakeSnapshot(QUERY), coordinating.SnapshotReply(before))
    observer.noticed(coordinating.Resume(QUERY, plan, 1), Verdict.CONFLICT)
    observer.noticed(coordinating.Resume(QUERY, plan, 1), Verdict.DONE)


def test_a_lost_worker_is_a_line_in_the_log_at_once(caplog: pytest.LogCaptureFixture) -> None:
    observer = Observer()
    begin(observer, detailed=False)
    lose_w1(observer)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert line.startswith(
        "lost w1 on host node1: 1 channel rewound, 1 reader moved, 4 outputs delivered again, 3 outputs to read again; "
        "query q-1 was frozen for "
    )


def test_losses_and_recoveries_are_events_without_a_log_too() -> None:
    observer = Observer()
    observation = begin(observer, detailed=False)
    lose_w1(observer)
    observer.ended(QUERY, None)
    kinds = [event["event"] for event in observation.events()]
    assert kinds[-3:] == ["froze", "resumed", "end"]


def test_a_query_that_is_not_observed_counts_what_passes_the_head(tmp_path: Path) -> None:
    observer = Observer(tmp_path)
    observation = begin(observer, detailed=False)
    lose_w1(observer)
    observer.noticed(coordinating.ReadStatus(QUERY), QueryStatus(Verdict.DONE, commits=42))
    observer.noticed(coordinating.ReadStatus(QUERY), QueryStatus(Verdict.GONE))
    observer.ended(QUERY, None)
    stats = observation.stats()
    assert (stats.commits, stats.recoveries, stats.lost_workers) == (42, 1, ("w1",))
    assert (stats.channels_rewound, stats.outputs_delivered_again, stats.outputs_read_again) == (1, 4, 3)
    assert (stats.stages, stats.event_log) == ((), "")
    assert observation.is_settled()
    assert list(tmp_path.iterdir()) == []


def test_the_log_tells_the_story_and_names_no_secret(tmp_path: Path) -> None:
    observer = Observer(tmp_path)
    observation = begin(observer)
    observer.noticed(coordinating.AddMember(QUERY, W[3]), Verdict.DONE)
    lose_w1(observer)
    line = '{"event":"task","at":1.0}'
    first = EventBatch(QUERY, W[2], b"", 2, False, 10, {0: StageTotals(tasks=1)})
    observer.take(encode_event_batch(first, (line,)))
    observer.take(
        encode_event_batch(EventBatch(QUERY, W[2], b"", 2, True, 30, {0: StageTotals(tasks=4)}), ())
    )
    assert not observation.is_settled()
    observer.ended(QUERY, QueryError("a cast"))
    assert observation.is_settled()
    events = events_of(tmp_path)
    assert [event["event"] for event in events] == [
        "log",
        "plan",
        "members",
        "joined",
        "froze",
        "resumed",
        "task",
        "dropped",
        "end",
    ]
    assert events[0]["version"] == 1
    assert events[1]["stages"][0] == {"label": "scan t", "kind": "read", "channels": 2, "splits": 5}
    assert events[2]["workers"] == [
        {"id": "w1", "host": "node1", "pid": 10},
        {"id": "w2", "host": "node2", "pid": 20},
    ]
    assert events[4]["lost"] == [{"id": "w1", "host": "node1"}]
    assert events[-1]["outcome"] == "failed"
    assert events[-1]["condition"] == "WALLABY_QUERY"
    stats = observation.stats()
    assert stats.stages[0].tasks == 4
    assert stats.pushed_bytes == 30
    assert observation.events() == events
    assert "grpc" not in json.dumps(events)


def test_what_each_stage_did_is_told_as_text() -> None:
    observer = Observer()
    observation = begin(observer)
    lose_w1(observer)
    totals = {0: StageTotals(tasks=5, rows=1000, bytes=8192, seconds=1.5, reread=3)}
    observer.take(encode_event_batch(EventBatch(QUERY, W[2], b"", 0, True, 4096, totals), ()))
    observer.ended(QUERY, None)
    lines = analyzed(observation.stats()).splitlines()
    assert lines[0].endswith("0 commits, 8.0 KiB exchanged, 4.0 KiB sent between workers")
    assert lines[1].startswith("lost w1: 1 channel rewound, 4 outputs delivered again, 3 read again")
    assert lines[3].split() == [
        "s0",
        "5",
        "0",
        "1,000",
        "8.0",
        "KiB",
        "1.50",
        "s",
        "0.0",
        "ms",
        "3",
        "0",
        "B",
    ]
    assert len(lines) == 5


def test_the_log_waits_for_workers_that_have_not_said_their_last_but_not_for_ever(tmp_path: Path) -> None:
    now = [100.0]
    log = EventLog(tmp_path / "a.jsonl", QUERY)
    observation = Observation(QUERY, PLAN, detailed=True, log=log, clock=lambda: now[0])
    observation.began(HOSTS, {})
    observation.ended(QueryCancelledError("by its user"))
    assert not observation.is_settled()
    now[0] += 60
    assert observation.is_settled()
    assert events_of(tmp_path)[-1]["outcome"] == "cancelled"


def test_events_of_a_query_that_is_over_and_bytes_that_are_no_events_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    observer = Observer()
    observer.take(encode_event_batch(EventBatch(QUERY, W[2], b"", 0, True), ()))
    assert not caplog.records, "such events come late as a rule"
    observer.take(b"\x80\x04pickle")
    assert "dropped some events" in caplog.text


def test_a_settled_query_is_forgotten() -> None:
    observer = Observer()
    observation = begin(observer, detailed=False)
    observer.ended(QUERY, None)
    observer.noticed(coordinating.Watch(), LEASES)
    observer.noticed(coordinating.ReadStatus(QUERY), QueryStatus(Verdict.DONE, commits=9))
    assert observation.stats().commits == 0


def test_a_log_has_a_limit_beyond_which_only_the_head_writes(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "a.jsonl", QUERY, bytes_max=400)
    for _ in range(50):
        log.write_lines(b'{"event":"task","at":1.0,"worker":"w1"}\n')
    log.write({"event": "end", "at": 2.0})
    log.close()
    log.write({"event": "late", "at": 3.0})
    kinds = [event["event"] for event in events_of(tmp_path)]
    assert kinds.count("cut") == 1
    assert kinds.count("task") < 10
    assert kinds[-1] == "end"
    assert (tmp_path / "a.jsonl").stat().st_size < 800


def test_the_directory_of_logs_is_made_or_refused(tmp_path: Path) -> None:
    assert log_directory("") is None
    assert log_directory(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
    assert log_directory(f"file://{tmp_path}") == tmp_path
    (tmp_path / "file").touch()
    for bad in ("hdfs://name/logs", "s3://bucket/logs", str(tmp_path / "file")):
        with pytest.raises(ConfigurationError, match="eventLog"):
            log_directory(bad)
