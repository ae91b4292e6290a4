"""Simple conditions, used before any row is computed: to skip row groups, and to keep rows out of Arrow.

A simple condition compares a column with a constant of its own type. The fragment's tree applies all conditions
anyway, so forgetting one costs time and nothing else; wrongly using one would cost rows. Floats are left out:
Parquet's bounds do not count NaN, which Spark finds greater than everything.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import polars as pl
import pyarrow.parquet as pq

from wallaby.plan.expression import Call, Column, Expression, Literal
from wallaby.plan.relation import Scan
from wallaby.plan.types import DataType, Kind

_SIGNS: Final = {
    "eq": "=", "equal": "=",
    "lt": "<", "less": "<",
    "le": "<=", "less_or_equal": "<=",
    "gt": ">", "greater": ">",
    "ge": ">=", "greater_or_equal": ">=",
}  # fmt: skip
_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_KINDS: Final = frozenset(
    {Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG, Kind.DECIMAL, Kind.STRING, Kind.DATE}
)
#: Taking rows out early copies those that stay: worth it only if they are few.
PREFILTER_SHARE_MAX: Final = 0.5
_EQUAL_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Simple:
    """`name sign value`, or `name in values`."""

    name: str
    type: DataType
    sign: str
    values: tuple[object, ...]


def simple_conditions(scan: Scan, conditions: Iterable[Expression]) -> tuple[Simple, ...]:
    """Those conditions that are simple, in terms of the files' columns."""
    names = {column.id: name for column, name in zip(scan.columns, scan.names, strict=True)}
    found = (_simple(condition, names) for condition in conditions)
    return tuple(simple for simple in found if simple is not None)


def _simple(condition: Expression, names: dict[int, str]) -> Simple | None:
    if not isinstance(condition, Call) or len(condition.arguments) < 2:
        return None
    first, *others = condition.arguments
    sign = "in" if condition.function == "in" else _SIGNS.get(condition.function)
    if sign is None:
        return None
    if isinstance(first, Literal) and sign != "in":
        first, others, sign = others[0], [first], _MIRRORED[sign]
    if not isinstance(first, Column) or first.id not in names or first.type.kind not in _KINDS:
        return None
    values = [
        other.value for other in others if isinstance(other, Literal) and _comparable(other, first.type)
    ]
    if len(values) != len(others):
        return None
    return Simple(names[first.id], first.type, sign, tuple(values))


def _comparable(literal: Literal, type_: DataType) -> bool:
    expected = {Kind.DECIMAL: Decimal, Kind.STRING: str, Kind.DATE: datetime.date}.get(type_.kind, int)
    return literal.type == type_ and isinstance(literal.value, expected)


def may_match(metadata: pq.FileMetaData, row_group: int, conditions: Sequence[Simple]) -> bool:
    """Can some row of a row group meet all conditions, as far as its bounds tell?"""
    return all(_share(metadata, row_group, condition) > 0 for condition in conditions)


def estimated_share(metadata: pq.FileMetaData, row_group: int, conditions: Sequence[Simple]) -> float:
    """How much of a row group probably meets all conditions. The same on every worker: only footers count."""
    share = 1.0
    for condition in conditions:
        share *= _share(metadata, row_group, condition)
    return share


def _share(metadata: pq.FileMetaData, row_group: int, condition: Simple) -> float:
    group = metadata.row_group(row_group)
    chunk = next(
        (c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == condition.name), None
    )
    bounds = chunk.statistics if chunk is not None else None
    if bounds is None or not bounds.has_min_max:
        return _EQUAL_SHARE if condition.sign in ("=", "in") else 1.0
    return max(_share_of(value, condition, bounds.min, bounds.max) for value in condition.values)


def _share_of(value: object, condition: Simple, low: object, high: object) -> float:
    """0 only if no value between the bounds can meet the condition."""
    if not isinstance(low, type(value)) or not isinstance(high, type(value)):
        return 1.0
    below, above = value < low, value > high  # type: ignore[operator]  # one ordered type
    match condition.sign:
        case "=" | "in":
            return 0.0 if below or above else _EQUAL_SHARE
        case "<":
            return 0.0 if below or value == low else _position(value, low, high)
        case "<=":
            return 0.0 if below else _position(value, low, high)
        case ">":
            return 0.0 if above or value == high else 1 - _position(value, low, high)
        case _:
            return 0.0 if above else 1 - _position(value, low, high)


def _position(value: object, low: object, high: object) -> float:
    """Where between the bounds a value is; never 0 or 1, which would be a certainty."""
    match value, low, high:
        case datetime.date(), datetime.date(), datetime.date():
            part, whole = float((value - low).days), float((high - low).days)
        case ((int() | Decimal()), (int() | Decimal()), (int() | Decimal())):
            part, whole = float(value) - float(low), float(high) - float(low)
        case _:
            return 0.5
    return min(max(part / whole if whole else 0.5, 0.01), 0.99)


def prefilter(conditions: Sequence[Simple]) -> pl.Expr:
    """The conditions for Polars, which compares these types exactly as Spark does."""
    return pl.all_horizontal([_polars(condition) for condition in conditions])


def _polars(condition: Simple) -> pl.Expr:
    # A name that looks like a regular expression is still a name: `by_name` takes it as it is.
    column = pl.selectors.by_name(condition.name).as_expr()
    if condition.sign == "in":
        return pl.any_horizontal([column == _literal(value, condition.type) for value in condition.values])
    value = _literal(condition.values[0], condition.type)
    match condition.sign:
        case "=":
            return column == value
        case "<":
            return column < value
        case "<=":
            return column <= value
        case ">":
            return column > value
        case _:
            return column >= value


def _literal(value: object, type_: DataType) -> pl.Expr:
    if type_.kind is Kind.DECIMAL:
        return pl.lit(value, dtype=pl.Decimal(type_.precision, type_.scale))
    return pl.lit(value)
