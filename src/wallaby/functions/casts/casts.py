"""Casts, pair by pair: Spark does all casts that are not in the table.

Text is difficult in both directions (Spark trims, rejects and prints in its own ways), timestamps depend on a time
zone, and in LEGACY mode narrowing casts wrap around or saturate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import DECIMALS, FLOATING
from wallaby.catalyst.node import Node
from wallaby.functions.casts import floating_text, parsing
from wallaby.functions.casts.nested_text import nested_to_text
from wallaby.functions.casts.number_casts import cast_reason, cast_sql, fallible_cast
from wallaby.functions.casts.value_text import EPOCH, PLAIN_SCALE_MAX, value_text
from wallaby.functions.entry import Entry, Exactness, Refusal, guarded, mode_of, plain
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, in_ansi_mode, not_supported
from wallaby.functions.size import at_most
from wallaby.functions.times.temporal_casts import TEMPORAL_CASTS, temporal_cast
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import INTEGER, DataType, Kind
from wallaby.sql.words import case, cast

_EXAMPLE_TARGETS: Final = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)", "decimal(18,6)"),
    *("decimal(38,0)", "decimal(38,18)", "string", "binary", "date", "timestamp", "timestamp_ntz"),
)
_EXAMPLE_SOURCES: Final = {
    **dict.fromkeys(_EXAMPLE_TARGETS[:11], ("number", "digits")),
    "boolean": ("number", "digits"),
    "string": ("any",),
    "binary": ("string",),
    "date": ("moment", "timestamp", "timestamp_ntz"),
    "timestamp": ("moment", "date", "timestamp_ntz"),
    "timestamp_ntz": ("moment", "date", "timestamp"),
}
_SATURATES: Final = Refusal(
    "with spark.sql.ansi.enabled=false Spark truncates numbers that are too large as Java does",
    "set spark.sql.ansi.enabled=true, or use try_cast",
)
_EXACT: Final = (Exactness.EXACT, "")
_RANGE: Final = (
    Exactness.EXACT_WITH_GUARD,
    "out of range is an error (ANSI) or NULL (TRY), or wraps around (LEGACY)",
)
_TRUNCATES: Final = (
    Exactness.EXACT_WITH_GUARD,
    "truncates towards zero; out of range is an error (ANSI) or NULL (TRY)",
)
_DECIMAL: Final = (
    Exactness.EXACT_WITH_GUARD,
    "rounds half up; out of range is an error (ANSI) or NULL (TRY, LEGACY)",
)
_BY_TEXT: Final = (
    Exactness.EXACT_WITH_GUARD,
    "through Java's text for the number; NaN and infinities become NULL; " + _DECIMAL[1],
)
_PARSED: Final = (
    Exactness.EXACT_WITH_GUARD,
    "invalid text is an error (ANSI) or NULL; spaces, signs, exponents and words as on Spark",
)
_WRITTEN: Final = (Exactness.EXACT_WITH_GUARD, "as Java writes it, whatever its version")
_PLAIN: Final = (
    Exactness.EXACT_WITH_GUARD,
    "without an exponent; with more than six digits after the point in ANSI mode only",
)
_YEARS: Final = (Exactness.EXACT_WITH_GUARD, "years of more than four digits have a sign")
_BY_ZONE: Final = (Exactness.EXACT_WITH_GUARD, "by the rules that Java has for the session's zone")
_NEAREST: Final = (Exactness.EXACT_WITH_GUARD, "to the nearest binary fraction")
_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)


def _table() -> dict[tuple[Kind, Kind], tuple[Exactness, str]]:
    table: dict[tuple[Kind, Kind], tuple[Exactness, str]] = {}
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


#: For each pair of kinds that can be cast: whether it is exact, and with which guard.
CASTS: Final = _table()
#: The functions that get Java's version as an argument, because they write numbers as Java does.
_JAVA: Final = ("to_text", "floating_to_decimal")


def _own_function(source: DataType, kind: DataType) -> str | None:
    """The function for a cast that is not a plain SQL cast."""
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


def _as_entry_of_its_own(node: Node) -> Node:
    """Redirect casts that have their own entries: those that depend on a zone, and those of nested values to text."""
    return nested_to_text(temporal_cast(node))


def _read_cast(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    source = arguments[0].type
    if source == kind:
        return arguments[0]
    if (source.kind, kind.kind) not in CASTS:
        return Refusal(f"a cast from {source} to {kind} is not supported")
    mode = mode_of(node)
    if isinstance(mode, Refusal):
        return mode
    if (function := _own_function(source, kind)) is not None:
        java = (Literal(node.java, INTEGER),) if function in _JAVA else ()
        exponent = source.kind is Kind.DECIMAL and source.scale > PLAIN_SCALE_MAX
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


#: The number of digits that always fit each type.
_PLAIN_DIGITS: Final = {Kind.BYTE: 2, Kind.SHORT: 4, Kind.INTEGER: 9, Kind.LONG: 18}
_BITS: Final = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INTEGER: 32, Kind.LONG: 64}


def _failing(call: Call) -> str:
    return "TRUE" if call.mode is EvalMode.ANSI else "FALSE"


def _from_text(call: Call, sql: Sequence[str]) -> str:
    value, kind, failing = sql[0], call.type.kind, _failing(call)
    match kind:
        case Kind.BYTE | Kind.SHORT | Kind.INTEGER | Kind.LONG:
            plain = f"regexp_full_match({value}, '-?[0-9]{{1,{_PLAIN_DIGITS[kind]}}}')"
            cutting = "TRUE" if call.mode is EvalMode.LEGACY else "FALSE"
            odd = f"wallaby_whole({value}, {_BITS[kind]}, {cutting}, {failing})"
            return case([(plain, cast(value, call.type))], cast(odd, call.type))
        case Kind.FLOAT:
            return f"wallaby_float({value}, {failing})"
        case Kind.DOUBLE:
            plain = f"regexp_full_match({value}, '-?[0-9]{{1,15}}([.][0-9]{{1,15}})?')"
            return case([(plain, cast(value, call.type))], f"wallaby_double({value}, {failing})")
        case Kind.DECIMAL:
            odd = f"wallaby_decimal({value}, {call.type.precision}, {call.type.scale}, {failing})"
            return cast(odd, call.type)
        case Kind.BOOLEAN:
            return f"wallaby_boolean({value}, {failing})"
        case _:
            return f"({EPOCH} + wallaby_days({value}, {failing}))"


def _from_text_reason(call: Call) -> str | None:
    targets = (*_BITS, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL, Kind.BOOLEAN, Kind.DATE)
    readable = call.arguments[0].type.kind is Kind.STRING and call.type.kind in targets
    return None if readable else not_supported(call)


def _to_text(call: Call, sql: Sequence[str]) -> str:
    return value_text(sql[0], call.arguments[0].type, sql[1])


def _to_text_reason(call: Call) -> str | None:
    source = call.arguments[0].type
    if source.kind is Kind.DECIMAL and call.mode is not EvalMode.ANSI and source.scale > PLAIN_SCALE_MAX:
        return not_supported(call)
    return None if source.is_floating or source.kind in (Kind.DECIMAL, Kind.DATE) else not_supported(call)


def _floating_to_decimal(call: Call, sql: Sequence[str]) -> str:
    precision, scale = call.type.precision, call.type.scale
    wide = f"CAST({sql[0]} AS DOUBLE)"
    return cast(
        f"wallaby_floating_decimal({wide}, {sql[1]}, {precision}, {scale}, {_failing(call)})", call.type
    )


def _floating_reason(call: Call) -> str | None:
    return (
        None if call.arguments[0].type.is_floating and call.type.kind is Kind.DECIMAL else not_supported(call)
    )


def _narrow(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"wallaby_narrowed({sql[0]})"


def _narrow_reason(call: Call) -> str | None:
    return None if call.arguments[0].type.kind is Kind.DOUBLE else not_supported(call)


def _write_cast(call: Call, sql: Sequence[str]) -> str:
    return cast_sql(sql[0], call.arguments[0].type, call.type, call.mode)


def _cast_reason(call: Call) -> str | None:
    return cast_reason(call.arguments[0].type, call.type, call.mode)


def _cast_fallible(call: Call) -> bool:
    return call.mode is EvalMode.ANSI and fallible_cast(call.arguments[0].type, call.type)


FAMILY: Final = Family(
    "Casts",
    (
        guarded(
            "Cast",
            "cast",
            guard="see the table of casts",
            build=_read_cast,
            rewrite=_as_entry_of_its_own,
            sql=ScalarSql(1, _write_cast, reason=_cast_reason, fallible=_cast_fallible, size=at_most(4, 64)),
            examples=tuple(
                f"{how}({{{source}}} as {target})"
                for target, sources in _EXAMPLE_SOURCES.items()
                for source in sources
                for how in ("cast", "try_cast")
            ),
        ),
        guarded(
            "CheckOverflow",
            "cast",
            DECIMALS,
            guard=_DECIMAL[1],
            build=_check_overflow,
            without_example="Spark 4 plans it inside aggregates only; older plans had it around arithmetic",
        ),
    ),
    also={
        "from_text": ScalarSql(1, _from_text, reason=_from_text_reason, fallible=in_ansi_mode),
        "to_text": ScalarSql(2, _to_text, reason=_to_text_reason, size=at_most(1, 64)),
        "floating_to_decimal": ScalarSql(
            2, _floating_to_decimal, reason=_floating_reason, fallible=in_ansi_mode
        ),
        "narrow": ScalarSql(1, _narrow, reason=_narrow_reason),
    },
    arrow_functions=(
        *parsing.FUNCTIONS,
        *floating_text.FUNCTIONS,
    ),
)
