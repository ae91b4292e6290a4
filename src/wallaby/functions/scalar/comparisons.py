"""Comparisons and logic. `in` takes the value and then the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wallaby.functions.exact.decimals import DIGITS_MAX
from wallaby.functions.scalar.function import MANY, Function, fallible, template
from wallaby.relations.expression import Call
from wallaby.relations.types import Kind
from wallaby.sql.types import is_comparable
from wallaby.sql.words import case, ordered


def _infix(sign: str) -> Callable[[Call, Sequence[str]], str]:
    orders = sign[0] in "<>" and sign != "<>"

    def write(call: Call, sql: Sequence[str]) -> str:
        types = [argument.type for argument in call.arguments]
        left, right = map(ordered, sql, types) if orders else sql
        written = f"({left} {sign} {right})"
        if orders and any(type_.is_nested for type_ in types):
            # Of two bounds of a value DuckDB's optimizer makes a BETWEEN, which it cannot compute for nested values.
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


def _in(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"({sql[0]} IN ({', '.join(sql[1:])}))"


def _and(call: Call, sql: Sequence[str]) -> str:
    """DuckDB orders conditions as it likes; where one can fail, those before guard it, and no later one does."""
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


def _compare(sign: str) -> Function:
    return Function((2, 2), _infix(sign), _comparable)


FUNCTIONS: dict[str, Function] = {
    "eq": _compare("="),
    "ne": _compare("<>"),
    "lt": _compare("<"),
    "le": _compare("<="),
    "gt": _compare(">"),
    "ge": _compare(">="),
    "eq_null_safe": _compare("IS NOT DISTINCT FROM"),
    "and": Function((1, MANY), _and, _boolean),
    "or": Function((1, MANY), _or, _boolean),
    "not": Function((1, 1), template("(NOT {0})"), _boolean),
    "is_null": Function((1, 1), template("({0} IS NULL)")),
    "is_not_null": Function((1, 1), template("({0} IS NOT NULL)")),
    "in": Function((2, MANY), _in, _comparable),
}
#: Other names under which planning knows some of them.
FUNCTIONS |= {
    "equal": FUNCTIONS["eq"],
    "not_equal": FUNCTIONS["ne"],
    "less": FUNCTIONS["lt"],
    "less_or_equal": FUNCTIONS["le"],
    "greater": FUNCTIONS["gt"],
    "greater_or_equal": FUNCTIONS["ge"],
    "equal_null_safe": FUNCTIONS["eq_null_safe"],
}
