"""TPC-H queries as Catalyst leaves them: filters at the scans, joins in the written order, columns not pruned."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

from tests.plan.builders import (
    Table,
    aggregate,
    aggregation,
    all_of,
    ascending,
    call,
    descending,
    holds,
    join,
    literal,
    named,
    same,
)

from wallaby.relations.expression import Call, Column
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Filter, Limit, Project, Relation, Sort
from wallaby.relations.types import decimal

Tables = dict[str, Table]
_ONE = literal(Decimal(1))


def _revenue(lineitem: Table) -> Call:
    left = call("subtract", _ONE, lineitem.l_discount, type_=decimal(16, 2))
    return call("multiply", lineitem.l_extendedprice, left, type_=decimal(32, 4))


def _between(tested: Column, first: object, end: object) -> tuple[Call, Call]:
    return holds("ge", tested, literal(first)), holds("lt", tested, literal(end))


def q1(t: Tables) -> Relation:
    line = t["lineitem"]
    rows = Filter(line.scan, holds("le", line.l_shipdate, literal(date(1998, 9, 2))))
    charge = call(
        "multiply", _revenue(line), call("add", _ONE, line.l_tax, type_=decimal(16, 2)), type_=decimal(38, 6)
    )
    grouped = aggregate(
        rows,
        same(line.l_returnflag, line.l_linestatus),
        named(101, "sum_qty", aggregation("sum", line.l_quantity)),
        named(102, "sum_disc_price", aggregation("sum", _revenue(line))),
        named(103, "sum_charge", aggregation("sum", charge)),
        named(104, "avg_qty", aggregation("avg", line.l_quantity)),
        named(105, "avg_disc", aggregation("avg", line.l_discount)),
        named(106, "count_order", aggregation("count")),
    )
    return Sort(grouped, (ascending(line.l_returnflag), ascending(line.l_linestatus)))


def q3(t: Tables) -> Relation:
    customer, orders, line = t["customer"], t["orders"], t["lineitem"]
    day = literal(date(1995, 3, 15))
    customers = Filter(customer.scan, holds("eq", customer.c_mktsegment, literal("BUILDING")))
    open_orders = Filter(orders.scan, holds("lt", orders.o_orderdate, day))
    lines = Filter(line.scan, holds("gt", line.l_shipdate, day))
    joined = join(customers, open_orders, (customer.c_custkey, orders.o_custkey))
    joined = join(joined, lines, (orders.o_orderkey, line.l_orderkey))
    revenue = named(101, "revenue", aggregation("sum", _revenue(line)))
    grouped = aggregate(joined, same(line.l_orderkey, orders.o_orderdate, orders.o_shippriority), revenue)
    outputs = same(line.l_orderkey, revenue.column, orders.o_orderdate, orders.o_shippriority)
    keys = (descending(revenue.column), ascending(orders.o_orderdate))
    return Limit(Sort(Project(grouped, outputs), keys), 10)


def q4(t: Tables) -> Relation:
    orders, line = t["orders"], t["lineitem"]
    quarter = Filter(orders.scan, all_of(*_between(orders.o_orderdate, date(1993, 7, 1), date(1993, 10, 1))))
    late = Filter(line.scan, holds("lt", line.l_commitdate, line.l_receiptdate))
    found = join(quarter, late, (orders.o_orderkey, line.l_orderkey), kind=JoinKind.SEMI)
    count = named(101, "order_count", aggregation("count"))
    return Sort(aggregate(found, same(orders.o_orderpriority), count), (ascending(orders.o_orderpriority),))


def q5(t: Tables) -> Relation:
    customer, orders, line, supplier = t["customer"], t["orders"], t["lineitem"], t["supplier"]
    nation, region = t["nation"], t["region"]
    year = Filter(orders.scan, all_of(*_between(orders.o_orderdate, date(1994, 1, 1), date(1995, 1, 1))))
    asia = Filter(region.scan, holds("eq", region.r_name, literal("ASIA")))
    joined = join(customer.scan, year, (customer.c_custkey, orders.o_custkey))
    joined = join(joined, line.scan, (orders.o_orderkey, line.l_orderkey))
    pairs = (line.l_suppkey, supplier.s_suppkey), (customer.c_nationkey, supplier.s_nationkey)
    joined = join(joined, supplier.scan, *pairs)
    joined = join(joined, nation.scan, (supplier.s_nationkey, nation.n_nationkey))
    joined = join(joined, asia, (nation.n_regionkey, region.r_regionkey))
    revenue = named(101, "revenue", aggregation("sum", _revenue(line)))
    return Sort(aggregate(joined, same(nation.n_name), revenue), (descending(revenue.column),))


def q6(t: Tables) -> Relation:
    line = t["lineitem"]
    condition = all_of(
        *_between(line.l_shipdate, date(1994, 1, 1), date(1995, 1, 1)),
        holds("ge", line.l_discount, literal(Decimal("0.05"))),
        holds("le", line.l_discount, literal(Decimal("0.07"))),
        holds("lt", line.l_quantity, literal(Decimal(24))),
    )
    product = call("multiply", line.l_extendedprice, line.l_discount, type_=decimal(31, 4))
    return aggregate(Filter(line.scan, condition), (), named(101, "revenue", aggregation("sum", product)))


def q10(t: Tables) -> Relation:
    customer, orders, line, nation = t["customer"], t["orders"], t["lineitem"], t["nation"]
    quarter = Filter(orders.scan, all_of(*_between(orders.o_orderdate, date(1993, 10, 1), date(1994, 1, 1))))
    returned = Filter(line.scan, holds("eq", line.l_returnflag, literal("R")))
    joined = join(customer.scan, quarter, (customer.c_custkey, orders.o_custkey))
    joined = join(joined, returned, (orders.o_orderkey, line.l_orderkey))
    joined = join(joined, nation.scan, (customer.c_nationkey, nation.n_nationkey))
    keys = same(
        customer.c_custkey,
        customer.c_name,
        customer.c_acctbal,
        customer.c_phone,
        nation.n_name,
        customer.c_address,
        customer.c_comment,
    )
    revenue = named(101, "revenue", aggregation("sum", _revenue(line)))
    return Limit(Sort(aggregate(joined, keys, revenue), (descending(revenue.column),)), 20)


def q12(t: Tables) -> Relation:
    orders, line = t["orders"], t["lineitem"]
    condition = all_of(
        holds("in", line.l_shipmode, literal("MAIL"), literal("SHIP")),
        holds("lt", line.l_commitdate, line.l_receiptdate),
        holds("lt", line.l_shipdate, line.l_commitdate),
        *_between(line.l_receiptdate, date(1994, 1, 1), date(1995, 1, 1)),
    )
    urgent = holds("in", orders.o_orderpriority, literal("1-URGENT"), literal("2-HIGH"))
    high = call("if", urgent, literal(1), literal(0), type_=literal(1).type)
    low = call("if", urgent, literal(0), literal(1), type_=literal(1).type)
    joined = join(orders.scan, Filter(line.scan, condition), (orders.o_orderkey, line.l_orderkey))
    grouped = aggregate(
        joined,
        same(line.l_shipmode),
        named(101, "high_line_count", aggregation("sum", high)),
        named(102, "low_line_count", aggregation("sum", low)),
    )
    return Sort(grouped, (ascending(line.l_shipmode),))


def q14(t: Tables) -> Relation:
    line, part = t["lineitem"], t["part"]
    month = Filter(line.scan, all_of(*_between(line.l_shipdate, date(1995, 9, 1), date(1995, 10, 1))))
    joined = join(month, part.scan, (line.l_partkey, part.p_partkey))
    promoted = call(
        "if",
        holds("starts_with", part.p_type, literal("PROMO")),
        _revenue(line),
        literal(Decimal(0)),
        type_=decimal(32, 4),
    )
    promo, total = aggregation("sum", promoted), aggregation("sum", _revenue(line))
    share = call("divide", call("multiply", literal(Decimal(100)), promo, type_=decimal(38, 4)), total)
    return aggregate(joined, (), named(101, "promo_revenue", share))


QUERIES: dict[str, Callable[[Tables], Relation]] = {
    "q1": q1,
    "q3": q3,
    "q4": q4,
    "q5": q5,
    "q6": q6,
    "q10": q10,
    "q12": q12,
    "q14": q14,
}
