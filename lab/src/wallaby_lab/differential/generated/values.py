"""Values of every type, for generated rows: ordinary ones, and the odd ones at which engines disagree.

Tame values fail nothing that people do with such columns: no zero to divide by, no number that overflows. Wild ones
are the extremes. A name of a column's kind is a type of Spark's, or a kind of text or number with a meaning (`digits`,
`moment`, `small`), whose values an expression can be expected to understand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from random import Random
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS: Final = Context(prec=80)

WORDS: Final = (
    "",
    "a",
    "b",
    "Ab",
    "abc",
    "spam",
    "SPAM",
    "eggs and ham",
    "x,y,,z",
    "aXbXc",
    " padded  ",
    "zz",
)
ODD_TEXT: Final = (
    *(
        "",
        " ",
        "\t tab\n",
        "ß",
        "Straße",
        "İstanbul",
        "ıI",
        "ǆ",
        "Σίσυφος ΣΑΣ",
        "éclair",
        "e\u0301clair",
        "ﬁn",
    ),
    *(
        "😀",
        "a😀b",
        "👩‍👩‍👧",
        "\U00010400\U00010428",
        "日本語",
        "مرحبا",
        "क्षि",
        "\u200bzero",
        "\x00nul",
        "\uffff",
        "\U0010ffff",
    ),
    *(
        "%",
        "_",
        "a%b",
        "a\\b",
        "'",
        '"',
        "a.b.c",
        "null",
        "NaN",
        "true",
        "x" * 70,
        "aaaaaaaaab",
        "A,B,,C",
        "-",
        "0",
    ),
)
DIGITS: Final = ("1", "2", "-3", "17", "90", "+5", "007", "-42", "100")
ODD_DIGITS: Final = (
    *(
        "",
        " 7 ",
        "\t8\n",
        "1.5",
        "-0",
        "-0.0",
        ".5",
        "5.",
        "1e3",
        "1E-2",
        "1e400",
        "-1e400",
        "1_000",
        "1,000",
        "0x1f",
    ),
    *(
        "NaN",
        "nan",
        "Infinity",
        "-inf",
        "+Infinity",
        "127",
        "128",
        "-129",
        "32768",
        "2147483647",
        "2147483648",
    ),
    *(
        "-2147483649",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "1d",
        "1f",
        "1L",
        "٣",
        "--1",
    ),
    *(
        "99999999999999999999999999999999999999",
        "0.00000000000000000000000000000000000001",
        "abc",
        "1 2",
        "12.345678901",
    ),
    *("true", "t", "YES", "n", "0", "1", " false ", "\u00a07", "2.5", "-2.5", "999.995", "1" * 50),
)
MOMENTS: Final = (
    "2020-01-31",
    "1999-12-31",
    "2024-02-29 12:34:56",
    "1970-01-01 00:00:00",
    "2021-07-04 23:59:59.5",
)
ODD_MOMENTS: Final = (
    *(
        "",
        "2021-02-29",
        "2020-1-5",
        "2020",
        "2020-06",
        " 2020-01-01 ",
        "0001-01-01",
        "1582-10-04",
        "1582-10-15",
    ),
    *(
        "9999-12-31",
        "10000-01-01",
        "-0044-03-15",
        "20200101",
        "2020/01/01",
        "2020-01-01T10:20:30Z",
        "abc",
        "12:30",
    ),
    *(
        "2020-01-01 10:20:30.123456789",
        "2020-01-01 10:20:30+05:30",
        "2021-03-14 02:30:00",
        "2021-11-07 01:30:00",
    ),
    *(
        "2020-01-01 24:00:00",
        "2020-13-01",
        "2020-01-01 1:2:3",
        "2020-01-01 10:20:30 America/New_York",
        "now",
        "epoch",
    ),
)
#: Around the days on which clocks change, in America and in Europe, and where calendars do.
_TURNS: Final = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        *("2021-03-14 09:59:59", "2021-03-14 10:00:00", "2021-03-14 07:00:00", "2021-11-07 08:30:00"),
        *("2021-11-07 09:30:00", "2021-11-07 06:00:00", "2021-03-28 01:00:00", "2021-10-31 00:59:59.999999"),
        *("1883-11-18 17:00:00", "1900-01-01 00:00:00", "1582-10-04 23:59:59", "1582-10-15 00:00:00"),
        *("0001-01-03 00:00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2038-01-19 03:14:08"),
        *(
            "2106-02-07 06:28:16",
            "2262-04-11 23:47:16.854775",
            "2400-02-29 12:00:00",
            "9999-12-29 23:59:59.999999",
        ),
    )
)
_DAYS: Final = (
    *(
        date(1, 1, 1),
        date(4, 2, 29),
        date(1000, 6, 15),
        date(1582, 10, 4),
        date(1582, 10, 15),
        date(1900, 2, 28),
    ),
    *(date(1969, 12, 31), date(1970, 1, 1), date(1999, 12, 31), date(2000, 2, 29), date(2020, 12, 31)),
    *(
        date(2021, 1, 3),
        date(2024, 2, 29),
        date(2100, 2, 28),
        date(2101, 1, 1),
        date(2400, 2, 29),
        date(9999, 12, 31),
    ),
)


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A kind of column: its type for Spark and for Arrow, and how values are drawn."""

    sql: str
    arrow: pa.DataType
    tame: Callable[[Random], Any]
    wild: Callable[[Random], Any]


def _whole(sql: str, arrow: pa.DataType, bits: int) -> ValueColumn:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    odd = (low, low + 1, high, high - 1, 0, 1, -1, 2, 10, high // 2, low // 2)
    return ValueColumn(sql, arrow, _small_number, lambda r: r.choice((*odd, r.randint(low, high))))


def _small_number(random: Random) -> int:
    return random.choice((-1, 1)) * random.randint(1, 20)


def _floating(sql: str, arrow: pa.DataType, largest: float, least: float) -> ValueColumn:
    odd = (
        math.nan,
        math.inf,
        -math.inf,
        0.0,
        -0.0,
        largest,
        -largest,
        least,
        -least,
        0.5,
        1.5,
        2.5,
        -2.5,
        1.0,
        -1.0,
    )
    more = (
        0.1,
        1 / 3,
        1e7,
        123456.789,
        1e15,
        1e-5,
        1e17,
        2.0**53,
        2147483648.0,
        -9.3e18,
        127.5,
        -0.49999999999999994,
    )
    return ValueColumn(
        sql,
        arrow,
        # Quarters add up to the same sum in whatever order.
        lambda r: _small_number(r) / 4,
        lambda r: _rounded(r.choice((*odd, *more, r.uniform(-1000, 1000))), arrow),
    )


def _rounded(value: float, arrow: pa.DataType) -> float:
    rounded: float = pa.scalar(value, pa.float64()).cast(arrow, safe=False).as_py()
    return rounded


def _decimal(precision: int, scale: int) -> ValueColumn:
    def shaped(unscaled: int) -> Decimal:
        return Decimal(unscaled).scaleb(-scale, _DIGITS)

    top = 10**precision - 1
    odd = (top, -top, 0, 1, -1, 5, -5, top // 2, 10**scale if precision > scale else 1, 10**precision // 2)
    tame_top = min(top, 20 * 10**scale)

    def tame(random: Random) -> Decimal:
        return shaped(random.choice((-1, 1)) * random.randint(max(1, tame_top // 20), tame_top))

    return ValueColumn(
        f"decimal({precision},{scale})",
        pa.decimal128(precision, scale),
        tame,
        lambda r: shaped(r.choice((*odd, r.randint(-top, top), r.randint(-1000, 1000)))),
    )


def _tame_day(random: Random) -> date:
    return date(1990, 1, 1) + timedelta(days=random.randint(0, 15000))


def _wild_day(random: Random) -> date:
    return random.choice((*_DAYS, date(1, 1, 1) + timedelta(days=random.randint(0, 3_652_000))))


def _tame_moment(random: Random) -> datetime:
    return datetime(1990, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randint(0, 1_300_000_000))


def _wild_moment(random: Random) -> datetime:
    near = random.choice(_TURNS) + timedelta(
        hours=random.randint(-14, 14), microseconds=random.randint(0, 999_999)
    )
    far = _EPOCH + timedelta(microseconds=random.randint(-62_000_000_000_000_000, 250_000_000_000_000_000))
    return random.choice((random.choice(_TURNS), near, far))


def _local(draw: Callable[[Random], datetime]) -> Callable[[Random], datetime]:
    return lambda random: draw(random).replace(tzinfo=None)


def _text(tame: tuple[str, ...], wild: tuple[str, ...]) -> ValueColumn:
    return ValueColumn("string", pa.string(), lambda r: r.choice(tame), lambda r: r.choice((*tame, *wild)))


def _list(name: str) -> ValueColumn:
    of = COLUMNS[name]

    def many(draw: Callable[[Random], Any]) -> Callable[[Random], list[Any]]:
        return lambda r: [None if r.random() < 0.15 else draw(r) for _ in range(r.choice((0, 1, 2, 3, 3, 5)))]

    return ValueColumn(f"array<{of.sql}>", pa.list_(of.arrow), many(of.tame), many(of.wild))


def _map(name: str) -> ValueColumn:
    of = COLUMNS[name]

    def many(draw: Callable[[Random], Any]) -> Callable[[Random], list[tuple[str, Any]]]:
        return lambda r: [
            (key, None if r.random() < 0.15 else draw(r))
            for key in r.sample(("a", "b", "c", "ß", ""), r.randint(0, 4))
        ]

    return ValueColumn(f"map<string,{of.sql}>", pa.map_(pa.string(), of.arrow), many(of.tame), many(of.wild))


def _struct(first: str, second: str) -> ValueColumn:
    one, two = COLUMNS[first], COLUMNS[second]

    def pair(wild: bool) -> Callable[[Random], dict[str, Any]]:
        a, b = (one.wild, two.wild) if wild else (one.tame, two.tame)
        return lambda r: {"x": None if r.random() < 0.15 else a(r), "y": None if r.random() < 0.15 else b(r)}

    arrow = pa.struct([pa.field("x", one.arrow), pa.field("y", two.arrow)])
    return ValueColumn(f"struct<x:{one.sql},y:{two.sql}>", arrow, pair(False), pair(True))


#: By the name that a placeholder of an example has; `decimal_5_2` is the type decimal(5,2).
_DECIMALS: Final = ((5, 2), (9, 0), (10, 10), (18, 6), (20, 4), (38, 0), (38, 18), (38, 37))
COLUMNS: dict[str, ValueColumn] = {
    "boolean": ValueColumn("boolean", pa.bool_(), lambda r: r.random() < 0.5, lambda r: r.random() < 0.5),
    "tinyint": _whole("tinyint", pa.int8(), 8),
    "smallint": _whole("smallint", pa.int16(), 16),
    "int": _whole("int", pa.int32(), 32),
    "bigint": _whole("bigint", pa.int64(), 64),
    "float": _floating("float", pa.float32(), 3.4028234663852886e38, 1.401298464324817e-45),
    "double": _floating("double", pa.float64(), 1.7976931348623157e308, 5e-324),
    **{f"decimal_{p}_{s}": _decimal(p, s) for p, s in _DECIMALS},
    "string": _text(WORDS, ODD_TEXT),
    "digits": _text(DIGITS, ODD_DIGITS),
    "moment": _text(MOMENTS, ODD_MOMENTS),
    "small": ValueColumn("int", pa.int32(), lambda r: r.randint(1, 5), lambda r: r.randint(-7, 12)),
    "binary": ValueColumn(
        "binary",
        pa.binary(),
        lambda r: r.choice(WORDS).encode(),
        lambda r: r.choice((b"", b"\x00", b"\xff\xfe", b"\xc3\x28", bytes(range(20)), "ß😀".encode())),
    ),
    "date": ValueColumn("date", pa.date32(), _tame_day, _wild_day),
    "timestamp": ValueColumn("timestamp", pa.timestamp("us", tz="UTC"), _tame_moment, _wild_moment),
    "timestamp_ntz": ValueColumn(
        "timestamp_ntz", pa.timestamp("us"), _local(_tame_moment), _local(_wild_moment)
    ),
}
COLUMNS |= {f"array_{name}": _list(name) for name in ("int", "double", "string", "date")}
COLUMNS |= {f"map_{name}": _map(name) for name in ("int", "string")}
COLUMNS["struct"] = _struct("int", "string")

_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_FLOATING: Final = ("float", "double")
_DECIMAL_NAMES: Final = tuple(f"decimal_{p}_{s}" for p, s in _DECIMALS)
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")
_NUMBERS: Final = (*_WHOLE, *_FLOATING, *_DECIMAL_NAMES)
#: What a placeholder of an example stands for: each of these in turn. The names of columns stand for themselves.
CLASSES: Final = MappingProxyType(
    {
        "whole": _WHOLE,
        "floating": _FLOATING,
        "decimal": _DECIMAL_NAMES,
        "number": _NUMBERS,
        "time": _TIMES,
        "any": ("boolean", *_NUMBERS, "string", "binary", *_TIMES),
        "array": tuple(name for name in COLUMNS if name.startswith("array_")),
        "map": tuple(name for name in COLUMNS if name.startswith("map_")),
        **{name: (name,) for name in COLUMNS},
    }
)


#: What explode makes of a column of these kinds.
EXPLODED: Final = MappingProxyType(
    {
        **{f"array_{name}": (name,) for name in ("int", "double", "string", "date")},
        **{f"map_{name}": ("string", name) for name in ("int", "string")},
    }
)


def is_map(kind: str) -> bool:
    """Is a kind, or a type, one that Spark neither orders nor compares?"""
    return "map_" in kind or "map<" in kind


def literal(value: Any, column: ValueColumn) -> str:
    """A value as SQL, of exactly the column's type."""
    if value is None:
        return f"cast(null as {column.sql})"
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _quoted(value)
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"cast('{value.isoformat(sep=' ')}' as {column.sql})"
        case list() | dict():
            return _nested(value, column)
        case _:
            return f"cast('{value}' as {column.sql})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return "'" + escaped.replace("\x00", "\\u0000") + "'"


def _nested(value: Any, column: ValueColumn) -> str:
    def of(part: Any) -> str:
        if part is None:
            return "null"
        return _quoted(part) if isinstance(part, str) else f"'{part}'"

    if isinstance(value, dict):
        inner = f"named_struct('x', {of(value['x'])}, 'y', {of(value['y'])})"
    elif column.sql.startswith("map"):
        inner = f"map({', '.join(f'{of(k)}, {of(v)}' for k, v in value)})"
    else:
        inner = f"array({', '.join(map(of, value))})"
    return f"cast({inner} as {column.sql})"
