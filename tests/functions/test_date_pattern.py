"""Patterns of dates and times, for writing and for reading."""

from __future__ import annotations

import pytest

from wallaby.functions.times.date_pattern import Part, read_parts, written_parts


def test_a_pattern_is_letters_and_texts() -> None:
    assert written_parts("yyyy-M'T''o'") == (
        Part("y", 4),
        Part("", 0, "-"),
        Part("M", 1),
        Part("", 0, "T'o"),
    )
    assert written_parts("''") == (Part("", 0, "'"),)


@pytest.mark.parametrize("pattern", ["", "G", "yyyyy", "VV", "[yyyy]", "'open", "ww", "yyyy #"])
def test_what_means_something_else_is_not_written(pattern: str) -> None:
    assert written_parts(pattern) is None


@pytest.mark.parametrize("pattern", ["yyyy", "yyyy-MM", "dd/MM/yyyy HH:mm", "yyyyMMddHHmmss.SSSSSS"])
def test_fixed_numbers_are_read(pattern: str) -> None:
    assert read_parts(pattern) is not None


@pytest.mark.parametrize(
    "pattern", ["yyyyMMddHHmmssSSS", "HH:mm:ss.SSSyyyy", "yyyy HH:mm:ss.SS1", "yyyy HH:mm:ss.S''"]
)
def test_a_fraction_stands_apart_from_other_digits(pattern: str) -> None:
    assert read_parts(pattern) is None


@pytest.mark.parametrize(
    "pattern", ["MM-dd", "yyyy-dd", "y-MM-dd", "yyyy-MM-dd mm", "yyyy-MM-MM", "EEE yyyy"]
)
def test_what_lacks_a_part_or_has_no_fixed_length_is_not_read(pattern: str) -> None:
    assert read_parts(pattern) is None
