"""Comparisons, logic and tests for NULL. `in` takes the value and then the list.

Equality and order of floating-point numbers are Spark's: NaN equals itself and is the largest, and the two zeros are
equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from wallaby.catalyst.data_types import BOOLEANS, COMPARABLE, FLOATING, ORDERED, literal
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, guarded
from wallaby.functions.family import Family
from wallaby.functions.numbers.decimals import DIGITS_MAX
from wallaby.functions.scalar_sql import MANY, ScalarSql, fallible, template
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import INTEGER, DataType, Kind
from wallaby.sql.types import is_comparable
from wallaby.sql.words import case, ordered

_MANY: Final = ", ".join(map(str, range(-6, 9)))
_BRANCHES: Final = "the second side is not evaluated (so raises no error) where the first decides"


def _read_in(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read IN; a list that is not constant becomes a chain of equalities, each evaluated only if needed."""
    value, *items = arguments
    if not items:
        return Refusal("the list of IN is empty")
    if all(isinstance(item, Literal) for item in items):
        return Call(entry.function, arguments, kind, node.nullable)
    equal = tuple(Call("eq", (value, item), kind, value.nullable or item.nullable) for item in items)
    return equal[0] if len(equal) == 1 else Call("or", equal, kind, node.nullable)


def _in_set(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read IN with a long list. NaN is not in a list without NaN, even if the list has a NULL."""
    (value,) = arguments
    values = node.value if isinstance(node.value, list) else []
    items = [literal(item, value.type) for item in values]
    found = [item for item in items if item is not None]
    if not found or len(found) != len(items):
        return Refusal("the list of IN holds values that cannot be read")
    # A set has no order; a plan must have one.
    found.sort(key=lambda item: (item.value is not None, str(item)))
    contained = Call(entry.function, (value, *found), kind, node.nullable)
    if found[0].value is not None or value.type.kind not in FLOATING or any(map(_is_nan, found)):
        return contained
    no_number = Call("is_nan", (value,), kind, nullable=False)
    return Call("if", (no_number, Literal(False, kind), contained), kind, node.nullable)


def _is_nan(item: Literal) -> bool:
    return isinstance(item.value, float) and math.isnan(item.value)


def _not(entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType) -> Expression | Refusal:
    """Read NOT; Catalyst has no inequality, only the negation of an equality."""
    (argument,) = arguments
    if isinstance(argument, Call) and argument.function == "eq":
        return Call("ne", argument.arguments, kind, node.nullable)
    return Call(entry.function, arguments, kind, node.nullable)


def _read_enough(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read the condition of `dropna` with a threshold."""
    least = node.field("n")
    if not isinstance(least, int) or not arguments:
        return Refusal("it does not say how many values must be present")
    return Call(entry.function, (Literal(least, INTEGER), *arguments), kind, node.nullable)


def _infix(sign: str) -> Callable[[Call, Sequence[str]], str]:
    orders = sign[0] in "<>" and sign != "<>"

    def write(call: Call, sql: Sequence[str]) -> str:
        types = [argument.type for argument in call.arguments]
        left, right = map(ordered, sql, types) if orders else sql
        written = f"({left} {sign} {right})"
        if orders and any(type_.is_nested for type_ in types):
            # DuckDB's optimizer turns two bounds into a BETWEEN, which it cannot compute for nested values.
            written = f"CAST(CAST({written} AS TINYINT) AS BOOLEAN)"
        return written

    return write


def _comparable(call: Call) -> str | None:
    first = call.arguments[0].type
    for argument in call.arguments:
        type_ = argument.type
        if type_.kind is not Kind.NULL and not is_comparable(type_):
            return f"{call.function} of {type_} is not supported"
        if type_.kind is Kind.DECIMAL and first.kind is Kind.DECIMAL:
            scale = max(type_.scale, first.scale)
            digits = max(type_.precision - type_.scale, first.precision - first.scale)
            if scale + digits > DIGITS_MAX:
                return f"{call.function} of {first} and {type_} is not supported"
        elif Kind.NULL not in (type_.kind, first.kind) and not type_.has_values_of(first):
            return f"{call.function} of {first} and {type_} is not supported"
    return None


def _write_in(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"({sql[0]} IN ({', '.join(sql[1:])}))"


def _and(call: Call, sql: Sequence[str]) -> str:
    """Write AND. DuckDB reorders conditions; if one can fail, the earlier ones must guard it."""
    return _in_order(call, sql, "AND", lambda left: (f"NOT {left}", "FALSE"))


def _or(call: Call, sql: Sequence[str]) -> str:
    return _in_order(call, sql, "OR", lambda left: (left, "TRUE"))


def _in_order(call: Call, sql: Sequence[str], word: str, decided: Callable[[str], tuple[str, str]]) -> str:
    if not any(map(fallible, call.arguments)):
        return f"({f' {word} '.join(sql)})"
    written = sql[-1]
    for left in reversed(sql[:-1]):
        written = case([decided(left)], f"({left} {word} {written})")
    return f"({written})"


def _boolean(call: Call) -> str | None:
    kinds = {argument.type.kind for argument in call.arguments}
    return None if kinds <= {Kind.BOOLEAN, Kind.NULL} else f"{call.function} of {call.arguments[0].type}"


def _compare(sign: str) -> ScalarSql:
    return ScalarSql(2, _infix(sign), _comparable)


def _not_a_number(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"coalesce(isnan({sql[0]}), FALSE)"


def _write_enough(call: Call, sql: Sequence[str]) -> str:
    """Are at least n values, given by the first argument, neither NULL nor NaN?"""
    present = [
        f"CAST({value} IS NOT NULL{f' AND NOT isnan({value})' if argument.type.is_floating else ''} AS INTEGER)"
        for value, argument in zip(sql[1:], call.arguments[1:], strict=True)
    ]
    return f"(({' + '.join(present)}) >= {sql[0]})"


FAMILY: Final = Family(
    "Comparisons and logic",
    (
        exact(
            "EqualTo",
            "eq",
            COMPARABLE,
            sql=_compare("="),
            examples=("{any} = {any}", "{any} <> {any}", "{number} = {number}"),
        ),
        exact(
            "EqualNullSafe",
            "eq_null_safe",
            COMPARABLE,
            sql=_compare("IS NOT DISTINCT FROM"),
            examples=("{any} <=> {any}", "not ({any} <=> {any})"),
        ),
        exact(
            "LessThan", "lt", COMPARABLE, sql=_compare("<"), examples=("{any} < {any}", "{number} < {number}")
        ),
        exact("LessThanOrEqual", "le", COMPARABLE, sql=_compare("<="), examples=("{any} <= {any}",)),
        exact("GreaterThan", "gt", COMPARABLE, sql=_compare(">"), examples=("{any} > {any}",)),
        exact("GreaterThanOrEqual", "ge", COMPARABLE, sql=_compare(">="), examples=("{any} >= {any}",)),
        guarded(
            "And",
            "and",
            BOOLEANS,
            guard=_BRANCHES,
            sql=ScalarSql((1, MANY), _and, reason=_boolean),
            examples=("{boolean} and {boolean}", "{int} <> 0 and 10 / {int} > 1"),
        ),
        guarded(
            "Or",
            "or",
            BOOLEANS,
            guard=_BRANCHES,
            sql=ScalarSql((1, MANY), _or, reason=_boolean),
            examples=("{boolean} or {boolean}", "{small} = 0 or 10 / {small} > 1"),
        ),
        exact(
            "Not",
            "not",
            BOOLEANS,
            build=_not,
            sql=ScalarSql(1, template("(NOT {0})"), reason=_boolean),
            examples=("not {boolean}", "not ({any} < {any})"),
        ),
        exact("IsNull", "is_null", sql=ScalarSql(1, template("({0} IS NULL)")), examples=("{any} is null",)),
        exact(
            "IsNotNull",
            "is_not_null",
            sql=ScalarSql(1, template("({0} IS NOT NULL)")),
            examples=("{any} is not null",),
        ),
        exact(
            "In",
            "in",
            COMPARABLE,
            build=_read_in,
            sql=ScalarSql((2, MANY), _write_in, reason=_comparable),
            examples=(
                "{number} in (1, 2, null)",
                "{string} not in ('a', 'ß', '')",
                "{date} in (date'1582-10-04', date'2020-12-31')",
            ),
        ),
        exact(
            "InSet",
            "in",
            ORDERED,
            build=_in_set,
            examples=(
                f"{{int}} in ({_MANY})",
                f"{{double}} not in ({_MANY}, null)",
                f"cast({{small}} as string) in ({_MANY})",
            ),
        ),
        guarded(
            "IsNaN",
            "is_nan",
            FLOATING,
            guard="NULL is not NaN",
            sql=ScalarSql(1, _not_a_number),
            examples=("isnan({double})", "isnan({float})"),
        ),
        guarded(
            "AtLeastNNonNulls",
            "at_least_non_null",
            guard="NaN counts as NULL",
            build=_read_enough,
            sql=ScalarSql((2, MANY), _write_enough),
            without_example="no SQL: `dropna` with a threshold; tested on its own",
        ),
    ),
    also={
        "ne": _compare("<>"),
        # Names that planning uses for some of them.
        "equal": _compare("="),
        "not_equal": _compare("<>"),
        "less": _compare("<"),
        "less_or_equal": _compare("<="),
        "greater": _compare(">"),
        "greater_or_equal": _compare(">="),
        "equal_null_safe": _compare("IS NOT DISTINCT FROM"),
    },
)
