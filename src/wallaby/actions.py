"""PySpark's actions on an engine: each takes a DataFrame and returns what the DataFrame's own method returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from wallaby.errors import InvalidArgumentError
from wallaby.results.result import Result
from wallaby.results.spark_result import SparkResult
from wallaby.spark.bypass import on_spark

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row

#: For more rows than this, Spark's `show` raises an error.
SHOW_ROWS_MAX = (1 << 31) - 1


class Actions(ABC):
    """The methods that `Engine` shares with a DataFrame.

    All of them raise `InvalidArgumentError` for anything but a DataFrame, `AttachError` if the engine is closed,
    `QueryError` if a query fails, and PySpark's own errors where PySpark would.
    """

    spark: SparkSession

    @abstractmethod
    def run(self, df: DataFrame, *, observed: bool = False) -> Result:
        """Run a query and return its result."""

    @abstractmethod
    def run_native(self, df: DataFrame, *, observed: bool = False) -> Result | None:
        """Run a query only if the engine can."""

    def to_arrow(self, df: DataFrame) -> pa.Table:
        """Return all rows as an Arrow table, exactly as `df.toArrow()` does.

        Example:
            >>> engine.to_arrow(spark.sql("select 1 as one"))
        """
        return self.run(df).arrow()

    def collect(self, df: DataFrame) -> list[Row]:
        """Return all rows as a list, exactly as `df.collect()` does."""
        return self.run(df).rows()

    def to_pandas(self, df: DataFrame) -> pd.DataFrame:
        """Return all rows as a pandas data frame, exactly as `df.toPandas()` does."""
        return self.run(df).pandas()

    def count(self, df: DataFrame) -> int:
        """Return the number of rows, exactly as `df.count()` does."""
        require_dataframe(df)
        return int(self.run(df.groupBy().count()).rows()[0][0])

    def take(self, df: DataFrame, num: int) -> list[Row]:
        """Return the first `num` rows, exactly as `df.take(num)` does."""
        require_dataframe(df)
        return self.run(df.limit(num)).rows()

    def first(self, df: DataFrame) -> Row | None:
        """Return the first row, or None if there is none, exactly as `df.first()` does."""
        rows = self.take(df, 1)
        return rows[0] if rows else None

    def head(self, df: DataFrame, n: int | None = None) -> Row | list[Row] | None:
        """Return the first row, or with `n` a list of the first `n` rows, exactly as `df.head(n)` does."""
        return self.first(df) if n is None else self.take(df, n)

    def show(self, df: DataFrame, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> None:
        """Print the first `n` rows as a table, exactly as `df.show(n, truncate, vertical)` does."""
        require_dataframe(df)
        result = self.run(df.limit(n + 1)) if can_be_shown(n) else None
        if isinstance(result, SparkResult):
            result.ask(lambda: df.show(n, truncate, vertical))
            return
        shown = df if result is None else as_local_rows(df, result)
        with on_spark():
            shown.show(n, truncate, vertical)


def require_dataframe(df: object) -> None:
    """Refuse anything but a DataFrame of a classic session.

    Raises:
        InvalidArgumentError: it is something else.
    """
    if not isinstance(df, ClassicDataFrame):
        remote = type(df).__module__.startswith("pyspark.sql.connect")
        what = "a DataFrame of Spark Connect" if remote else type(df).__name__
        raise InvalidArgumentError(
            f"Expected a DataFrame, got {what}.", fix="Pass a DataFrame of the session that the engine is on."
        )


def can_be_shown(n: object) -> bool:
    """Does `show` accept this number of rows? For any other, PySpark raises an error."""
    return type(n) is int and 0 <= n < SHOW_ROWS_MAX


def as_local_rows(df: DataFrame, result: Result) -> DataFrame:
    """A result as a DataFrame of local rows, which Spark can print without a job."""
    return df.sparkSession.createDataFrame(result.arrow(), df.schema)
