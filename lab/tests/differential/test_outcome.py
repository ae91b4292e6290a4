"""What became of a query: the condition of an error, however it came through."""

from __future__ import annotations

import pytest

from wallaby_lab.differential.outcome import condition_of


@pytest.mark.parametrize(
    ("message", "condition"),
    [
        ("o1.getResult\n: Caused by: [DIVIDE_BY_ZERO] Division by zero.", "DIVIDE_BY_ZERO"),
        (
            "o1.getResult\n: Caused by: java.lang.ArithmeticException: long overflow\n at",
            "ARITHMETIC_OVERFLOW",
        ),
        ("[CAST_OVERFLOW] java.lang.ArithmeticException: integer overflow", "CAST_OVERFLOW"),
        ("java.lang.IllegalStateException: long overflow", "java.lang.IllegalStateException: long overflow"),
    ],
)
def test_an_error_without_a_condition_has_that_of_what_overflowed(message: str, condition: str) -> None:
    assert condition_of(RuntimeError(message)) == condition
