"""Bits of whole numbers. Java uses only the lowest five or six bits of a shift distance, and lets results wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import BOOLEANS, INTEGRAL, INTS
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, guarded
from wallaby.functions.family import Family
from wallaby.functions.numbers.integers import fitted
from wallaby.functions.scalar_sql import ScalarSql, not_supported, template
from wallaby.functions.words import always
from wallaby.relations.expression import Call, EvalMode, Expression
from wallaby.relations.types import INTEGER, LONG, DataType, Kind
from wallaby.sql.words import case, cast, error

WIDE: Final = frozenset({Kind.INTEGER, Kind.LONG})
_DISTANCE: Final = "the distance counts modulo the type's bits; bits shifted out are lost"


def bits(entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType) -> Expression | Refusal:
    """Read a bit function, whose evaluation mode in Catalyst has no effect."""
    return Call(entry.function, arguments, kind, node.nullable)


_BITS: Final = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INTEGER: 32, Kind.LONG: 64}


def _distance(call: Call, sql: Sequence[str]) -> str:
    return f"({sql[1]} & {_BITS[call.type.kind] - 1})"


def _left(call: Call, sql: Sequence[str]) -> str:
    power = f"(CAST(1 AS HUGEINT) << {_distance(call, sql)})"
    return fitted(f"(CAST({sql[0]} AS HUGEINT) * {power})", call.type, EvalMode.LEGACY)


def _right(call: Call, sql: Sequence[str]) -> str:
    return cast(f"({sql[0]} >> {_distance(call, sql)})", call.type)


def _right_unsigned(call: Call, sql: Sequence[str]) -> str:
    ones = f"CAST('{(1 << _BITS[call.type.kind]) - 1}' AS HUGEINT)"
    positive = f"(CAST({sql[0]} AS HUGEINT) & {ones})"
    return fitted(f"({positive} >> {_distance(call, sql)})", call.type, EvalMode.LEGACY)


def _count(call: Call, sql: Sequence[str]) -> str:
    """Count the bits of the number as a long, so that a negative one has many."""
    if call.arguments[0].type.kind is Kind.BOOLEAN:
        return cast(sql[0], INTEGER)
    return cast(f"bit_count({cast(sql[0], LONG)})", call.type)


def _get(call: Call, sql: Sequence[str]) -> str:
    bits = _BITS[call.arguments[0].type.kind]
    outside = error("INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE", f"A position is between 0 and {bits - 1}.")
    missing = f"{sql[0]} IS NULL OR {sql[1]} IS NULL"
    found = cast(f"(({cast(sql[0], LONG)} >> {sql[1]}) & 1)", call.type)
    return case([(missing, "NULL"), (f"{sql[1]} BETWEEN 0 AND {bits - 1}", found)], outside)


def _same(call: Call) -> str | None:
    found: set[DataType] = {argument.type for argument in call.arguments}
    return None if found == {call.type} and call.type.is_integral else not_supported(call)


FAMILY: Final = Family(
    "Arithmetic",
    (
        exact(
            "BitwiseAnd",
            "bit_and",
            INTEGRAL,
            build=bits,
            sql=ScalarSql(2, template("({0} & {1})"), reason=_same),
            examples=("{whole} & {whole}",),
        ),
        exact(
            "BitwiseOr",
            "bit_or",
            INTEGRAL,
            build=bits,
            sql=ScalarSql(2, template("({0} | {1})"), reason=_same),
            examples=("{whole} | {whole}",),
        ),
        exact(
            "BitwiseXor",
            "bit_xor",
            INTEGRAL,
            build=bits,
            sql=ScalarSql(2, template("xor({0}, {1})"), reason=_same),
            examples=("{whole} ^ {whole}",),
        ),
        exact(
            "BitwiseNot",
            "bit_not",
            INTEGRAL,
            sql=ScalarSql(1, template("(~{0})"), reason=_same),
            examples=("~{whole}",),
        ),
        guarded(
            "BitwiseCount",
            "bit_count",
            INTEGRAL | BOOLEANS,
            guard="of the number as a bigint",
            sql=ScalarSql(1, _count),
            examples=("bit_count({whole})", "bit_count({boolean})"),
        ),
        guarded(
            "BitwiseGet",
            "bit_get",
            INTEGRAL,
            INTS,
            guard="a position outside is an error",
            sql=ScalarSql(2, _get, fallible=always),
            examples=("bit_get({whole}, 5)", "getbit({bigint}, abs({small}))"),
        ),
        guarded(
            "ShiftLeft",
            "shift_left",
            WIDE,
            INTS,
            guard=_DISTANCE,
            sql=ScalarSql(2, _left),
            examples=("{int} << {small}", "shiftleft({bigint}, {int})"),
        ),
        guarded(
            "ShiftRight",
            "shift_right",
            WIDE,
            INTS,
            guard=_DISTANCE,
            sql=ScalarSql(2, _right),
            examples=("{int} >> 3", "{bigint} >> 70", "{int} >> -1", "shiftright({bigint}, {int})"),
        ),
        guarded(
            "ShiftRightUnsigned",
            "shift_right_unsigned",
            WIDE,
            INTS,
            guard=_DISTANCE,
            sql=ScalarSql(2, _right_unsigned),
            examples=("{int} >>> {small}", "shiftrightunsigned({bigint}, {int})"),
        ),
    ),
)
