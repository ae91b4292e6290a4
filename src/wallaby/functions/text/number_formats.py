"""Numbers in the formats of `to_number` and `to_char`: `S$9,999.00`, `000.99PR`.

A format is a list of parts. If a group of digits before the point begins with 0, all of its digits are required, and a
shorter number is padded with zeros; otherwise digits may be missing and are written as spaces, and a sign or bracket
before them moves next to the number. Catalyst has already refused invalid formats.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from wallaby.catalyst.data_types import DECIMALS, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import ValueFault, per_value
from wallaby.functions.entry import Entry, Refusal, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, in_ansi_mode
from wallaby.functions.size import at_most
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import BOOLEAN, INTEGER, STRING, DataType
from wallaby.sql.words import cast

_FORMAT: Final = "in a constant format"


def _formatted(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    form = arguments[1]
    if not isinstance(form, Literal) or not isinstance(form.value, str):
        return Refusal("the format is not a constant", "write the format as a constant")
    mode = EvalMode.TRY if entry.catalyst.startswith("Try") else EvalMode.ANSI
    return Call(entry.function, arguments, kind, node.nullable, mode)


_PARTS: Final = re.compile(r"[09][09]*|MI|PR|.", re.DOTALL)
_SEPARATORS: Final = (",", "G")
_POINTS: Final = (".", "D")
_BREAKING: Final = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f")
_NOT_BREAKING: Final = frozenset("\u00a0\u2007\u202f")
_MOVING: Final = frozenset("+-<")


@dataclass(frozen=True, slots=True)
class FormatDigits:
    """Places for digits; `exact` if all of them are required."""

    count: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Digits, with separators (None) between them."""

    parts: tuple[FormatDigits | None, ...]

    @property
    def digits(self) -> tuple[FormatDigits, ...]:
        """Without separators."""
        return tuple(part for part in self.parts if part is not None)

    @property
    def places(self) -> int:
        """The number of places for digits."""
        return sum(part.count for part in self.digits)


#: A group, or one of `.`, `$`, `S`, `MI`, `<` and `>`.
Part = Group | str


@lru_cache(maxsize=256)
def parts_of(text: str) -> tuple[Part, ...]:
    """The parts of a format."""
    found: list[Part] = []
    run: list[FormatDigits | None] = []
    behind = False
    for sign in _PARTS.findall(text):
        if sign[0] in "09" or sign in _SEPARATORS:
            run.append(FormatDigits(len(sign), sign[0] == "0" and not behind) if sign[0] in "09" else None)
            continue
        if run:
            found.append(Group(tuple(run)))
            run = []
        if sign in _POINTS:
            behind = True
            found.append(".")
        elif sign == "PR":
            found.insert(0, "<")
            found.append(">")
        else:
            found.append(sign)
    return (*found, Group(tuple(run))) if run else tuple(found)


@dataclass(slots=True)
class _Reader:
    text: str
    position: int = 0
    negative: bool = False
    bracket: bool = False
    behind_point: bool = False
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def sign(self, part: str) -> bool:
        """Skip a sign, if there is one, and check whether the format allows it."""
        here = self.text[self.position : self.position + 1]
        match part, here:
            case ".", ".":
                self.behind_point = True
            case "$", "$" | "":
                pass
            case "$", _:
                return False
            case "S", "+":
                pass
            case (("S" | "MI"), "-"):
                self.negative = not self.negative
            case "<", "<":
                self.bracket = True
            case ">", ">":
                if not self.bracket:
                    return False
                self.bracket = False
                self.negative = not self.negative
            case _:
                return True
        self.position += len(here)
        return True

    def group(self, group: Group) -> bool:
        """Skip digits, separators and white space, and check that there are as many as the format says."""
        sizes = [0]
        for here in self.text[self.position :]:
            if here == ",":
                sizes.append(0)
            elif _is_digit(here):
                sizes[-1] += 1
                (self.after if self.behind_point else self.before).append(str(unicodedata.decimal(here)))
            elif not _is_space(here):
                break
            self.position += 1
        wanted = group.digits[::-1]
        sizes = sizes[::-1]
        if len(sizes) > len(wanted):
            return False
        sizes += [0] * (len(wanted) - len(sizes))
        return all(
            size == digits.count if digits.exact else size <= digits.count
            for size, digits in zip(sizes, wanted, strict=True)
        )


def number_of(text: str, number_format: str, scale: int) -> str | None:
    """Parse a number in a format, with this many digits after the point; None if the text is invalid."""
    reader = _Reader(text)
    for part in parts_of(number_format):
        if not (reader.group(part) if isinstance(part, Group) else reader.sign(part)):
            return None
    if reader.position < len(text) or reader.bracket or not (reader.before or reader.after):
        return None
    whole, rest = "".join(reader.before) or "0", "".join(reader.after).ljust(scale, "0")
    return f"{'-' if reader.negative else ''}{whole}{'.' if rest else ''}{rest}"


def to_number(text: str, number_format: str, scale: int, ansi: bool) -> str | None:
    """Parse a number in a format; invalid text may be an error."""
    found = number_of(text, number_format, scale)
    if found is None and ansi:
        raise ValueFault(
            "INVALID_FORMAT.MISMATCH_INPUT", f"The text {text!r} is not in the format {number_format!r}."
        )
    return found


def _is_digit(character: str) -> bool:
    """Is it a digit of any script, in one Java character?"""
    return character < "\U00010000" and unicodedata.category(character) == "Nd"


def _is_space(character: str) -> bool:
    """Is it white space in Java?"""
    spaced = unicodedata.category(character) in ("Zs", "Zl", "Zp") and character not in _NOT_BREAKING
    return spaced or character in _BREAKING


def to_character(number: str, number_format: str) -> str:
    """Write a number, given as plain digits, in a format; `#` replaces each digit if there are too many."""
    parts = parts_of(number_format)
    before, after = _digits_for(number.removeprefix("-"), parts)
    negative = number.startswith("-") and any(digit in "123456789" for digit in number)
    written: list[str] = []
    digits = iter(before)
    for part in parts:
        match part:
            case Group():
                for piece in part.parts:
                    _write_digits(written, piece, digits)
            case ".":
                if written and written[-1] == " ":
                    written[-1] = "0"
                written.append(".")
                digits = iter(after)
            case "$":
                written.append("$")
            case "<":
                written.extend("<" if negative else "")
            case _:
                _write_sign(written, part, negative=negative)
    _without_lone_point(written)
    found = "".join(written)
    return "0" if found in ("", "+", "-") else found


def _digits_for(number: str, parts: tuple[Part, ...]) -> tuple[str, str]:
    """The digits before and after the point, padded to the format's places."""
    point = parts.index(".") if "." in parts else len(parts)
    places = [
        sum(part.places for part in some if isinstance(part, Group))
        for some in (parts[:point], parts[point:])
    ]
    whole, _, rest = number.partition(".")
    whole, rest = whole.lstrip("0"), rest.rstrip("0")
    if len(whole) > places[0] or len(rest) > places[1]:
        whole, rest = "#" * places[0], "#" * places[1]
    return whole.rjust(places[0]), rest.ljust(places[1], "0")


def _write_digits(written: list[str], piece: FormatDigits | None, digits: Iterator[str]) -> None:
    if piece is None:
        if written and written[-1] in "0123456789":
            written.append(",")
        else:
            _write_space(written)
        return
    for _ in range(piece.count):
        digit = next(digits)
        if digit != " ":
            written.append(digit)
        elif piece.exact:
            written.append("0")
        else:
            _write_space(written)


def _write_sign(written: list[str], part: str, *, negative: bool) -> None:
    """Write a sign; after spaces, it moves in front of them."""
    if negative or part != "MI":
        _without_lone_point(written)
    if not negative and part != "S":
        written.extend("  " if part == ">" else " ")
        return
    sign = ">" if part == ">" else "-" if negative else "+"
    place = len(written)
    while place and written[place - 1] == " ":
        place -= 1
    written.insert(place, sign)


def _write_space(written: list[str]) -> None:
    """Write a space, in front of signs and of an opening bracket."""
    place = len(written)
    while place and written[place - 1] in _MOVING:
        place -= 1
    written.insert(place, " ")


def _without_lone_point(written: list[str]) -> None:
    """Replace a point that no digit follows by a space."""
    if "." in written:
        place = written.index(".")
        if place == len(written) - 1 or written[place + 1] == " ":
            written[place] = " "


def _to_number(call: Call, sql: Sequence[str]) -> str:
    ansi = "TRUE" if call.mode is EvalMode.ANSI else "FALSE"
    return cast(f"wallaby_to_number({sql[0]}, {sql[1]}, {call.type.scale}, {ansi})", call.type)


def _to_character(call: Call, sql: Sequence[str]) -> str:
    number = cast(sql[0], call.arguments[0].type)
    return f"wallaby_to_character(CAST({number} AS VARCHAR), {sql[1]})"


FAMILY: Final = Family(
    "Text",
    (
        guarded(
            "ToNumber",
            "to_number",
            TEXT,
            guard=_FORMAT,
            build=_formatted,
            sql=ScalarSql(2, _to_number, fallible=in_ansi_mode),
            examples=(
                "to_number({digits}, 'S999')",
                "to_number(to_char({decimal_5_2}, 'S999.99'), 'S999.99')",
                "to_number(to_char({int}, '$9,999,999,999PR'), '$9,999,999,999PR')",
            ),
        ),
        guarded(
            "TryToNumber",
            "to_number",
            TEXT,
            guard=_FORMAT,
            build=_formatted,
            examples=(
                "try_to_number({digits}, 'S9999999999.99')",
                "try_to_number({digits}, '9G999D00MI')",
                "try_to_number({digits}, '099')",
                "try_to_number({string}, '$99,99PR')",
            ),
        ),
        guarded(
            "ToCharacter",
            "to_character",
            DECIMALS,
            TEXT,
            guard=_FORMAT,
            build=_formatted,
            sql=ScalarSql(2, _to_character, size=at_most(4, 64)),
            examples=(
                "to_char({number}, 'S9G999G999D99')",
                "to_char({decimal}, '$000.00MI')",
                "to_varchar({whole}, '099,999PR')",
                "to_char({small}, '999S')",
                "to_char({decimal_5_2}, '.99')",
                "to_char({decimal_18_6}, 'MI$9,999D')",
            ),
        ),
    ),
    arrow_functions=(
        per_value("wallaby_to_number", (STRING, STRING, INTEGER, BOOLEAN), STRING, to_number),
        per_value("wallaby_to_character", (STRING, STRING), STRING, to_character),
    ),
)
