"""Casts, pair by pair: what is not in the table is Spark's to do.

Text is hard in both directions (Spark trims, rejects and prints in ways of its own), timestamps depend on a time
zone, and in LEGACY mode narrowing casts wrap around or saturate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import FLOATING, INTEGRAL
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.entry import Entry, Refusal, State, guarded, mode_of, plain
from wallaby.functions.catalyst.timestamps import TEMPORAL_CASTS, temporal_cast
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import INTEGER, DataType, Kind

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
    "by way of Java's text for the number; what is no number is NULL; " + _DECIMAL[1],
)
_PARSED: Final = (
    State.EXACT_WITH_GUARD,
    "what means no such value is an error (ANSI) or NULL; spaces, signs, exponents and words are Spark's",
)
_WRITTEN: Final = (State.EXACT_WITH_GUARD, "as Java writes it, of whatever version")
_PLAIN: Final = (
    State.EXACT_WITH_GUARD,
    "without an exponent; with more than six digits after the point in ANSI mode only",
)
_YEARS: Final = (State.EXACT_WITH_GUARD, "years of more than four digits have a sign")
_BY_ZONE: Final = (State.EXACT_WITH_GUARD, "by the rules that Java has for the session's zone")
_NEAREST: Final = (State.EXACT_WITH_GUARD, "to the nearest binary fraction")

#: Java writes decimals with more digits after the point with an exponent, unless the mode is ANSI.
_PLAIN_SCALE_MAX: Final = 6
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
        table[Kind.STRING, source] = _PARSED
    for floating in FLOATING:
        table[Kind.BOOLEAN, floating] = _EXACT
        table[Kind.DECIMAL, floating] = _NEAREST
        table[floating, Kind.DECIMAL] = _BY_TEXT
        table[floating, Kind.BOOLEAN] = _EXACT
        table[floating, Kind.STRING] = _WRITTEN
        table[Kind.STRING, floating] = _PARSED
    table[Kind.BOOLEAN, Kind.STRING] = _EXACT
    table[Kind.FLOAT, Kind.DOUBLE] = _EXACT
    table[Kind.DECIMAL, Kind.DECIMAL] = _DECIMAL
    table[Kind.DOUBLE, Kind.FLOAT] = _NEAREST
    table[Kind.DECIMAL, Kind.BOOLEAN] = _EXACT
    table[Kind.DECIMAL, Kind.STRING] = _PLAIN
    table[Kind.STRING, Kind.DECIMAL] = _PARSED
    table[Kind.STRING, Kind.BOOLEAN] = _PARSED
    table[Kind.STRING, Kind.DATE] = _PARSED
    table[Kind.STRING, Kind.BINARY] = _EXACT
    table[Kind.DATE, Kind.STRING] = _YEARS
    table |= dict.fromkeys(TEMPORAL_CASTS, _BY_ZONE)
    return table


#: For each pair of kinds that can be cast: how exactly, and with what guard.
CASTS: Final = _table()


#: The functions that are told Java's version, since they write numbers as it does.
_JAVA: Final = ("to_text", "floating_to_decimal")


def _own_function(source: DataType, kind: DataType) -> str | None:
    """The function for a cast that is more than the kernel's own."""
    match source.kind, kind.kind:
        case Kind.STRING, Kind.BINARY:
            return "encode_utf8"
        case Kind.STRING, _:
            return "from_text"
        case ((Kind.FLOAT | Kind.DOUBLE | Kind.DECIMAL | Kind.DATE), Kind.STRING):
            return "to_text"
        case ((Kind.FLOAT | Kind.DOUBLE), Kind.DECIMAL):
            return "floating_to_decimal"
        case Kind.DOUBLE, Kind.FLOAT:
            return "narrow"
        case _:
            return None


def _cast(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    source = arguments[0].type
    if source == kind:
        return arguments[0]
    if (source.kind, kind.kind) not in CASTS:
        return Refusal(f"a cast from {source} to {kind} is not done exactly as Spark does it")
    mode = mode_of(node)
    if isinstance(mode, Refusal):
        return mode
    if (function := _own_function(source, kind)) is not None:
        java = (Literal(node.java, INTEGER),) if function in _JAVA else ()
        exponent = source.kind is Kind.DECIMAL and source.scale > _PLAIN_SCALE_MAX
        if function == "to_text" and exponent and mode is not EvalMode.ANSI:
            return Refusal("Java writes small decimals with an exponent, unless the mode is ANSI")
        return Call(function, (*arguments, *java), kind, node.nullable, mode)
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
    replace(guarded("Cast", "cast", guard="see the table of casts", build=_cast), rewrite=temporal_cast),
    guarded("CheckOverflow", "cast", frozenset({Kind.DECIMAL}), guard=_DECIMAL[1], build=_check_overflow),
)
assert INTEGRAL == frozenset(_WHOLE)
