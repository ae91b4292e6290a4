"""Hand rows to Spark's tasks in types that Arrow has, where it lacks the type that Spark expects.

Arrow in Python has no intervals of months, so they are handed over as numbers of months. Rows without columns get one
column that nobody reads. A projection right above them, in Spark, restores the expected columns.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.types import (
    BooleanType,
    DataType,
    IntegerType,
    StructField,
    StructType,
    YearMonthIntervalType,
)


def handed_schema(expected: StructType) -> StructType:
    """The columns that are handed over for those that Spark expects.

    They get names of their own: Spark finds the columns of what Python gives by names, which need not be unique.
    """
    if not expected.fields:
        return StructType([StructField("c0", BooleanType(), nullable=False)])
    return StructType(
        [
            StructField(f"c{at}", _handed(column.dataType), column.nullable)
            for at, column in enumerate(expected.fields)
        ]
    )


def as_expected(rows: DataFrame, expected: StructType) -> DataFrame:
    """Convert handed-over rows to the types that Spark expects."""
    if all(_handed(column.dataType) is column.dataType for column in expected.fields) and expected.fields:
        return rows
    return rows.select(
        *(
            col(f"c{at}")
            if _handed(column.dataType) is column.dataType
            else col(f"c{at}").cast("interval month").cast(column.dataType)
            for at, column in enumerate(expected.fields)
        )
    )


def _handed(type_: DataType) -> DataType:
    return IntegerType() if isinstance(type_, YearMonthIntervalType) else type_
