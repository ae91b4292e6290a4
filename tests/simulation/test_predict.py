"""Predictions: what can be worked out by hand comes out, and what makes a cluster slower makes a query slower."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.tolerance import POLICIES
from wallaby.observe.event import How
from wallaby.observe.history import History, LinkInfo, StageInfo, TaskRun, read_log
from wallaby.simulation.predict import run
from wallaby.simulation.predict.costs import learned
from wallaby.simulation.predict.pace import Cluster
from wallaby.simulation.predict.report import Check, checked, line, unsimulated
from wallaby.simulation.predict.run import predict

LOG = Path(__file__).parents[1] / "observe" / "logs" / "recovery.jsonl"
MB = 1_000_000


def read_and_sum(reads: int = 8, seconds: float = 1.0, size: int = MB, channels: int = 2) -> History:
    """So many reads of a second that give a megabyte each; then a second for every megabyte, in one channel or more."""
    stages = (
        StageInfo("scan", "read", 2, reads),
        StageInfo("aggregate", "execute", channels, 0),
        StageInfo("collect", "collect", 1, 0),
    )
    links = (LinkInfo(0, 1, "main", "hash"), LinkInfo(1, 2, "main", "hash"))
    found = History("q", 0.0, 10.0, "done", stages=stages, links=links)
    for at in range(reads):
        found.tasks.append(TaskRun(0, seconds, "w", 0, 0, at, How.READ, 1, size, 0, 0, 0, ""))
        found.tasks.append(TaskRun(0, seconds, "w", 1, 0, at, How.EXECUTE, 0, 0, 1, size, 0, ""))
    found.tasks.append(TaskRun(0, 0.0, "w", 1, 0, reads, How.EXECUTE, 1, 100, 0, 0, 0, "", last=True))
    return found


def test_work_is_shared_by_the_threads_there_are() -> None:
    history = read_and_sum()
    assert predict(history, Cluster(1, 1)).seconds == pytest.approx(16, rel=0.05), (
        "8 reads and 8 MB to add up"
    )
    assert predict(history, Cluster(4, 1)).seconds == pytest.approx(4, rel=0.2)
    assert predict(history, Cluster(4, 1, shared_cores=2)).seconds == pytest.approx(8, rel=0.1)


def test_a_slow_network_and_a_slow_store_take_time() -> None:
    history = read_and_sum()
    fast, slow = Cluster(2, 1), Cluster(2, 1, network_bytes_per_second=MB / 4)
    assert predict(history, slow).seconds > predict(history, fast).seconds + 1
    stored = replace(fast, store_bytes_per_second=MB / 2)
    assert predict(history, stored, POLICIES["spool"]).seconds > predict(history, fast).seconds + 1


def test_a_barrier_between_stages_costs_what_could_have_overlapped() -> None:
    history = read_and_sum(channels=1)
    cluster = Cluster(2, 1)
    assert predict(history, cluster, POLICIES["stagewise"]).seconds > predict(history, cluster).seconds + 0.5


def test_a_loss_costs_time_and_less_than_all_of_it() -> None:
    history = read_and_sum(reads=64)
    cluster = Cluster(8, 1)
    usual = predict(history, cluster)
    lost = predict(history, cluster, kill_at_seconds=usual.seconds / 2)
    assert usual.rewound == 0
    assert lost.rewound == 1
    assert usual.seconds < lost.seconds < 1.5 * usual.seconds + 2


def test_the_log_of_a_real_run_is_enough() -> None:
    history = read_log(LOG)
    assert [stage.kind.value for stage in learned(history, 8).graph.stages].count("read") == 4
    assert len({link.phase for link in learned(history, 8).graph.links}) == 2, "a build side comes first"
    found = line("q10", history, Cluster(4, 2))
    assert 0 < found.seconds["pipelined"] < sum(task.seconds for task in history.tasks)
    assert found.seconds["killed at 50 %"] > found.seconds["pipelined"]
    assert found.rewound
    assert predict(history, Cluster(4, 2)) == predict(history, Cluster(4, 2)), "the same again"


def test_a_query_that_failed_teaches_nothing() -> None:
    with pytest.raises(InvalidArgumentError, match="came to its end"):
        predict(read_log(LOG.with_name("failure.jsonl")), Cluster(1, 1))


def test_figures_are_predicted_that_are_asked_for() -> None:
    history, cluster = read_and_sum(), Cluster(2, 1)
    assert line("q", history, cluster, "g").seconds.keys() == {"pipelined"}
    assert line("q", history, cluster, "c").seconds.keys() == {"pipelined", "static 8", "static 128"}
    killed = line("q", history, cluster, "f", beside=1.0)
    assert list(killed.seconds) == ["pipelined", *(f"killed at {at} %" for at in (10, 30, 50, 70, 90))]
    assert killed.seconds["pipelined"] == pytest.approx(predict(history, cluster).seconds + 1, abs=1e-3)


def test_of_a_large_cluster_a_part_takes_as_long_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    history, cluster = read_and_sum(reads=64), Cluster(16, 1)
    whole = predict(history, cluster)
    monkeypatch.setattr(run, "WHOLE_MAX", 8)
    monkeypatch.setattr(run, "PART_OF_MORE", 4)
    part = predict(history, cluster)
    assert part.seconds == pytest.approx(whole.seconds, rel=0.15)
    assert part.steps < whole.steps / 3
    lost = predict(history, cluster, kill_at_seconds=part.seconds / 2)
    assert lost.rewound == 1


def test_a_thousand_workers_are_not_too_many() -> None:
    history = read_and_sum(reads=1000, size=MB // 100)
    assert 2 < predict(history, Cluster(1000, 1)).seconds < 3, (
        "a read of a second, and 10 kB of all to add up"
    )


def test_what_is_not_simulated_is_learned_from_runs_with_few_workers() -> None:
    history = read_and_sum()
    clusters = [Cluster(count, 1) for count in (1, 2)]
    runs = [(each, replace(history, ended=predict(history, each).seconds + 0.5)) for each in clusters]
    assert unsimulated(history, runs) == pytest.approx(0.5)


def test_a_run_is_compared_by_the_workers_there_were_although_its_log_names_fewer() -> None:
    history, cluster = read_and_sum(), Cluster(4, 1)
    run = replace(history, workers={"w0": ("", 1)}, ended=predict(history, cluster).seconds + 0.5)
    found = checked("q", history, run, cluster, beside=0.5)
    assert (found.workers, found.holds) == (4, True)
    assert found.predicted == pytest.approx(found.measured)


def test_a_prediction_holds_within_a_quarter() -> None:
    assert Check("q", 4, 1.2, 1.0).holds
    assert not Check("q", 4, 0.7, 1.0).holds
