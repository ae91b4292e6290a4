"""Window functions as SQL: DuckDB's own, with every order, frame and type written out.

Ties may come in any order within their partition, on Spark as well. In which order they come here depends only on the
input, so the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wallaby.functions.numbers.decimal_sql import unscaled
from wallaby.relations.expression import Aggregation, Expression, Literal, SortKey
from wallaby.relations.relation import Frame, FrameUnit, Window, WindowCall
from wallaby.relations.types import Kind
from wallaby.sql.words import cast, column_identifier, literal, ordered, text
from wallaby.statements.expression import aggregation_sql, expression_sql, supports

#: Functions that depend only on the order of a partition, not on the frame.
RANKS: Final = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})
OFFSETS: Final = frozenset({"lag", "lead"})
VALUES: Final = frozenset({"first_value", "last_value", "nth_value"})


def order_sql(keys: Sequence[SortKey]) -> str:
    """The SQL of an order: each key with its direction and the position of NULL."""
    return ", ".join(f"{key_order_sql(key)} {_direction(key)}" for key in keys)


def key_order_sql(key: SortKey) -> str:
    """The SQL of a sort key in the form that DuckDB orders as Spark does."""
    return ordered(expression_sql(key.expression), key.expression.type)


def _direction(key: SortKey) -> str:
    return f"{'ASC' if key.ascending else 'DESC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def sort_key_sql(keys: Sequence[SortKey]) -> str:
    """The SQL of bytes that compare as rows do by an order, and are equal for equal rows."""
    if not keys:
        return "CAST('' AS BLOB)"
    written = (f"{key_order_sql(key)}, {text(_direction(key))}" for key in keys)
    return f"create_sort_key({', '.join(written)})"


def window_sql(window: Window) -> list[str]:
    """The functions of a window, each with its column's name."""
    return [f"{_call(call, window)} AS {column_identifier(call.column.id)}" for call in window.calls]


def window_reason(window: Window) -> str | None:
    """Why a window function cannot be computed here; None if all can."""
    for call in window.calls:
        function = call.function
        if function.function == "nth_value" and function.filter is not None:
            return "a filter of nth_value is not supported"
        if function.function in RANKS | OFFSETS | VALUES:
            continue
        if function.distinct:
            return f"distinct {function.function} over a window is not supported"
        reason = supports(function)
        if reason is not None:
            return reason
    return None


def plain_parts(window: Window) -> Iterator[Expression]:
    """The expressions of a window that are not window functions."""
    yield from window.partition
    yield from (key.expression for key in window.order)
    for call in window.calls:
        yield from call.function.arguments
        if call.function.filter is not None:
            yield call.function.filter


def _call(call: WindowCall, window: Window) -> str:
    function = call.function
    framed = function.function not in RANKS | OFFSETS
    order = order_sql(window.order)
    if framed and _has_distance(call.frame) and not call.frame.months:
        order = _distances(window.order)
    return call_sql(
        call, f" OVER ({_partition(window, order)}{_frame(call.frame, window.order) if framed else ''})"
    )


def call_sql(call: WindowCall, over: str) -> str:
    """The SQL of a window function, given the text after it."""
    function = call.function
    if function.function in VALUES and function.filter is not None:
        return cast(_filtered_value(function, over, ignore_nulls=call.ignore_nulls), function.type)
    if function.function in RANKS | OFFSETS | VALUES:
        return cast(f"{_own(function, ignore_nulls=call.ignore_nulls)}{over}", function.type)
    return aggregation_sql(function, over)


def _own(function: Aggregation, *, ignore_nulls: bool) -> str:
    arguments = ", ".join(expression_sql(argument) for argument in function.arguments)
    return f"{function.function}({arguments}{' IGNORE NULLS' if ignore_nulls else ''})"


def _filtered_value(function: Aggregation, over: str, *, ignore_nulls: bool) -> str:
    """The first or last of the values that a filter lets through."""
    assert function.filter is not None
    value, condition = expression_sql(function.arguments[0]), expression_sql(function.filter)
    present = f" AND {value} IS NOT NULL" if ignore_nulls else ""
    place = 1 if function.function == "first_value" else -1
    return f"(list({value}) FILTER (WHERE {condition}{present}){over})[{place}]"


def _partition(window: Window, order: str) -> str:
    keys = ", ".join(map(expression_sql, window.partition))
    by = f"PARTITION BY {keys}" if keys else ""
    return f"{by} ORDER BY {order}" if order else by


def _has_distance(frame: Frame) -> bool:
    """Does an end of the frame lie at a distance in values of the key?"""
    return frame.unit is FrameUnit.RANGE and bool(frame.begin or frame.end)


def _distances(keys: Sequence[SortKey]) -> str:
    """The order by a key, converted to a number to which any offset can be added.

    Except for floating-point keys, that is a sufficiently wide whole number in the key's smallest units.
    """
    (key,) = keys
    value, type_ = expression_sql(key.expression), key.expression.type
    match type_.kind:
        case Kind.FLOAT | Kind.DOUBLE:
            return f"{value} {_direction(key)}"
        case Kind.DATE:
            value = f"({value} - DATE '1970-01-01')"
        case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            value = f"epoch_us({value})"
        case Kind.DECIMAL:
            value = unscaled(value, type_)
        case _:
            pass
    return f"CAST({value} AS HUGEINT) {_direction(key)}"


def _frame(frame: Frame, keys: Sequence[SortKey]) -> str:
    def bound(offset: float) -> str:
        if offset == 0:
            return "CURRENT ROW"
        if isinstance(offset, int):
            distance = f"to_months({abs(offset)})" if frame.months else str(abs(offset))
        else:
            distance = literal(Literal(abs(offset), keys[0].expression.type))
        return f"{distance} {'FOLLOWING' if offset > 0 else 'PRECEDING'}"

    begin = "UNBOUNDED PRECEDING" if frame.begin is None else bound(frame.begin)
    end = "UNBOUNDED FOLLOWING" if frame.end is None else bound(frame.end)
    return f" {frame.unit.value.upper()} BETWEEN {begin} AND {end}"
