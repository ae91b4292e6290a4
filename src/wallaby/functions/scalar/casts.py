"""Casts: `sql_cast` has the pairs of types."""

from __future__ import annotations

from collections.abc import Sequence

from wallaby.functions.scalar.function import Function
from wallaby.functions.sql_cast import cast_reason, cast_sql, fallible_cast
from wallaby.relations.expression import Call, EvalMode


def _cast(call: Call, sql: Sequence[str]) -> str:
    return cast_sql(sql[0], call.arguments[0].type, call.type, call.mode)


def _cast_reason(call: Call) -> str | None:
    return cast_reason(call.arguments[0].type, call.type, call.mode)


def _cast_fallible(call: Call) -> bool:
    return call.mode is EvalMode.ANSI and fallible_cast(call.arguments[0].type, call.type)


FUNCTIONS: dict[str, Function] = {
    "cast": Function((1, 1), _cast, _cast_reason, _cast_fallible),
}
