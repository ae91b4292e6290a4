"""What a plan saves and costs: rows count where something happens to them."""

from __future__ import annotations

from tests.plan.builders import aggregate, aggregation, column, join, named, same, statistics_of, tpch

from wallaby.plan.choice import Rates, work_of, worth
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.leaf import SparkLeaf, assumed_statistics
from wallaby.plan.planner import plan
from wallaby.plan.settings import PlanSettings

T = tpch(1)
LINE, ORDERS = T["lineitem"], T["orders"]
EXCHANGED = PlanSettings(channels=2, workers=1, broadcast_bytes=0)
#: Joins are expensive on Spark, and so is the way of a row back to it.
RATES = Rates(read=0, probe=0, join=1e-6, reduce=0, row=1e-6, byte=0, leaf_row=1e-6, fixed=0.5)


def test_rows_are_counted_where_something_happens_to_them() -> None:
    joined = join(LINE.scan, ORDERS.scan, (LINE.l_orderkey, ORDERS.o_orderkey))
    work = work_of(plan(joined, statistics_of(T), EXCHANGED, keeps=True))
    assert work.read == 6_000_000 + 1_500_000
    assert work.joined == work.read, "nothing is filtered, and both sides are exchanged"
    assert (work.reduced, work.leaf_rows, work.channels) == (0, 0, 2)
    assert work.rows > 0


def test_what_hands_over_less_costs_less_and_saves_the_same() -> None:
    joined = join(LINE.scan, ORDERS.scan, (LINE.l_orderkey, ORDERS.o_orderkey))
    few = aggregate(joined, (), named(900, "n", aggregation("count", LINE.l_orderkey)))
    whole, reduced = (
        worth(plan(relation, statistics_of(T), EXCHANGED, keeps=True), RATES) for relation in (joined, few)
    )
    assert not whole.is_taken
    assert reduced.is_taken
    assert reduced.saves == whole.saves
    assert "1 rows to hand over" in str(reduced)


def test_rows_that_spark_has_to_make_first_cost_and_are_not_read() -> None:
    leaf = SparkLeaf(0, (0,), (1,), (), ("MapInArrow",), 8_000_000)
    scan = leaf.scan((column(1, "k"),))
    counted = aggregate(scan, same(column(1, "k")), named(900, "n", aggregation("count", column(1, "k"))))
    made = plan(counted, Statistics((assumed_statistics(leaf, scan),)), EXCHANGED)
    work = work_of(made)
    assert (work.read, work.leaf_rows) == (0, 1_000_000)
    found = worth(made, RATES, to_driver=True)
    assert not found.is_taken
    assert found.costs == 2 * 0.5 + 1.0
