"""Short ways to write expressions and relations, a small TPC-H schema with statistics, and its queries."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from wallaby.plan.estimates.statistics import ColumnStatistics, Statistics, TableStatistics
from wallaby.plan.explain import relation_lines
from wallaby.plan.physical import Split
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal, Named, SortKey
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Aggregate, DataFile, Join, Relation, Scan
from wallaby.relations.tree import conjunction
from wallaby.relations.types import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, STRING, DataType, decimal

MONEY = decimal(15, 2)
#: The columns whose footers promise that they have no NULL; `data` keeps the promise.
NEVER_NULL = frozenset({"l_suppkey"})
_SELDOM = 24.0


# --- expressions -------------------------------------------------------------------------------------------


def column(id_: int, name: str, type_: DataType = LONG, *, nullable: bool = True) -> Column:
    return Column(id_, name, type_, nullable)


def literal(value: object) -> Literal:
    match value:
        case bool():
            return Literal(value, BOOLEAN)
        case int():
            return Literal(value, LONG)
        case float():
            return Literal(value, DOUBLE)
        case date():
            return Literal(value, DATE)
        case Decimal():
            return Literal(value, MONEY)
        case _:
            return Literal(value, STRING)


def call(function: str, *arguments: Expression, type_: DataType | None = None) -> Call:
    return Call(function, arguments, type_ or arguments[0].type, nullable=True)


def holds(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, BOOLEAN, nullable=True)


def all_of(*conditions: Expression) -> Expression:
    whole = conjunction(conditions)
    assert whole is not None
    return whole


def aggregation(function: str, *arguments: Expression, distinct: bool = False) -> Aggregation:
    match function, arguments:
        case "count", _:
            type_ = LONG
        case "sum", (argument,) if argument.type.kind.value == "decimal":
            type_ = decimal(min(38, argument.type.precision + 10), argument.type.scale)
        case "avg", (argument,) if argument.type.kind.value == "decimal":
            type_ = decimal(min(38, argument.type.precision + 4), argument.type.scale + 4)
        case "avg", _:
            type_ = DOUBLE
        case "sum", (argument,) if argument.type.is_integral:
            type_ = LONG
        case _:
            type_ = arguments[0].type
    return Aggregation(function, arguments, type_, nullable=function != "count", distinct=distinct)


def named(id_: int, name: str, expression: Expression) -> Named:
    return Named(Column(id_, name, expression.type, expression.nullable), expression)


def same(*columns: Column) -> tuple[Named, ...]:
    return tuple(Named(c, c) for c in columns)


def ascending(expression: Expression) -> SortKey:
    return SortKey(expression, ascending=True, nulls_first=True)


def descending(expression: Expression) -> SortKey:
    return SortKey(expression, ascending=False, nulls_first=False)


# --- relations ---------------------------------------------------------------------------------------------


def join(
    left: Relation,
    right: Relation,
    *pairs: tuple[Expression, Expression],
    kind: JoinKind = JoinKind.INNER,
    residual: Expression | None = None,
) -> Join:
    columns = left.columns
    if kind is JoinKind.EXISTENCE:
        columns = (*columns, Column(990, "exists", BOOLEAN, nullable=False))
    elif kind not in (JoinKind.SEMI, JoinKind.ANTI):
        columns = (*columns, *right.columns)
    return Join(left, right, kind, tuple(a for a, _ in pairs), tuple(b for _, b in pairs), residual, columns)


def aggregate(child: Relation, keys: tuple[Named, ...], *aggregations: Named) -> Aggregate:
    return Aggregate(child, keys, aggregations)


# --- tables ------------------------------------------------------------------------------------------------


class Table:
    """A table of some rows: columns by name as attributes, and what its footers would say."""

    _ids: Iterator[int] = itertools.count(1)

    def __init__(
        self, name: str, rows: int, splits: int, columns: list[tuple[str, DataType, object, object, float]]
    ):
        files = (DataFile(f"/data/{name}.parquet", rows * 40, 1),)
        made = tuple(
            Column(next(self._ids), column_name, type_, nullable=True) for column_name, type_, *_ in columns
        )
        self._by_name = {c.name: c for c in made}
        self.scan = Scan(files, made, tuple(c.name for c in made), name)
        self.statistics = TableStatistics(
            files,
            rows,
            tuple(
                ColumnStatistics(
                    column_name, low, high, 0 if column_name in NEVER_NULL else None, int(rows * bits / 8)
                )
                for column_name, _, low, high, bits in columns
            ),
            tuple(Split(files[0], (group,), rows // splits, rows * 40 // splits) for group in range(splits)),
        )

    def __getattr__(self, name: str) -> Column:
        try:
            return self._by_name[name]
        except KeyError:
            raise AttributeError(name) from None

    def scan_of(self, *names: str) -> Scan:
        chosen = tuple(self._by_name[n] for n in names)
        return Scan(self.scan.files, chosen, names, self.scan.label)


_FIRST, _LAST = date(1992, 1, 1), date(1998, 12, 1)


def tpch(scale: float = 1.0) -> dict[str, Table]:
    """The eight tables, as many rows as at a scale factor; the same column ids every time."""
    Table._ids = itertools.count(1)

    def n(rows: int) -> int:
        return max(1, int(rows * scale))

    def splits(rows: int) -> int:
        return max(1, n(rows) // 500_000)

    return {
        "lineitem": Table(
            "lineitem",
            n(6_000_000),
            splits(6_000_000),
            [
                ("l_orderkey", LONG, 1, n(5_990_000), 64.0),
                ("l_partkey", LONG, 1, n(200_000), 64.0),
                ("l_suppkey", LONG, 1, n(10_000), 14.0),
                ("l_quantity", MONEY, Decimal(1), Decimal(50), 6.0),
                ("l_extendedprice", MONEY, Decimal(900), Decimal(105_000), 64.0),
                ("l_discount", MONEY, Decimal(0), Decimal("0.10"), 4.0),
                ("l_tax", MONEY, Decimal(0), Decimal("0.08"), 4.0),
                ("l_returnflag", STRING, "A", "R", 2.0),
                ("l_linestatus", STRING, "F", "O", 1.0),
                ("l_shipdate", DATE, _FIRST, _LAST, 12.0),
                ("l_commitdate", DATE, _FIRST, _LAST, 12.0),
                ("l_receiptdate", DATE, _FIRST, _LAST, 12.0),
                ("l_shipmode", STRING, "AIR", "TRUCK", 3.0),
            ],
        ),
        "orders": Table(
            "orders",
            n(1_500_000),
            splits(1_500_000),
            [
                ("o_orderkey", LONG, 1, n(5_990_000), 64.0),
                ("o_custkey", LONG, 1, n(150_000), 64.0),
                ("o_orderdate", DATE, _FIRST, _LAST, 12.0),
                ("o_orderpriority", STRING, "1-URGENT", "5-LOW", 3.0),
                ("o_shippriority", INTEGER, 0, 0, 0.1),
            ],
        ),
        "customer": Table(
            "customer",
            n(150_000),
            splits(150_000),
            [
                ("c_custkey", LONG, 1, n(150_000), 64.0),
                ("c_name", STRING, "Customer#1", "Customer#9", 200.0),
                ("c_address", STRING, None, None, 200.0),
                ("c_nationkey", LONG, 0, 24, 5.0),
                ("c_phone", STRING, None, None, 120.0),
                ("c_acctbal", MONEY, Decimal(-999), Decimal(9999), 64.0),
                ("c_mktsegment", STRING, "AUTOMOBILE", "MACHINERY", 3.0),
                ("c_comment", STRING, None, None, 600.0),
            ],
        ),
        "supplier": Table(
            "supplier",
            n(10_000),
            1,
            [("s_suppkey", LONG, 1, n(10_000), 64.0), ("s_nationkey", LONG, 0, 24, 5.0)],
        ),
        "nation": Table(
            "nation",
            25,
            1,
            [
                ("n_nationkey", LONG, 0, 24, _SELDOM),
                ("n_name", STRING, "ALGERIA", "VIETNAM", _SELDOM),
                ("n_regionkey", LONG, 0, 4, 3.0),
            ],
        ),
        "region": Table(
            "region",
            5,
            1,
            [("r_regionkey", LONG, 0, 4, 3.0), ("r_name", STRING, "AFRICA", "MIDDLE EAST", 3.0)],
        ),
        "part": Table(
            "part",
            n(200_000),
            1,
            [("p_partkey", LONG, 1, n(200_000), 64.0), ("p_type", STRING, "A", "Z", 8.0)],
        ),
    }


def statistics_of(tables: dict[str, Table]) -> Statistics:
    return Statistics(tuple(table.statistics for table in tables.values()))


def explain_relation(relation: Relation, depth: int = 0) -> str:
    """A tree as golden files have it, one line per relation."""
    return "\n".join(relation_lines(relation, depth))
