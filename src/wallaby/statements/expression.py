"""Write expressions and aggregations as SQL, each cast to the type that Catalyst gave it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wallaby.errors import InternalError
from wallaby.functions import registry
from wallaby.functions.parts import AggregateParts
from wallaby.functions.registry import SCALARS, aggregation_reason, fallible
from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal
from wallaby.relations.types import Kind
from wallaby.sql.types import is_carried
from wallaby.sql.words import case, cast, column_identifier, literal, normalized

_CONNECTIVES = ("and", "or")

#: How a column is written; in a join it is qualified by its side.
Resolve = Callable[[Column], str]


def plain_column(column: Column) -> str:
    """A column of the only relation in sight."""
    return column_identifier(column.id)


def expression_sql(expression: Expression, resolve: Resolve = plain_column) -> str:
    """The SQL of an expression that `supports` accepts."""
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
            if _is_constant(whole):
                _delay(whole, arguments)
            return SCALARS[whole.function].write(whole, arguments)
        case Aggregation():
            raise InternalError(f"{expression} stands where no aggregation can be.")


def _is_constant(expression: Expression) -> bool:
    """Does an expression use no columns, apart from the parameters of its own lambdas?"""
    match expression:
        case Literal():
            return True
        case Call():
            return all(map(_is_constant, expression.arguments))
        case _:
            return False


def _delay(call: Call, arguments: list[str]) -> None:
    """Keep DuckDB from evaluating a call with constant arguments while it plans.

    Catalyst has evaluated all such calls except those that fail, which must fail only if a row evaluates them. DuckDB
    evaluates a constant condition of CASE while it plans, so the query would fail even without a row.
    """
    for place, argument in enumerate(call.arguments):
        if isinstance(argument, Literal):
            arguments[place] = case([("random() >= 0", arguments[place])])
            return


def _parameters(call: Call) -> frozenset[int]:
    """The ids of a lambda's own columns."""
    if call.function != functions.LAMBDA:
        return frozenset()
    return frozenset(part.id for part in call.arguments[1:] if isinstance(part, Column))


def _with_parameters(resolve: Resolve, own: frozenset[int]) -> Resolve:
    return lambda column: plain_column(column) if column.id in own else resolve(column)


def _flat(call: Call) -> Call:
    """Flatten nested ANDs (or ORs) into one, because an ordered AND or OR writes each of its parts twice."""
    if call.function not in _CONNECTIVES:
        return call
    parts: list[Expression] = []
    for argument in call.arguments:
        same = isinstance(argument, Call) and argument.function == call.function
        parts += _flat(argument).arguments if isinstance(argument, Call) and same else (argument,)
    return replace(call, arguments=tuple(parts))


def output_sql(expression: Expression, resolve: Resolve = plain_column) -> str:
    """The SQL of an expression that becomes a column, in exactly Catalyst's type."""
    written = expression_sql(expression, resolve)
    if expression.type.kind is Kind.DECIMAL and isinstance(expression, Call):
        return cast(written, expression.type)
    return written


def filter_sql(condition: Expression, resolve: Resolve = plain_column) -> str:
    """The condition of a filter. If a part can fail, each part is evaluated only where all before it are true.

    In an expression, an AND continues after NULL, because it may still become false; a filter drops the row either way.
    """
    if not (isinstance(condition, Call) and condition.function == "and" and fallible(condition)):
        return expression_sql(condition, resolve)
    *before, last = (expression_sql(part, resolve) for part in _flat(condition).arguments)
    written = last
    for one in reversed(before):
        written = case([(one, written)], "FALSE")
    return written


def key_sql(expression: Expression) -> str:
    """The SQL of a grouping key, with -0.0 replaced by 0.0 as on Spark."""
    return normalized(output_sql(expression), expression.type)


def aggregation_sql(aggregation: Aggregation, over: str = "") -> str:
    """The SQL of an aggregation, of a group or over a window."""
    return registry.aggregation_sql(aggregation, expression_sql, over)


def aggregation_parts(aggregation: Aggregation, condition: str | None) -> AggregateParts | None:
    """The parts of an aggregation over the rows that meet a condition; None: it has none."""
    return registry.aggregation_parts(aggregation, expression_sql, condition)


def supports(expression: Expression) -> str | None:
    """Why Wallaby cannot compute an expression as Spark does; None if it can."""
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
            return next((reason for reason in inner if reason is not None), None) or aggregation_reason(
                expression
            )


def _carried(value: Column | Literal) -> bool:
    return is_carried(value.type) or (isinstance(value, Literal) and value.type.kind is Kind.NULL)


def _call_reason(call: Call) -> str | None:
    known = SCALARS.get(call.function)
    if known is None:
        return f"the function {call.function} is not supported"
    least, most = known.arity
    if not least <= len(call.arguments) <= most:
        return f"{call.function} with {len(call.arguments)} arguments is not supported"
    if not is_carried(call.type):
        return f"{call.function} as {call.type} is not supported"
    return known.refusal(call)
