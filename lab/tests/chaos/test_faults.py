"""The catalogue of faults: every fail point is in it, names are unique, and seeds are repeatable."""

from __future__ import annotations

import pytest
from tests.builders import pipeline
from tests.plan.tpch_fixtures import load_relation, load_statistics

from wallaby.errors import ConfigurationError, InvalidArgumentError
from wallaby.faults.orders import parse
from wallaby.lineage.effects import FailPoint
from wallaby.plan.physical import LimitFragment
from wallaby.plan.planner import plan
from wallaby.plan.settings import PlanSettings
from wallaby_lab import tpch
from wallaby_lab.chaos.faults import all_faults, chosen, drawn_fault, other_faults, point_faults, wire_faults

STATISTICS = load_statistics()

#: No TPC-H query comes to an early end, and none asks a worker to leave: `tests/engine/losses/test_faults.py` has both.
#: The queries of the grid collect their results; `tests/engine/above/test_kept.py` has losses of kept results. The
#: policy of the grid saves no states.
LEFT_OUT = {
    FailPoint.CLOSE_EARLY,
    FailPoint.DRAIN,
    FailPoint.KEEP,
    FailPoint.LOCATE,
    FailPoint.FETCH,
    FailPoint.SAVE_STATE,
    FailPoint.RESTORE_STATE,
}


def test_every_fail_point_is_in_the_grid_but_those_that_no_query_of_it_comes_to() -> None:
    points = {order.point for fault in point_faults() for order in fault.orders}
    assert points == set(FailPoint) - LEFT_OUT


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_no_tpch_query_ends_early(number: int) -> None:
    """Only a limit without an order is ever satisfied before its input has ended; see `LimitKernel`."""
    made = plan(load_relation(number), STATISTICS, PlanSettings(channels=4, workers=2))
    assert not [fragment for fragment in made.fragments if isinstance(fragment, LimitFragment)]


def test_a_fault_means_the_first_stage_with_state_and_the_worker_that_sends_the_result() -> None:
    graph = pipeline()
    (fault,) = chosen(["retrace: kill after"])
    assert [str(order) for order in fault.for_query(graph, "w2").orders] == [
        "*:execute@s1:2:kill",
        "*:retrace:1:kill:after",
    ]
    (fault,) = chosen(["the network is cut to the head"])
    assert [order.who for order in fault.for_query(graph, "w2").orders] == ["w2"]


def test_names_are_unique() -> None:
    assert len(all_faults()) == len(point_faults()) + len(other_faults()) + len(wire_faults())


def test_a_wire_is_cut_at_every_point_that_a_query_comes_to_while_it_runs() -> None:
    """Those that are left out have no address yet, come of another fault, or come when nobody sends any more."""
    others = {FailPoint.REGISTER, FailPoint.JOIN, FailPoint.COMPLAIN, FailPoint.FAIL, FailPoint.REMOVE}
    assert {fault.during for fault in wire_faults()} == set(FailPoint) - LEFT_OUT - others
    for fault in wire_faults():
        assert fault.during in {order.point for order in fault.orders}


def test_a_seed_always_draws_the_same_and_orders_are_their_text() -> None:
    for seed in range(300):
        fault = drawn_fault(seed)
        assert fault == drawn_fault(seed)
        assert [parse(str(order)) for order in fault.orders] == list(fault.orders)


def test_faults_are_chosen_by_name_by_point_or_as_orders() -> None:
    assert [fault.name for fault in chosen(["commit"])] == ["commit: kill", "commit: kill after"]
    assert [fault.name for fault in chosen(["a slow worker"])] == ["a slow worker"]
    assert [str(fault.orders[0]) for fault in chosen(["w1:commit:3:kill"])] == ["w1:commit:3:kill"]
    with pytest.raises(InvalidArgumentError, match="--list"):
        chosen(["an earthquake"])
    with pytest.raises(ConfigurationError, match="explode"):
        chosen(["w1:commit:3:explode"])
