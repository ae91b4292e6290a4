"""The result of a query that needs rows from Spark first."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from wallaby.head.collected import Collected
from wallaby.observe.observation import QueryStats
from wallaby.plan.physical import PhysicalPlan
from wallaby.results.answered import only_this_query_is_interrupted
from wallaby.results.facts import QueryEvent, RunStats
from wallaby.results.following import FollowedQuery
from wallaby.results.lifetime import QueryLifetime
from wallaby.results.result import Result, result_of
from wallaby.results.spark_result import SparkResult
from wallaby.spark.leaves.run import LeafRun

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, Row


class LeafResult(Result):
    """The result of a query that needs rows from Spark first.

    How it continues is decided before the first row of the result.
    """

    is_wholly_native = False

    def __init__(
        self,
        df: DataFrame,
        run: LeafRun,
        lifetime: QueryLifetime,
        *,
        spark_errors: bool,
        record: FollowedQuery | None = None,
    ) -> None:
        self.schema = df.schema
        self._df = df
        self._follow(lifetime)
        #: A result that nobody holds any more ends its query; once it is decided, that is another result's task.
        self._dropped = weakref.finalize(self, _end, run)
        self._dropped.atexit = False
        self._spark_errors = spark_errors
        self._run = run
        self._record = record
        self._decided: Result | None = None

    def decided(self) -> Result:
        """Wait for Spark's part. Then the engine runs the rest or, if the rows cannot be handed over, Spark does."""
        if self._decided is None:
            with only_this_query_is_interrupted():
                try:
                    outcome = self._run.outcome.result()
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt):
                        self.cancel()
                    self._failed(error)
                    raise
            if self._record is not None:
                self._record.partly((), self._run.seconds)
            if isinstance(outcome, Collected):
                self._decided = result_of(
                    self._df,
                    outcome,
                    self._lifetime,
                    spark_errors=self._spark_errors,
                    record=self._record,
                )
            else:
                self._lifetime.goes_on_after_run()
                self.native = False
                if self._record is not None:
                    self._record.on_spark((f"left to Spark while running: {outcome.what}",))
                self._decided = SparkResult(self._df, self._lifetime, record=self._record)
            self._dropped.detach()
        return self._decided

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they arrive, once Spark has run its part."""
        return self.decided().batches()

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table, exactly as `DataFrame.toArrow` gives it."""
        return self.decided().arrow()

    def rows(self) -> list[Row]:
        """All rows as PySpark rows, exactly as `DataFrame.collect` gives them."""
        return self.decided().rows()

    def pandas(self) -> pd.DataFrame:
        """All rows as a pandas data frame, exactly as `DataFrame.toPandas` gives it."""
        return self.decided().pandas()

    def _collect_as_arrow(self, *arguments: bool, **named: bool) -> list[pa.RecordBatch]:
        """The batches, as PySpark collects them."""
        return self.decided()._collect_as_arrow(*arguments, **named)

    def _rows_at_hand(self) -> list[pa.RecordBatch] | None:
        """The rows, if all of them have arrived."""
        return None if self._decided is None else self._decided._rows_at_hand()

    @property
    def plan(self) -> PhysicalPlan | None:
        """The stages of the query, once Spark has run its part; None if Spark runs all of it."""
        return self.decided().plan

    @property
    def is_over(self) -> bool:
        """Whether the query has ended, successfully or not."""
        if self._decided is not None:
            return self._decided.is_over
        outcome = self._run.outcome
        return outcome.done() and (outcome.cancelled() or outcome.exception() is not None)

    @property
    def stats(self) -> RunStats:
        """Figures of the run; while Spark's part runs there are none yet."""
        unknown = RunStats(native=True, rows=None, seconds=0.0)
        known = unknown if self._decided is None else self._decided.stats
        return replace(known, leaves=self._run.leaves, leaf_seconds=round(self._run.seconds, 3))

    def _observed_stats(self) -> QueryStats | None:
        """The observed figures, once Spark has run its part."""
        return self.decided()._observed_stats()

    @property
    def events(self) -> list[QueryEvent]:
        """The events in the query's log so far."""
        return [] if self._decided is None else self._decided.events


def _end(run: LeafRun) -> None:
    """End a run on another thread: the caller may be in the middle of anything, even of a call to Spark."""
    threading.Thread(target=run.cancel, name="wallaby-cancel", daemon=True).start()
