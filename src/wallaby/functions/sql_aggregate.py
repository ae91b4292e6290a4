"""Aggregate functions as SQL, of a group or over a window.

A filter is inside the arguments, so that none is computed for a row it excludes; where an argument is NULL the row
does not count, in all functions but `count(*)`. What DuckDB lacks, or computes in sums that lose digits, is made of
the list of a group's values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from wallaby.functions.exact import moments
from wallaby.functions.exact.decimals import DIGITS_MAX
from wallaby.functions.sql_decimal import decimal_sql, from_digits, unscaled
from wallaby.functions.sql_integer import fitted
from wallaby.relations.expression import Aggregation, EvalMode, Expression, Literal
from wallaby.relations.types import DOUBLE, Kind, decimal
from wallaby.sql.types import is_comparable
from wallaby.sql.words import case, cast, error, field_sql, ordered, struct_sql

#: A million times such a decimal still has 38 digits.
_SHORT_DIGITS_MAX: Final = DIGITS_MAX - 6
_HALF: Final = f"CAST('1{'0' * (DIGITS_MAX // 2)}' AS HUGEINT)"
#: The least whole number with more digits than a decimal can have.
_LIMIT: Final = f"CAST('1{'0' * DIGITS_MAX}' AS HUGEINT)"
_SUM_OVERFLOW: Final = error("ARITHMETIC_OVERFLOW", "Overflow in sum of decimals.")
_INTERVAL_OVERFLOW: Final = error(
    "INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION", "Overflow in sum of intervals."
)
_COUNT_TYPE: Final = decimal(20, 0)
#: Writes an expression.
Write = Callable[[Expression], str]
#: Writes an aggregation, given its arguments under the filter and what stands behind each aggregate function.
Writer = Callable[[Aggregation, Sequence[str], str], str]


def aggregation_sql(aggregation: Aggregation, expression_sql: Write, over: str = "") -> str:
    """The SQL of an aggregation for which `aggregation_reason` has nothing against."""
    written = [expression_sql(argument) for argument in aggregation.arguments]
    condition = None if aggregation.filter is None else expression_sql(aggregation.filter)
    if aggregation.function == "count":
        return _count(aggregation, written, condition) + over
    if condition is not None:
        # What is counted, but no constant that only says how.
        written = [
            value if place and isinstance(argument, Literal) else case([(condition, value)])
            for place, (value, argument) in enumerate(zip(written, aggregation.arguments, strict=True))
        ]
    return _WRITERS[aggregation.function](aggregation, written, over)


def aggregation_reason(aggregation: Aggregation) -> str | None:
    """Why an aggregation is not computed here; None if it is. Its arguments are looked at elsewhere."""
    name = f"{_distinct(aggregation).lower()}{aggregation.function}"
    if aggregation.function == "count":
        return None
    arity = _ARITIES.get(aggregation.function, 1)
    if aggregation.function not in _WRITERS:
        return f"the aggregate function {aggregation.function} is not supported"
    if len(aggregation.arguments) != arity:
        return f"{name} of {len(aggregation.arguments)} arguments is not supported"
    source = aggregation.arguments[0].type
    if aggregation.function in _SAME_TYPE:
        same = source == aggregation.type and is_comparable(source)
        return None if same else f"{name} of {source} as {aggregation.type} is not supported"
    if aggregation.distinct and aggregation.function in _NOT_DISTINCT:
        return f"{name} is not supported"
    if (
        aggregation.function == "listagg"
        and aggregation.distinct
        and aggregation.arguments[2].type.is_floating
    ):
        return f"{name} by {aggregation.arguments[2].type} is not supported"
    if aggregation.function in _BY_KEY and not is_comparable(aggregation.arguments[1].type):
        return f"{name} by {aggregation.arguments[1].type} is not supported"
    if aggregation.function in ("sum", "avg", "total"):
        return _sum_reason(aggregation, name)
    return None


def _sum_reason(aggregation: Aggregation, name: str) -> str | None:
    source = aggregation.arguments[0].type
    summed = source.is_interval and aggregation.function == "sum" and aggregation.mode is EvalMode.ANSI
    if not (source.is_integral or source.is_floating or source.kind is Kind.DECIMAL or summed):
        return f"{name} of {source} is not supported"
    # A sum has ten digits more than what it sums, so only longer decimals than these can overflow.
    overflows = source.kind is Kind.DECIMAL and source.precision > DIGITS_MAX - 10
    if aggregation.mode is not EvalMode.ANSI and overflows:
        return f"{name} of {source} in {aggregation.mode.value} mode is not supported"
    return None


def _distinct(aggregation: Aggregation) -> str:
    return "DISTINCT " if aggregation.distinct else ""


def _count(aggregation: Aggregation, arguments: list[str], condition: str | None) -> str:
    """Rows in which no argument is NULL."""
    needed = [
        sql
        for sql, argument in zip(arguments, aggregation.arguments, strict=True)
        if not isinstance(argument, Literal) or argument.value is None
    ]

    def filtered(value: str) -> str:
        return value if condition is None else case([(condition, value)])

    if aggregation.distinct:
        shown = arguments[0] if len(arguments) == 1 else f"row({', '.join(arguments)})"
        present = " AND ".join(f"{sql} IS NOT NULL" for sql in arguments)
        return f"count(DISTINCT {filtered(case([(present, shown)]))})"
    if not needed and condition is None:
        return "count(*)"
    present = " AND ".join(f"{sql} IS NOT NULL" for sql in needed) or "TRUE"
    return f"count({filtered(case([(present, '1')]))})"


# ------------------------------------------------------------------------------------------- sums and averages
def _sum(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    if over and aggregation.type.kind is Kind.DECIMAL:
        return _total(aggregation, arguments, over)
    total = f"sum({_distinct(aggregation)}{arguments[0]}){over}"
    if aggregation.type.is_integral:
        return fitted(total, aggregation.type, aggregation.mode)
    if aggregation.type.is_interval:
        return fitted(total, aggregation.type, aggregation.mode, _INTERVAL_OVERFLOW)
    return cast(total, aggregation.type)


def _total(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """A sum of decimals as Spark has it in windows and averages, where it has no limit before its end.

    Long ones are summed in two halves of their digits. What does not fit then is out of range in a window; in an
    average Spark finds that its sum was lost, and that is an overflow. Those that a million rows cannot bring there
    are summed as they are.
    """
    source = aggregation.arguments[0].type
    if source.precision <= _SHORT_DIGITS_MAX or aggregation.distinct:
        return cast(f"sum({_distinct(aggregation)}{arguments[0]}){over}", aggregation.type)
    digits = unscaled(arguments[0], source)
    high, low = (f"sum({digits} {half} {_HALF}){over}" for half in ("//", "%"))
    carried = f"({high} + {low} // {_HALF})"
    whole = f"({carried} * {_HALF} + {low} % {_HALF})"
    found = from_digits(whole, source, aggregation.type)
    if over:
        return found
    return case(
        [(f"abs({carried}) > {_HALF}", _SUM_OVERFLOW), (f"abs({whole}) >= {_LIMIT}", _SUM_OVERFLOW)], found
    )


def _average(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    distinct, value, result = _distinct(aggregation), arguments[0], aggregation.type
    if result.kind is not Kind.DECIMAL:
        wide = cast(value, result)
        return f"(sum({distinct}{wide}){over} / nullif(count({distinct}{value}){over}, 0))"
    source = aggregation.arguments[0].type
    total_type = decimal(min(source.precision + 10, 38), source.scale)
    total = _total(replace(aggregation, type=total_type), arguments, over)
    count = cast(f"nullif(count({distinct}{value}){over}, 0)", _COUNT_TYPE)
    sides = Literal(None, total_type), Literal(None, _COUNT_TYPE)  # only their types count
    return decimal_sql("divide", total, sides[0], count, sides[1], result, aggregation.mode)


def _plain(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """DuckDB's own, which does not mind repeated values. Of both zeros, as on Spark, the one that is met first."""
    if aggregation.type.is_nested:
        key = ordered(arguments[0], aggregation.type)
        return f"arg_{aggregation.function}({arguments[0]}, {key}){over}"
    if aggregation.type.is_floating:
        # As doubles: of equal floats, DuckDB's arg_min and arg_max do not keep the first.
        value = cast(arguments[0], DOUBLE)
        return cast(f"arg_{aggregation.function}({value}, {value}){over}", aggregation.type)
    return cast(f"{aggregation.function}({arguments[0]}){over}", aggregation.type)


def _plain_of_distinct(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    value = f"{_distinct(aggregation)}{arguments[0]}"
    return cast(f"{aggregation.function}({value}){over}", aggregation.type)


# --------------------------------------------------------------------------------------------------- statistics
def _spread(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    return _variance(aggregation.function, aggregation, arguments, over)


def _variance(name: str, aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """Over windows DuckDB puts frames together from parts, which loses digits; there it is made of the values."""
    if not over:
        plain = f"{name}({_distinct(aggregation)}{arguments[0]})"
        return plain if name.endswith("samp") else f"({plain} + {_not_a_number(arguments[0])})"
    values = _list_of(aggregation, cast(arguments[0], DOUBLE), over)
    count = f"(len({values}){' - 1' if name.endswith('samp') else ''})"
    found = f"({moments.SQUARES}({values}) / nullif({count}, 0))"
    return f"sqrt({found})" if name.startswith("stddev") else found


def _not_a_number(value: str) -> str:
    """0, but not a number if some value is none or is infinite, of which DuckDB takes a single one for finite."""
    return f"0 * min({value}) + 0 * max({value})"


def _of_pairs(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    return cast(f"{aggregation.function}({arguments[0]}, {arguments[1]}){over}", aggregation.type)


def _paired(arguments: Sequence[str]) -> tuple[str, str]:
    """Two values, each NULL where the other is."""
    first, second = arguments
    return case([(f"{second} IS NOT NULL", first)]), case([(f"{first} IS NOT NULL", second)])


def _correlation(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """NULL of one pair, and of a value that is always the same."""
    sides = (f"var_pop({side}){over}" for side in _paired(arguments))
    return case(
        [(" OR ".join(f"{side} = 0" for side in sides), "NULL")], _of_pairs(aggregation, arguments, over)
    )


def _regression(part: str) -> Writer:
    """The dependent value comes first."""

    def write(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
        if part == "sxx":
            return f"({_variance('var_pop', aggregation, arguments, over)} * count({arguments[0]}){over})"
        y, x = _paired(arguments)
        together = f"covar_pop({arguments[0]}, {arguments[1]}){over}"
        of_x, of_y = f"var_pop({x}){over}", f"var_pop({y}){over}"
        slope = f"({together} / nullif({of_x}, 0))"
        match part:
            case "sxy":
                return f"({together} * regr_count({arguments[0]}, {arguments[1]}){over})"
            case "slope":
                return slope
            case "intercept":
                return f"(avg({y}){over} - {slope} * avg({x}){over})"
            case _:
                square = f"({together} * {together} / ({of_x} * {of_y}))"
                return case([(f"{of_x} = 0", "NULL"), (f"{of_y} = 0", cast("1", aggregation.type))], square)

    return write


def _list_of(aggregation: Aggregation, value: str, over: str) -> str:
    """The values of a group that are not NULL."""
    return f"list({_distinct(aggregation)}{value}) FILTER (WHERE {value} IS NOT NULL){over}"


def _moment(name: str) -> Writer:
    def write(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
        return f"{name}({_list_of(aggregation, cast(arguments[0], DOUBLE), over)})"

    return write


def _sorted(aggregation: Aggregation, arguments: Sequence[str], over: str, *, reverse: bool) -> str:
    values = _list_of(aggregation, cast(arguments[0], DOUBLE), over)
    return f"{'list_reverse_sort' if reverse else 'list_sort'}({values})"


def _percentile(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """Value, constant percentage and constant direction: between two values in proportion, as Spark writes it."""
    ordered = _sorted(aggregation, arguments, over, reverse=_constant(aggregation, 2) is True)
    position = f"((len({ordered}) - 1) * CAST('{_constant(aggregation, 1)!r}' AS DOUBLE))"
    low, high = f"floor({position})", f"ceil({position})"
    below, above = (f"{ordered}[CAST({place} AS BIGINT) + 1]" for place in (low, high))
    between = f"{below} + ({position} - {low}) * ({above} - {below})"
    return case([(f"{low} = {high} OR {below} = {above}", below)], between)


def _percentile_disc(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """The first value up to which at least the given part of the values comes."""
    ordered = _sorted(aggregation, arguments, over, reverse=_constant(aggregation, 2) is True)
    part, count = f"CAST('{_constant(aggregation, 1)!r}' AS DOUBLE)", f"CAST(len({ordered}) AS DOUBLE)"
    place = f"greatest(ceil({count} * {part}), 1)"
    exact = case([(f"{place} > 1 AND ({place} - 1) / {count} >= {part}", f"{place} - 1")], place)
    return f"{ordered}[CAST({exact} AS BIGINT)]"


def _constant(aggregation: Aggregation, place: int) -> object:
    argument = aggregation.arguments[place]
    assert isinstance(argument, Literal), "the registry sees to it"
    return argument.value


# ---------------------------------------------------------------------------------------------------- by order
def _extreme(name: str) -> Writer:
    """The value beside the least or the largest of another; it may be NULL, the other not."""

    def write(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
        key = ordered(arguments[1], aggregation.arguments[1].type)
        found = f"{name}({arguments[0]}, {key}){over}"
        return found if aggregation.type.is_nested else cast(found, aggregation.type)

    return write


def _extremes(name: str) -> Writer:
    """The values beside so many of the least or the largest of another, in its order."""

    def write(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
        key = ordered(arguments[1], aggregation.arguments[1].type)
        # In a struct, since a value that is NULL would not count.
        found = f"{name}({struct_sql([arguments[0]])}, {key}, {_constant(aggregation, 2)}){over}"
        return f"list_transform({found}, lambda e: {field_sql('e', 0)})"

    return write


def _mode(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """Of values that are there as often, the least (of Spark's "reverse" order), or the largest."""
    direction = "ASC" if _constant(aggregation, 1) is True else "DESC"
    return cast(f"mode({arguments[0]} ORDER BY {arguments[0]} {direction}){over}", aggregation.type)


def _joined(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """Text, constant separator, order, and whether that ascends and has NULL first."""
    value, separator, key = arguments[:3]
    direction = "ASC" if _constant(aggregation, 3) is True else "DESC"
    nulls = "FIRST" if _constant(aggregation, 4) is True else "LAST"
    order = f"ORDER BY {key} {direction} NULLS {nulls}"
    if aggregation.distinct and key != value:
        # What is written is a cast of the key, so the pairs are as many as the texts.
        pairs = f"list(DISTINCT {struct_sql([key, value])}) FILTER (WHERE {value} IS NOT NULL){over}"
        texts = f"list_transform(list_sort({pairs}, '{direction}'), lambda e: {field_sql('e', 1)})"
        return f"array_to_string({texts}, {separator})"
    return f"string_agg({_distinct(aggregation)}{value}, {separator} {order}){over}"


def _collected(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    distinct = "DISTINCT " if aggregation.function == "collect_set" or aggregation.distinct else ""
    values = f"list({distinct}{arguments[0]}) FILTER (WHERE {arguments[0]} IS NOT NULL){over}"
    return f"coalesce({values}, {cast('[]', aggregation.type)})"


_WRITERS: Final[Mapping[str, Writer]] = {
    "sum": _sum,
    "total": _total,
    "avg": _average,
    "min": _plain,
    "max": _plain,
    "bit_and": _plain,
    "bit_or": _plain,
    "bit_xor": _plain_of_distinct,
    "var_samp": _spread,
    "var_pop": _spread,
    "stddev_samp": _spread,
    "stddev_pop": _spread,
    "covar_samp": _of_pairs,
    "covar_pop": _of_pairs,
    "corr": _correlation,
    "regr_sxx": _regression("sxx"),
    "regr_sxy": _regression("sxy"),
    "regr_slope": _regression("slope"),
    "regr_intercept": _regression("intercept"),
    "regr_r2": _regression("r2"),
    "skewness": _moment(moments.SKEWNESS),
    "kurtosis": _moment(moments.KURTOSIS),
    "percentile": _percentile,
    "percentile_disc": _percentile_disc,
    "min_by": _extreme("arg_min_null"),
    "max_by": _extreme("arg_max_null"),
    "min_by_k": _extremes("arg_min"),
    "max_by_k": _extremes("arg_max"),
    "mode": _mode,
    "collect_list": _collected,
    "collect_set": _collected,
    "listagg": _joined,
}
_PAIRED: Final = frozenset(
    {"covar_samp", "covar_pop", "corr", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2"}
)
_ARITIES: Final = {
    **dict.fromkeys(_PAIRED, 2),
    "percentile": 3,
    "percentile_disc": 3,
    "min_by": 2,
    "max_by": 2,
    "min_by_k": 3,
    "max_by_k": 3,
    "mode": 2,
    "listagg": 5,
}
_BY_KEY: Final = frozenset({"min_by", "max_by", "min_by_k", "max_by_k"})
_NOT_DISTINCT: Final = _PAIRED | _BY_KEY | {"regr_sxx", "mode"}
_SAME_TYPE: Final = frozenset({"min", "max", "bit_and", "bit_or", "bit_xor"})
AGGREGATES: Final = frozenset({"count", *_WRITERS})
