"""Letters of a text: case, number, order and sound. Spark counts code points; case follows Java's rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wallaby.catalyst.data_types import BINARY, INTEGRAL, LONGS, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import per_value
from wallaby.functions.doubt import DOUBT, doubt
from wallaby.functions.entry import Entry, Refusal, exact, guarded
from wallaby.functions.family import Family
from wallaby.functions.others.java_methods import configured
from wallaby.functions.scalar_sql import ScalarSql, Write, of_kinds, template
from wallaby.functions.size import WITHIN, at_most, constant
from wallaby.functions.words import always
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import BOOLEAN, INTEGER, STRING, DataType, Kind
from wallaby.sql.words import case, cast

_CASE: Final = "text beyond ASCII follows Java's rules ('ß' becomes 'SS'), not the kernel's"


def _mask(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read `mask`: the replacements are constants; NULL leaves a kind of characters unchanged."""
    text, *signs = arguments
    if not all(isinstance(sign, Literal) for sign in signs):
        return Refusal("the replacements of characters are not constants")
    found = (sign.value if isinstance(sign, Literal) else None for sign in signs)
    return Call(entry.function, (text, *(Literal(sign or "", STRING) for sign in found)), kind, node.nullable)


def _read_levenshtein(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read `levenshtein`; a threshold must be a constant, because Java fails with some negative ones."""
    for threshold in arguments[2:]:
        if not isinstance(threshold, Literal) or not isinstance(threshold.value, int) or threshold.value < 0:
            return Refusal("its threshold is not a constant, or is negative", "compare the distance")
    return Call(entry.function, arguments, kind, node.nullable)


#: A long text is processed by so many characters at a time if each of them becomes an object of its own.
_BLOCK: Final = 1 << 16
_SOUNDEX: Final = {
    letter: code
    for code, letters in {
        "1": "BFPV",
        "2": "CGJKQSXZ",
        "3": "DT",
        "4": "L",
        "5": "MN",
        "6": "R",
        "0": "AEIOUY",
    }.items()
    for letter in letters
}
#: Upper- and lower-case letters of Unicode 16 and 17, which Spark's ICU maps and Python 3.11 does not.
_NEWEST: Final = (
    *((0x1C89, 0x1C8A), (0xA7CB, 0x0264), (0xA7CC, 0xA7CD), (0xA7CE, 0xA7CF), (0xA7D2, 0xA7D3)),
    *((0xA7D4, 0xA7D5), (0xA7DA, 0xA7DB), (0xA7DC, 0x019B)),
    *((0x10D50 + place, 0x10D70 + place) for place in range(22)),
    *((0x16EA0 + place, 0x16EBB + place) for place in range(25)),
)
_UPPER: Final = {small: large for large, small in _NEWEST}
_LOWER: Final = dict(_NEWEST)


def translate(text: str, matching: str, replacing: str) -> str:
    """Replace characters one for one; those without a counterpart are removed."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(matching):
        table.setdefault(ord(character), replacing[place] if place < len(replacing) else None)
    return text.translate(table)


def levenshtein(left: str, right: str) -> int:
    """The minimum number of insertions, deletions and substitutions of a character."""
    previous = list(range(len(right) + 1))
    for row, a in enumerate(left, start=1):
        current = [row]
        for column, b in enumerate(right, start=1):
            current.append(min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (a != b)))
        previous = current
    return previous[-1]


def soundex(text: str) -> str:
    """A letter and three digits for the sound of a word; text that does not begin with a letter is unchanged."""
    letters = (c.upper() if c.isascii() else c for c in text)
    first = next(letters, "")
    if not "A" <= first <= "Z":
        return text
    found = [first]
    last = _SOUNDEX.get(first, "7")
    for character in letters:
        if len(found) == 4:
            break
        if not "A" <= character <= "Z":
            last = "0"
            continue
        code = _SOUNDEX.get(character, "7")
        if code == "7":  # H and W do not separate
            continue
        if code not in ("0", last):
            found.append(code)
        last = code
    return "".join(found).ljust(4, "0")


def luhn_check(text: str) -> bool:
    """Is the last digit the correct check digit?"""
    if not text or not (text.isascii() and text.isdigit()):
        return False
    total = 0
    for place, digit in enumerate(reversed(text)):
        doubled = int(digit) * (1 + place % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def initcap(text: str) -> str:
    """Put the first letter, and those after spaces, in title case, all others in lower case."""
    return " ".join(" ".join(map(_title, words.split(" "))) for words in _blocks_of_words(text))


def _blocks_of_words(text: str) -> Iterator[str]:
    """Cut a long text at spaces, because its words, one by one, take many times as much memory as the text."""
    begin = 0
    while begin <= len(text):
        end = text.find(" ", begin + _BLOCK)
        end = len(text) if end < 0 else end
        yield text[begin:end]
        begin = end + 1


def _title(word: str) -> str:
    first = word[:1]
    # Together with the first letter, because the form of a final sigma depends on what precedes it.
    return first.translate(_UPPER).title() + lower(word)[len(first.lower()) :]


def upper(text: str) -> str:
    """Python's rules are Java's, but it does not know the newest letters."""
    return text.translate(_UPPER).upper()


def lower(text: str) -> str:
    """Python's rules are Java's, but it does not know the newest letters."""
    return text.translate(_LOWER).lower()


UPPER: Final = "wallaby_upper"
LOWER: Final = "wallaby_lower"


def mask(text: str, upper: str, lower: str, digit: str, other: str) -> str:
    """Replace every character by one for its kind; an empty one leaves the kind unchanged."""
    if not text.isascii():
        doubt("mask")

    def masked(part: str) -> str:
        kinds = (
            upper if c.isupper() else lower if c.islower() else digit if c.isdigit() else other for c in part
        )
        return "".join(kind or c for kind, c in zip(kinds, part, strict=True))

    return "".join(masked(text[begin : begin + _BLOCK]) for begin in range(0, len(text), _BLOCK))


_OF_TEXT: Final = of_kinds(Kind.STRING)


def _mapped(name: str, exact: str) -> Write:
    """Map case; DuckDB agrees with Java only within ASCII."""

    def write(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
        value = sql[0]
        return case([(f"strlen({value}) = length({value})", f"{name}({value})")], f"{exact}({value})")

    return write


def _in_ascii(name: str, exact: str) -> Write:
    """Use DuckDB's function for ASCII, and ours for everything else."""

    def write(call: Call, sql: Sequence[str]) -> str:
        ascii_only = " AND ".join(f"strlen({value}) = length({value})" for value in sql)
        arguments = ", ".join(sql)
        return cast(case([(ascii_only, f"{name}({arguments})")], f"{exact}({arguments})"), call.type)

    return write


def _write_levenshtein(call: Call, sql: Sequence[str]) -> str:
    """Write `levenshtein`; a distance beyond the threshold is -1."""
    distance = _in_ascii("levenshtein", "wallaby_levenshtein")(call, sql[:2])
    return distance if len(sql) == 2 else case([(f"{distance} > {sql[2]}", "-1")], distance)


def _character(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    """The lowest byte of a number as a Latin-1 character; the empty text for negative numbers."""
    return case([(f"{sql[0]} < 0", "''")], f"chr(CAST({sql[0]} & 255 AS INTEGER))")


def _length(call: Call, sql: Sequence[str]) -> str:
    counted = "octet_length" if call.arguments[0].type.kind is Kind.BINARY else "length"
    return cast(f"{counted}({sql[0]})", call.type)


def _counted(pattern: str) -> Write:
    """Count the bytes of text or of a binary value."""

    def write(call: Call, sql: Sequence[str]) -> str:
        counted = "octet_length" if call.arguments[0].type.kind is Kind.BINARY else "strlen"
        return cast(pattern.format(f"{counted}({sql[0]})"), call.type)

    return write


FAMILY: Final = Family(
    "Text",
    (
        guarded(
            "Upper",
            "upper",
            TEXT,
            guard=_CASE,
            sql=ScalarSql(1, _mapped("upper", UPPER), size=at_most(3)),
            examples=("upper({string})",),
        ),
        guarded(
            "Lower",
            "lower",
            TEXT,
            guard=_CASE,
            sql=ScalarSql(1, _mapped("lower", LOWER), size=at_most(3)),
            examples=("lower({string})",),
        ),
        guarded(
            "Mask",
            "mask",
            guard=f"of ASCII; {DOUBT}",
            build=_mask,
            sql=ScalarSql(
                5,
                template("wallaby_mask({0}, {1}, {2}, {3}, {4})"),
                reason=_OF_TEXT,
                fallible=always,
                doubtful=True,
                size=at_most(4),
            ),
            examples=("mask({string})", "mask({digits}, 'A', 'b', '#', '-')", "mask({digits}, NULL)"),
        ),
        exact(
            "Length",
            "length",
            TEXT | BINARY,
            sql=ScalarSql(1, _length),
            examples=("length({string})", "char_length({digits})", "length({binary})"),
        ),
        exact(
            "OctetLength",
            "octet_length",
            TEXT | BINARY,
            sql=ScalarSql(1, _counted("{0}")),
            examples=("octet_length({string})", "octet_length({binary})"),
        ),
        exact(
            "BitLength",
            "bit_length",
            TEXT | BINARY,
            sql=ScalarSql(1, _counted("(8 * {0})")),
            examples=("bit_length({string})", "bit_length({binary})"),
        ),
        exact(
            "StringTranslate",
            "translate",
            TEXT,
            sql=ScalarSql(3, template("wallaby_translate({0}, {1}, {2})"), size=at_most(4)),
            examples=("translate({string}, 'abß😀', 'xy')", "translate({string}, {string}, {string})"),
        ),
        guarded(
            "Reverse",
            "reverse",
            TEXT,
            guard="of text, by code points",
            sql=ScalarSql(1, _in_ascii("reverse", "wallaby_reverse"), size=WITHIN),
            examples=("reverse({string})",),
        ),
        guarded(
            "InitCap",
            "initcap",
            TEXT,
            guard="after spaces only",
            sql=ScalarSql(1, template("wallaby_initcap({0})"), size=at_most(3)),
            examples=("initcap({string})",),
        ),
        exact(
            "Ascii",
            "ascii",
            TEXT,
            sql=ScalarSql(1, template("ascii({0})", typed=True)),
            examples=("ascii({string})",),
        ),
        guarded(
            "Chr",
            "character",
            LONGS,
            guard="of the lowest byte",
            sql=ScalarSql(1, _character, size=constant(4)),
            examples=("chr({int})", "char({bigint})"),
        ),
        guarded(
            "Levenshtein",
            "levenshtein",
            TEXT,
            TEXT,
            INTEGRAL,
            guard="by code points; a threshold is a constant",
            build=_read_levenshtein,
            sql=ScalarSql((2, 3), _write_levenshtein),
            examples=(
                "levenshtein({string}, {string})",
                "levenshtein({string}, {string}, 3)",
                "levenshtein({digits}, {digits}, 0)",
            ),
        ),
        exact(
            "SoundEx",
            "soundex",
            TEXT,
            sql=ScalarSql(1, template("wallaby_soundex({0})"), size=at_most(1, 4)),
            examples=("soundex({string})",),
        ),
        guarded(
            "ExpressionImplUtils#isLuhnNumber",
            "luhn_check",
            TEXT,
            guard="ASCII digits",
            build=configured(),
            sql=ScalarSql(1, template("wallaby_luhn_check({0})")),
            examples=("luhn_check({digits})", "luhn_check({string})"),
        ),
    ),
    arrow_functions=(
        per_value(UPPER, (STRING,), STRING, upper),
        per_value(LOWER, (STRING,), STRING, lower),
        per_value("wallaby_translate", (STRING, STRING, STRING), STRING, translate),
        per_value("wallaby_reverse", (STRING,), STRING, lambda text: text[::-1]),
        per_value("wallaby_initcap", (STRING,), STRING, initcap),
        per_value("wallaby_levenshtein", (STRING, STRING), INTEGER, levenshtein),
        per_value("wallaby_soundex", (STRING,), STRING, soundex),
        per_value("wallaby_luhn_check", (STRING,), BOOLEAN, luhn_check),
        per_value("wallaby_mask", (STRING,) * 5, STRING, mask),
    ),
)
