"""Format dates and times by a constant pattern, and parse them.

DuckDB writes dates whose years have four digits. Other dates are composed from their parts, because Java writes a sign
before years with more or fewer digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import INTEGRAL, TEXT, TIMESTAMPS
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, of_kinds
from wallaby.functions.size import at_most
from wallaby.functions.times.clock import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    day_start_micros,
    instant_micros,
    local,
    micros,
    timestamp,
    zone_reason,
    zone_text,
)
from wallaby.functions.times.date_pattern import Part, read_parts, written_parts
from wallaby.functions.times.dates import failing
from wallaby.functions.times.zone_arguments import session_zone, zoned
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import LONG, TIMESTAMP, DataType, Kind
from wallaby.sql.words import case, cast, error, text

_PATTERNS: Final = (
    *(
        "yyyy-MM-dd HH:mm:ss.SSS",
        "d/M/yy",
        "EEE, dd MMM yyyy hh:mm:ss a",
        "EEEE MMMM d y",
        "QQ-D DDD",
        "H:m:s S",
    ),
    *("SSSSSS", "yyyyMMdd\\'T\\'HHmmss", "h %a", "LLL SSSSSSSSS"),
)
_PATTERN: Final = "a constant pattern of y, M, d, H, h, m, s, S, a, E, D, Q and signs"
_FORM: Final = (
    "a constant pattern of yyyy, MM, dd, HH, mm, ss, S and signs; other text is an error (ANSI) or NULL"
)
#: With any other value, Spark follows the rules of Java's older classes, or refuses to choose.
_POLICY: Final = ("spark.sql.legacy.timeParserPolicy", "CORRECTED")


def _unknown(pattern: Expression, parts: object) -> Refusal | None:
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return Refusal("the pattern is not a constant", "write the pattern as a constant")
    return Refusal(f"the pattern {pattern.value!r} is not supported") if parts is None else None


def _texts(pattern: Expression) -> str:
    return str(pattern.value) if isinstance(pattern, Literal) else ""


def _format(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, pattern, zone = arguments
    refusal = _unknown(pattern, written_parts(_texts(pattern)))
    if refusal is not None:
        return refusal
    if value.type.kind not in TIMESTAMPS:
        value = Call("timestamp_seconds", (value,), TIMESTAMP, value.nullable)
    return Call(entry.function, (value, pattern, zone), kind, node.nullable)


def _parse(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, pattern, zone = arguments
    refusal = _unknown(pattern, read_parts(_texts(pattern)))
    if refusal is not None:
        return refusal
    return Call(entry.function, (value, pattern, zone), kind, node.nullable, failing(node))


def unix_timestamp(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read `unix_timestamp`: seconds since 1970 of a date, a timestamp, or text in a pattern."""
    value, _, zone = arguments
    if value.type.kind is not Kind.STRING:
        return Call(entry.function, (value, zone), kind, node.nullable)
    parsed = _parse(replace(entry, function="parse_timestamp"), node, arguments, TIMESTAMP)
    if isinstance(parsed, Refusal):
        return parsed
    return Call("unix_seconds", (parsed,), LONG, node.nullable)


_MOMENTS: Final = TIMESTAMPS | TEXT | {Kind.DATE}
_TIMESTAMPS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
#: DuckDB's codes for parts, by letter and number.
_CODES: Final = {
    ("y", 4): "%Y",
    ("y", 2): "%y",
    ("y", 1): "%Y",
    ("M", 1): "%-m",
    ("M", 2): "%m",
    ("M", 3): "%b",
    ("M", 4): "%B",
    ("d", 1): "%-d",
    ("d", 2): "%d",
    ("D", 3): "%j",
    ("D", 1): "%-j",
    ("H", 1): "%-H",
    ("H", 2): "%H",
    ("h", 1): "%-I",
    ("h", 2): "%I",
    ("m", 1): "%-M",
    ("m", 2): "%M",
    ("s", 1): "%-S",
    ("s", 2): "%S",
    ("S", 3): "%g",
    ("S", 6): "%f",
    ("a", 1): "%p",
    ("E", 4): "%A",
    **{("E", count): "%a" for count in (1, 2, 3)},
}
_MICROS: Final = 6
#: The parts of variable length when reading.
_CAPTURED: Final = ("y", "S")


def _pattern(call: Call) -> str:
    pattern = call.arguments[1]
    assert isinstance(pattern, Literal)
    return str(pattern.value)


def _write(call: Call, sql: Sequence[str]) -> str:
    parts = written_parts(_pattern(call)) or ()
    shown = local(sql[0], call.arguments[0].type, zone_text(call))
    slow = f"({' || '.join(_part(part, shown) for part in parts)})"
    codes = [_code(part) for part in parts]
    if None in codes:
        return slow
    fast = f"strftime({shown}, {text(''.join(code for code in codes if code is not None))})"
    return case([(f"year({shown}) BETWEEN 1000 AND 9999", fast)], slow)


def _code(part: Part) -> str | None:
    if not part.letter:
        return part.text.replace("%", "%%")
    return _CODES.get(("M" if part.letter == "L" else part.letter, part.count))


def _part(part: Part, shown: str) -> str:
    match part.letter, part.count:
        case "", _:
            return text(part.text)
        case "y", 4:
            year = f"year({shown})"
            digits = f"CAST(abs({year}) AS VARCHAR)"
            plain = f"lpad({digits}, CAST(greatest(4, length({digits})) AS INTEGER), '0')"
            sign = case([(f"{year} > 9999", "'+'"), (f"{year} < 0", "'-'")], "''")
            return f"({sign} || {plain})"
        case "y", 2:
            return _padded(f"(abs(year({shown})) % 100)", 2)
        case "y", _:
            return f"CAST(year({shown}) AS VARCHAR)"
        case (("M" | "L"), (3 | 4)):
            name = f"monthname({shown})"
            return name if part.count == 4 else f"left({name}, 3)"
        case "E", _:
            name = f"dayname({shown})"
            return name if part.count == 4 else f"left({name}, 3)"
        case "S", count:
            digits = _padded(f"(microsecond({shown}) % 1000000)", _MICROS)
            return (
                f"left({digits}, {count})"
                if count <= _MICROS
                else f"({digits} || {text('0' * (count - _MICROS))})"
            )
        case "a", _:
            return case([(f"hour({shown}) < 12", "'AM'")], "'PM'")
        case letter, count:
            return _padded(_NUMBERS[letter].format(shown), count)


_NUMBERS: Final = {
    "M": "month({0})",
    "L": "month({0})",
    "d": "day({0})",
    "D": "dayofyear({0})",
    "H": "hour({0})",
    "h": "((hour({0}) + 11) % 12 + 1)",
    "m": "minute({0})",
    "s": "second({0})",
    "Q": "quarter({0})",
    "q": "quarter({0})",
}


def _padded(number: str, digits: int) -> str:
    written = f"CAST({number} AS VARCHAR)"
    return written if digits == 1 else f"lpad({written}, {digits}, '0')"


def _write_reason(call: Call) -> str | None:
    pattern = call.arguments[1]
    if not isinstance(pattern, Literal) or written_parts(str(pattern.value)) is None:
        return f"{call.function} with this pattern is not supported"
    return of_kinds(_TIMESTAMPS, Kind.STRING)(call) or zone_reason(call)


def _read(call: Call, sql: Sequence[str]) -> str:
    """Parse text that matches the pattern exactly to microseconds; other text is an error, or NULL."""
    parts = read_parts(_pattern(call)) or ()
    value = sql[0]
    form = "(?i)" + "".join(_expression(part) for part in parts)  # so are texts in Java's formats
    captured = [part.letter for part in parts if part.letter in _CAPTURED]
    digits = f"regexp_extract({value}, {text(form)}, {captured.index('S') + 1})" if "S" in captured else ""
    places = _places(parts, value, digits)
    year = places["y"]
    month, day = places.get("M", "1"), places.get("d", "1")
    hour, minute, second = (places.get(letter, "0") for letter in "Hms")
    fraction = places.get("S", "0")
    possible = (
        f"{month} BETWEEN 1 AND 12 AND {year} BETWEEN -290000 AND 290000 AND {hour} <= 23"
        f" AND {minute} <= 59 AND {second} <= 59"
    )
    real = f"{day} BETWEEN 1 AND day(last_day(make_date({year}, {month}, 1)))"
    days = f"CAST(make_date({year}, {month}, {day}) - DATE '1970-01-01' AS BIGINT)"
    seconds = f"(({hour} * 60 + {minute}) * 60 + {second})"
    shown = f"({days} * {MICROS_PER_DAY} + {seconds} * 1000000 + {fraction})"
    made = shown if call.type.kind is Kind.TIMESTAMP_NTZ else instant_micros(shown, zone_text(call))
    valid = case(
        [(f"NOT regexp_full_match({value}, {text(form)})", "FALSE"), (f"NOT ({possible})", "FALSE")], real
    )
    failed = "NULL"
    if call.mode is EvalMode.ANSI:
        failed = error("CANNOT_PARSE_TIMESTAMP", "A text does not have the form of the pattern.")
    return case([(f"{value} IS NULL", "NULL"), (valid, timestamp(made, call.type))], failed)


def _expression(part: Part) -> str:
    if not part.letter:
        return re.escape(part.text)
    if part.letter == "y":
        return "([0-9]{4}|-[0-9]{4}|[+-][0-9]{5,6})"
    if part.letter == "S":
        return f"([0-9]{{1,{part.count}}})"
    return f"[0-9]{{{part.count}}}"


def _places(parts: Sequence[Part], value: str, digits: str) -> dict[str, str]:
    """The position of each part: up to the year from the left, after it from the right; and a fraction's digits."""

    def width(some: Sequence[Part]) -> str:
        fixed = sum(part.count if part.letter else len(part.text) for part in some if part.letter != "S")
        return f"{fixed} + length({digits})" if any(part.letter == "S" for part in some) else str(fixed)

    year = next(place for place, part in enumerate(parts) if part.letter == "y")
    found: dict[str, str] = {}
    for place, part in enumerate(parts):
        before, after = width(parts[:place]), width(parts[place + 1 :])
        if part.letter == "S":
            taken = f"rpad({digits}, {_MICROS}, '0')"
        elif place == year:
            taken = f"substring({value}, {before} + 1, length({value}) - ({before}) - ({after}))"
        elif place < year:
            taken = f"substring({value}, {before} + 1, {part.count})"
        else:
            taken = f"substring({value}, length({value}) - ({after}) - {part.count - 1}, {part.count})"
        if part.letter:
            found[part.letter] = f"CAST({taken} AS BIGINT)"
    return found


def _read_reason(call: Call) -> str | None:
    pattern = call.arguments[1]
    if not isinstance(pattern, Literal) or read_parts(str(pattern.value)) is None:
        return f"{call.function} with this pattern is not supported"
    return of_kinds(Kind.STRING)(call) or zone_reason(call)


_DAYS_TOO: Final = (*_TIMESTAMPS, Kind.DATE)


def _unix_timestamp(call: Call, sql: Sequence[str]) -> str:
    """Write `unix_timestamp`, truncated towards 1970, unlike `unix_seconds`."""
    source = call.arguments[0].type
    if source.kind is Kind.DATE:
        written = day_start_micros(sql[0], call.type, zone_text(call))
    else:
        written = micros(sql[0])
    return cast(f"({written} // {MICROS_PER_SECOND})", call.type)


FAMILY: Final = Family(
    "Dates and times as text",
    (
        guarded(
            "DateFormatClass",
            "format_timestamp",
            TIMESTAMPS,
            TEXT,
            guard=_PATTERN,
            build=_format,
            zones=session_zone,
            requires=_POLICY,
            sql=ScalarSql(3, _write, reason=_write_reason, size=at_most(8, 64)),
            examples=tuple(f"date_format({{time}}, '{pattern}')" for pattern in _PATTERNS),
        ),
        guarded(
            "FromUnixTime",
            "format_timestamp",
            INTEGRAL,
            TEXT,
            guard=_PATTERN,
            build=_format,
            zones=session_zone,
            requires=_POLICY,
            examples=("from_unixtime({int})", "from_unixtime({small}, 'dd.MM.yy')"),
        ),
        guarded(
            "GetTimestamp",
            "parse_timestamp",
            TEXT,
            guard=_FORM,
            build=_parse,
            zones=session_zone,
            requires=_POLICY,
            sql=ScalarSql(3, _read, reason=_read_reason, fallible=lambda call: call.mode is EvalMode.ANSI),
            examples=(
                "try_to_timestamp({moment}, 'yyyy-MM-dd HH:mm:ss')",
                "to_date(date_format({date}, 'dd/MM/yyyy'), 'dd/MM/yyyy')",
                "to_date({moment}, 'yyyy-MM-dd')",
                "to_timestamp(date_format({timestamp}, 'yyyyMMddHHmmss.SSSSSS'), 'yyyyMMddHHmmss.SSSSSS')",
                "to_date(date_format({date}, 'yyyy-MM'), 'yyyy-MM')",
            ),
        ),
        guarded(
            "UnixTimestamp",
            "unix_timestamp",
            _MOMENTS,
            TEXT,
            guard=f"text by {_FORM}",
            build=unix_timestamp,
            zones=session_zone,
            requires=_POLICY,
            sql=ScalarSql(2, _unix_timestamp, reason=zoned(_DAYS_TOO)),
            examples=("unix_timestamp({time})", "unix_timestamp({moment}, 'yyyy-MM-dd')"),
        ),
        guarded(
            "ToUnixTimestamp",
            "unix_timestamp",
            _MOMENTS,
            TEXT,
            guard=f"text by {_FORM}",
            build=unix_timestamp,
            zones=session_zone,
            requires=_POLICY,
            examples=(
                "to_unix_timestamp({time})",
                "to_unix_timestamp(date_format({date}, 'yyyyMMdd'), 'yyyyMMdd')",
            ),
        ),
    ),
)
