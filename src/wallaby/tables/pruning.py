"""Use simple conditions to skip files and row groups whose constants or bounds exclude all their rows.

A simple condition compares a column with a constant of the same type. The fragment's tree applies all conditions
anyway, so missing one costs only time, while misusing one would lose rows. Floats are excluded: Parquet's bounds ignore
NaN, which is greater than everything in Spark.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from wallaby.relations import functions
from wallaby.relations.expression import Call, Column, Expression, Literal
from wallaby.relations.relation import Constant, DataFile, Scan
from wallaby.relations.types import DataType, Kind
from wallaby.tables.file_columns import file_column
from wallaby.tables.footer import bounds_of, footer, has_only_nulls

_SIGNS: Final = {
    "eq": "=", "equal": "=", functions.EQUAL_NULL_SAFE: "=",
    "lt": "<", "less": "<",
    "le": "<=", "less_or_equal": "<=",
    "gt": ">", "greater": ">",
    "ge": ">=", "greater_or_equal": ">=",
}  # fmt: skip
_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_KINDS: Final = frozenset(
    {Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG, Kind.DECIMAL, Kind.STRING, Kind.DATE}
)
#: The columns whose bounds are kept: a large table has thousands of row groups.
_KEPT: Final = 1 << 8


@dataclass(frozen=True, slots=True)
class SimpleCondition:
    """`name sign value`, or `name in values`."""

    name: str
    type: DataType
    sign: str
    values: tuple[object, ...]


def simple_conditions(scan: Scan, conditions: Iterable[Expression]) -> tuple[SimpleCondition, ...]:
    """The simple conditions, in terms of the files' columns."""
    names = {column.id: name for column, name in zip(scan.columns, scan.names, strict=True)}
    found = (_simple(condition, names) for condition in conditions)
    return tuple(simple for simple in found if simple is not None)


def _simple(condition: Expression, names: dict[int, str]) -> SimpleCondition | None:
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
    return SimpleCondition(names[first.id], first.type, sign, tuple(values))


def _comparable(literal: Literal, type_: DataType) -> bool:
    expected = {Kind.DECIMAL: Decimal, Kind.STRING: str, Kind.DATE: datetime.date}.get(type_.kind, int)
    return literal.type == type_ and isinstance(literal.value, expected)


def groups_that_match(
    file: DataFile, groups: Sequence[int], conditions: Sequence[SimpleCondition]
) -> list[int]:
    """The row groups with rows that can meet all conditions, according to their bounds and the file's constants."""
    left = list(groups)
    for condition in conditions:
        source = file_column(file, condition.name)
        if isinstance(source, Constant):
            left = left if _meets(source, condition) else []
        else:
            known = _known_values(file, source)
            left = [number for number in left if _may_match(known[number], condition)]
    return left


def constants_match(file: DataFile, conditions: Sequence[SimpleCondition]) -> bool:
    """Can a row of a file meet all conditions, according to the file's constants? The file is not opened."""
    constants = {constant.name.lower(): constant for constant in file.constants}
    pairs = ((constants.get(condition.name.lower()), condition) for condition in conditions)
    return all(constant is None or _meets(constant, condition) for constant, condition in pairs)


def _meets(constant: Constant, condition: SimpleCondition) -> bool:
    if constant.value is None:
        return False  # no comparison with NULL is true
    return any(_inside(value, condition.sign, constant.value, constant.value) for value in condition.values)


#: What a footer says of a column in a row group: its bounds; no values, if all are NULL; or nothing.
_Values = tuple[object, object] | tuple[()] | None


@lru_cache(maxsize=_KEPT)
def _known_values(file: DataFile, source: str) -> tuple[_Values, ...]:
    """The values of a column in all row groups of a file, which every task asks for."""
    metadata = footer(file)
    paths = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    if source not in paths:
        return (None,) * int(metadata.num_row_groups)
    place = paths.index(source)
    found: list[_Values] = []
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(place)
        found.append(() if has_only_nulls(chunk) else bounds_of(chunk))
    return tuple(found)


def _may_match(known: _Values, condition: SimpleCondition) -> bool:
    if known is None:
        return True
    return bool(known) and any(_inside(value, condition.sign, *known) for value in condition.values)


def _inside(value: object, sign: str, low: object, high: object) -> bool:
    """Can a value between the bounds be on the left of `sign value`?"""
    if not isinstance(low, type(value)) or not isinstance(high, type(value)):
        return True
    # Both have the same ordered type: `_comparable` accepts nothing else.
    match sign:
        case "=" | "in":
            return bool(low <= value <= high)  # type: ignore[operator]
        case "<":
            return bool(low < value)  # type: ignore[operator]
        case "<=":
            return bool(low <= value)  # type: ignore[operator]
        case ">":
            return bool(high > value)  # type: ignore[operator]
        case _:
            return bool(high >= value)  # type: ignore[operator]
