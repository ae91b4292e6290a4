"""The scalar functions: for each name its SQL, when it stays on Spark, and whether a value can make it fail.

A function is *exact* if it is here without a reason to refuse, *exact with a guard* if its SQL checks what DuckDB
does not, and unknown otherwise. Arguments: `case` takes condition and value in turn, then perhaps what else to
give; `like` takes value, pattern and perhaps the escape character; `in` takes the value and then the list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wallaby.kernels import functions
from wallaby.kernels.sql_cast import cast_reason, cast_sql, fallible_cast
from wallaby.kernels.sql_decimal import by_zero, decimal_sql, unscaled
from wallaby.kernels.sql_integer import computed
from wallaby.kernels.sql_like import like_reason, like_sql
from wallaby.kernels.sql_text import case, cast, normalized
from wallaby.kernels.types import FLAT
from wallaby.plan.expression import Call, EvalMode, Expression, Literal
from wallaby.plan.types import DataType, Kind


def _never(call: Call) -> bool:  # noqa: ARG001 - the signature of a question about a call
    return False


def _fine(call: Call) -> str | None:  # noqa: ARG001 - the signature of a question about a call
    return None


@dataclass(frozen=True, slots=True)
class Function:
    """How one function is written, refused, and whether it can end the query with an error of the data's."""

    arity: tuple[int, int]
    write: Callable[[Call, Sequence[str]], str]
    reason: Callable[[Call], str | None] = _fine
    fallible: Callable[[Call], bool] = _never


_MANY = 1 << 20
#: So many digits fit a long.
_LONG_DIGITS = 18


# ------------------------------------------------------------------------------------------------ arithmetic
def _arithmetic(sign: str, operation: str) -> Callable[[Call, Sequence[str]], str]:
    def write(call: Call, sql: Sequence[str]) -> str:
        if call.type.kind is Kind.DECIMAL:
            left, right = call.arguments
            return decimal_sql(operation, sql[0], left, sql[1], right, call.type, call.mode)
        if call.type.is_integral:
            return computed(sign, sql[0], sql[1], call.type, call.mode)
        return cast(f"({sql[0]} {sign} {sql[1]})", call.type)

    return write


def _divide(call: Call, sql: Sequence[str]) -> str:
    left, right = call.arguments
    if call.type.kind is Kind.DECIMAL:
        return decimal_sql("divide", sql[0], left, sql[1], right, call.type, call.mode)
    if call.mode is not EvalMode.ANSI:
        return cast(f"({sql[0]} / nullif({sql[1]}, 0))", call.type)
    return case(
        [(f"{sql[1]} = 0 AND {sql[0]} IS NOT NULL", by_zero(call.mode))],
        cast(f"({sql[0]} / {sql[1]})", call.type),
    )


def _remainder(call: Call, sql: Sequence[str]) -> str:
    left, right = call.arguments
    if call.type.kind is Kind.DECIMAL:
        return decimal_sql("remainder", sql[0], left, sql[1], right, call.type, call.mode)
    branches = [(f"{sql[1]} = 0 AND {sql[0]} IS NOT NULL", by_zero(call.mode))]
    if call.type.is_integral:
        # The least number divided by -1 overflows in DuckDB; the remainder is 0.
        branches.append((f"{sql[1]} = -1 AND {sql[0]} IS NOT NULL", cast("0", call.type)))
    return case(branches, cast(f"({sql[0]} % {sql[1]})", call.type))


def _arithmetic_reason(call: Call) -> str | None:
    kinds = {argument.type.kind for argument in call.arguments} | {call.type.kind}
    if kinds == {Kind.DECIMAL} or (len(kinds) == 1 and (call.type.is_integral or call.type.is_floating)):
        if call.function == "divide" and call.type.is_integral:
            return "whole division is not supported"
        return None
    types = ", ".join(str(argument.type) for argument in call.arguments)
    return f"{call.function}({types}) is not supported"


def _arithmetic_fallible(call: Call) -> bool:
    can_fail = not call.type.is_floating or call.function in ("divide", "remainder")
    return call.mode is EvalMode.ANSI and can_fail


def _negate(call: Call, sql: Sequence[str]) -> str:
    """Whole numbers by subtraction: DuckDB widens the negative of a constant, and would not see its overflow."""
    if call.type.is_integral:
        return computed("-", cast("0", call.type), sql[0], call.type, call.mode)
    return cast(f"(-({sql[0]}))", call.type)


def _normalize(call: Call, sql: Sequence[str]) -> str:
    return normalized(sql[0], call.type)


def _integral(call: Call) -> str | None:
    odd = next((a.type for a in call.arguments if not a.type.is_integral), None)
    return None if odd is None else f"{call.function} of {odd} is not supported"


def _unscaled(call: Call, sql: Sequence[str]) -> str:
    return cast(unscaled(sql[0], call.arguments[0].type), call.type)


def _decimal(call: Call) -> str | None:
    type_ = call.arguments[0].type
    narrow = type_.kind is Kind.DECIMAL and type_.precision <= _LONG_DIGITS
    return None if narrow else f"{call.function} of {type_} is not supported"


def _floating(call: Call) -> str | None:
    type_ = call.arguments[0].type
    return None if type_.is_floating else f"{call.function} of {type_} is not supported"


# ------------------------------------------------------------------------------------------------ comparison
def _infix(sign: str) -> Callable[[Call, Sequence[str]], str]:
    def write(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
        return f"({sql[0]} {sign} {sql[1]})"

    return write


def _template(template: str, *, typed: bool = False) -> Callable[[Call, Sequence[str]], str]:
    def write(call: Call, sql: Sequence[str]) -> str:
        written = template.format(*sql)
        return cast(written, call.type) if typed else written

    return write


def _comparable(call: Call) -> str | None:
    first = call.arguments[0].type
    for argument in call.arguments:
        type_ = argument.type
        if type_.kind not in FLAT | {Kind.NULL}:
            return f"{call.function} of {type_} is not supported"
        if type_.kind is Kind.DECIMAL and first.kind is Kind.DECIMAL:
            scale = max(type_.scale, first.scale)
            digits = max(type_.precision - type_.scale, first.precision - first.scale)
            if scale + digits > functions.DIGITS_MAX:
                return f"{call.function} of {first} and {type_} is not supported"
        elif Kind.NULL not in (type_.kind, first.kind) and type_ != first:
            return f"{call.function} of {first} and {type_} is not supported"
    return None


def _in(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"({sql[0]} IN ({', '.join(sql[1:])}))"


# ----------------------------------------------------------------------------------------------------- logic
def _and(call: Call, sql: Sequence[str]) -> str:
    """DuckDB orders conditions as it likes; where a later one can fail, an earlier one must guard it."""
    return _in_order(call, sql, "AND", lambda left: (f"NOT {left}", "FALSE"))


def _or(call: Call, sql: Sequence[str]) -> str:
    return _in_order(call, sql, "OR", lambda left: (left, "TRUE"))


def _in_order(call: Call, sql: Sequence[str], word: str, decided: Callable[[str], tuple[str, str]]) -> str:
    if not any(fallible(argument) for argument in call.arguments[1:]):
        return f"({f' {word} '.join(sql)})"
    written = sql[-1]
    for left in reversed(sql[:-1]):
        written = case([decided(left)], f"({left} {word} {written})")
    return f"({written})"


def _boolean(call: Call) -> str | None:
    kinds = {argument.type.kind for argument in call.arguments}
    return None if kinds <= {Kind.BOOLEAN, Kind.NULL} else f"{call.function} of {call.arguments[0].type}"


def _case(call: Call, sql: Sequence[str]) -> str:
    pairs = list(zip(sql[0::2], sql[1::2], strict=False))
    otherwise = sql[-1] if len(sql) % 2 else "NULL"
    return cast(case(pairs, otherwise), call.type)


def _if(call: Call, sql: Sequence[str]) -> str:
    return cast(case([(sql[0], sql[1])], sql[2]), call.type)


def _coalesce(call: Call, sql: Sequence[str]) -> str:
    return cast(f"coalesce({', '.join(sql)})", call.type)


def _same_kind(call: Call) -> str | None:
    """All values of a choice must already have the type of the result: Catalyst casts them."""
    values: Sequence[Expression] = call.arguments
    if call.function == "if":
        values = call.arguments[1:]
    elif call.function == "case":
        values = (*call.arguments[1::2], *(call.arguments[-1:] if len(call.arguments) % 2 else ()))
    if call.type.kind not in FLAT:
        return f"{call.function} of {call.type} is not supported"
    odd = [value.type for value in values if value.type not in (call.type, DataType(Kind.NULL))]
    return f"{call.function} of {odd[0]} as {call.type} is not supported" if odd else None


# ------------------------------------------------------------------------------------------------------ text
def _substring(call: Call, sql: Sequence[str]) -> str:
    value, position = sql[0], sql[1]
    length = sql[2] if len(sql) == 3 else "2147483647"
    start = call.arguments[1]
    if isinstance(start, Literal) and isinstance(start.value, int) and start.value >= 0:
        return f"substring({value}, {max(start.value, 1)}, greatest({length}, 0))"
    # Spark's positions count from 1, from the end if negative, and 0 is as 1; a length that begins before the
    # text uses itself up there.
    begin = (
        f"CASE WHEN {position} > 0 THEN CAST({position} AS BIGINT) - 1 "
        f"WHEN {position} < 0 THEN length({value}) + {position} ELSE 0 END"
    )
    end = f"({begin}) + CAST({length} AS BIGINT)"
    first = f"greatest({begin}, 0)"
    taken = f"substring({value}, {first} + 1, least(greatest({end} - {first}, 0), 2147483647))"
    known = f"{position} IS NULL OR {length} IS NULL OR {value} IS NULL"
    return case([(known, "NULL")], taken)


def _mapped(name: str, exact: str) -> Callable[[Call, Sequence[str]], str]:
    """DuckDB maps case as Java does only within ASCII."""

    def write(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
        value = sql[0]
        return case([(f"strlen({value}) = length({value})", f"{name}({value})")], f"{exact}({value})")

    return write


def _trim(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"trim({sql[0]}, {sql[1] if len(sql) == 2 else repr(' ')})"


def _length(call: Call, sql: Sequence[str]) -> str:
    counted = "octet_length" if call.arguments[0].type.kind is Kind.BINARY else "length"
    return cast(f"{counted}({sql[0]})", call.type)


def _concat(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"({' || '.join(sql)})"


def _strings(*kinds: Kind) -> Callable[[Call], str | None]:
    allowed = kinds or (Kind.STRING,)

    def reason(call: Call) -> str | None:
        type_ = call.arguments[0].type
        if call.function == "concat":
            type_ = next((a.type for a in call.arguments if a.type.kind is not Kind.STRING), type_)
        return None if type_.kind in allowed else f"{call.function} of {type_} is not supported"

    return reason


# ----------------------------------------------------------------------------------------------------- dates
def _dates(call: Call) -> str | None:
    type_ = call.arguments[0].type
    if type_.kind is not Kind.DATE:
        return f"{call.function} of {type_} is not supported"
    if len(call.arguments) == 2 and call.arguments[1].type.kind is not Kind.INTEGER:
        return f"{call.function} by {call.arguments[1].type} is not supported"
    return None


def _year(call: Call, sql: Sequence[str]) -> str:
    """DuckDB has no year 0; Java does."""
    return cast(case([(f"year({sql[0]}) < 0", f"year({sql[0]}) + 1")], f"year({sql[0]})"), call.type)


# ------------------------------------------------------------------------------------------------------ cast
def _cast(call: Call, sql: Sequence[str]) -> str:
    return cast_sql(sql[0], call.arguments[0].type, call.type, call.mode)


def _cast_reason(call: Call) -> str | None:
    return cast_reason(call.arguments[0].type, call.type, call.mode)


def _cast_fallible(call: Call) -> bool:
    return call.mode is EvalMode.ANSI and fallible_cast(call.arguments[0].type, call.type)


def _compare(sign: str) -> Function:
    return Function((2, 2), _infix(sign), _comparable)


def _binary(sign: str, operation: str) -> Function:
    return Function((2, 2), _arithmetic(sign, operation), _arithmetic_reason, _arithmetic_fallible)


def _date_part(part: str) -> Function:
    return Function((1, 1), _template(part + "({0})", typed=True), _dates)


FUNCTIONS: dict[str, Function] = {
    "add": _binary("+", "add"),
    "subtract": _binary("-", "subtract"),
    "multiply": _binary("*", "multiply"),
    "divide": Function((2, 2), _divide, _arithmetic_reason, _arithmetic_fallible),
    "remainder": Function((2, 2), _remainder, _arithmetic_reason, _arithmetic_fallible),
    "negate": Function((1, 1), _negate, _arithmetic_reason, _arithmetic_fallible),
    "bit_and": Function((2, 2), _template("({0} & {1})"), _integral),
    "shift_right": Function((2, 2), _template("({0} >> {1})", typed=True), _integral),
    "unscaled": Function((1, 1), _unscaled, _decimal),
    "normalize": Function((1, 1), _normalize, _floating),
    "eq": _compare("="),
    "ne": _compare("<>"),
    "lt": _compare("<"),
    "le": _compare("<="),
    "gt": _compare(">"),
    "ge": _compare(">="),
    "eq_null_safe": _compare("IS NOT DISTINCT FROM"),
    "and": Function((1, _MANY), _and, _boolean),
    "or": Function((1, _MANY), _or, _boolean),
    "not": Function((1, 1), _template("(NOT {0})"), _boolean),
    "is_null": Function((1, 1), _template("({0} IS NULL)")),
    "is_not_null": Function((1, 1), _template("({0} IS NOT NULL)")),
    "in": Function((2, _MANY), _in, _comparable),
    "like": Function((2, 3), like_sql, like_reason),
    "starts_with": Function((2, 2), _template("starts_with({0}, {1})"), _strings()),
    "ends_with": Function((2, 2), _template("ends_with({0}, {1})"), _strings()),
    "contains": Function((2, 2), _template("contains({0}, {1})"), _strings()),
    "case": Function((2, _MANY), _case, _same_kind),
    "if": Function((3, 3), _if, _same_kind),
    "coalesce": Function((1, _MANY), _coalesce, _same_kind),
    "cast": Function((1, 1), _cast, _cast_reason, _cast_fallible),
    "substring": Function((2, 3), _substring, _strings()),
    "upper": Function((1, 1), _mapped("upper", functions.UPPER), _strings()),
    "lower": Function((1, 1), _mapped("lower", functions.LOWER), _strings()),
    "concat": Function((1, _MANY), _concat, _strings()),
    "length": Function((1, 1), _length, _strings(Kind.STRING, Kind.BINARY)),
    "trim": Function((1, 2), _trim, _strings()),
    "year": Function((1, 1), _year, _dates),
    "month": _date_part("month"),
    "day": _date_part("day"),
    "date_add": Function((2, 2), _template("({0} + {1})", typed=True), _dates),
    "add_months": Function((2, 2), _template("({0} + to_months({1}))", typed=True), _dates),
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


def fallible(expression: Expression) -> bool:
    """Can some value make an expression end in an error? Then it must not be computed before its guard."""
    match expression:
        case Call():
            known = FUNCTIONS.get(expression.function)
            own = known is None or known.fallible(expression)
            return own or any(fallible(argument) for argument in expression.arguments)
        case _:
            return False
