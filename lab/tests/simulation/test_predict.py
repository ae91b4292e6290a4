"""Predictions: what can be worked out by hand comes out, and what makes a cluster slower makes a query slower."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.effects import Execute, FailPoint, Slice
from wallaby.lineage.graph import LinkKind, StageKind
from wallaby.lineage.names import Edge, TaskName
from wallaby.lineage.tolerance import POLICIES
from wallaby.observe.event import TaskAction
from wallaby.observe.history import History, LinkInfo, StageInfo, TaskRun
from wallaby.observe.log_reading import read_log
from wallaby_lab.simulation.predict import run
from wallaby_lab.simulation.predict.checks import Check, Measured, checked, checked_policies, worst
from wallaby_lab.simulation.predict.costs import HeldBytes, learned, starts
from wallaby_lab.simulation.predict.known import (
    AGAIN,
    CHECKPOINT,
    HALF,
    ONE_CHANNEL,
    ONE_CHANNEL_HALF,
    PIPELINED,
    SPOOL,
    STAGEWISE,
    STAGEWISE_HALF,
    Known,
    taught,
)
from wallaby_lab.simulation.predict.pace import PredictedCluster
from wallaby_lab.simulation.predict.report import line
from wallaby_lab.simulation.predict.run import predict

LOG = Path(__file__).parents[3] / "tests" / "observe" / "logs" / "recovery.jsonl"
MB = 1_000_000


def read_and_sum(reads: int = 8, seconds: float = 1.0, size: int = MB, channels: int = 2) -> History:
    """So many reads of a second that give a megabyte each; then a second for every megabyte, in one channel or more."""
    stages = (
        StageInfo("scan", StageKind.READ, 2, reads),
        StageInfo("aggregate", StageKind.EXECUTE, channels, 0),
        StageInfo("collect", StageKind.COLLECT, 1, 0),
    )
    links = (LinkInfo(0, 1, LinkKind.MAIN, "hash"), LinkInfo(1, 2, LinkKind.MAIN, "hash"))
    found = History("q", 0.0, 10.0, "done", stages=stages, links=links)
    for at in range(reads):
        found.tasks.append(TaskRun(0, seconds, "w", 0, 0, at, TaskAction.READ, 1, size, 0, 0, 0, ""))
        found.tasks.append(TaskRun(0, seconds, "w", 1, 0, at, TaskAction.EXECUTE, 0, 0, 1, size, 0, ""))
    found.tasks.append(TaskRun(0, 0.0, "w", 1, 0, reads, TaskAction.EXECUTE, 1, 100, 0, 0, 0, "", last=True))
    return found


def test_work_is_shared_by_the_threads_there_are() -> None:
    history = read_and_sum()
    assert predict(history, PredictedCluster(1, 1)).seconds == pytest.approx(16, rel=0.05), (
        "8 reads and 8 MB to add up"
    )
    assert predict(history, PredictedCluster(4, 1)).seconds == pytest.approx(4, rel=0.2)
    assert predict(history, PredictedCluster(4, 1, shared_cores=2)).seconds == pytest.approx(8, rel=0.1)


def test_a_slow_network_and_a_slow_store_take_time() -> None:
    history = read_and_sum()
    fast, slow = PredictedCluster(2, 1), PredictedCluster(2, 1, network_bytes_per_second=MB / 4)
    assert predict(history, slow).seconds > predict(history, fast).seconds + 1
    stored = replace(fast, store_bytes_per_second=MB / 2)
    assert predict(history, stored, POLICIES["spool"]).seconds > predict(history, fast).seconds + 1


def test_a_barrier_between_stages_costs_what_could_have_overlapped() -> None:
    history = read_and_sum(channels=1)
    cluster = PredictedCluster(2, 1)
    assert predict(history, cluster, POLICIES["stagewise"]).seconds > predict(history, cluster).seconds + 0.5


def test_a_loss_costs_time_and_less_than_all_of_it() -> None:
    history = read_and_sum(reads=64)
    cluster = PredictedCluster(8, 1)
    usual = predict(history, cluster)
    lost = predict(history, cluster, kill_at_seconds=usual.seconds / 2)
    assert usual.rewound == 0
    assert lost.rewound == 1
    assert usual.seconds < lost.seconds < 1.5 * usual.seconds + 2


def test_a_loss_takes_as_long_to_notice_as_is_said_and_whatever_the_seed() -> None:
    history = read_and_sum(reads=640, seconds=0.1)
    soon, late = PredictedCluster(8, 1, detection_seconds=0.25), PredictedCluster(8, 1, detection_seconds=3)
    lost = [predict(history, soon, kill_at_seconds=8, seed=seed).seconds for seed in range(1, 4)]
    assert max(lost) < min(lost) + 0.6
    assert predict(history, late, kill_at_seconds=8).seconds > max(lost) + 1


def test_what_one_channel_has_to_repeat_several_share() -> None:
    history = read_and_sum(reads=960, seconds=0.2)
    several, one = (
        PredictedCluster(8, 4, detection_seconds=0.1),
        PredictedCluster(8, 4, detection_seconds=0.1, channels=1),
    )
    usual, alone = predict(history, several).seconds, predict(history, one).seconds
    assert alone == pytest.approx(usual, rel=0.1), "all threads of a worker share a task"
    lost = predict(history, several, kill_at_seconds=usual / 2)
    lost_alone = predict(history, one, kill_at_seconds=alone / 2)
    assert (lost.rewound, lost_alone.rewound) == (4, 1)
    assert lost.seconds / usual < lost_alone.seconds / alone


def test_nobody_replaces_who_was_lost() -> None:
    """Half of 16 s by four, and the rest, with what was lost, by three."""
    history = read_and_sum(reads=64)
    lost = predict(history, PredictedCluster(2, 1, detection_seconds=0.1), kill_at_seconds=32)
    assert lost.seconds > 32 + 64


def test_who_receives_from_many_waits_for_its_network_card() -> None:
    history = read_and_sum(reads=8, seconds=0.01, channels=1)
    slow = PredictedCluster(8, 1, network_bytes_per_second=MB)
    assert predict(history, slow).seconds > 6, "eight megabytes to one channel, most of them from others"


def test_a_control_store_that_is_slow_holds_up_all() -> None:
    history = read_and_sum(reads=64, seconds=0.001)
    usual = predict(history, PredictedCluster(8, 1)).seconds
    assert predict(history, PredictedCluster(8, 1, gcs_calls_per_second=20)).seconds > usual + 2


def measured_policies(killed: float, stagewise: float) -> dict[str, dict[str, Measured]]:
    return {
        "q1": {
            "lineage": Measured(1.0, killed),
            "spool": Measured(1.0),
            "checkpoint+lineage": Measured(1.0),
            "stagewise": Measured(stagewise, 2 * stagewise),
        }
    }


def test_ratios_are_compared_with_those_of_measured_policies() -> None:
    history, cluster = read_and_sum(channels=1), PredictedCluster(2, 1)
    usual = predict(history, cluster).seconds
    staged = predict(history, cluster, POLICIES["stagewise"]).seconds
    known = {"q1": Known(history), "q2": Known(history)}
    found = {
        check.what: check
        for check in checked_policies(known, measured_policies(4.0, staged / usual), cluster)
    }
    assert found.keys() == {STAGEWISE, SPOOL, CHECKPOINT, HALF, STAGEWISE_HALF}
    assert {check.query for check in found.values()} == {"q1"}, "the other was not measured"
    assert found[STAGEWISE].off == pytest.approx(0, abs=0.01)
    assert found[HALF].measured == pytest.approx(4)
    assert not found[HALF].holds
    assert worst(list(found.values()))[HALF] == found[HALF].off
    assert checked_policies({"q2": Known(history)}, measured_policies(1, 1), cluster) == []


def test_the_log_of_a_real_run_is_enough() -> None:
    history = read_log(LOG)
    assert [stage.kind.value for stage in learned(history, 8).graph.stages].count("read") == 4
    assert len({link.phase for link in learned(history, 8).graph.links}) == 2, "a build side comes first"
    found = line("q10", Known(history), PredictedCluster(4, 2))
    assert 0 < found.seconds["pipelined"] < sum(task.seconds for task in history.tasks)
    assert found.seconds["killed at 50 %"] > found.seconds["pipelined"]
    assert found.rewound
    assert predict(history, PredictedCluster(4, 2)) == predict(history, PredictedCluster(4, 2)), (
        "the same again"
    )


def test_a_query_that_failed_teaches_nothing() -> None:
    with pytest.raises(InvalidArgumentError, match="came to its end"):
        predict(read_log(LOG.with_name("failure.jsonl")), PredictedCluster(1, 1))


def test_figures_are_predicted_that_are_asked_for() -> None:
    history, cluster = read_and_sum(), PredictedCluster(2, 1)
    known = Known(history, beside=1.0)
    assert line("q", known, cluster, "g").seconds.keys() == {PIPELINED}
    assert line("q", known, cluster, "e").seconds.keys() == {
        PIPELINED,
        STAGEWISE,
        STAGEWISE_HALF,
        HALF,
        ONE_CHANNEL,
        ONE_CHANNEL_HALF,
        AGAIN,
    }, "a ratio needs what it is over"
    assert line("q", known, cluster, "c").seconds.keys() == {"pipelined", "static 8", "static 128"}
    killed = line("q", known, cluster, "f")
    assert list(killed.seconds) == ["pipelined", *(f"killed at {at} %" for at in (10, 30, 50, 70, 90))]
    assert killed.seconds["pipelined"] == pytest.approx(predict(history, cluster).seconds + 1, abs=1e-3)


def test_static_dependencies_whose_tasks_multiply_are_not_predicted() -> None:
    known = Known(read_and_sum())
    assert line("q", known, PredictedCluster(16, 2), "c").seconds.keys() == {
        PIPELINED,
        "static 8",
        "static 128",
    }
    assert line("q", known, PredictedCluster(17, 2), "c").seconds.keys() == {PIPELINED, "static 128"}
    assert line("q", known, PredictedCluster(129, 1), "c").seconds.keys() == {PIPELINED}, (
        "of which a part is simulated"
    )


def test_of_a_large_cluster_a_part_takes_as_long_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    history, cluster = read_and_sum(reads=64), PredictedCluster(16, 1)
    whole = predict(history, cluster)
    monkeypatch.setattr(run, "WHOLE_MAX", 8)
    monkeypatch.setattr(run, "PART_OF_MORE", 4)
    part = predict(history, cluster)
    assert part.seconds == pytest.approx(whole.seconds, rel=0.15)
    assert part.steps < whole.steps / 3
    lost = predict(history, cluster, kill_at_seconds=part.seconds / 2)
    assert lost.rewound == 1


def test_data_that_is_larger_takes_longer_on_as_many_workers_and_as_long_on_more() -> None:
    history = read_and_sum()
    once = predict(history, PredictedCluster(2, 1)).seconds
    assert predict(history, PredictedCluster(2, 1), times=4).seconds == pytest.approx(4 * once, rel=0.1)
    assert predict(history, PredictedCluster(8, 1), times=4).seconds == pytest.approx(once, rel=0.2)


def test_a_thousand_workers_are_not_too_many() -> None:
    history = read_and_sum(reads=1000, size=MB // 100)
    assert 2 < predict(history, PredictedCluster(1000, 1)).seconds < 3, (
        "a read of a second, and 10 kB of all to add up"
    )


def test_what_is_not_simulated_is_learned_from_the_run() -> None:
    history, cluster = read_and_sum(), PredictedCluster(2, 1)
    slower = replace(history, ended=predict(history, cluster).seconds + 0.5)
    assert taught(slower, cluster, slower).beside == pytest.approx(0.5)


def longer(history: History, stage: int, first: float) -> History:
    """The same with first tasks of a stage that take so much longer."""
    tasks = [
        replace(run, seconds=run.seconds + (first if (run.stage, run.seq) == (stage, 0) else 0))
        for run in history.tasks
    ]
    return replace(history, tasks=tasks)


def test_first_tasks_that_take_longer_do_so_in_every_channel() -> None:
    few = read_and_sum()
    assert starts(few, few) == (0.0,) * len(few.stages)
    slow = longer(few, 0, 3.0)
    once = starts(slow, few)
    assert once[0] == pytest.approx(3.0)
    alone, shared = (learned(slow, channels, start_seconds=once) for channels in (1, 4))
    assert alone.stages[0].start_seconds == shared.stages[0].start_seconds == pytest.approx(3.0)
    assert predict(slow, PredictedCluster(4, 1), start_seconds=once).seconds == pytest.approx(
        predict(few, PredictedCluster(4, 1)).seconds + 3, rel=0.1
    )


def test_where_something_is_broadcast_the_whole_stage_tells() -> None:
    few = read_and_sum()
    plan, consumer = replace(few, links=(*few.links, LinkInfo(0, 1, LinkKind.SIDE, "broadcast"))), 1
    stages = list(plan.stages)
    stages[consumer] = replace(stages[consumer], channels=3)
    more = longer(replace(plan, stages=tuple(stages)), consumer, 0.25)
    assert starts(more, plan)[consumer] == pytest.approx(0.25)
    larger = learned(more, 3, start_seconds=starts(more, plan), times=10)
    assert larger.stages[consumer].start_seconds == pytest.approx(2.5), "what is broadcast is larger too"
    other = tuple(replace(each, label="another") for each in plan.stages)
    assert starts(more, replace(plan, stages=other))[consumer] == 0, (
        "a plan without that stage teaches nothing"
    )


def test_a_run_is_compared_by_the_workers_there_were_although_its_log_names_fewer() -> None:
    history, cluster = read_and_sum(), PredictedCluster(4, 1)
    run = replace(history, workers={"w0": ("", 1)}, ended=predict(history, cluster).seconds + 0.5)
    found = checked("q", Known(history, beside=0.5), run, cluster)
    assert (found.workers, found.holds) == (4, True)
    assert found.predicted == pytest.approx(found.measured)


def test_a_prediction_holds_within_a_quarter() -> None:
    assert Check("q", 4, 1.2, 1.0).holds
    assert not Check("q", 4, 0.7, 1.0).holds


def test_a_checkpoint_holds_what_a_join_has_built_and_what_a_sum_still_owes() -> None:
    history = read_and_sum()
    history.links += (LinkInfo(0, 1, LinkKind.MAIN, "hash", 1),)
    costed = learned(history, 2)
    build, probe = Edge(0, 0, 0), Edge(2, 0, 0)

    def after(state: object, edge: Edge, size: int) -> HeldBytes:
        piece = Slice(TaskName(0, 0, 0), edge, False, size)
        effect = Execute(FailPoint.EXECUTE, TaskName(1, 0, 0), state, None, None, (piece,), {}, False)
        held: HeldBytes = costed.step(effect).state
        return held

    built = after(None, build, 700)
    assert built == HeldBytes(700, 0)
    assert after(built, probe, 30) == HeldBytes(700, 30)
    assert after(built, probe, 3000) == HeldBytes(700, 50), (
        "of the 100 bytes that two channels give out at their end"
    )


def test_checkpoints_take_time_and_spare_what_was_done_before_them() -> None:
    history, usual = read_log(LOG), PredictedCluster(4, 1, detection_seconds=0.1)
    often = replace(usual, checkpoint_seconds=0.0)
    kept = POLICIES["checkpoint+lineage"]
    slow = replace(often, store_bytes_per_second=MB / 10)
    assert predict(history, slow, kept).seconds > 1.5 * predict(history, often, kept).seconds
    never = replace(usual, checkpoint_seconds=1e3)
    calm = predict(history, never, kept).seconds
    assert calm == pytest.approx(predict(history, usual).seconds, rel=0.05)
    lost, spared = (predict(history, each, kept, kill_at_seconds=0.6 * calm) for each in (never, often))
    assert lost.rewound == spared.rewound
    assert spared.retraced < lost.retraced
