"""Tasks that go on with a rest: they consume nothing, come before any choice, and are retraced the same way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import Driven, final_record, output
from tests.lineage.test_attempt import DONE, ONE_OF_R0, T1, X0, arrive, channel_run, commit

from wallaby.errors import DivergenceError
from wallaby.lineage.attempt import run_channel
from wallaby.lineage.effects import Execute, Executed, FailPoint, Output
from wallaby.lineage.lineage import LineageRecord, encode
from wallaby.lineage.names import TaskName
from wallaby.lineage.verdict import RecordsReply, Verdict

T2 = TaskName(*X0, 2)


def with_rest(checksum: int) -> Output:
    return replace(output(checksum), rest=True)


def test_a_rest_comes_before_what_has_arrived() -> None:
    channel = channel_run()
    arrive(channel, 0, 1)
    run = Driven(run_channel(channel))
    run.answer_all(Executed("state 1", with_rest(1)), True, DONE, None)
    assert run.now == Execute(FailPoint.EXECUTE, T1, "state 1", None, None, (), {}, False)
    run.answer_all(Executed("state 2", output(2)), True)
    assert run.now == commit(T1, encode(LineageRecord(2)))
    run.answer_all(DONE, None)
    assert isinstance(run.now, Execute)
    assert (run.now.task, run.now.draw) == (T2, ONE_OF_R0)


def test_a_channel_is_final_only_when_its_last_task_leaves_no_rest() -> None:
    channel = channel_run()
    arrive(channel, 0, final=True)
    run = Driven(run_channel(channel))
    run.answer_all(Executed("state 1", output(1)), True, DONE, None, Executed("state 2", with_rest(2)), True)
    assert run.now == commit(T1, encode(LineageRecord(2)))
    run.answer_all(DONE, None)
    assert run.now == Execute(FailPoint.EXECUTE, T2, "state 2", None, None, (), {}, True)
    run.answer_all(Executed("state 3", output(3)), True)
    assert run.now == commit(T2, final_record(3), final=True)
    run.answer_all(DONE, None)
    assert channel.ended


def test_a_retrace_goes_on_with_rests_as_its_records_say() -> None:
    channel = channel_run(length=3, retracing=True)
    arrive(channel, 0)
    run = Driven(run_channel(channel))
    committed = (encode(LineageRecord(1, draw=ONE_OF_R0)), encode(LineageRecord(2)), final_record(3))
    run.answer_all(RecordsReply(Verdict.DONE, committed), Executed("state 1", with_rest(1)), True)
    assert run.now == Execute(FailPoint.RETRACE, T1, "state 1", None, None, (), {}, False)
    run.answer_all(Executed("state 2", output(2)), True)
    assert run.now == Execute(FailPoint.RETRACE, T2, "state 2", None, None, (), {}, True)
    run.answer_all(Executed("state 3", output(3)), True)
    assert channel.ended


def test_a_rest_where_the_record_has_a_draw_is_a_divergence() -> None:
    channel = channel_run(length=2, retracing=True)
    arrive(channel, 0, 1)
    run = Driven(run_channel(channel))
    run.answer_all(
        RecordsReply(
            Verdict.DONE, (encode(LineageRecord(1, draw=ONE_OF_R0)), encode(LineageRecord(2, draw=ONE_OF_R0)))
        ),
        Executed("state 1", with_rest(1)),
    )
    with pytest.raises(DivergenceError, match=str(T1)):
        run.answer_all(True)
