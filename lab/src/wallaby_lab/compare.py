"""Compare two answers to a query: Spark's, which is right by definition, and the engine's.

Two answers are the same if their columns have the same names, types and nullability, and their rows are the same
as a multiset; where ORDER BY fixes an order, the rows must be in it, and only ties may be exchanged.
Under a LIMIT any of the rows that tie at the cut may have been chosen, provided that they exist. Floating-point
numbers may differ by a relative 1e-9, because sums have no fixed order; everything else is compared exactly. With
`exact`, floating-point numbers are compared exactly too, and the two zeros are different values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

TOLERANCE = 1e-9
_SHOWN = 5

Row = tuple[Any, ...]


class DifferentError(AssertionError):
    """Two answers are not the same; the message says where."""


def require_same(
    actual: pa.Table,
    expected: pa.Table,
    *,
    order: Sequence[str] = (),
    unlimited: pa.Table | None = None,
    exact: bool = False,
) -> None:
    """Raise unless the answers are the same.

    `order` names the columns of the ORDER BY. `unlimited` is the answer without the LIMIT: with it, rows that tie at
    the cut may be any of those. With `exact`, floating-point numbers are compared like everything else.
    """
    _same_schema(actual.schema, expected.schema)
    if actual.num_rows != expected.num_rows:
        raise DifferentError(f"{actual.num_rows} rows instead of {expected.num_rows}")
    ours, theirs = _rows(actual), _rows(expected)
    if exact:
        ours, theirs = [_spelled(row) for row in ours], [_spelled(row) for row in theirs]
    if not order:
        _same_multiset(ours, theirs, "without order")
        return
    places = [expected.schema.get_field_index(name) for name in order]
    if min(places) < 0:
        raise DifferentError(f"{order} are not all columns of the answer")
    _same_order(ours, theirs, places)
    groups = [list(group) for _, group in groupby(theirs, key=lambda row: _key(row, places))]
    begin = 0
    for number, group in enumerate(groups):
        mine = ours[begin : begin + len(group)]
        begin += len(group)
        if number == len(groups) - 1 and unlimited is not None:
            tied = [row for row in _rows(unlimited) if _close(_key(row, places), _key(group[0], places))]
            _part_of(mine, tied)
        else:
            _same_multiset(mine, group, f"among the rows with {_key(group[0], places)}")


def same(actual: pa.Table, expected: pa.Table, *, order: Sequence[str] = ()) -> bool:
    """Are the answers the same?"""
    try:
        require_same(actual, expected, order=order)
    except DifferentError:
        return False
    return True


def _same_schema(actual: pa.Schema, expected: pa.Schema) -> None:
    ours = [(field.name, str(field.type), field.nullable) for field in actual]
    theirs = [(field.name, str(field.type), field.nullable) for field in expected]
    if ours != theirs:
        different = [f"{a} instead of {b}" for a, b in zip(ours, theirs, strict=False) if a != b]
        raise DifferentError(f"the columns differ: {different or f'{len(ours)} instead of {len(theirs)}'}")


def _spelled(cell: Any) -> Any:
    """A cell with floating-point numbers as text."""
    if isinstance(cell, float):
        return f"{cell!r}"
    return tuple(map(_spelled, cell)) if isinstance(cell, tuple) else cell


def _same_order(ours: Sequence[Row], theirs: Sequence[Row], places: Sequence[int]) -> None:
    for number, (mine, row) in enumerate(zip(ours, theirs, strict=True)):
        if not _close(_key(mine, places), _key(row, places)):
            raise DifferentError(f"row {number} is {mine} where the order asks for {row}")


def _same_multiset(ours: Sequence[Row], theirs: Sequence[Row], where: str) -> None:
    """Match rows with equal exact cells by their floating-point cells, in ascending order."""
    mine, wanted = _by_exact_cells(ours), _by_exact_cells(theirs)
    for exact in [*wanted, *(key for key in mine if key not in wanted)]:
        found, due = mine.get(exact, []), wanted.get(exact, [])
        if len(found) != len(due):
            raise DifferentError(
                f"{where}: {len(found)} instead of {len(due)} rows like {(found or due)[:_SHOWN]}"
            )
        for a, b in zip(sorted(found, key=_sortable), sorted(due, key=_sortable), strict=True):
            if not _close(a, b):
                raise DifferentError(f"{where}: {a} instead of {b}")


def _part_of(ours: Sequence[Row], those: Sequence[Row]) -> None:
    """Is our multiset of rows contained in the other?"""
    left = list(those)
    for row in ours:
        at = next((number for number, other in enumerate(left) if _close(row, other)), None)
        if at is None:
            raise DifferentError(f"{row} is not one of the rows that tie at the cut")
        del left[at]


def _by_exact_cells(rows: Sequence[Row]) -> Mapping[Row, list[Row]]:
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(_exact(cell) for cell in row), []).append(row)
    return found


def _exact(cell: Any) -> Any:
    """The part of a cell that is compared exactly."""
    if isinstance(cell, float):
        return "NaN" if math.isnan(cell) else "inf" if math.isinf(cell) else "float"
    if isinstance(cell, tuple):
        return tuple(_exact(part) for part in cell)
    return (type(cell).__name__, cell)


def _sortable(row: Row) -> Row:
    return tuple(
        cell
        for cell in (_floats(row) if any(isinstance(c, float | tuple) for c in row) else ())
        if not math.isnan(cell)
    )


def _floats(value: Any) -> list[float]:
    if isinstance(value, float):
        return [value]
    return [number for part in value for number in _floats(part)] if isinstance(value, tuple) else []


def _close(mine: Any, wanted: Any) -> bool:
    if isinstance(mine, float) and isinstance(wanted, float):
        both_nan = math.isnan(mine) and math.isnan(wanted)
        return both_nan or math.isclose(mine, wanted, rel_tol=TOLERANCE)
    if isinstance(mine, tuple) and isinstance(wanted, tuple):
        return len(mine) == len(wanted) and all(map(_close, mine, wanted))
    return type(mine) is type(wanted) and bool(mine == wanted)


def _key(row: Row, places: Sequence[int]) -> Row:
    return tuple(row[place] for place in places)


def _rows(table: pa.Table) -> list[Row]:
    columns = [[_frozen(cell) for cell in _cells(column)] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _cells(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; days and microseconds where Python has no such date."""
    try:
        cells: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        cells = column.cast(_counted(column.type)).to_pylist()
    return cells


def _counted(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.list_(_counted(kind.value_type)) if pa.types.is_list(kind) else kind


def _frozen(value: Any) -> Any:
    """A value that can be compared and counted: lists, maps and structs as tuples."""
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(_frozen(part) for part in value)
    return value


def multiplicities(table: pa.Table) -> Counter[Row]:
    """How often each row occurs, for tests that count."""
    return Counter(_rows(table))
