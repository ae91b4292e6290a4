"""Expressions that raise no error for any value, and may thus be computed for rows that would have been dropped.

Moving a condition or a join changes for which rows expressions are computed. That is harmless for a comparison, but a
division by a column could fail the query for a row that is not part of its result. So rules move only expressions that
this module knows to be safe.
"""

from __future__ import annotations

from typing import Final

from wallaby.relations import functions
from wallaby.relations.expression import Call, Column, Expression, Literal, walk
from wallaby.relations.types import DataType, Kind

#: The number of digits of each type of whole numbers.
_DIGITS: Final = {Kind.BYTE: 3, Kind.SHORT: 5, Kind.INTEGER: 10, Kind.LONG: 19}
_FLOATING: Final = {Kind.FLOAT: 1, Kind.DOUBLE: 2}
#: Adding this many days stays within years that users have; far beyond, Java overflows.
_DAYS_MAX: Final = 1_000_000


def cannot_fail(expression: Expression) -> bool:
    """Can an expression be evaluated on any rows without raising an error?"""
    return all(isinstance(part, Column | Literal) or _never_fails(part) for part in walk(expression))


def _never_fails(part: Expression) -> bool:
    """Is the function itself free of errors? Its arguments are checked separately."""
    match part:
        case Call(function=function) if function in functions.INFALLIBLE:
            return True
        case Call(function=functions.CAST, arguments=(value, *_), type=target):
            return _widens(value.type, target)
        case Call(function=functions.DATE_ADD | functions.DATE_SUB, arguments=(_, Literal(value=int(days)))):
            return abs(days) < _DAYS_MAX
        case Call(function=function, arguments=(left, right), type=type_) if function in _ARITHMETIC:
            return _has_room(function, left.type, right.type, type_)
        case _:
            return False


def _widens(source: DataType, target: DataType) -> bool:
    """Can a type represent every value of another?"""
    if source == target or source.kind is Kind.NULL:
        return True
    if source.kind in _DIGITS:
        digits = _DIGITS[source.kind]
        if target.kind in _DIGITS:
            return digits <= _DIGITS[target.kind]
        return target.kind in _FLOATING or _holds(target, digits, 0)
    if source.kind is Kind.DECIMAL:
        return target.kind is Kind.DOUBLE or _holds(target, source.precision - source.scale, source.scale)
    if source.kind in _FLOATING and target.kind in _FLOATING:
        return _FLOATING[source.kind] <= _FLOATING[target.kind]
    return False


def _holds(decimal: DataType, digits: int, scale: int) -> bool:
    """Does a decimal type have room for this many digits before and after the point?"""
    enough = decimal.precision - decimal.scale >= digits and decimal.scale >= scale
    return decimal.kind is Kind.DECIMAL and enough


_ARITHMETIC: Final = frozenset((functions.ADD, functions.SUBTRACT, functions.MULTIPLY))


def _has_room(function: str, left: DataType, right: DataType, result: DataType) -> bool:
    """Can the result not overflow? Floats overflow to infinity; decimals do not if the result has all their digits."""
    if result.kind in _FLOATING:
        return left.kind in _FLOATING and right.kind in _FLOATING
    if not left.kind is right.kind is result.kind is Kind.DECIMAL:
        return False
    before = [type_.precision - type_.scale for type_ in (left, right)]
    if function == functions.MULTIPLY:
        return _holds(result, sum(before) + 1, left.scale + right.scale)
    return _holds(result, max(before) + 1, max(left.scale, right.scale))
