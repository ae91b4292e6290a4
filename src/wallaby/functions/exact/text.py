"""Text as Spark treats it: by code points, with Java's rules for case."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from wallaby.functions.exact.arrow_function import Fault, per_value
from wallaby.relations.types import BOOLEAN, INTEGER, STRING

LONGEST: Final = 2147483647
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
#: Letters of Unicode 16 and 17, large and small, which Spark's ICU maps and Python 3.11 does not.
_NEWEST: Final = (
    *((0x1C89, 0x1C8A), (0xA7CB, 0x0264), (0xA7CC, 0xA7CD), (0xA7CE, 0xA7CF), (0xA7D2, 0xA7D3)),
    *((0xA7D4, 0xA7D5), (0xA7DA, 0xA7DB), (0xA7DC, 0x019B)),
    *((0x10D50 + place, 0x10D70 + place) for place in range(22)),
    *((0x16EA0 + place, 0x16EBB + place) for place in range(25)),
)
_UPPER: Final = {small: large for large, small in _NEWEST}
_LOWER: Final = dict(_NEWEST)
_ESCAPED: Final = re.compile("%[0-9a-fA-F]{2}")


def substring(text: str, position: int, length: int) -> str:
    """SQL's substring: positions count from 1, negative ones from the end, and 0 is as 1."""
    begin = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if length == LONGEST else begin + length
    return text[max(begin, 0) : max(end, 0)]


def locate(part: str, text: str, start: int) -> int:
    """The position of a part at or after a position, 0 if there is none; the empty text is at 1."""
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def substring_index(text: str, delimiter: str, count: int) -> str:
    """What stands before the count-th delimiter, or after it, counted from the end. Delimiters may overlap."""
    if not delimiter or not count:
        return ""
    if count > 0:
        place = -1
        for _ in range(count):
            place = text.find(delimiter, place + 1)
            if place < 0:
                return text
        return text[:place]
    place = len(text) - len(delimiter) + 1
    for _ in range(-count):
        place = text.rfind(delimiter, 0, max(place - 1, -1) + len(delimiter)) if place > 0 else -1
        if place < 0:
            return text
    return text[place + len(delimiter) :]


def split_part(text: str, delimiter: str, part: int) -> str:
    """One of the parts between delimiters, counted from 1, or from the end; empty if there is none such."""
    if part == 0:
        raise Fault("INVALID_INDEX_OF_ZERO", "The index 0 is invalid.")
    parts = text.split(delimiter) if delimiter else [text]
    index = part - 1 if part > 0 else len(parts) + part
    return parts[index] if 0 <= index < len(parts) else ""


def translate(text: str, matching: str, replacing: str) -> str:
    """Characters exchanged one for one; those without a partner disappear."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(matching):
        table.setdefault(ord(character), replacing[place] if place < len(replacing) else None)
    return text.translate(table)


def overlay(text: str, replacement: str, position: int, length: int) -> str:
    """A part of a text replaced; as long as the replacement, if its length is negative."""
    taken = length if length >= 0 else len(replacement)
    return substring(text, 1, position - 1) + replacement + substring(text, position + taken, LONGEST)


def find_in_set(text: str, listed: str) -> int:
    """The position of a text in a list with commas, 0 if it is not there."""
    if "," in text:
        return 0
    items = listed.split(",")
    return items.index(text) + 1 if text in items else 0


def levenshtein(left: str, right: str) -> int:
    """The least number of insertions, deletions and exchanges of a character."""
    previous = list(range(len(right) + 1))
    for row, a in enumerate(left, start=1):
        current = [row]
        for column, b in enumerate(right, start=1):
            current.append(min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (a != b)))
        previous = current
    return previous[-1]


def soundex(text: str) -> str:
    """A letter and three digits for how a word sounds; what does not begin with a letter stays as it is."""
    upper = "".join(c.upper() if c.isascii() else c for c in text)
    if not upper or not ("A" <= upper[0] <= "Z"):
        return text
    found = [upper[0]]
    last = _SOUNDEX.get(upper[0], "7")
    for character in upper[1:]:
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
    """Does the last digit check the others?"""
    if not text or not (text.isascii() and text.isdigit()):
        return False
    total = 0
    for place, digit in enumerate(reversed(text)):
        doubled = int(digit) * (1 + place % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def url_encode(text: str) -> str:
    """Letters, digits and .-*_ stay, spaces become +, everything else the bytes of UTF-8."""
    return quote_from_bytes(text.encode(), safe="* ").replace("~", "%7E").replace(" ", "+")


def url_decode(text: str) -> str:
    """The other way round; a percent sign that begins no byte is an error."""
    if len(_ESCAPED.findall(text)) != text.count("%"):
        raise Fault("CANNOT_DECODE_URL", f"The provided URL cannot be decoded: {text}.")
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def try_url_decode(text: str) -> str | None:
    """NULL instead of an error."""
    try:
        return url_decode(text)
    except Fault:
        return None


def initcap(text: str) -> str:
    """The first letter of a text and after each space in title case, all others in lower case."""
    return " ".join(map(_title, text.split(" ")))


def _title(word: str) -> str:
    first = word[:1]
    # Together with the first letter, since what a last sigma becomes depends on what is before it.
    return first.translate(_UPPER).title() + lower(word)[len(first.lower()) :]


def upper(text: str) -> str:
    """Python's rules are Java's, but it does not know the newest letters."""
    return text.translate(_UPPER).upper()


def lower(text: str) -> str:
    """Python's rules are Java's, but it does not know the newest letters."""
    return text.translate(_LOWER).lower()


_JSON_ESCAPES: Final = str.maketrans(
    {
        **{chr(code): f"\\u{code:04X}" for code in range(0x20)},
        "\b": "\\b",
        "\t": "\\t",
        "\n": "\\n",
        "\f": "\\f",
        "\r": "\\r",
        '"': '\\"',
        "\\": "\\\\",
    }
)


def json_text(text: str) -> str:
    """A text in JSON, with the escapes that Jackson writes."""
    return f'"{text.translate(_JSON_ESCAPES)}"'


UPPER: Final = "wallaby_upper"
LOWER: Final = "wallaby_lower"

FUNCTIONS: Final = (
    per_value(UPPER, (STRING,), STRING, upper),
    per_value(LOWER, (STRING,), STRING, lower),
    per_value("wallaby_json_text", (STRING,), STRING, json_text),
    per_value("wallaby_locate", (STRING, STRING, INTEGER), INTEGER, locate),
    per_value("wallaby_substring_index", (STRING, STRING, INTEGER), STRING, substring_index),
    per_value("wallaby_split_part", (STRING, STRING, INTEGER), STRING, split_part),
    per_value("wallaby_translate", (STRING, STRING, STRING), STRING, translate),
    per_value("wallaby_reverse", (STRING,), STRING, lambda text: text[::-1]),
    per_value("wallaby_initcap", (STRING,), STRING, initcap),
    per_value("wallaby_overlay", (STRING, STRING, INTEGER, INTEGER), STRING, overlay),
    per_value("wallaby_find_in_set", (STRING, STRING), INTEGER, find_in_set),
    per_value("wallaby_levenshtein", (STRING, STRING), INTEGER, levenshtein),
    per_value("wallaby_soundex", (STRING,), STRING, soundex),
    per_value("wallaby_luhn_check", (STRING,), BOOLEAN, luhn_check),
    per_value("wallaby_url_encode", (STRING,), STRING, url_encode),
    per_value("wallaby_url_decode", (STRING,), STRING, url_decode),
    per_value("wallaby_try_url_decode", (STRING,), STRING, try_url_decode),
)
