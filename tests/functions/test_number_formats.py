"""Numbers in the formats of `to_number` and `to_char`, as Spark reads and writes them."""

from __future__ import annotations

import pytest

from wallaby.functions.arrow_function import ValueFault
from wallaby.functions.text.number_formats import number_of, to_character, to_number

WRITTEN = [
    ("454", "999", "454"),
    ("454.00", "000D00", "454.00"),
    ("12454", "99G999", "12,454"),
    ("78.12", "$99.99", "$78.12"),
    ("-12454.8", "99G999D9S", "12,454.8-"),
    ("12454", "99,999S", "12,454+"),
    ("7", "999S", "  7+"),
    ("-7", "S999", "  -7"),
    ("-7", "S099", "-007"),
    ("5", "9,999MI", "    5 "),
    ("-5", "9,999PR", "    <5>"),
    ("5", "9,999PR", "    5  "),
    ("0", "999", "   "),
    ("0.00", "9.99", "0.00"),
    ("0.5", ".9", ".5"),
    ("3", "9.", "3 "),
    ("12345", "999", "###"),
    ("12345", "9,999", "# ###"),
    ("1.234", "9.99", "#.##"),
    ("-0.0", "S9.9", " +.0"),
]
READ = [
    ("454", "999", 0, "454"),
    ("-3", "S999", 0, "-3"),
    ("+5", "S999", 0, "5"),
    ("5-", "999S", 0, "-5"),
    ("12,454", "99,999", 0, "12454"),
    ("12454", "99,999", 0, None),
    ("$78.1", "$99.99", 2, "78.10"),
    ("78.12", "$99.99", 2, None),
    ("12,454.8-", "99,999.9S", 1, "-12454.8"),
    ("<12>", "99PR", 0, "-12"),
    ("<12", "99PR", 0, None),
    ("12>", "99PR", 0, None),
    ("12", "099", 0, None),
    ("012", "099", 0, "012"),
    ("1 2", "99", 0, "12"),
    ("\u00a01", "99", 0, None),
    ("٣", "9", 0, "3"),
    ("𝟏", "9", 0, None),
    (".5", "9.9", 1, "0.5"),
    ("", "9", 0, None),
    (" ", "9", 0, None),
    ("1.5", "9", 0, None),
    ("x", "9", 0, None),
]


@pytest.mark.parametrize(("number", "form", "text"), WRITTEN)
def test_a_format_writes_a_number(number: str, form: str, text: str) -> None:
    assert to_character(number, form) == text


@pytest.mark.parametrize(("text", "form", "scale", "number"), READ)
def test_a_format_reads_a_number_or_refuses_a_text(
    text: str, form: str, scale: int, number: str | None
) -> None:
    assert number_of(text, form, scale) == number
    assert to_number(text, form, scale, False) == number


def test_a_text_in_another_format_is_sparks_error() -> None:
    with pytest.raises(ValueFault, match=r"\[INVALID_FORMAT.MISMATCH_INPUT\]"):
        to_number("1.5", "9", 0, True)
