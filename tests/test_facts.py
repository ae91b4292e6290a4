"""What users are told of runs and workers is typed, frozen, and prints itself."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest

from wallaby import RunStats, WorkerInfo
from wallaby.gcs.interface import WorkerLease
from wallaby.head.collected import Figures
from wallaby.lineage.names import WorkerId
from wallaby.node.worker_address import WorkerAddress
from wallaby.observe.event import EventKind, make
from wallaby.observe.event_batch import Carried, StageTotals
from wallaby.observe.observation import QueryStats
from wallaby.results.facts import event_of, stats_of
from wallaby.results.worker_info import worker_info

SEEN = QueryStats("q", 1.0, 4, 1, ("w1",), 2, 3, 4, 0.5, 7, 8, event_log="x.jsonl")
WATCHED = QueryStats(
    *("q", 1.0, 4, 1, ("w1",), 2, 3, 4, 0.5, 7, 8),
    stages=(StageTotals(tasks=3, spilled_bytes=1), StageTotals(tasks=1, spilled_bytes=2)),
    carried=Carried(commits=4, store_calls=5),
    head_store_calls=2,
)


@pytest.mark.parametrize(
    ("remaining_ms", "draining", "state"),
    [(100, False, "live"), (0, False, "silent"), (100, True, "draining")],
)
def test_a_worker_prints_its_fields(remaining_ms: int, draining: bool, state: str) -> None:
    address = WorkerAddress("grpc://10.0.0.7:1", "node7", 4711).encode()
    lease = WorkerLease(WorkerId("w0-a"), address, remaining_ms, draining=draining)
    found = worker_info(lease)
    said = f"WorkerInfo(id='w0-a', host='node7', pid=4711, address='grpc://10.0.0.7:1', state='{state}')"
    assert repr(found) == said
    assert found.is_live is (state == "live")
    assert isinstance(found, WorkerInfo)
    with pytest.raises(FrozenInstanceError):
        found.pid = 1  # type: ignore[misc]


def test_stats_have_details_only_of_a_run_that_was_observed() -> None:
    plain = stats_of("q", Figures(3, tasks=4, rows=5), SEEN, native=True)
    assert (plain.detail, plain.tasks, plain.lost_workers, plain.event_log) == (None, 4, ("w1",), "x.jsonl")
    detail = stats_of("q", Figures(3), WATCHED, native=True).detail
    assert detail is not None
    assert (detail.commits, detail.store_calls, detail.spilled_bytes) == (4, 7, 3)
    assert [stage.tasks for stage in detail.per_stage] == [3], "the collector is no stage of workers"


def test_stats_can_be_read_like_a_dictionary() -> None:
    stats = stats_of("q", Figures(3, tasks=4), WATCHED, native=True)
    assert (stats["tasks"], stats["commits"], stats.get("spilled_bytes"), stats.get("nothing", 7)) == (
        4,
        4,
        3,
        7,
    )
    assert dict(stats) == {**stats} == stats.as_dict()
    assert set(stats.keys()) == set(stats)
    assert "tasks" in stats
    assert "nothing" not in stats
    with pytest.raises(KeyError):
        stats["nothing"]


def test_stats_can_be_written_as_json_in_one_level() -> None:
    written = json.loads(json.dumps(stats_of("q", Figures(3), WATCHED, native=True).as_dict()))
    assert (written["commits"], written["recoveries"], written["lost_workers"]) == (4, 0, ["w1"])
    assert "detail" not in written
    assert "commits" not in RunStats(native=False, rows=None, seconds=0.0).as_dict()


def test_an_event_has_its_kind_its_time_and_the_rest() -> None:
    found = event_of(make(EventKind.FROZE, 7.5, lost=[{"id": "w1"}], draining=[]))
    assert (found.kind, found.at, found.worker) == ("froze", 7.5, "")
    assert found.fields == {"lost": [{"id": "w1"}], "draining": []}
    assert event_of(make(EventKind.TASK, 1.0, worker="w2")).worker == "w2"
    with pytest.raises(TypeError):
        found.fields["lost"] = []  # type: ignore[index]
