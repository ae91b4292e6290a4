"""Every error a user of Wallaby can see, in one tree under `WallabyError`.

An error says what happened, to which named thing, and what to do about it. What a program may want to
know stands in fields (`task`, `worker`, `address`, …), never only in prose, and whether trying again can
help is a property of the type. `WallabyError` is a `PySparkException`, so code that already handles
PySpark's errors handles ours.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    PySparkException,
    SparkRuntimeException,
)

from wallaby.sql_states import SQL_STATES


class WallabyError(PySparkException):
    """The root: `what` happened, the `fix` to try, and named fields about it."""

    #: May the same call succeed if it is simply made again?
    retryable: ClassVar[bool] = False
    #: The condition name that `getCondition()` answers, in Spark's style.
    condition: ClassVar[str] = "WALLABY_ERROR"

    def __init__(self, what: str, *, fix: str = "", **fields: object) -> None:
        self.what = what
        self.fix = fix
        self.fields = fields
        super().__init__(message=what + (f" {fix}" if fix else ""))

    def getCondition(self) -> str:  # noqa: N802 - the name is PySpark's
        """The condition's name, as PySpark's own errors answer it."""
        return self.condition

    def getSqlState(self) -> str | None:  # noqa: N802 - the name is PySpark's
        """The SQLSTATE, as PySpark's own errors answer it."""
        return SQL_STATES.get(self.condition)

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - the name is PySpark's
        """What the message was made of, as PySpark's own errors answer it."""
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


class EncodingError(WallabyError):
    """Bytes are not a valid record, graph or message, or are of an unknown version."""

    condition = "WALLABY_ENCODING"


class GcsError(WallabyError):
    """The control store did not do what was asked; nothing is known to be lost."""

    condition = "WALLABY_GCS"


class GcsUnavailableError(GcsError):
    """No answer in time, or the connection broke: the action may or may not have been applied."""

    condition = "WALLABY_GCS_UNAVAILABLE"
    retryable = True


class GcsUnreachableError(GcsError):
    """Nothing at the given address speaks Redis."""

    condition = "WALLABY_GCS_UNREACHABLE"


class GcsAuthenticationError(GcsError):
    """The store wants a password or refused the one it was given."""

    condition = "WALLABY_GCS_AUTHENTICATION"


class GcsVersionError(GcsError):
    """The store is too old for the scripts that we run in it."""

    condition = "WALLABY_GCS_VERSION"


class GcsLostError(GcsError):
    """The store was restarted or lost data: what it holds can no longer be trusted."""

    condition = "WALLABY_GCS_LOST"


class WorkerLeavesError(WallabyError):
    """A TaskManager can no longer work, and ends; its queries continue without it."""

    condition = "WALLABY_WORKER_LEAVES"


class QueryError(WallabyError):
    """A query ended without its result."""

    condition = "WALLABY_QUERY"


class DurableStoreError(QueryError):
    """The durable store of outputs or states is gone, full, or damaged."""

    condition = "WALLABY_DURABLE_STORE"


class QueryCancelledError(QueryError):
    """The query was cancelled by its user."""

    condition = "WALLABY_QUERY_CANCELLED"


class SparkCancelledError(QueryCancelledError, Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """Spark cancelled the query: a job group, a tag, an operation, all jobs. It is also what PySpark raises then."""

    condition = "SPARK_JOB_CANCELLED"

    def __init__(self, what: str, *, fix: str = "", java_exception: Any = None, **fields: object) -> None:
        super().__init__(what, fix=fix, **fields)
        self.errmsg = what
        #: Spark's own exception, in the JVM.
        self.java_exception = java_exception

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - the name is PySpark's
        """The number of the job and the reason, as Spark's own exception has them."""
        return {name: str(value) for name, value in self.fields.items()}

    @property
    def is_of_data(self) -> bool:
        """It came from outside."""
        return False


class QueryTimeoutError(QueryError):
    """The query took longer than `spark.wallaby.timeout`, and was ended."""

    condition = "WALLABY_QUERY_TIMEOUT"


class QueryStalledError(QueryError):
    """Nothing moved for `spark.wallaby.stallTimeout` although nobody was busy; the field `waits` has who waits."""

    condition = "WALLABY_QUERY_STALLED"


class ResultSizeError(QueryError, Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """A result is larger than `spark.driver.maxResultSize`. PySpark raises Py4J's error for it, without a condition."""

    condition = "WALLABY_MAX_RESULT_SIZE"
    java_exception = None


class DivergenceError(QueryError):
    """The same task gave two different outputs or records, so the query must not continue."""

    condition = "WALLABY_DIVERGENCE"


class WorkerLostError(QueryError):
    """A worker of the query was lost, and fault tolerance is switched off."""

    condition = "WALLABY_WORKER_LOST"
    retryable = True


class NoWorkersError(QueryError):
    """Every worker is gone and none came back in time."""

    condition = "WALLABY_NO_WORKERS"


class PoisonTaskError(QueryError):
    """A task's worker was lost too often while it ran; it probably kills them."""

    condition = "WALLABY_POISON_TASK"


class RecoveryTimeoutError(QueryError):
    """The query stood frozen for longer than its limit."""

    condition = "WALLABY_RECOVERY_TIMEOUT"


class ArithmeticOverflowError(QueryError, ArithmeticException):
    """A whole number left the range of its type."""

    condition = "ARITHMETIC_OVERFLOW"


class DivideByZeroError(QueryError, ArithmeticException):
    """A division by zero, under ANSI rules."""

    condition = "DIVIDE_BY_ZERO"


class BinaryArithmeticOverflowError(QueryError, ArithmeticException):
    """A sum, difference or product of tinyints or smallints left the range of its type."""

    condition = "BINARY_ARITHMETIC_OVERFLOW"


class IntervalOverflowError(QueryError, ArithmeticException):
    """A sum of intervals does not fit the type."""

    condition = "INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION"


class IntervalTooLongError(QueryError, ArithmeticException):
    """An interval has more months than its type can hold."""

    condition = "INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION"


class RemainderByZeroError(QueryError, ArithmeticException):
    """The remainder of a division by zero, under ANSI rules."""

    condition = "REMAINDER_BY_ZERO"


class NumericOutOfRangeError(QueryError, ArithmeticException):
    """A decimal has more digits than its type."""

    condition = "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"


class DecimalTooLongError(QueryError, ArithmeticException):
    """A decimal that Spark rounded on the way has more digits than its type."""

    condition = "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION"


class NumericOutOfSupportedRangeError(QueryError, ArithmeticException):
    """Text stands for a number with more digits than any decimal can hold."""

    condition = "NUMERIC_OUT_OF_SUPPORTED_RANGE"


class CastInvalidInputError(QueryError, NumberFormatException, DateTimeException, SparkRuntimeException):
    """Text is not a value of the type it is cast to. Spark raises one of three types for it; this is all of them."""

    condition = "CAST_INVALID_INPUT"


class ConversionInvalidInputError(QueryError, IllegalArgumentException):
    """A text is not in the encoding that it is read in."""

    condition = "CONVERSION_INVALID_INPUT"


class BitPositionError(QueryError, IllegalArgumentException):
    """A number has no such bit."""

    condition = "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE"


class MalformedCharacterCodingError(QueryError, SparkRuntimeException):
    """Bytes are not valid text in their encoding."""

    condition = "MALFORMED_CHARACTER_CODING"


class EscapeInTheMiddleError(QueryError, AnalysisException):
    """The escape of a pattern stands before a character that needs none."""

    condition = "INVALID_FORMAT.ESC_IN_THE_MIDDLE"


class EscapeAtTheEndError(QueryError, AnalysisException):
    """The escape of a pattern stands before nothing."""

    condition = "INVALID_FORMAT.ESC_AT_THE_END"


class MismatchedFormatError(QueryError, IllegalArgumentException):
    """Text is not a number in the given format."""

    condition = "INVALID_FORMAT.MISMATCH_INPUT"


class CannotDecodeUrlError(QueryError, IllegalArgumentException):
    """A percent sign in a URL does not begin a valid escape."""

    condition = "CANNOT_DECODE_URL"


class CastOverflowError(QueryError, ArithmeticException):
    """A number does not fit the type that it is cast to."""

    condition = "CAST_OVERFLOW"


class DateTimeFieldError(QueryError, DateTimeException):
    """A date or a time was built from impossible parts: a thirteenth month, the hour 25."""

    condition = "DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION"


class DateTimeOverflowError(QueryError, ArithmeticException):
    """A date or a time is too far away for its type."""

    condition = "DATETIME_OVERFLOW"


class ParseTimestampError(QueryError, DateTimeException):
    """Text does not match the pattern of a date or a time."""

    condition = "CANNOT_PARSE_TIMESTAMP"


class FractionOfSecondError(QueryError, DateTimeException):
    """A time was built with more than 60 seconds, but less than 61."""

    condition = "INVALID_FRACTION_OF_SECOND"


class TooManyRowsError(QueryError):
    """A scalar subquery returned more than one row. PySpark has only Py4J's error for it."""

    condition = "SCALAR_SUBQUERY_TOO_MANY_ROWS"


class SourceChangedError(QueryError):
    """A file is missing, or has changed since the query was planned."""

    condition = "WALLABY_SOURCE_CHANGED"


class _FileError(QueryError, Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """A file cannot be read. PySpark has no class for what Spark says then, and raises Py4J's error."""

    java_exception = None

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - the name is PySpark's
        """The file, as Spark's own error has it."""
        path = str(self.fields.get("path", ""))
        return {"path": f"file://{path}" if path.startswith("/") else path}

    @property
    def is_of_data(self) -> bool:
        """Another reader may find nothing wrong: its rows are not taken instead."""
        return False

    @property
    def is_of_spark_too(self) -> bool:
        """If Spark cannot read the file either, it says so."""
        return True


class SourceGoneError(_FileError, SourceChangedError):
    """A file no longer exists."""

    condition = "FAILED_READ_FILE.FILE_NOT_EXIST"


class CorruptFileError(_FileError):
    """A file cannot be read in its format."""

    condition = "FAILED_READ_FILE.NO_HINT"


class HandOverError(QueryError):
    """Rows of a Spark leaf could not be handed over. The engine catches it and lets Spark run the whole query."""

    condition = "WALLABY_HAND_OVER"


class DoubtfulValueError(QueryError):
    """A value that only Spark knows how to treat. The engine catches it and lets Spark run the whole query."""

    condition = "WALLABY_DOUBTFUL_VALUE"


class ArrayIndexError(QueryError, ArrayIndexOutOfBoundsException):
    """A position outside of an array, under ANSI rules."""

    condition = "INVALID_ARRAY_INDEX"


class ElementAtError(QueryError, ArrayIndexOutOfBoundsException):
    """A position outside of an array in `element_at`, under ANSI rules."""

    condition = "INVALID_ARRAY_INDEX_IN_ELEMENT_AT"


class IndexOfZeroError(QueryError, SparkRuntimeException):
    """The position 0 where positions count from 1."""

    condition = "INVALID_INDEX_OF_ZERO"


class SliceStartError(QueryError, SparkRuntimeException):
    """A slice that begins at position 0."""

    condition = "INVALID_PARAMETER_VALUE.START"


class SliceLengthError(QueryError, SparkRuntimeException):
    """A slice of negative length."""

    condition = "INVALID_PARAMETER_VALUE.LENGTH"


class SequenceError(QueryError, IllegalArgumentException):
    """A sequence whose step leads away from its end."""

    condition = "_LEGACY_ERROR_TEMP_3243"


class MapLengthsError(QueryError, SparkRuntimeException):
    """A map was built from different numbers of keys and values."""

    condition = "_LEGACY_ERROR_TEMP_2128"


class NullMapKeyError(QueryError, SparkRuntimeException):
    """A key of a map is NULL."""

    condition = "NULL_MAP_KEY"


class DuplicatedMapKeyError(QueryError, SparkRuntimeException):
    """A map would have a key twice."""

    condition = "DUPLICATED_MAP_KEY"


class MemoryLimitError(QueryError):
    """A step needs more memory than the budget allows, and cannot spill it."""

    condition = "WALLABY_MEMORY_LIMIT"


#: What is said of a step that failed for a reason that nobody foresaw.
STEP_FAILED: Final = "A step of the query could not be run."
REPORT_IT: Final = "Please report it with the query and with what the driver's log says."


class KernelError(QueryError):
    """A step was refused or failed for a reason that nobody foresaw. The field `detail` has a library's own words."""

    condition = "WALLABY_KERNEL"

    @property
    def is_of_data(self) -> bool:
        """It may be: some value that no step is made for. What becomes of the query then, Spark knows."""
        return True


class InternalError(WallabyError):
    """The engine contradicts itself. It stops instead of going on wrong."""

    condition = "WALLABY_INTERNAL"


def query_errors() -> dict[str, type[QueryError]]:
    """Every type of a query's errors, by its condition."""
    kinds: list[type[QueryError]] = [QueryError, *_kinds_of(QueryError)]
    return {kind.condition: kind for kind in kinds}


def _kinds_of(kind: type[QueryError]) -> list[type[QueryError]]:
    return [found for child in kind.__subclasses__() for found in (child, *_kinds_of(child))]
