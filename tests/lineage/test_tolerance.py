"""Policies are names for choices of five parts, and a stage that waits for its inputs starts when all have begun."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest
from tests.builders import draw, piece

from wallaby.config.registry import PREFIX, SETTINGS
from wallaby.errors import ConfigurationError, InvalidArgumentError
from wallaby.lineage import tolerance
from wallaby.lineage.choose import Dynamic, choose
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.inbox import Inbox
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, WorkerId
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.tolerance import POLICIES, POLICY_KEY, Tolerance, tolerance_of
from wallaby_lab.simulation.run import run_seed

#: A join: a build side of two channels, a probe side of one.
GRAPH = StageGraph(
    (
        Stage(StageKind.READ, 2, 4),
        Stage(StageKind.READ, 1, 4),
        Stage(StageKind.EXECUTE, 1),
        Stage(StageKind.COLLECT, 1),
    ),
    (Link(0, 2, phase=0), Link(1, 2, phase=1), Link(2, 3)),
)
JOIN = ChannelName(2, 0)
SOURCES = Path(tolerance.__file__).parent.parent
STAGED = POLICIES["stagewise"]


def test_every_policy_is_another_choice_of_parts() -> None:
    assert len({*POLICIES.values()}) == len(POLICIES)
    assert [part.name for part in fields(Tolerance)] == [
        "recorded",
        "durable",
        "checkpoints",
        "staged",
        "run_again",
    ]
    assert tolerance_of(" Spool ") == POLICIES["spool"]


def test_the_setting_tells_users_of_every_policy() -> None:
    (setting,) = (setting for setting in SETTINGS if PREFIX + setting.key == POLICY_KEY)
    assert set(POLICIES) <= set(re.split(r"[ ,:;()]+", setting.doc))


def test_a_staged_channel_whose_outputs_are_kept_rests_when_it_has_ended() -> None:
    both = POLICIES["stagewise+spool"]
    assert both.may_send(ended=True)
    assert both.rests(ended=True)
    assert not both.may_send(ended=False)
    assert both.lost_below(3, 7, leaves=True) == 0
    assert both.at_hand(3, 7) == (0, 7)


def test_checkpoints_without_records_are_taken_together_and_rows_need_not_wait_for_the_end() -> None:
    together = POLICIES["checkpoint"]
    assert [name for name, parts in POLICIES.items() if parts.rolls_back] == ["checkpoint"]
    assert together.uses_durable_store
    assert together.run_again
    assert not together.holds_back
    assert not together.keeps_results
    assert [name for name, parts in POLICIES.items() if parts.holds_back] == ["restart"]


def test_an_unknown_policy_is_an_error_that_lists_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"'raid'.*lineage, restart, spool, stagewise") as error:
        tolerance_of("raid")
    assert error.value.fields["key"] == "spark.wallaby.faultTolerance.policy"


def test_a_staged_channel_draws_nothing_before_all_its_inputs_have_begun() -> None:
    box = Inbox(GRAPH, JOIN, 10**9)
    box.offer(piece(GRAPH, Edge(0, 0, 0), 0, 10))
    box.offer(piece(GRAPH, Edge(1, 0, 0), 0, 10))
    assert choose(GRAPH, JOIN, box, Dynamic(5), eager=True) == draw(0, c0=1)
    assert choose(GRAPH, JOIN, box, Dynamic(5), eager=True, tolerance=STAGED) is None, "0.c1 has not ended"
    box.offer(piece(GRAPH, Edge(0, 1, 0), 0, 10))
    assert choose(GRAPH, JOIN, box, Dynamic(5), eager=True, tolerance=STAGED) == draw(0, c0=1)
    box.take(draw(0, c0=1))
    assert choose(GRAPH, JOIN, box, Dynamic(5), eager=True, tolerance=STAGED) == draw(0, c1=1)


def test_nothing_of_a_staged_channel_is_due_before_it_has_ended() -> None:
    reader, worker = ChannelName(1, 0), WorkerId("w1")
    box = Outbox(GRAPH, STAGED)
    box.begin_epoch({Edge(1, 0, 0): 0}, {JOIN: worker, ChannelName(3, 0): HEAD}, (reader,))
    box.start(reader, 0)
    box.publish(TaskName(*reader, 0), ended=False)
    assert box.targets() == ()
    box.publish(TaskName(*reader, 1), ended=True)
    assert [task.seq for _, task in box.due(worker, 9)] == [0, 1]


@pytest.mark.parametrize("policy", ["restart", "off"])
def test_a_policy_without_records_cannot_be_simulated(policy: str) -> None:
    with pytest.raises(InvalidArgumentError, match=policy):
        run_seed(0, policy=policy)


def test_the_former_policy_none_is_refused_and_both_its_successors_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'none'.*restart .*off"):
        tolerance_of("none")


def test_the_algorithms_ask_questions_and_look_at_no_part() -> None:
    parts = {part.name for part in fields(Tolerance)}
    rooms = [*(SOURCES / "lineage").glob("*.py"), *(SOURCES / "coordinator").glob("*.py")]
    modules = [*rooms, SOURCES / "node" / "session.py", SOURCES / "head" / "making.py"]
    looks = [
        f"{module.name}:{node.lineno}: {node.attr}"
        for module in modules
        if module.name != "tolerance.py"
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in parts
    ]
    assert looks == []


@pytest.mark.parametrize("policy", POLICIES)
def test_states_are_saved_where_records_are_read_for_them(policy: str) -> None:
    parts = POLICIES[policy]
    may_save = parts.may_save(GRAPH, JOIN.stage, ended=False, rest=False)
    alone = "checkpoint" in policy and not parts.rolls_back
    assert may_save is parts.needs_records is alone
    assert not parts.may_save(GRAPH, JOIN.stage, ended=True, rest=False)
    assert not parts.may_save(GRAPH, JOIN.stage, ended=False, rest=True)
    assert not parts.may_save(GRAPH, 0, ended=False, rest=False), "readers have no state"
    assert parts.survives_losses is (policy not in ("off", "restart", "checkpoint"))
