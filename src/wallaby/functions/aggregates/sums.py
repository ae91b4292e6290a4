"""Counts, sums, averages, minima and maxima.

Sums and averages of floating-point numbers depend on the order of the rows, in Spark too: they agree to a relative
1e-9, everything else is equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import COMPARABLE, INTEGRAL, INTERVALS, NUMERIC
from wallaby.catalyst.node import Node
from wallaby.functions.aggregate_sql import AggregateSql, distinct_word, filtered, same_type, shown
from wallaby.functions.entry import Entry, Refusal, exact, guarded, read_aggregation
from wallaby.functions.family import Family
from wallaby.functions.numbers.decimal_sql import decimal_sql, from_digits, unscaled
from wallaby.functions.numbers.decimals import DIGITS_MAX
from wallaby.functions.numbers.integers import fitted
from wallaby.functions.parts import AggregatePart, AggregateParts, only
from wallaby.relations.expression import Aggregation, EvalMode, Expression, Literal
from wallaby.relations.types import DOUBLE, DataType, Kind, decimal
from wallaby.sql.types import duckdb_type
from wallaby.sql.words import case, cast, error, ordered, with_signs, without_signs


def _read_count(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read a count; constants that are not NULL count every row, like `*`."""
    counted = tuple(a for a in arguments if not isinstance(a, Literal) or a.nullable)
    return read_aggregation(entry, node, counted, kind)


#: Up to this precision, a sum of a million decimals still has at most 38 digits.
_SHORT_DIGITS_MAX: Final = DIGITS_MAX - 6
_HALF: Final = f"CAST('1{'0' * (DIGITS_MAX // 2)}' AS HUGEINT)"
#: The least whole number with more digits than a decimal can have.
_LIMIT: Final = f"CAST('1{'0' * DIGITS_MAX}' AS HUGEINT)"
_SUM_OVERFLOW: Final = error("ARITHMETIC_OVERFLOW", "Overflow in sum of decimals.")
_INTERVAL_OVERFLOW: Final = error(
    "INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION", "Overflow in sum of intervals."
)
_COUNT_TYPE: Final = decimal(20, 0)


def _sum_reason(aggregation: Aggregation) -> str | None:
    name, source = shown(aggregation), aggregation.arguments[0].type
    summed = source.is_interval and aggregation.function == "sum" and aggregation.mode is EvalMode.ANSI
    if not (source.is_integral or source.is_floating or source.kind is Kind.DECIMAL or summed):
        return f"{name} of {source} is not supported"
    # A sum has ten digits more than its argument, so only longer decimals than these can overflow.
    overflows = source.kind is Kind.DECIMAL and source.precision > DIGITS_MAX - 10
    if aggregation.mode is not EvalMode.ANSI and overflows:
        return f"{name} of {source} in {aggregation.mode.value} mode is not supported"
    return None


def _write_count(aggregation: Aggregation, arguments: Sequence[str], condition: str | None, over: str) -> str:
    """Count the rows in which no argument is NULL."""
    if aggregation.distinct:
        value = arguments[0] if len(arguments) == 1 else f"row({', '.join(arguments)})"
        present = " AND ".join(f"{sql} IS NOT NULL" for sql in arguments)
        return f"count(DISTINCT {_where(condition, case([(present, value)]))}){over}"
    return f"count({_counted(aggregation, arguments, condition)}){over}"


def _counted(aggregation: Aggregation, arguments: Sequence[str], condition: str | None) -> str:
    needed = [
        sql
        for sql, argument in zip(arguments, aggregation.arguments, strict=True)
        if not isinstance(argument, Literal) or argument.value is None
    ]
    if not needed and condition is None:
        return "*"
    present = " AND ".join(f"{sql} IS NOT NULL" for sql in needed) or "TRUE"
    return _where(condition, case([(present, "1")]))


def _where(condition: str | None, value: str) -> str:
    return value if condition is None else case([(condition, value)])


def _count_parts(aggregation: Aggregation, arguments: Sequence[str], condition: str | None) -> AggregateParts:
    return only(AggregatePart("count", _counted(aggregation, arguments, condition), "BIGINT"))


def _sum(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    if over and aggregation.type.kind is Kind.DECIMAL:
        return _total(aggregation, arguments, over)
    return _summed(aggregation, f"sum({distinct_word(aggregation)}{arguments[0]}){over}")


def _summed(aggregation: Aggregation, total: str) -> str:
    """The result of a sum, from DuckDB's."""
    if aggregation.type.is_integral:
        return fitted(total, aggregation.type, aggregation.mode)
    if aggregation.type.is_interval:
        return fitted(total, aggregation.type, aggregation.mode, _INTERVAL_OVERFLOW)
    return cast(total, aggregation.type)


def _sum_parts(
    aggregation: Aggregation, arguments: Sequence[str], condition: str | None
) -> AggregateParts | None:
    values = filtered(aggregation, arguments, condition)
    if aggregation.type.kind is Kind.DECIMAL:
        return _total_parts(aggregation, values)
    if aggregation.type.is_floating:
        return None
    return only(AggregatePart("sum", values[0], "HUGEINT"), lambda total: _summed(aggregation, total))


def _total(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """A sum of decimals as in Spark's windows and averages, where only the final sum is limited.

    Long decimals are summed in two halves of their digits. A sum that does not fit is out of range in a window; in an
    average, Spark reports an overflow. Decimals that a million rows cannot make too long are summed directly.
    """
    source = aggregation.arguments[0].type
    if source.precision <= _SHORT_DIGITS_MAX or aggregation.distinct:
        return cast(f"sum({distinct_word(aggregation)}{arguments[0]}){over}", aggregation.type)
    high, low = (f"sum({half}){over}" for half in _halves(arguments[0], source))
    return _whole_total(aggregation, high, low, windowed=bool(over))


def _halves(value: str, source: DataType) -> tuple[str, str]:
    """The upper and the lower digits of a long decimal."""
    digits = unscaled(value, source)
    return f"{digits} // {_HALF}", f"{digits} % {_HALF}"


def _whole_total(aggregation: Aggregation, high: str, low: str, *, windowed: bool) -> str:
    """A sum of long decimals, from those of its halves."""
    source = aggregation.arguments[0].type
    carried = f"({high} + {low} // {_HALF})"
    whole = f"({carried} * {_HALF} + {low} % {_HALF})"
    found = from_digits(whole, source, aggregation.type)
    if windowed:
        return found
    return case(
        [(f"abs({carried}) > {_HALF}", _SUM_OVERFLOW), (f"abs({whole}) >= {_LIMIT}", _SUM_OVERFLOW)], found
    )


def _total_parts(aggregation: Aggregation, values: Sequence[str]) -> AggregateParts:
    """The parts of a sum of decimals over a window."""
    source = aggregation.arguments[0].type
    if source.precision <= _SHORT_DIGITS_MAX:
        part = AggregatePart("sum", values[0], f"DECIMAL({DIGITS_MAX},{source.scale})")
        rows_max = 10 ** (DIGITS_MAX - source.precision)
        return replace(only(part, lambda total: cast(total, aggregation.type)), rows_max=rows_max)
    halves = tuple(AggregatePart("sum", half, "HUGEINT") for half in _halves(values[0], source))
    return AggregateParts(halves, lambda parts: _whole_total(aggregation, parts[0], parts[1], windowed=True))


def _average(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    distinct, value, result = distinct_word(aggregation), arguments[0], aggregation.type
    if result.kind is not Kind.DECIMAL:
        wide = cast(value, result)
        return f"(sum({distinct}{wide}){over} / nullif(count({distinct}{value}){over}, 0))"
    total = _total(_total_of(aggregation), arguments, over)
    return _decimal_average(aggregation, total, f"count({distinct}{value}){over}")


def _total_of(average: Aggregation) -> Aggregation:
    """The sum of decimals that an average divides."""
    source = average.arguments[0].type
    return replace(average, type=decimal(min(source.precision + 10, 38), source.scale))


def _decimal_average(average: Aggregation, total: str, counted: str) -> str:
    count = cast(f"nullif({counted}, 0)", _COUNT_TYPE)
    sides = Literal(None, _total_of(average).type), Literal(None, _COUNT_TYPE)  # only their types count
    return decimal_sql("divide", total, sides[0], count, sides[1], average.type, average.mode)


def _average_parts(
    aggregation: Aggregation, arguments: Sequence[str], condition: str | None
) -> AggregateParts | None:
    """An average of whole numbers is a quotient of doubles; its sum is exact as long as it is not too large."""
    (value, *_), source = filtered(aggregation, arguments, condition), aggregation.arguments[0].type
    counted = AggregatePart("count", value, "BIGINT")
    if aggregation.type.kind is Kind.DECIMAL:
        total = _total_parts(_total_of(aggregation), (value,))
        return replace(
            total,
            parts=(*total.parts, counted),
            finish=lambda parts: _decimal_average(aggregation, total.finish(parts[:-1]), parts[-1]),
        )
    if not source.is_integral:
        return None
    return AggregateParts(
        (AggregatePart("sum", value, "HUGEINT"), counted),
        lambda parts: f"({cast(parts[0], aggregation.type)} / nullif({parts[1]}, 0))",
        magnitude=f"sum(abs(CAST({value} AS HUGEINT)))",
    )


def _plain(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """DuckDB's own min or max, which ignores DISTINCT. Of both zeros, as on Spark, the first one."""
    if aggregation.type.is_nested:
        key = ordered(arguments[0], aggregation.type)
        kept = with_signs(arguments[0], aggregation.type)
        return without_signs(f"arg_{aggregation.function}({kept}, {key}){over}", aggregation.type)
    if aggregation.type.is_floating:
        # As doubles: of equal floats, DuckDB's arg_min and arg_max do not keep the first.
        value = cast(arguments[0], DOUBLE)
        return cast(f"arg_{aggregation.function}({value}, {value}){over}", aggregation.type)
    return cast(f"{aggregation.function}({arguments[0]}){over}", aggregation.type)


def _plain_parts(
    aggregation: Aggregation, arguments: Sequence[str], condition: str | None
) -> AggregateParts | None:
    (value,) = filtered(aggregation, arguments, condition)
    if aggregation.type.is_nested:
        return None
    if aggregation.type.is_floating:
        widest = AggregatePart(f"arg_{aggregation.function}", cast(value, DOUBLE), duckdb_type(DOUBLE))
        return only(widest, lambda found: cast(found, aggregation.type))
    part = AggregatePart(aggregation.function, value, duckdb_type(aggregation.type))
    return only(part, lambda found: cast(found, aggregation.type))


def _plain_of_distinct(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    value = f"{distinct_word(aggregation)}{arguments[0]}"
    return cast(f"{aggregation.function}({value}){over}", aggregation.type)


FAMILY: Final = Family(
    "Aggregates",
    (
        exact(
            "Count",
            "count",
            build=_read_count,
            sql=AggregateSql(arity=None, write_filtered=_write_count, parts=_count_parts),
            examples=(
                *("count({any})", "count(*)", "count(distinct {any})", "count({int}, {string})"),
                *("count(distinct {int}, {small})", "count_if({boolean})"),
            ),
        ),
        guarded(
            "Sum",
            "sum",
            NUMERIC | INTERVALS,
            guard="an overflow of Catalyst's type is an error (ANSI) or NULL, or wraps around (LEGACY)",
            build=read_aggregation,
            sql=AggregateSql(_sum, reason=_sum_reason, parts=_sum_parts),
            examples=("sum({number})", "try_sum({whole})", "sum(distinct {number})"),
        ),
        guarded(
            "Average",
            "avg",
            NUMERIC,
            guard="decimals by an exact sum and one division, rounded half up to Catalyst's type; others as doubles",
            build=read_aggregation,
            sql=AggregateSql(_average, reason=_sum_reason, parts=_average_parts),
            examples=("avg({number})", "try_avg({decimal})", "avg(distinct {whole})"),
        ),
        exact(
            "Min",
            "min",
            COMPARABLE,
            build=read_aggregation,
            sql=AggregateSql(_plain, reason=same_type, parts=_plain_parts),
            examples=("min({any})", "bool_and({boolean})", "min({array})", "min(struct({int}, {string}))"),
        ),
        exact(
            "Max",
            "max",
            COMPARABLE,
            build=read_aggregation,
            sql=AggregateSql(_plain, reason=same_type, parts=_plain_parts),
            examples=("max({any})", "bool_or({boolean})", "max({array})", "max({struct})"),
        ),
        exact(
            "BitAndAgg",
            "bit_and",
            INTEGRAL,
            build=read_aggregation,
            sql=AggregateSql(_plain, reason=same_type, parts=_plain_parts),
            examples=("bit_and({whole})",),
        ),
        exact(
            "BitOrAgg",
            "bit_or",
            INTEGRAL,
            build=read_aggregation,
            sql=AggregateSql(_plain, reason=same_type, parts=_plain_parts),
            examples=("bit_or({whole})",),
        ),
        exact(
            "BitXorAgg",
            "bit_xor",
            INTEGRAL,
            build=read_aggregation,
            sql=AggregateSql(_plain_of_distinct, reason=same_type, parts=_plain_parts),
            examples=("bit_xor({whole})", "bit_xor(distinct {whole})"),
        ),
    ),
    also_aggregates={"total": AggregateSql(_total, reason=_sum_reason)},
)
