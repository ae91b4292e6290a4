"""What a file system refuses, and what is said to do about it."""

from __future__ import annotations

import errno
import os

import pytest

from wallaby.tables.parquet_writing import cannot_write


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "Free some space"),
        (errno.EACCES, "Let the user of Spark's executors write"),
        (errno.EROFS, "Let the user of Spark's executors write"),
        (errno.ENAMETOOLONG, "shorter values"),
    ],
)
def test_an_error_of_a_file_system_says_what_helps(code: int, words: str) -> None:
    error = cannot_write("t", OSError(code, os.strerror(code)))
    assert os.strerror(code) in error.what
    assert words in error.fix
