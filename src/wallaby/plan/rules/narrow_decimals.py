"""Compute sums and products of decimals in 64 bits where the bounds of columns allow it.

Catalyst gives a product as many digits as its factors can have: `l_extendedprice * (1 - l_discount)` has 32, and a
number of more than 18 takes 128 bits. Footers know that the prices of a table have eight digits and its discounts
three. DuckDB checks that a product fits: if a footer were wrong, the query would fail, and not give another answer.
Only whole outputs and arguments of sums are changed, because their type does not depend on how they are computed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Final, TypeGuard

from wallaby.plan.estimates.statistics import Statistics
from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Call, Column, EvalMode, Expression, Literal, Named, walk
from wallaby.relations.relation import Aggregate, Project, Relation, Scan, children_of
from wallaby.relations.tree import rewrite_up, substitute
from wallaby.relations.types import Kind

#: The digits of decimals that fit into 64 bits.
_DIGITS_64: Final = 18
_COMPUTED: Final[Mapping[str, Callable[[Fraction, Fraction], Fraction]]] = {
    functions.ADD: operator.add,
    functions.SUBTRACT: operator.sub,
    functions.MULTIPLY: operator.mul,
}

#: The least and the greatest value.
_Bounds = tuple[Fraction, Fraction]
#: By the ids of columns.
_Known = Mapping[int, _Bounds]


def narrow_decimals(relation: Relation, statistics: Statistics) -> Relation:
    """Replace sums and products whose results are known to be short."""
    known = dict(_bounds_of_scans(relation, statistics))

    def narrow(relation: Relation) -> Relation:
        match relation:
            case Project(outputs=outputs):
                found = tuple(_named(named, _narrowed(named.expression, known)) for named in outputs)
                return relation if found == outputs else replace(relation, outputs=found)
            case Aggregate(aggregations=aggregations):
                found = tuple(_named(named, _with_narrow_sums(named, known)) for named in aggregations)
                return relation if found == aggregations else replace(relation, aggregations=found)
            case _:
                return relation

    return rewrite_up(relation, narrow) if known else relation


def _named(named: Named, expression: Expression) -> Named:
    return named if expression is named.expression else replace(named, expression=expression)


def _with_narrow_sums(named: Named, known: _Known) -> Expression:
    """An output of an aggregation whose sums have narrow arguments."""
    changed: dict[Expression, Expression] = {}
    for part in walk(named.expression):
        if isinstance(part, Aggregation) and part.function == functions.SUM:
            arguments = tuple(_narrowed(argument, known) for argument in part.arguments)
            if arguments != part.arguments:
                changed[part] = replace(part, arguments=arguments)
    return substitute(named.expression, changed) if changed else named.expression


def _narrowed(expression: Expression, known: _Known) -> Expression:
    """The same value, computed in 64 bits as far as that is possible."""
    if not _is_exact(expression):
        return expression
    arguments = tuple(_narrowed(argument, known) for argument in expression.arguments)
    bounds, limit = _bounds(expression, known), 10 ** (_DIGITS_64 - expression.type.scale)
    if (
        expression.type.precision > _DIGITS_64
        and bounds is not None
        and max(map(abs, bounds)) < limit
        and all(map(_is_short, arguments))
    ):
        return replace(expression, function=functions.IN_64_BITS[expression.function], arguments=arguments)
    return expression if arguments == expression.arguments else replace(expression, arguments=arguments)


def _is_exact(expression: Expression) -> TypeGuard[Call]:
    """Is it a sum, a difference or a product of decimals that loses no digits?"""
    if not isinstance(expression, Call) or expression.function not in _COMPUTED:
        return False
    types = [argument.type for argument in expression.arguments]
    if expression.mode is not EvalMode.ANSI or any(
        t.kind is not Kind.DECIMAL for t in (*types, expression.type)
    ):
        return False
    scales = [type_.scale for type_ in types]
    return expression.type.scale == (sum if expression.function == functions.MULTIPLY else max)(scales)


def _is_short(expression: Expression) -> bool:
    """Is an expression computed in 64 bits?"""
    narrow = isinstance(expression, Call) and expression.function in functions.IN_64_BITS.values()
    return narrow or expression.type.precision <= _DIGITS_64


def _bounds(expression: Expression, known: _Known) -> _Bounds | None:
    """The bounds of an expression's values; None if they are unknown."""
    match expression:
        case Column(id=id_):
            return known.get(id_)
        case Literal(value=value):
            constant = _number(value)
            return None if constant is None else (constant, constant)
        case Call(function=functions.CAST, arguments=(argument,), type=type_) if type_.kind is Kind.DECIMAL:
            exact = argument.type.is_integral or (
                argument.type.kind is Kind.DECIMAL and argument.type.scale <= type_.scale
            )
            return _bounds(argument, known) if exact else None
        case Call(arguments=arguments) if _is_exact(expression):
            left, right = (_bounds(argument, known) for argument in arguments)
            if left is None or right is None:
                return None
            ends = [_COMPUTED[expression.function](a, b) for a, b in product(left, right)]
            return min(ends), max(ends)
        case _:
            return None


def _bounds_of_scans(relation: Relation, statistics: Statistics) -> Iterator[tuple[int, _Bounds]]:
    table = statistics.of(relation) if isinstance(relation, Scan) else None
    if isinstance(relation, Scan) and table is not None:
        for column, name in zip(relation.columns, relation.names, strict=True):
            own = table.column(name)
            low, high = _number(own.minimum), _number(own.maximum)
            if low is not None and high is not None:
                yield column.id, (low, high)
    for child in children_of(relation):
        yield from _bounds_of_scans(child, statistics)


def _number(value: object) -> Fraction | None:
    """An exact number; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return Fraction(value)
