"""Text in files that is none: bytes that are not UTF-8.

Spark keeps such bytes, and every function of text has its own way with them. The libraries here either refuse the
file, fail for good (DuckDB, which then answers nothing any more), or carry the bytes to a client that cannot read
them. So they are looked for where files are read, and leave the query to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from wallaby.errors import DoubtfulValueError
from wallaby.relations.relation import DataFile


def require_text(tables: Iterable[pa.Table], file: DataFile) -> None:
    """Is all text in rows of a file text?

    Raises:
        DoubtfulValueError: it is not.
    """
    try:
        for table in tables:
            table.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
        raise no_text(file) from error


def no_text(file: DataFile) -> DoubtfulValueError:
    """What is raised for a file with text that is none."""
    return DoubtfulValueError(f"{file.path} has text that is not UTF-8.", path=file.path)
