"""Errors about the files that a query reads: missing, changed since the query was planned, or damaged."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError

from wallaby.errors.queries import QueryError


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
