"""Conditions that the reader itself applies, because Polars and Spark cannot disagree about them.

Comparisons of columns with constants or with each other, lists of constants, tests for NULL, and AND and OR of them,
over whole numbers, decimals, dates and texts. These have one order and one equality each, and a row is kept if the
condition is true, not if it is false or NULL. Rows that are dropped here never become Arrow data, which DuckDB would
have to take in. Floats are excluded because of NaN.
"""

from __future__ import annotations

import datetime
import functools
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

import polars as pl

from wallaby.relations import functions
from wallaby.relations.expression import Call, Column, Expression, Literal
from wallaby.relations.types import DataType, Kind

_COMPARISONS: Final[Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]]] = {
    functions.EQUAL: operator.eq,
    functions.LESS: operator.lt,
    functions.LESS_OR_EQUAL: operator.le,
    functions.GREATER: operator.gt,
    functions.GREATER_OR_EQUAL: operator.ge,
}
_CONNECTIVES: Final[Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]]] = {
    functions.AND: operator.and_,
    functions.OR: operator.or_,
}
#: How values of each kind are written, and what they are in Python.
_KINDS: Final[Mapping[Kind, tuple[type, pl.DataType | type[pl.DataType]]]] = {
    Kind.BYTE: (int, pl.Int8),
    Kind.SHORT: (int, pl.Int16),
    Kind.INTEGER: (int, pl.Int32),
    Kind.LONG: (int, pl.Int64),
    Kind.DATE: (datetime.date, pl.Date),
    Kind.STRING: (str, pl.String),
    Kind.DECIMAL: (Decimal, pl.Decimal),
}

#: The names that columns have in a file, by their ids.
Names = Mapping[int, str]


def row_filter(condition: Expression, names: Names) -> pl.Expr | None:
    """Turn a condition into a filter of a file's rows; None if it is not one of those."""
    if not isinstance(condition, Call):
        return None
    arguments = condition.arguments
    match condition.function:
        case function if function in _CONNECTIVES:
            parts = [row_filter(argument, names) for argument in arguments]
            if any(part is None for part in parts):
                return None
            return functools.reduce(_CONNECTIVES[function], (part for part in parts if part is not None))
        case function if function in _COMPARISONS and len(arguments) == 2:
            return _comparison(function, arguments[0], arguments[1], names)
        case functions.IN:
            return _membership(arguments[0], arguments[1:], names)
        case functions.IS_NULL | functions.IS_NOT_NULL as function:
            tested = _column(arguments[0], names)
            if tested is None:
                return None
            return tested.is_null() if function == functions.IS_NULL else tested.is_not_null()
        case _:
            return None


def _comparison(function: str, left: Expression, right: Expression, names: Names) -> pl.Expr | None:
    if left.type != right.type or (isinstance(left, Literal) and isinstance(right, Literal)):
        return None
    sides = [_column(side, names) if isinstance(side, Column) else _constant(side) for side in (left, right)]
    if sides[0] is None or sides[1] is None:
        return None
    return _COMPARISONS[function](sides[0], sides[1])


def _membership(tested: Expression, values: tuple[Expression, ...], names: Names) -> pl.Expr | None:
    equal = [_comparison(functions.EQUAL, tested, value, names) for value in values]
    if not equal or any(part is None for part in equal):
        return None
    return functools.reduce(operator.or_, (part for part in equal if part is not None))


def _column(expression: Expression, names: Names) -> pl.Expr | None:
    if not isinstance(expression, Column) or expression.id not in names or expression.type.kind not in _KINDS:
        return None
    # A selector takes the name literally: `pl.col` reads "^…$" as a pattern and "*" as all columns.
    return pl.selectors.by_name(names[expression.id]).as_expr()


def _constant(expression: Expression) -> pl.Expr | None:
    if not isinstance(expression, Literal) or expression.type.kind not in _KINDS:
        return None
    python, _ = _KINDS[expression.type.kind]
    if not isinstance(expression.value, python) or isinstance(expression.value, bool | datetime.datetime):
        return None
    return pl.lit(expression.value, dtype=_polars_type(expression.type))


def _polars_type(type_: DataType) -> pl.DataType | type[pl.DataType]:
    if type_.kind is Kind.DECIMAL:
        return pl.Decimal(type_.precision, type_.scale)
    return _KINDS[type_.kind][1]
