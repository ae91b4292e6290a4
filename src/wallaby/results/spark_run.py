"""One run of a query by Spark. Whatever ends the query ends Spark's jobs: before the first, during one, between two.

Spark forgets the cancellation of a tag as soon as the jobs that run have ended. So it is repeated until the action
ends: Spark may be about to start its first job, or the next.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from wallaby.errors import WallabyError
from wallaby.results.following import FollowedQuery
from wallaby.results.lifetime import QueryLifetime
from wallaby.spark.bypass import on_spark, spark_alone

if TYPE_CHECKING:
    import pandas as pd
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, Row

_log = logging.getLogger(__name__)
#: The jobs of a cancelled query are cancelled this often: Spark may start another.
AGAIN_SECONDS: Final = 0.1


class SparkRun:
    """One run of a query by Spark, whose rows come in the form that its caller wants."""

    def __init__(
        self,
        df: DataFrame,
        lifetime: QueryLifetime,
        *,
        alone: bool = False,
        record: FollowedQuery | None = None,
    ) -> None:
        """With `alone`, Spark runs the whole query; parts of it have been tried in the TaskManagers."""
        self._df, self._lifetime, self._alone, self._record = df, lifetime, alone, record
        self.seconds = 0.0
        #: None if they have not been counted.
        self.rows: int | None = None
        #: Has Spark run it, successfully or not?
        self.is_over = False

    def arrow(self) -> pa.Table:
        """All rows, by `DataFrame.toArrow`."""
        table: pa.Table = self.ask(self._df.toArrow)
        self.rows = table.num_rows
        return table

    def collect(self) -> list[Row]:
        """All rows, by `DataFrame.collect`."""
        rows: list[Row] = self.ask(self._df.collect)
        self.rows = len(rows)
        return rows

    def pandas(self) -> pd.DataFrame:
        """All rows, by `DataFrame.toPandas`."""
        frame: pd.DataFrame = self.ask(self._df.toPandas)
        self.rows = len(frame)
        return frame

    def batches(self, *arguments: bool, **named: bool) -> list[pa.RecordBatch]:
        """All rows, as PySpark collects batches."""
        collect: Callable[..., Any] = self._df._collect_as_arrow  # type: ignore[assignment]  # not a column
        batches: list[pa.RecordBatch] = self.ask(lambda: collect(*arguments, **named))
        return batches

    def drain(self) -> None:
        """Run the query, and drop the rows where they are produced."""
        self.ask(lambda: self._df._jdf.queryExecution().toRdd().count())

    def ask(self, action: Callable[[], Any]) -> Any:
        """Run an action of the query on Spark; whatever ends the query ends it."""
        context = self._df.sparkSession.sparkContext
        started = time.monotonic()
        run = partial(run_on_spark, context, self._lifetime, action)
        try:
            with on_spark(), spark_alone(context) if self._alone else nullcontext():
                return run() if self._record is None else self._record.answered_by_spark(run)
        finally:
            self.seconds = time.monotonic() - started
            self.is_over = True


def run_on_spark(context: SparkContext, lifetime: QueryLifetime, action: Callable[[], Any]) -> Any:
    """Let Spark run an action of a query, and return its answer.

    Raises:
        QueryCancelledError: the query was cancelled, now or before.
        QueryTimeoutError: its time is over.
    """
    jobs = _SparkJobs(context)
    lifetime.goes_on()
    try:
        lifetime.require()
        context.addJobTag(jobs.tag)
        try:
            with lifetime.running(jobs.end), lifetime.limit.watched(lambda: _expire(lifetime)):
                answer = action()
        finally:
            jobs.over.set()
            context.removeJobTag(jobs.tag)
    except (PySparkException, Py4JError) as error:
        cancelled = lifetime.cancelled
        lifetime.finish(cancelled or error)
        if cancelled is None or cancelled is error:
            raise
        raise cancelled from error
    except BaseException as error:
        lifetime.finish(error)
        raise
    lifetime.finish()
    return answer


def _expire(lifetime: QueryLifetime) -> None:
    lifetime.cancel(lifetime.limit.error(where=" while Spark ran it"))


class _SparkJobs:
    """The jobs of one action."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self.tag = f"wallaby-result-{uuid.uuid4().hex[:12]}"
        self.over = threading.Event()

    def end(self, _because: WallabyError | None) -> None:
        """End the action, without waiting for Spark."""
        threading.Thread(target=self._cancel, name="wallaby-cancel", daemon=True).start()

    def _cancel(self) -> None:
        while not self.over.is_set() and self._context._jsc is not None:
            try:
                self._context.cancelJobsWithTag(self.tag)
            except (Py4JError, OSError) as error:
                _log.debug("cancelling Spark's jobs of a query failed: %s", type(error).__name__)
            self.over.wait(AGAIN_SECONDS)
