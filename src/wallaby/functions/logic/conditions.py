"""Conditional expressions. A branch of CASE, IF or COALESCE that is not taken raises no error, on Spark and here.

`case` takes conditions and values in turn, then perhaps the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import FLOATING, ORDERED
from wallaby.functions.entry import exact, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import MANY, ScalarSql, Write, template
from wallaby.functions.size import ONE_OF
from wallaby.functions.words import always
from wallaby.relations.expression import Call, Expression
from wallaby.relations.types import DataType, Kind
from wallaby.sql.types import is_carried
from wallaby.sql.words import TOO_MANY_ROWS, case, cast

_BRANCHES: Final = "a branch is evaluated (so raises errors) only for the rows that take it"


def _case(call: Call, sql: Sequence[str]) -> str:
    pairs = list(zip(sql[0::2], sql[1::2], strict=False))
    otherwise = sql[-1] if len(sql) % 2 else "NULL"
    return cast(case(pairs, otherwise), call.type)


def _if(call: Call, sql: Sequence[str]) -> str:
    return cast(case([(sql[0], sql[1])], sql[2]), call.type)


def _coalesce(call: Call, sql: Sequence[str]) -> str:
    return cast(f"coalesce({', '.join(sql)})", call.type)


def _same_kind(call: Call) -> str | None:
    """Refuse unless all branches have the type of the result, to which Catalyst casts them."""
    values: Sequence[Expression] = call.arguments
    if call.function == "if":
        values = call.arguments[1:]
    elif call.function == "case":
        values = (*call.arguments[1::2], *(call.arguments[-1:] if len(call.arguments) % 2 else ()))
    if not is_carried(call.type):
        return f"{call.function} of {call.type} is not supported"
    odd = [value.type for value in values if value.type not in (call.type, DataType(Kind.NULL))]
    return f"{call.function} of {odd[0]} as {call.type} is not supported" if odd else None


def _at_most_one(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    """True, or an error if a subquery gives a row more than one partner."""
    return case([(f"{sql[0]} > 1", TOO_MANY_ROWS)], "TRUE")


def _most(name: str) -> Write:
    """Greatest or least value. NULLs do not count, NaN is the greatest, and the first of two zeros wins, as on Spark.

    For floats of single precision, DuckDB has only one zero.
    """

    def write(call: Call, sql: Sequence[str]) -> str:
        single = call.type.kind is Kind.FLOAT
        values = (cast(value, DataType(Kind.DOUBLE)) if single else value for value in sql)
        return cast(f"{name}({', '.join(values)})", call.type)

    return write


FAMILY: Final = Family(
    "Conditions",
    (
        guarded(
            "CaseWhen",
            "case",
            guard=_BRANCHES,
            sql=ScalarSql((2, MANY), _case, reason=_same_kind, size=ONE_OF),
            examples=(
                "case when {boolean} then {any} when {boolean} then {any} end",
                "case {small} when 1 then {any} when 2 then null else {any} end",
                "case when {small} = 0 then 0 else 10 div {small} end",
            ),
        ),
        guarded(
            "If",
            "if",
            guard=_BRANCHES,
            sql=ScalarSql(3, _if, reason=_same_kind, size=ONE_OF),
            examples=(
                "if({boolean}, {any}, {any})",
                "nullif({any}, {any})",
                "if({small} = 0, 0, 10 / {small})",
            ),
        ),
        guarded(
            "Coalesce",
            "coalesce",
            guard=_BRANCHES,
            sql=ScalarSql((1, MANY), _coalesce, reason=_same_kind, size=ONE_OF),
            examples=("coalesce({any}, {any})", "nvl({number}, {number})", "coalesce({small}, 1 / 0)"),
        ),
        exact(
            "Greatest",
            "greatest",
            ORDERED,
            sql=ScalarSql((2, MANY), _most("greatest"), reason=_same_kind, size=ONE_OF),
            examples=("greatest({any}, {any})", "greatest({double}, {double}, null)"),
        ),
        exact(
            "Least",
            "least",
            ORDERED,
            sql=ScalarSql((2, MANY), _most("least"), reason=_same_kind, size=ONE_OF),
            examples=("least({any}, {any})", "least({double}, 0.0D, {double})"),
        ),
        exact(
            "NaNvl",
            "nanvl",
            FLOATING,
            sql=ScalarSql(2, template("CASE WHEN isnan({0}) THEN {1} ELSE {0} END")),
            examples=("nanvl({double}, {double})", "nanvl({float}, {float})"),
        ),
    ),
    also={"at_most_one": ScalarSql(1, _at_most_one, fallible=always)},
)
