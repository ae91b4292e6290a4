"""A DataFrame of Spark's over rows that stay in the TaskManagers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class KeptDataFrame(ClassicDataFrame):
    """A DataFrame whose rows stay in the TaskManagers, from the first action on it until `unpersist`.

    It is used like any other DataFrame. `engine.dataframe` and `engine.persist` make it.
    """

    def __init__(self, jdf: Any, df: DataFrame, release: Callable[[], None]) -> None:
        super().__init__(jdf, df.sparkSession)
        self._release = release

    def run(self) -> None:
        """Run the query now, if it has not run: nobody reads its rows yet."""
        self._jdf.queryExecution().executedPlan().execute()

    def unpersist(self, blocking: bool = False) -> KeptDataFrame:  # noqa: ARG002 - PySpark's signature
        """Let the rows go. An action that would read them later fails with the condition `WALLABY_KEPT_RESULT`.

        Args:
            blocking: As in PySpark; the rows are released at once in either case.

        Example:
            >>> kept = engine.persist(df)
            >>> kept.unpersist()
        """
        self._release()
        return self
