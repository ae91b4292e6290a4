"""What a plan saves and costs: rows count where something happens to them."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.builders import aggregate, aggregation, column, join, named, same, statistics_of, tpch

from wallaby.lineage.graph import StageKind
from wallaby.plan.choice import Rates, may_pay, work_of, worth
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.leaf import SparkLeaf, assumed_statistics
from wallaby.plan.planner import plan
from wallaby.plan.settings import PlanSettings
from wallaby.relations.formats import Format, Json, Parquet
from wallaby.relations.relation import Relation

T = tpch(1)
LINE, ORDERS = T["lineitem"], T["orders"]
EXCHANGED = PlanSettings(channels=2, workers=1, broadcast_bytes=0)
#: Joins are expensive on Spark, and so is the way of a row back to it.
RATES = Rates(
    read=0,
    probe=0,
    join=1e-6,
    reduce=0,
    row=1e-6,
    byte=0,
    leaf_row=1e-6,
    write_row=2e-6,
    write_byte=0,
    fixed=0.5,
)


def test_rows_are_counted_where_something_happens_to_them() -> None:
    joined = join(LINE.scan, ORDERS.scan, (LINE.l_orderkey, ORDERS.o_orderkey))
    work = work_of(plan(joined, statistics_of(T), EXCHANGED, StageKind.KEEP))
    assert work.read == 6_000_000 + 1_500_000
    assert work.joined == work.read, "nothing is filtered, and both sides are exchanged"
    assert (work.reduced, work.leaf_rows, work.channels) == (0, 0, 2)
    assert work.rows > 0


def test_what_hands_over_less_costs_less_and_saves_the_same() -> None:
    joined = join(LINE.scan, ORDERS.scan, (LINE.l_orderkey, ORDERS.o_orderkey))
    few = aggregate(joined, (), named(900, "n", aggregation("count", LINE.l_orderkey)))
    whole, reduced = (
        worth(plan(relation, statistics_of(T), EXCHANGED, StageKind.KEEP), RATES)
        for relation in (joined, few)
    )
    assert not whole.is_taken
    assert reduced.is_taken
    assert reduced.saves == whole.saves
    assert "1 rows to hand over" in str(reduced)


def test_rows_that_are_written_here_are_not_handed_over() -> None:
    made = plan(LINE.scan, statistics_of(T), EXCHANGED, StageKind.KEEP)
    handed, written = worth(made, RATES), worth(made, RATES, written=True)
    assert not handed.is_taken, "nothing happens to them"
    assert written.saves == handed.saves + 6_000_000 * 2e-6
    assert written.costs == 2 * 0.5


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


def test_text_files_that_are_too_small_are_not_read_to_count_their_rows() -> None:
    (file,) = LINE.scan.files[:1]

    def counted(size_bytes: int, format_: Format) -> Relation:
        scan = replace(LINE.scan, format=format_, files=(replace(file, size_bytes=size_bytes),))
        return aggregate(scan, (), named(900, "n", aggregation("count", LINE.l_orderkey)))

    rates = replace(RATES, reduce=1e-6)
    line_bytes = 2 * len(LINE.scan.names)
    assert not may_pay(counted(1_000_000 * line_bytes, Json()), 2, rates), "1 s to save, 1 s to pay"
    assert may_pay(counted(1_300_000 * line_bytes, Json()), 2, rates)
    assert may_pay(counted(100, Parquet()), 2, rates), "its footer tells how many rows it has"
