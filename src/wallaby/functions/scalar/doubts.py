"""Functions that are computed for plain values only: see `plan/doubt.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.exact.doubts import DOUBT
from wallaby.functions.exact.zones import zone_number
from wallaby.functions.scalar.clock import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    timestamp,
    zone_reason,
    zone_text,
)
from wallaby.functions.scalar.function import Function, of_kinds, template, unsupported
from wallaby.functions.scalar.words import always
from wallaby.functions.sql_decimal import unscaled
from wallaby.functions.sql_integer import fitted
from wallaby.relations.expression import Call, EvalMode
from wallaby.relations.types import Kind
from wallaby.sql.words import case, cast, error

_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)
#: DuckDB's timestamps begin a little later than Java's.
_SECONDS_MAX: Final = 9_223_372_000_000


def _moments(call: Call, sql: Sequence[str]) -> str:
    zone = -1 if call.type.kind is Kind.TIMESTAMP_NTZ else zone_number(zone_text(call))
    failing = "TRUE" if call.mode is EvalMode.ANSI else "FALSE"
    return timestamp(f"wallaby_moments({sql[0]}, {zone}, {failing})", call.type)


def _moments_reason(call: Call) -> str | None:
    return of_kinds(Kind.STRING)(call) or zone_reason(call)


def _of_seconds(call: Call, sql: Sequence[str]) -> str:
    """Java cuts what is too large off at the last timestamp of all."""
    made = timestamp(f"({sql[0]} * {MICROS_PER_SECOND})", call.type)
    odd = error(DOUBT, "A number of seconds is only Spark's to treat.")
    return case(
        [(f"{sql[0]} IS NULL", "NULL"), (f"{sql[0]} BETWEEN -{_SECONDS_MAX} AND {_SECONDS_MAX}", made)], odd
    )


#: So many days and hours, and any minutes and seconds besides, are a number of microseconds.
_DAYS_MAX: Final = 50_000_000
_HOURS_MAX: Final = 1_000_000_000


def _times(call: Call, sql: Sequence[str]) -> str:
    """An interval of days, hours, minutes and seconds, the last with six places."""
    days, hours, minutes = (f"CAST({part} AS BIGINT)" for part in sql[:3])
    micros = f"CAST({unscaled(sql[3], call.arguments[3].type)} AS BIGINT)"
    made = f"({days} * {MICROS_PER_DAY} + {hours} * 3600000000 + {minutes} * 60000000 + {micros})"
    fits = f"abs({days}) <= {_DAYS_MAX} AND abs({hours}) <= {_HOURS_MAX}"
    nothing = " OR ".join(f"{part} IS NULL" for part in sql)
    return case([(nothing, "NULL"), (fits, cast(made, call.type))], _ODD_INTERVAL)


def _multiple(call: Call, sql: Sequence[str]) -> str:
    return fitted(f"(CAST({sql[0]} AS HUGEINT) * {sql[1]})", call.type, EvalMode.ANSI, _ODD_INTERVAL)


_ODD_INTERVAL: Final = error(DOUBT, "An interval is only Spark's to compute.")

_JSON: Final = {
    **{kind: ("whole", bits) for kind, bits in zip(_WHOLE, (8, 16, 32, 64), strict=True)},
    Kind.DOUBLE: ("double", 0),
    Kind.BOOLEAN: ("boolean", 0),
    Kind.STRING: ("text", 0),
    Kind.DATE: ("date", 0),
}


def _json_member(call: Call, sql: Sequence[str]) -> str:
    kind, bits = _JSON[call.type.kind]
    return cast(f"wallaby_json_member({sql[0]}, {sql[1]}, '{kind}', {bits})", call.type)


def _json_member_reason(call: Call) -> str | None:
    return _OF_TEXT(call) if call.type.kind in _JSON else unsupported(call)


_OF_TEXT: Final = of_kinds(Kind.STRING)

FUNCTIONS: dict[str, Function] = {
    "text_to_timestamp": Function((2, 2), _moments, _moments_reason, always),
    "seconds_to_timestamp": Function((1, 1), _of_seconds, of_kinds(Kind.LONG), always),
    "get_json_object": Function((2, 2), template("wallaby_json_object({0}, {1})"), _OF_TEXT, always),
    "make_time_interval": Function(
        (4, 4), _times, of_kinds(_WHOLE[:3], _WHOLE[:3], _WHOLE[:3], Kind.DECIMAL), always
    ),
    "multiply_interval": Function(
        (2, 2), _multiple, of_kinds((Kind.DAY_TIME, Kind.YEAR_MONTH), _WHOLE), always
    ),
    "json_member": Function((2, 2), _json_member, _json_member_reason, always),
    "mask": Function((5, 5), template("wallaby_mask({0}, {1}, {2}, {3}, {4})"), _OF_TEXT, always),
    "parse_url": Function((3, 3), template("wallaby_parse_url({0}, {1}, {2})"), _OF_TEXT, always),
}
