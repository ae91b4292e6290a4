"""A Spark DataFrame whose rows stay in the TaskManagers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class KeptDataFrame(ClassicDataFrame):
    """A DataFrame whose rows stay in the TaskManagers, from its first action until `unpersist`.

    Use it like any other DataFrame. `engine.dataframe` and `engine.persist` create it.
    """

    def __init__(
        self, jdf: Any, df: DataFrame, release: Callable[[], None], stays: Callable[[], bool]
    ) -> None:
        super().__init__(jdf, df.sparkSession)
        self._release = release
        self._stays = stays

    def run(self) -> bool:
        """Run the query now unless it has run already; no rows are read yet. False if it was left to Spark."""
        self._jdf.queryExecution().executedPlan().execute().getNumPartitions()
        return self._stays()

    def unpersist(self, blocking: bool = False) -> KeptDataFrame:
        """Release the rows. Later actions that need them fail with the condition `WALLABY_KEPT_RESULT`.

        Args:
            blocking: Wait until Spark has removed the rows that `cache` put into its own memory, if any.

        Example:
            >>> kept = engine.persist(df)
            >>> kept.unpersist()
        """
        self._release()
        super().unpersist(blocking)
        return self
