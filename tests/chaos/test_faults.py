"""The catalogue of faults: every fail point is in it, names are unique, and seeds are repeatable."""

from __future__ import annotations

import pytest

from wallaby.chaos.faults import all_faults, chosen, drawn_fault, other_faults, point_faults
from wallaby.errors import ConfigurationError, InvalidArgumentError
from wallaby.lineage.effects import FailPoint
from wallaby.worker.orders import parse

#: They are no step of an attempt, a delivery, a retrace or a recovery; or no TPC-H query comes to them, as to an early
#: end, which `tests/engine/test_faults.py` has.
LEFT_OUT = {
    FailPoint.FAIL,
    FailPoint.CLOSE_EARLY,
    FailPoint.COMPLAIN,
    FailPoint.COLLECT,
    FailPoint.JOIN,
    FailPoint.REMOVE,
}


def test_every_fail_point_of_attempt_delivery_retrace_and_recovery_is_in_the_grid() -> None:
    points = {order.point for fault in point_faults() for order in fault.orders}
    assert points == set(FailPoint) - LEFT_OUT


def test_names_are_unique() -> None:
    assert len(all_faults()) == len(point_faults()) + len(other_faults())


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
