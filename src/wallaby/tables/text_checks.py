"""Find text in files that is not valid UTF-8.

Spark keeps such bytes, and each text function treats them in its own way. The libraries here either refuse the file,
break (a DuckDB instance no longer answers), or carry the bytes to a client that cannot read them. So the bytes are
checked where files are read, and invalid text leaves the query to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from wallaby.errors import DoubtfulValueError
from wallaby.relations.relation import DataFile


def require_text(tables: Iterable[pa.Table], file: DataFile) -> None:
    """Check that all text in rows of a file is valid.

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
    """The error for a file with invalid text."""
    return DoubtfulValueError(f"{file.path} has text that is not UTF-8.", path=file.path)
