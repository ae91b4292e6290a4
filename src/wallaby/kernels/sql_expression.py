"""Expressions and aggregations as SQL, each cast to the type that Catalyst gave it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wallaby.errors import InternalError
from wallaby.kernels.exact.decimals import DIGITS_MAX
from wallaby.kernels.scalar import FUNCTIONS
from wallaby.kernels.sql_decimal import decimal_sql
from wallaby.kernels.sql_integer import fitted
from wallaby.kernels.sql_text import case, cast, column_identifier, literal, normalized, ordered
from wallaby.kernels.types import is_carried, is_comparable
from wallaby.plan import functions
from wallaby.plan.expression import Aggregation, Call, Column, EvalMode, Expression, Literal
from wallaby.plan.types import Kind, decimal

_AGGREGATES = ("count", "sum", "avg", "min", "max")
_CONNECTIVES = ("and", "or")
_COUNT_TYPE = decimal(20, 0)

#: How a column is written: in a join it is qualified by its side.
Resolve = Callable[[Column], str]


def plain_column(column: Column) -> str:
    """A column of the only relation in sight."""
    return column_identifier(column.id)


def expression_sql(expression: Expression, resolve: Resolve = plain_column) -> str:
    """The SQL of an expression for which `supports` has no reason against."""
    match expression:
        case Column():
            return resolve(expression)
        case Literal():
            return literal(expression)
        case Call():
            own = _parameters(expression)
            if own:
                resolve = _with_parameters(resolve, own)
            whole = _flat(expression)
            arguments = [expression_sql(argument, resolve) for argument in whole.arguments]
            return FUNCTIONS[whole.function].write(whole, arguments)
        case Aggregation():
            raise InternalError(f"{expression} stands where no aggregation can be.")


def _parameters(call: Call) -> frozenset[int]:
    """The ids of a lambda's own columns."""
    if call.function != functions.LAMBDA:
        return frozenset()
    return frozenset(part.id for part in call.arguments[1:] if isinstance(part, Column))


def _with_parameters(resolve: Resolve, own: frozenset[int]) -> Resolve:
    return lambda column: plain_column(column) if column.id in own else resolve(column)


def _flat(call: Call) -> Call:
    """AND of ANDs as one, OR too: where one must come before another, each of them is written twice."""
    if call.function not in _CONNECTIVES:
        return call
    parts: list[Expression] = []
    for argument in call.arguments:
        same = isinstance(argument, Call) and argument.function == call.function
        parts += _flat(argument).arguments if isinstance(argument, Call) and same else (argument,)
    return replace(call, arguments=tuple(parts))


def output_sql(expression: Expression, resolve: Resolve = plain_column) -> str:
    """An expression that becomes a column: in exactly Catalyst's type."""
    written = expression_sql(expression, resolve)
    if expression.type.kind is Kind.DECIMAL and isinstance(expression, Call):
        return cast(written, expression.type)
    return written


def key_sql(expression: Expression) -> str:
    """A grouping key: of the two zeros, Spark shows the positive one."""
    return normalized(output_sql(expression), expression.type)


def aggregation_sql(aggregation: Aggregation, over: str = "") -> str:
    """The SQL of an aggregation, of a group or over a window.

    A filter is inside, so that no argument is computed for a row it excludes.
    """
    arguments = [expression_sql(argument) for argument in aggregation.arguments]
    if aggregation.function == "count":
        return _count(aggregation, arguments) + over
    value = _filtered(aggregation, arguments[0])
    distinct = "DISTINCT " if aggregation.distinct else ""
    source, result = aggregation.arguments[0].type, aggregation.type
    match aggregation.function:
        case "sum" if result.is_integral:
            return fitted(f"sum({distinct}{value}){over}", result, aggregation.mode)
        case "sum":
            return cast(f"sum({distinct}{value}){over}", result)
        case "avg" if result.kind is Kind.DECIMAL:
            total_type = decimal(min(source.precision + 10, 38), source.scale)
            total = cast(f"sum({distinct}{value}){over}", total_type)
            count = cast(f"nullif(count({distinct}{value}){over}, 0)", _COUNT_TYPE)
            sides = Literal(None, total_type), Literal(None, _COUNT_TYPE)  # only their types count
            return decimal_sql("divide", total, sides[0], count, sides[1], result, aggregation.mode)
        case "avg":
            wide = cast(value, result)
            return f"(sum({distinct}{wide}){over} / nullif(count({distinct}{value}){over}, 0))"
        case _ if result.is_nested:
            return f"arg_{aggregation.function}({value}, {ordered(value, result)}){over}"
        case _:
            return cast(f"{aggregation.function}({value}){over}", result)


def _count(aggregation: Aggregation, arguments: list[str]) -> str:
    """Rows in which no argument is NULL."""
    needed = [
        sql
        for sql, argument in zip(arguments, aggregation.arguments, strict=True)
        if not isinstance(argument, Literal) or argument.value is None
    ]
    if aggregation.distinct:
        shown = arguments[0] if len(arguments) == 1 else f"row({', '.join(arguments)})"
        present = " AND ".join(f"{sql} IS NOT NULL" for sql in arguments)
        return f"count(DISTINCT {_filtered(aggregation, case([(present, shown)]))})"
    if not needed and aggregation.filter is None:
        return "count(*)"
    present = " AND ".join(f"{sql} IS NOT NULL" for sql in needed) or "TRUE"
    return f"count({_filtered(aggregation, case([(present, '1')]))})"


def _filtered(aggregation: Aggregation, value: str) -> str:
    if aggregation.filter is None:
        return value
    return case([(expression_sql(aggregation.filter), value)])


def supports(expression: Expression) -> str | None:
    """Why an expression is not computed here exactly as Spark would; None if it is."""
    match expression:
        case Column() | Literal():
            return (
                None
                if _carried(expression)
                else f"the type {expression.type} of {expression} is not supported"
            )
        case Call():
            inner = (supports(argument) for argument in expression.arguments)
            return next((reason for reason in inner if reason is not None), None) or _call_reason(expression)
        case Aggregation():
            parts = (*expression.arguments, *([expression.filter] if expression.filter is not None else []))
            inner = (supports(part) for part in parts)
            return next((reason for reason in inner if reason is not None), None) or _aggregation_reason(
                expression
            )


def _carried(value: Column | Literal) -> bool:
    return is_carried(value.type) or (isinstance(value, Literal) and value.type.kind is Kind.NULL)


def _call_reason(call: Call) -> str | None:
    known = FUNCTIONS.get(call.function)
    if known is None:
        return f"the function {call.function} is not supported"
    if not known.arity[0] <= len(call.arguments) <= known.arity[1]:
        return f"{call.function} with {len(call.arguments)} arguments is not supported"
    if not is_carried(call.type):
        return f"{call.function} as {call.type} is not supported"
    return known.reason(call)


def _aggregation_reason(aggregation: Aggregation) -> str | None:
    name = f"{'distinct ' if aggregation.distinct else ''}{aggregation.function}"
    if aggregation.function not in _AGGREGATES:
        return f"the aggregate function {aggregation.function} is not supported"
    if aggregation.function == "count":
        return None
    if len(aggregation.arguments) != 1:
        return f"{name} of {len(aggregation.arguments)} arguments is not supported"
    source = aggregation.arguments[0].type
    if aggregation.function in ("min", "max"):
        fits = source == aggregation.type and is_comparable(source)
        return None if fits else f"{name} of {source} as {aggregation.type} is not supported"
    if not (source.is_integral or source.is_floating or source.kind is Kind.DECIMAL):
        return f"{name} of {source} is not supported"
    # A sum has ten digits more than what it sums, so only longer decimals than these can overflow.
    overflows = source.kind is Kind.DECIMAL and source.precision > DIGITS_MAX - 10
    if aggregation.mode is not EvalMode.ANSI and overflows:
        return f"{name} of {source} in {aggregation.mode.value} mode is not supported"
    return None
