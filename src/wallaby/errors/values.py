"""Data errors for which Spark has a condition: divisions by zero, bad casts, bad positions.

Each is also a subclass of the class that PySpark raises for the condition.
"""

from __future__ import annotations

from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    SparkRuntimeException,
)

from wallaby.errors.queries import QueryError


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
    """A decimal that Spark rounded in between has more digits than its type."""

    condition = "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION"


class NumericOutOfSupportedRangeError(QueryError, ArithmeticException):
    """Text represents a number with more digits than any decimal can hold."""

    condition = "NUMERIC_OUT_OF_SUPPORTED_RANGE"


class CastInvalidInputError(QueryError, NumberFormatException, DateTimeException, SparkRuntimeException):
    """Text is not a value of the type it is cast to. Spark raises one of three classes; this is a subclass of all."""

    condition = "CAST_INVALID_INPUT"


class ConversionInvalidInputError(QueryError, IllegalArgumentException):
    """Text is not valid in the encoding in which it is read."""

    condition = "CONVERSION_INVALID_INPUT"


class BitPositionError(QueryError, IllegalArgumentException):
    """A number has no such bit."""

    condition = "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE"


class MalformedCharacterCodingError(QueryError, SparkRuntimeException):
    """Bytes are not valid text in their encoding."""

    condition = "MALFORMED_CHARACTER_CODING"


class EscapeInTheMiddleError(QueryError, AnalysisException):
    """The escape character of a pattern precedes a character that needs no escape."""

    condition = "INVALID_FORMAT.ESC_IN_THE_MIDDLE"


class EscapeAtTheEndError(QueryError, AnalysisException):
    """The escape character of a pattern is its last character."""

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


class ArrayIndexError(QueryError, ArrayIndexOutOfBoundsException):
    """A position is outside an array, under ANSI rules."""

    condition = "INVALID_ARRAY_INDEX"


class ElementAtError(QueryError, ArrayIndexOutOfBoundsException):
    """A position in `element_at` is outside the array, under ANSI rules."""

    condition = "INVALID_ARRAY_INDEX_IN_ELEMENT_AT"


class IndexOfZeroError(QueryError, SparkRuntimeException):
    """A position is 0 although positions count from 1."""

    condition = "INVALID_INDEX_OF_ZERO"


class SliceStartError(QueryError, SparkRuntimeException):
    """A slice begins at position 0."""

    condition = "INVALID_PARAMETER_VALUE.START"


class SliceLengthError(QueryError, SparkRuntimeException):
    """A slice has a negative length."""

    condition = "INVALID_PARAMETER_VALUE.LENGTH"


class SequenceError(QueryError, IllegalArgumentException):
    """The step of a sequence leads away from its end."""

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
