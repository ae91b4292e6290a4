"""Errors as text: what a worker writes is what the head reads."""

from __future__ import annotations

import pytest

from wallaby.errors import MemoryLimitError, QueryError
from wallaby.errors.text import read_error, write_error


@pytest.mark.parametrize("kind", [QueryError, MemoryLimitError])
def test_an_error_comes_back_as_the_type_that_was_written(kind: type[QueryError]) -> None:
    """Also one whose condition a type without a condition of its own has inherited."""
    found = read_error(write_error(kind("s1.c0.t3 divides by zero.", fix="Do not.", task="s1.c0.t3")))
    assert type(found) is kind
    assert (found.what, found.fix) == ("s1.c0.t3 divides by zero.", "Do not.")
