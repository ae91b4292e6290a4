"""Casts, pair by pair: what is not in the table is Spark's to do.

Text is hard in both directions (Spark trims, rejects and prints in ways of its own), timestamps depend on a time
zone, and in LEGACY mode narrowing casts wrap around or saturate.
"""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import FLOATING, INTEGRAL
from wallaby.catalyst.entry import Entry, Refusal, State, guarded, plain
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Call, EvalMode, Expression
from wallaby.plan.types import DataType, Kind

_SATURATES: Final = Refusal(
    "with spark.sql.ansi.enabled=false Spark cuts numbers that are too large in ways of Java's",
    "set spark.sql.ansi.enabled=true, or use try_cast",
)
_EXACT: Final = (State.EXACT, "")
_RANGE: Final = (
    State.EXACT_WITH_GUARD,
    "out of range is an error (ANSI) or NULL (TRY), or wraps around (LEGACY)",
)
_TRUNCATES: Final = (
    State.EXACT_WITH_GUARD,
    "truncates towards zero; out of range is an error (ANSI) or NULL (TRY)",
)
_DECIMAL: Final = (
    State.EXACT_WITH_GUARD,
    "rounds half up; out of range is an error (ANSI) or NULL (TRY, LEGACY)",
)
_BY_TEXT: Final = (
    State.EXACT_WITH_GUARD,
    "of the shortest text that means the number, to at most 15 digits before the point; " + _DECIMAL[1],
)
_NEAREST: Final = (State.EXACT_WITH_GUARD, "to the nearest binary fraction")

#: Up to so many digits before the point, all texts that mean a double agree.
_TEXT_DIGITS: Final = 15
_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)


def _table() -> dict[tuple[Kind, Kind], tuple[State, str]]:
    table: dict[tuple[Kind, Kind], tuple[State, str]] = {}
    for place, source in enumerate(_WHOLE):
        for target_place, target in enumerate(_WHOLE):
            table[source, target] = _EXACT if place <= target_place else _RANGE
        table[source, Kind.DECIMAL] = _DECIMAL
        table[Kind.DECIMAL, source] = _TRUNCATES
        table[source, Kind.STRING] = _EXACT
        for floating in FLOATING:
            table[source, floating] = _NEAREST
            table[floating, source] = _TRUNCATES
        table[Kind.BOOLEAN, source] = _EXACT
        table[source, Kind.BOOLEAN] = _EXACT
    for floating in FLOATING:
        table[Kind.BOOLEAN, floating] = _EXACT
        table[Kind.DECIMAL, floating] = _NEAREST
        table[floating, Kind.DECIMAL] = _BY_TEXT
    table[Kind.BOOLEAN, Kind.STRING] = _EXACT
    table[Kind.FLOAT, Kind.DOUBLE] = _EXACT
    table[Kind.DECIMAL, Kind.DECIMAL] = _DECIMAL
    return table


#: For each pair of kinds that can be cast: how exactly, and with what guard.
CASTS: Final = _table()


def _cast(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    source = arguments[0].type
    if source == kind:
        return arguments[0]
    if (source.kind, kind.kind) not in CASTS:
        return Refusal(f"a cast from {source} to {kind} is not done exactly as Spark does it")
    if kind.kind is Kind.DECIMAL and source.kind in FLOATING and kind.precision - kind.scale > _TEXT_DIGITS:
        return Refusal(f"a cast from {source} to {kind} depends on how Java writes large numbers")
    made = plain(entry, node, arguments, kind)
    legacy = isinstance(made, Call) and made.mode is EvalMode.LEGACY
    saturates = kind.is_integral and source.kind in FLOATING | {Kind.DECIMAL}
    return _SATURATES if legacy and saturates else made


def _check_overflow(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if arguments[0].type == kind:
        return arguments[0]
    mode = EvalMode.TRY if node.flag("nullOnOverflow") else EvalMode.ANSI
    return Call(entry.function, arguments, kind, node.nullable, mode)


ENTRIES: Final = (
    guarded("Cast", "cast", guard="see the table of casts", build=_cast),
    guarded("CheckOverflow", "cast", frozenset({Kind.DECIMAL}), guard=_DECIMAL[1], build=_check_overflow),
)
assert INTEGRAL == frozenset(_WHOLE)
