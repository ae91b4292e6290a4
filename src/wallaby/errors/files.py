"""Errors about the files that a query reads: missing, changed since the query was planned, or damaged.

A full disk or a failed allocation is none of these: `is_of_this_worker` says so.
"""

from __future__ import annotations

import errno
from typing import Final

from py4j.protocol import Py4JJavaError

from wallaby.errors.queries import QueryError

#: A full disk, an exceeded quota, a file that may not grow further.
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: Too many open files, in this process or on this host; no memory in the kernel.
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})


def is_of_this_worker(error: BaseException) -> bool:
    """Does an error that was raised while a file was read say something about this process or host, not the file?"""
    if isinstance(error, MemoryError):  # so is Arrow's
        return True
    return isinstance(error, OSError) and error.errno in FULL | _EXHAUSTED


class SourceChangedError(QueryError):
    """A file is missing, or has changed since the query was planned."""

    condition = "WALLABY_SOURCE_CHANGED"


class _FileError(QueryError, Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """A file cannot be read. PySpark has no class for Spark's error, and raises Py4J's."""

    java_exception = None

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - the name is PySpark's
        """The file, as in Spark's own error."""
        path = str(self.fields.get("path", ""))
        return {"path": f"file://{path}" if path.startswith("/") else path}

    @property
    def is_of_data(self) -> bool:
        """False: if Spark can read the file, its rows are not used instead."""
        return False

    @property
    def is_of_spark_too(self) -> bool:
        """True: if Spark cannot read the file either, its error is raised."""
        return True


class SourceGoneError(_FileError, SourceChangedError):
    """A file no longer exists."""

    condition = "FAILED_READ_FILE.FILE_NOT_EXIST"


class CorruptFileError(_FileError):
    """A file cannot be read in its format."""

    condition = "FAILED_READ_FILE.NO_HINT"
