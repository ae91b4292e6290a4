"""Text. `like` takes value, pattern and perhaps the escape character."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wallaby.kernels.exact import text
from wallaby.kernels.scalar.function import MANY, Function, template
from wallaby.kernels.sql_like import like_reason, like_sql
from wallaby.kernels.sql_text import case, cast
from wallaby.plan.expression import Call, Literal
from wallaby.plan.types import Kind


def _substring(call: Call, sql: Sequence[str]) -> str:
    value, position = sql[0], sql[1]
    length = sql[2] if len(sql) == 3 else "2147483647"
    start = call.arguments[1]
    if isinstance(start, Literal) and isinstance(start.value, int) and start.value >= 0:
        # DuckDB's greatest passes over NULL.
        taken = case([(f"{length} < 0", "0")], length)
        return f"substring({value}, {max(start.value, 1)}, {taken})"
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


FUNCTIONS: dict[str, Function] = {
    "like": Function((2, 3), like_sql, like_reason),
    "starts_with": Function((2, 2), template("starts_with({0}, {1})"), _strings()),
    "ends_with": Function((2, 2), template("ends_with({0}, {1})"), _strings()),
    "contains": Function((2, 2), template("contains({0}, {1})"), _strings()),
    "substring": Function((2, 3), _substring, _strings()),
    "upper": Function((1, 1), _mapped("upper", text.UPPER), _strings()),
    "lower": Function((1, 1), _mapped("lower", text.LOWER), _strings()),
    "concat": Function((1, MANY), _concat, _strings()),
    "length": Function((1, 1), _length, _strings(Kind.STRING, Kind.BINARY)),
    "trim": Function((1, 2), _trim, _strings()),
}
