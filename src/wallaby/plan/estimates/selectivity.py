"""Estimate the share of rows that a condition keeps, from value ranges and numbers of distinct values.

The rules are those of every engine: a range keeps its share of the column's range, an equality keeps one of the
distinct values, and conjuncts are independent. Ranges over one column are intersected first, so that `date >= a and
date < b` is one window and not two halves. Likewise `year = 2001 and year in (2001, 2002)` keeps as much as its most
selective part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from statistics import NormalDist

from wallaby.relations import functions
from wallaby.relations.expression import Call, Column, Expression, Literal, columns_in
from wallaby.relations.tree import conjunction, conjuncts
from wallaby.relations.types import BOOLEAN

#: Used where nothing is known.
EQUALITY = 0.1
OTHERWISE = 1 / 3
#: Few texts contain a given substring.
MATCH = 0.05
_MATCHES = frozenset(("like", "contains", "starts_with", "ends_with"))
_ANY = (float("-inf"), float("inf"))


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """The estimate of a column: its number of distinct values, its range, and its share of nulls."""

    distinct: float | None = None
    #: Does `distinct` rest on the values, not just on the number of rows?
    counted: bool = False
    low: float | None = None
    high: float | None = None
    null_share: float = 0.0
    #: For a sum or a count: how its values are spread around their mean.
    mean: float | None = None
    deviation: float = 0.0
    #: How many of the values conditions on the column itself leave, at most.
    left: float = float("inf")
    #: The share of its values that a semi join has left: most often those that the join after it looks for.
    met: float = 1.0
    #: Are its values whole numbers or days, so that a range has a known number of them?
    whole: bool = False
    #: Its values are unique in its table: other columns refer to it, and `distinct` is not a guess.
    is_key: bool = False
    #: Its values are unique in these rows too.
    unique: bool = False
    #: A number that identifies its table, and the rows of that table.
    source: int | None = None
    source_rows: float = float("inf")


UNKNOWN = ColumnEstimate()
Columns = Mapping[int, ColumnEstimate]


def number(value: object) -> float | None:
    """Map a value to a number, strings by their first letters; None if that is impossible."""
    match value:
        case bool() | int() | float() | Decimal():
            return float(value)
        case datetime():
            return value.toordinal() + (value.hour * 3600 + value.minute * 60 + value.second) / 86400
        case date():
            return float(value.toordinal())
        case str():
            return float(int.from_bytes(value.encode("utf-8", "replace")[:6].ljust(6, b"\0"), "big"))
        case _:
            return None


def selectivity(condition: Expression, columns: Columns) -> float:
    """The share of rows for which a condition is true."""
    share = 1.0
    windows: dict[int, tuple[float, float]] = {}
    points: dict[int, float] = {}
    for part in conjuncts(condition):
        window, listed = _window(part), _listed(part)
        if listed is not None:
            points[listed] = min(points.get(listed, 1.0), _of_one(part, columns))
        elif window is None:
            share *= _of_one(part, columns)
        else:
            column, low, high = window
            before = windows.get(column, _ANY)
            windows[column] = (max(before[0], low), min(before[1], high))
    for column, (low, high) in windows.items():
        share *= _of_window(columns.get(column, UNKNOWN), low, high)
    for of_points in points.values():
        share *= of_points
    return share


def selectivity_between(condition: Expression, columns: Columns, sides: Sequence[frozenset[int]]) -> float:
    """The share of pairs for which a condition over several sides is true, given what it implies for each side.

    From `(a = 1 and b = 2) or (a = 3 and b = 4)` Catalyst derives a condition for each side, `a = 1 or a = 3`. Rows
    that do not meet it are gone, and must not be counted again.
    """
    share = 1.0
    for part in conjuncts(condition):
        before = 1.0
        for side in sides:
            implied = _implied(part, side)
            before *= 1.0 if implied is None else selectivity(implied, columns)
        share *= min(1.0, selectivity(part, columns) / before) if before > 0 else 1.0
    return share


def _implied(condition: Expression, side: frozenset[int]) -> Expression | None:
    """What a disjunction implies for one side alone; None if nothing."""
    if not isinstance(condition, Call) or condition.function != functions.OR:
        return None
    found: list[Expression] = []
    for branch in _branches(condition):
        own = [part for part in conjuncts(branch) if columns_in(part) <= side]
        whole = conjunction(own)
        if whole is None:
            return None
        found.append(whole)
    return Call(functions.OR, tuple(found), BOOLEAN, nullable=True)


def _branches(condition: Expression) -> tuple[Expression, ...]:
    if isinstance(condition, Call) and condition.function == functions.OR:
        return tuple(branch for argument in condition.arguments for branch in _branches(argument))
    return (condition,)


def after(condition: Expression, columns: Columns) -> Columns:
    """The estimates of columns in the rows for which a condition is true: some have fewer values."""
    left: dict[int, float] = {}
    for part in conjuncts(condition):
        match part:
            case Call(function=functions.EQUAL, arguments=(Column(id=id_), Literal())):
                left[id_] = 1.0
            case Call(function=functions.EQUAL, arguments=(Literal(), Column(id=id_))):
                left[id_] = 1.0
            case Call(function=functions.IN, arguments=(Column(id=id_), *values)):
                left[id_] = min(left.get(id_, float("inf")), float(len(values)))
            case _:
                pass
    if not left:
        return columns
    return {
        id_: replace(known, left=min(known.left, left[id_])) if id_ in left else known
        for id_, known in columns.items()
    }


def _of_one(condition: Expression, columns: Columns) -> float:
    match condition:
        case Literal(value=bool(value)):
            return float(value)
        case Call(function=functions.OR, arguments=arguments):
            missed = 1.0
            for argument in arguments:
                missed *= 1 - selectivity(argument, columns)
            return 1 - missed
        case Call(function=functions.NOT, arguments=(argument,)):
            return 1 - selectivity(argument, columns)
        case Call(function=functions.IS_NULL, arguments=(Column(id=id_),)):
            return columns.get(id_, UNKNOWN).null_share
        case Call(function=functions.IS_NOT_NULL, arguments=(Column(id=id_),)):
            return 1 - columns.get(id_, UNKNOWN).null_share
        case Call(function=functions.EQUAL, arguments=(left, right)):
            return _of_equality(left, right, columns)
        case Call(function=function) if function in _MATCHES:
            return MATCH
        case Call(function=functions.IN, arguments=(tested, *values)):
            return min(1.0, len(values) * _of_equality(tested, values[0], columns)) if values else 0.0
        case _:
            return OTHERWISE


def _of_equality(left: Expression, right: Expression, columns: Columns) -> float:
    sides = [columns.get(side.id, UNKNOWN) for side in (left, right) if isinstance(side, Column)]
    known = [side.distinct for side in sides if side.distinct is not None and side.counted]
    return 1 / max(1.0, *known) if known else EQUALITY


def _listed(condition: Expression) -> int | None:
    """The column that a condition compares with a constant or a list of constants; None for other conditions."""
    match condition:
        case Call(
            function=functions.EQUAL, arguments=(Column(id=id_), Literal()) | (Literal(), Column(id=id_))
        ):
            return id_
        case Call(function=functions.IN, arguments=(Column(id=id_), *values)):
            return id_ if all(isinstance(value, Literal) for value in values) else None
        case _:
            return None


def _window(condition: Expression) -> tuple[int, float, float] | None:
    """The range that a comparison of a column with a constant leaves."""
    if not isinstance(condition, Call) or condition.function not in functions.MIRRORED:
        return None
    match condition.function, condition.arguments:
        case functions.EQUAL, _:
            return None
        case comparison, (Column(id=id_), Literal(value=value)):
            pass
        case mirrored, (Literal(value=value), Column(id=id_)):
            comparison = functions.MIRRORED[mirrored]
        case _:
            return None
    bound = number(value)
    if bound is None:
        return None
    below = comparison in (functions.LESS, functions.LESS_OR_EQUAL)
    return (id_, _ANY[0], bound) if below else (id_, bound, _ANY[1])


def _of_window(column: ColumnEstimate, low: float, high: float) -> float:
    if column.mean is not None:
        bell = NormalDist(column.mean, max(column.deviation, 1e-9))
        return max(0.0, bell.cdf(high) - bell.cdf(low))
    if column.low is None or column.high is None:
        return OTHERWISE
    if column.high <= column.low:
        return float(low <= column.low <= high)
    share = (min(high, column.high) - max(low, column.low)) / (column.high - column.low)
    least = 1 / column.distinct if column.distinct else 0.0
    return min(1.0, max(share, least)) if high >= column.low and low <= column.high else 0.0
