"""The result of a query: rows from the last stage, in the form that the caller wants.

PySpark's own conversions turn our batches into Arrow tables, pandas frames and rows, so that types, names and time
zones are exactly those of `toArrow`, `toPandas` and `collect`.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from wallaby.catalyst.spark_versions import arrow_schema
from wallaby.errors import (
    DoubtfulValueError,
    HandOverError,
    InvalidArgumentError,
    QueryError,
    QueryTimeoutError,
)
from wallaby.frontend.replanning import Replanning
from wallaby.head.collected import Collected
from wallaby.observe.finding import Finding
from wallaby.observe.observation import QueryStats
from wallaby.plan.physical import PhysicalPlan
from wallaby.results.answered import Answered, as_spark_names, only_this_query_is_interrupted
from wallaby.results.facts import QueryEvent, RunStats, event_of, stats_of
from wallaby.results.following import FollowedQuery
from wallaby.results.lifetime import QueryLifetime
from wallaby.results.shown import shown_result
from wallaby.results.spark_run import SparkRun

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, Row

#: How long `stats` waits for the last figures of a query whose rows are complete.
FIGURES_SECONDS = 5.0
_log = logging.getLogger(__name__)
_BINARY_AS_BYTES = "spark.sql.execution.pyspark.binaryAsBytes"


class Result:
    """One run of one query: `Engine.run` returns it, and the rows arrive while the query runs.

    Read the rows once as a stream (`batches`), or any number of times as a whole (`arrow`, `rows`, `pandas`). Reading
    raises the query's error if it fails: a `QueryError`, or for data errors such as a division by zero the error that
    PySpark raises. When a result is garbage-collected, its query is cancelled.

    Example:
        >>> result = engine.run(df)
        >>> result.pandas()
        >>> result.stats.seconds
        0.412

    Attributes:
        schema: The schema of the rows, as `DataFrame.schema` gives it.
        native: Did the engine run the query? It becomes False if the query was left to Spark while it ran.
        is_wholly_native: False if Spark runs the query or a part of it.
    """

    native = True
    is_wholly_native = True

    def __init__(
        self,
        df: DataFrame,
        collected: Collected,
        lifetime: QueryLifetime,
        *,
        spark_errors: bool = False,
        replanning: Replanning | None = None,
        record: FollowedQuery | None = None,
    ) -> None:
        self.schema = df.schema
        self._df = df
        self._follow(lifetime)
        self._record = record
        self._spark_errors = spark_errors
        self._replanning = replanning
        self._begin(collected)
        self._arrow_schema = arrow_schema(df.schema)
        self._whole: list[pa.RecordBatch] | None = None
        #: Spark's run of the query, if it was left to Spark, and the reason.
        self._sparks: SparkRun | None = None
        self._left: QueryError | None = None

    def _follow(self, lifetime: QueryLifetime) -> None:
        self._lifetime = lifetime
        weakref.finalize(self, lifetime.give_up).atexit = False

    def _begin(self, collected: Collected) -> None:
        self._collected = collected
        self._taken = False
        if self._record is not None:
            self._record.runs(collected)
        # A result that is no longer referenced ends its query: its rows would wait at the workers for ever.
        weakref.finalize(self, collected.cancel).atexit = False

    def _begins_again(self, error: QueryError) -> bool:
        """Has the query begun again, with a plan that avoids this error? Only if the client has no rows yet."""
        self._lifetime.goes_on_after_run()
        try:
            collected = None if self._replanning is None else self._replanning.after(error)
        except BaseException as why:
            self._lifetime.cancel()  # it may have begun
            self._failed(why)
            raise
        if collected is not None:
            if self._record is not None:
                self._record.begins_again(error.what)
            self._begin(collected)
        return collected is not None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow batches while the query runs.

        They can be read only once, unless all rows have been read by `arrow`, `rows` or `pandas` before.

        Raises:
            InvalidArgumentError: the rows have already been read as a stream.
            QueryError: the query failed or was cancelled.

        Example:
            >>> for batch in engine.run(df).batches():
            ...     print(batch.num_rows)
        """
        if self._whole is not None:
            return iter(self._whole)
        return self._stream(self._take())

    def _take(self) -> Iterator[pa.RecordBatch]:
        """The engine's rows, which can be taken once."""
        if self._taken:
            raise InvalidArgumentError(
                "The rows of this result have already been read as a stream.", fix="Run the query again."
            )
        self._taken = True
        return (as_spark_names(batch, self._arrow_schema) for batch in self._collected.batches())

    def _stream(self, taken: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = False
        try:
            for batch in taken:
                given = True
                yield batch
        except QueryError as error:
            if not given and self._begins_again(error):
                yield from self._stream(self._take())
                return
            if given or not self._is_sparks(error):
                self._raise_as_spark(error)
                raise
            self._leave_to_spark(error)
            table: pa.Table = self._from_spark(SparkRun.arrow)
            yield from table.cast(self._arrow_schema).to_batches()

    def _is_sparks(self, error: QueryError) -> bool:
        """Should Spark decide how this query ends? Always, if a value is in doubt."""
        return isinstance(error, DoubtfulValueError) or (self._spark_errors and error.is_of_data)

    def _failed(self, error: BaseException) -> None:
        """Note that the query has failed or was cancelled."""
        self._lifetime.finish(error)
        if self._record is not None:
            self._record.failed(error)

    def _leave_to_spark(self, error: QueryError) -> None:
        """Let Spark answer from here on, with rows or an error. The client must not have any rows yet."""
        if detail := error.fields.get("detail"):
            _log.warning("left to Spark while running: %s %s", error.what, detail)
        self.native = False
        self._left = error
        if self._record is not None:
            self._record.on_spark((f"left to Spark while running: {error.what}",))
        self._sparks = SparkRun(self._df, self._lifetime, alone=True, record=self._record)

    def _from_spark(self, ask: Callable[[SparkRun], Any]) -> Any:
        assert self._sparks is not None, "it was left to Spark"
        try:
            return ask(self._sparks)
        except (PySparkException, Py4JError) as sparks:
            raise sparks from self._left

    def _raise_as_spark(self, error: QueryError) -> None:
        """Raise Spark's own error, if it has one. Its rows are not needed, and are dropped."""
        if self._record is not None:
            self._record.failed(error)
        if detail := error.fields.get("detail"):
            _log.error("%s %s", error.what, detail)
        try:
            if self._spark_errors and error.is_of_spark_too:
                SparkRun(self._df, self._lifetime, alone=True).drain()
        except QueryTimeoutError:
            return  # it has failed already, and only Spark's words for that would take too long
        except (PySparkException, Py4JError) as sparks:
            raise sparks from error
        finally:
            self._lifetime.finish(error)

    def arrow(self) -> pa.Table:
        """Return all rows as an Arrow table, exactly as `DataFrame.toArrow` gives it.

        Raises:
            InvalidArgumentError: the rows have already been read as a stream.
            QueryError: the query failed or was cancelled.
        """
        return self._whole_as(lambda known: known.toArrow(), SparkRun.arrow)

    def rows(self) -> list[Row]:
        """Return all rows as PySpark rows, exactly as `DataFrame.collect` gives them.

        Raises:
            InvalidArgumentError: the rows have already been read as a stream.
            QueryError: the query failed or was cancelled.
        """
        rows: list[Row] = self._whole_as(lambda known: known.collect(), SparkRun.collect)
        return rows

    def pandas(self) -> pd.DataFrame:
        """Return all rows as a pandas data frame, exactly as `DataFrame.toPandas` gives it.

        Raises:
            InvalidArgumentError: the rows have already been read as a stream.
            QueryError: the query failed or was cancelled.
        """
        frame: pd.DataFrame = self._whole_as(lambda known: known.toPandas(), SparkRun.pandas)
        return frame

    def _whole_as(self, here: Callable[[Answered], Any], there: Callable[[SparkRun], Any]) -> Any:
        """All rows, from the engine or, if it has left the query to Spark, from Spark itself."""
        if self._sparks is None:
            self._await_all()
        if self._whole is None:
            return self._from_spark(there)
        return here(Answered(self._df, self._whole))

    def cancel(self) -> None:
        """Cancel the query; callers that wait for its rows get `QueryCancelledError`.

        A query that has ended is not affected.
        """
        self._lifetime.cancel()

    @property
    def plan(self) -> PhysicalPlan | None:
        """The stages of the query; None if Spark runs it. Its form may change between versions."""
        observation = self._collected.observation
        return None if observation is None else observation.plan

    @property
    def is_over(self) -> bool:
        """Whether the query has ended, successfully or not."""
        return self._collected.is_over

    @property
    def stats(self) -> RunStats:
        """Figures of the run: complete when the query has ended, until then the present ones.

        Example:
            >>> result.stats
            RunStats(native=True, rows=5, seconds=0.412, query='q-5d0c1f', stages=3, tasks=41, …)
        """
        if self._collected.is_over:
            self._collected.removed.wait(FIGURES_SECONDS)
        return stats_of(
            self._collected.query, self._collected.figures, self._observed_stats(), native=self.native
        )

    def _observed_stats(self) -> QueryStats | None:
        """The observed figures, if the run was observed."""
        observation = self._collected.observation
        return None if observation is None else observation.stats()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What cost the query most, each with its share of the time and what to do; few unless it was observed.

        Example:
            >>> print(engine.run(df, observed=True).findings[0])
            41% of the time: lineitem is read twice, in s0, s2. Compute what both need once, and keep it: …
        """
        return () if self._record is None else self._record.findings()

    @property
    def events(self) -> list[QueryEvent]:
        """The events in the query's log so far; without a log, only losses, recoveries and the end.

        Example:
            >>> [event.fields["lost"] for event in result.events if event.kind == "froze"]
        """
        observation = self._collected.observation
        return [] if observation is None else [event_of(event) for event in observation.events()]

    def __repr__(self) -> str:
        where = "by the engine" if self.is_wholly_native else "partly on Spark" if self.native else "on Spark"
        return f"<{type(self).__name__} {where}: {self.schema.simpleString()}>"

    def _repr_html_(self) -> str:
        over = self.is_over
        return shown_result(
            repr(self)[1:-1], self.schema.names, self._rows_at_hand(), self.findings if over else ()
        )

    def _rows_at_hand(self) -> list[pa.RecordBatch] | None:
        """The rows, if all of them have arrived and nobody has to wait for them."""
        return self._whole

    def _await_all(self) -> None:
        """Wait until all rows have arrived, or the query is left to Spark. Ctrl-C ends this query and no other."""
        if self._whole is not None:
            return
        try:
            with only_this_query_is_interrupted():
                self._whole = self._all_of_them()
        except QueryError as error:
            if self._begins_again(error):
                self._await_all()
                return
            if not self._is_sparks(error):
                self._raise_as_spark(error)
                raise
            self._leave_to_spark(error)
        except KeyboardInterrupt:
            self.cancel()  # even if the interrupt came before the wait for the first batch
            raise

    def _all_of_them(self) -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        whole_bytes = 0
        for batch in self._take():
            found.append(batch)
            whole_bytes += batch.nbytes
            if self._collected.is_too_large(whole_bytes):
                error = self._collected.too_large()
                self._collected.cancel(error)
                raise error
        return found

    def _collect_as_arrow(self, *arguments: bool, **named: bool) -> list[pa.RecordBatch]:
        """The batches, as PySpark collects them before it makes Arrow tables or pandas frames of them."""
        batches: list[pa.RecordBatch] = self._whole_as(
            lambda known: known._collect_as_arrow(*arguments, **named),
            lambda sparks: sparks.batches(*arguments, **named),
        )
        return batches


def result_of(
    df: DataFrame,
    collected: Collected,
    lifetime: QueryLifetime,
    *,
    spark_errors: bool,
    replanning: Replanning | None = None,
    record: FollowedQuery | None = None,
) -> Result:
    """The result of a query that has been submitted."""
    try:
        return Result(
            df, collected, lifetime, spark_errors=spark_errors, replanning=replanning, record=record
        )
    except BaseException:
        collected.cancel()  # its rows can no longer be taken
        raise


def may_go_on(spark_errors: bool, replanning: Replanning | None, error: BaseException) -> bool:
    """May the query go on after this error, with another plan or on Spark, when its client asks for rows?"""
    if not isinstance(error, QueryError):
        return False
    if replanning is not None and replanning.avoids(error):
        return True
    is_sparks = spark_errors and (error.is_of_data or error.is_of_spark_too)
    return is_sparks or isinstance(error, DoubtfulValueError | HandOverError)
