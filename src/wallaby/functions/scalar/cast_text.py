"""Casts from text, and to text where DuckDB writes otherwise than Java. Most values are plain, and DuckDB's to read.

`from_text` takes a text; `to_text` and `floating_to_decimal` take a number and Java's version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.scalar.function import Function, unsupported
from wallaby.relations.expression import Call, EvalMode
from wallaby.relations.types import INTEGER, DataType, Kind
from wallaby.sql.words import case, cast

#: So many digits fit each type whatever they are.
_PLAIN_DIGITS: Final = {Kind.BYTE: 2, Kind.SHORT: 4, Kind.INTEGER: 9, Kind.LONG: 18}
_BITS: Final = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INTEGER: 32, Kind.LONG: 64}
_EPOCH: Final = "DATE '1970-01-01'"
#: Smaller decimals than these Java writes with an exponent, unless the mode is ANSI.
PLAIN_SCALE_MAX: Final = 6


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
            return f"({_EPOCH} + wallaby_days({value}, {failing}))"


def _from_text_reason(call: Call) -> str | None:
    targets = (*_BITS, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL, Kind.BOOLEAN, Kind.DATE)
    readable = call.arguments[0].type.kind is Kind.STRING and call.type.kind in targets
    return None if readable else unsupported(call)


def _to_text(call: Call, sql: Sequence[str]) -> str:
    return number_text(sql[0], call.arguments[0].type, sql[1])


def number_text(value: str, type_: DataType, java: str) -> str:
    """The text of a number or a date, as some version of Java writes it."""
    match type_.kind:
        case Kind.FLOAT:
            return f"wallaby_float_text(CAST({value} AS DOUBLE), {java})"
        case Kind.DOUBLE:
            return f"wallaby_double_text({value}, {java})"
        case Kind.DATE:
            days = cast(f"date_diff('day', {_EPOCH}, {value})", INTEGER)
            plain = f"{value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
            return case([(plain, f"CAST({value} AS VARCHAR)")], f"wallaby_date_text({days})")
        case _:
            written = f"CAST({cast(value, type_)} AS VARCHAR)"
            # DuckDB leaves out the zero of a type without digits before the point.
            alone = type_.precision == type_.scale
            return f"regexp_replace({written}, '^(-?)[.]', '\\10.')" if alone else written


def _to_text_reason(call: Call) -> str | None:
    source = call.arguments[0].type
    if source.kind is Kind.DECIMAL and call.mode is not EvalMode.ANSI and source.scale > PLAIN_SCALE_MAX:
        return unsupported(call)
    return None if source.is_floating or source.kind in (Kind.DECIMAL, Kind.DATE) else unsupported(call)


def _floating_to_decimal(call: Call, sql: Sequence[str]) -> str:
    precision, scale = call.type.precision, call.type.scale
    wide = f"CAST({sql[0]} AS DOUBLE)"
    return cast(
        f"wallaby_floating_decimal({wide}, {sql[1]}, {precision}, {scale}, {_failing(call)})", call.type
    )


def _floating_reason(call: Call) -> str | None:
    return (
        None if call.arguments[0].type.is_floating and call.type.kind is Kind.DECIMAL else unsupported(call)
    )


def _narrow(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"wallaby_narrowed({sql[0]})"


def _narrow_reason(call: Call) -> str | None:
    return None if call.arguments[0].type.kind is Kind.DOUBLE else unsupported(call)


def _ansi(call: Call) -> bool:
    return call.mode is EvalMode.ANSI


FUNCTIONS: dict[str, Function] = {
    "from_text": Function((1, 1), _from_text, _from_text_reason, _ansi),
    "to_text": Function((2, 2), _to_text, _to_text_reason),
    "floating_to_decimal": Function((2, 2), _floating_to_decimal, _floating_reason, _ansi),
    "narrow": Function((1, 1), _narrow, _narrow_reason),
}
