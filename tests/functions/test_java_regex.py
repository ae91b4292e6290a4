"""Patterns of Java's: what is written for other engines, and what is refused."""

from __future__ import annotations

import pytest

from wallaby.functions.text.java_regex import UnsafePatternError, replacement, translate


@pytest.mark.parametrize(
    ("java", "re2"),
    [
        ("a|b*?", "a|b*?"),
        ("^a$", "\\Aa\\z"),
        ("\\d\\W", "[0-9][^0-9A-Z_a-z]"),
        ("[\\w.-]{2,}", "[0-9A-Z_a-z\\.\\-]{2,}"),
        ("(?i)ab[c-e]", "[aA][bB][c-eC-E]"),
        ("(?<n>a)(?:b)", "(a)(?:b)"),
        ("\\x41\\u00e9\\.", "Aé\\."),
        ("\\p{Digit}", "[0-9]"),
        ("", ""),
    ],
)
def test_a_pattern_names_what_java_leaves_to_defaults(java: str, re2: str) -> None:
    assert translate(java).re2 == re2


def test_what_looks_around_is_for_python_only() -> None:
    pattern = translate("a(?=b)")
    assert (pattern.re2, pattern.python) == (None, "a(?=b)")


def test_groups_empty_matches_and_line_breaks_are_known() -> None:
    assert translate("(a)(?<b>b)(?:c)").groups == 2
    assert translate("a*|b").empty
    assert not translate("a*b").empty
    assert translate("a.").breaks
    assert not translate("a[^b]").breaks


@pytest.mark.parametrize(
    "java",
    [
        *(
            "\\b",
            "\\1",
            "a++",
            "a**",
            "(a*)*",
            "[a&&b]",
            "[a[b]]",
            "\\p{L}",
            "(?s)a",
            "(?x) a",
            "\\Qa\\E",
            "\\h",
            "\\R",
        ),
        *(
            "a{2",
            "a{3,2}",
            "a{1001}",
            "*a",
            "(a",
            "a)",
            "[a",
            "[]",
            "a\\",
            "[b-a]",
            "[a-c-e]",
            "\\ud800",
            "\\Z",
        ),
    ],
)
def test_what_engines_may_read_differently_is_refused(java: str) -> None:
    with pytest.raises(UnsafePatternError):
        translate(java)


def test_a_replacement_names_groups_by_as_many_digits_as_there_are() -> None:
    assert replacement("a$12\\$", 1) == ("a", 1, "2", "$")
    assert replacement("$12", 12) == (12,)
    for wrong in ("$3", "${n}", "\\", "$"):
        with pytest.raises(UnsafePatternError):
            replacement(wrong, 2)
