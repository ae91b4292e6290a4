"""The result of a query that Spark runs as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wallaby.results.facts import QueryEvent, RunStats
from wallaby.results.following import FollowedQuery
from wallaby.results.lifetime import QueryLifetime
from wallaby.results.result import Result
from wallaby.results.spark_run import SparkRun

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, Row


class SparkResult(Result):
    """A query that Spark runs when its rows are requested."""

    native = False
    is_wholly_native = False

    def __init__(
        self, df: DataFrame, lifetime: QueryLifetime, *, record: FollowedQuery | None = None
    ) -> None:
        self.schema = df.schema
        self._df = df
        self._follow(lifetime)
        self._record = record
        self._run = SparkRun(df, lifetime, record=record)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give all rows at once."""
        return iter(self.arrow().to_batches())

    def arrow(self) -> pa.Table:
        """`DataFrame.toArrow`."""
        return self._run.arrow()

    def rows(self) -> list[Row]:
        """`DataFrame.collect`."""
        return self._run.collect()

    def pandas(self) -> pd.DataFrame:
        """`DataFrame.toPandas`."""
        return self._run.pandas()

    def rest(self) -> None:
        """Note that Spark begins only when rows are asked for; the time until then does not count."""
        self._lifetime.rest()

    def ask(self, action: Callable[[], Any]) -> Any:
        """Run an action of the query on Spark; whatever ends the query ends it."""
        return self._run.ask(action)

    def _rows_at_hand(self) -> None:
        """None: Spark's rows are not kept here."""
        return

    def _collect_as_arrow(self, *arguments: bool, **named: bool) -> list[pa.RecordBatch]:
        """As PySpark collects batches."""
        return self._run.batches(*arguments, **named)

    def _observed_stats(self) -> None:
        """None: Spark observes its own queries."""
        return

    @property
    def plan(self) -> None:
        """None: the engine has no plan for it."""
        return

    @property
    def is_over(self) -> bool:
        """Whether Spark has run it, successfully or not."""
        return self._run.is_over

    @property
    def events(self) -> list[QueryEvent]:
        """None: Spark has its own event log."""
        return []

    @property
    def stats(self) -> RunStats:
        """The few figures that are known here."""
        return RunStats(native=False, rows=self._run.rows, seconds=round(self._run.seconds, 3))
