"""The root of all errors, and errors that belong to no query: wrong arguments, settings, sessions and messages."""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Self

from pyspark.errors import PySparkException

from wallaby.errors.sql_states import SQL_STATES


class WallabyError(PySparkException):
    """The root of all errors: `what` happened, the `fix` to try, and named fields about it."""

    #: May the same call succeed if it is simply made again?
    retryable: ClassVar[bool] = False
    #: The condition that `getCondition()` returns, in Spark's style.
    condition: ClassVar[str] = "WALLABY_ERROR"

    def __init__(self, what: str, *, fix: str = "", **fields: object) -> None:
        self.what = what
        self.fix = fix
        self.fields = fields
        super().__init__(message=what + (f" {fix}" if fix else ""))

    def again(self) -> Self:
        """The same error, to be raised to a caller.

        An error that was raised names the caller's frames, with all that is in them. Whoever keeps an error raises this
        one, and so does not keep the caller's DataFrames, nor the rows that stay for them.
        """
        same = copy(self)
        same.__cause__ = self.__cause__
        return same

    def getCondition(self) -> str:  # noqa: N802 - the name is PySpark's
        """The name of the condition, as in PySpark's own errors."""
        return self.condition

    def getSqlState(self) -> str | None:  # noqa: N802 - the name is PySpark's
        """The SQLSTATE, as in PySpark's own errors."""
        return SQL_STATES.get(self.condition)

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - the name is PySpark's
        """The parameters of the message, as in PySpark's own errors."""
        return {}

    @property
    def is_of_data(self) -> bool:
        """Does Spark raise the same error for the same rows?"""
        return self.condition in SQL_STATES or self.condition.startswith("_LEGACY")

    @property
    def is_of_spark_too(self) -> bool:
        """Would Spark fail for the same reason, with its own message?"""
        return self.is_of_data


class InvalidArgumentError(WallabyError):
    """The caller passed an invalid argument: a bad seed range, an impossible stage graph."""

    condition = "WALLABY_INVALID_ARGUMENT"


class ConfigurationError(InvalidArgumentError):
    """A `spark.wallaby.*` setting is unknown, of the wrong type or impossible."""

    condition = "WALLABY_CONFIGURATION"


class AttachError(WallabyError):
    """An engine cannot be attached to this session, or its workers did not start."""

    condition = "WALLABY_ATTACH"


class UnsupportedSparkError(AttachError):
    """Wallaby does not run on this version of Spark; `fields` has the versions that it does run on."""

    condition = "WALLABY_UNSUPPORTED_SPARK"


class MissingPackageError(WallabyError):
    """An optional Python package is needed; the field `extra` names the extra of Wallaby that installs it."""

    condition = "WALLABY_MISSING_PACKAGE"


class UnsupportedTableError(WallabyError):
    """The files of a table alone do not give its rows, so it cannot be read by its path; the fix says how else."""

    condition = "WALLABY_UNSUPPORTED_TABLE"


class EncodingError(WallabyError):
    """Bytes are not a valid record, graph or message, or are of an unknown version."""

    condition = "WALLABY_ENCODING"


class WorkerLeavesError(WallabyError):
    """A TaskManager can no longer work, and ends; its queries continue without it."""

    condition = "WALLABY_WORKER_LEAVES"


class InternalError(WallabyError):
    """The engine has found an inconsistency, and stops instead of continuing with wrong data."""

    condition = "WALLABY_INTERNAL"
