"""Choices. `case` takes condition and value in turn, then perhaps what else to give."""

from __future__ import annotations

from collections.abc import Sequence

from wallaby.functions.scalar.function import MANY, Function, Write, fine, of_kinds, template
from wallaby.functions.scalar.words import always
from wallaby.relations.expression import Call, Expression
from wallaby.relations.types import DataType, Kind
from wallaby.sql.types import is_carried
from wallaby.sql.words import TOO_MANY_ROWS, case, cast


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
    if not is_carried(call.type):
        return f"{call.function} of {call.type} is not supported"
    odd = [value.type for value in values if value.type not in (call.type, DataType(Kind.NULL))]
    return f"{call.function} of {odd[0]} as {call.type} is not supported" if odd else None


def _at_most_one(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    """True; an error if a row has more partners than the one that a subquery may give it."""
    return case([(f"{sql[0]} > 1", TOO_MANY_ROWS)], "TRUE")


def _most(name: str) -> Write:
    """NULLs do not count. NaN is the greatest, and of the two zeros the first one is taken, in DuckDB as in Spark.

    Among numbers of single precision DuckDB knows one zero only.
    """

    def write(call: Call, sql: Sequence[str]) -> str:
        single = call.type.kind is Kind.FLOAT
        values = (cast(value, DataType(Kind.DOUBLE)) if single else value for value in sql)
        return cast(f"{name}({', '.join(values)})", call.type)

    return write


def _not_a_number(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"coalesce(isnan({sql[0]}), FALSE)"


def _enough(call: Call, sql: Sequence[str]) -> str:
    """Are at least so many values, the first argument says how many, neither NULL nor NaN?"""
    present = [
        f"CAST({value} IS NOT NULL{f' AND NOT isnan({value})' if argument.type.is_floating else ''} AS INTEGER)"
        for value, argument in zip(sql[1:], call.arguments[1:], strict=True)
    ]
    return f"(({' + '.join(present)}) >= {sql[0]})"


_FLOATING = (Kind.FLOAT, Kind.DOUBLE)

FUNCTIONS: dict[str, Function] = {
    "at_most_one": Function((1, 1), _at_most_one, fine, always),
    "case": Function((2, MANY), _case, _same_kind),
    "if": Function((3, 3), _if, _same_kind),
    "coalesce": Function((1, MANY), _coalesce, _same_kind),
    "greatest": Function((2, MANY), _most("greatest"), _same_kind),
    "least": Function((2, MANY), _most("least"), _same_kind),
    "nanvl": Function((2, 2), template("CASE WHEN isnan({0}) THEN {1} ELSE {0} END"), of_kinds(_FLOATING)),
    "is_nan": Function((1, 1), _not_a_number, of_kinds(_FLOATING)),
    "at_least_non_null": Function((2, MANY), _enough),
}
