"""The result of a query: rows from the last stage, in the form that the caller wants.

PySpark's own conversions turn our batches into Arrow tables, pandas frames and rows, so that types, names and time
zones are exactly those of `toArrow`, `toPandas` and `collect`.
"""

from __future__ import annotations

import logging
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema

from wallaby.answered import Answered, as_spark_names, only_this_query_is_interrupted
from wallaby.errors import DoubtfulValueError, InvalidArgumentError, QueryCancelledError, QueryError
from wallaby.frontend.replanning import Replanning
from wallaby.head.collected import Collected
from wallaby.observe.observation import QueryStats
from wallaby.plan.physical import PhysicalPlan
from wallaby.spark.bypass import on_spark
from wallaby.spark.leaves.run import LeafRun

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, Row

#: How long `stats` waits for the last figures of a query whose rows are all there.
FIGURES_SECONDS = 5.0
_log = logging.getLogger(__name__)
_BINARY_AS_BYTES = "spark.sql.execution.pyspark.binaryAsBytes"


class Result:
    """One run of one query by the engine. The rows can be read once as a stream, or any number of times as a whole."""

    #: Did the engine run it, or Spark?
    native = True
    #: Or did Spark run a part of it?
    is_wholly_native = True

    def __init__(
        self,
        df: DataFrame,
        collected: Collected,
        *,
        spark_errors: bool = False,
        replanning: Replanning | None = None,
    ) -> None:
        self.schema = df.schema
        self._df = df
        self._spark_errors = spark_errors
        self._replanning = replanning
        self._begin(collected)
        self._arrow_schema = to_arrow_schema(df.schema, timezone="UTC")
        self._whole: list[pa.RecordBatch] | None = None
        #: Spark's run of it, if it was left to Spark, and why it was.
        self._sparks: SparkResult | None = None
        self._left: QueryError | None = None

    def _begin(self, collected: Collected) -> None:
        self._collected = collected
        self._taken = False
        # A result that nobody can take any more ends its query: its rows would wait at the workers for ever.
        weakref.finalize(self, collected.cancel).atexit = False

    def _begins_again(self, error: QueryError) -> bool:
        """Has the query begun again, with a plan that avoids this error? No row may have been given away."""
        collected = None if self._replanning is None else self._replanning.after(error)
        if collected is not None:
            self._begin(collected)
        return collected is not None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow batches while the query runs. They can be read only once."""
        if self._whole is not None:
            return iter(self._whole)
        return self._stream(self._take())

    def _take(self) -> Iterator[pa.RecordBatch]:
        """The engine's rows, for one taker."""
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
            table: pa.Table = self._from_spark(SparkResult.arrow)
            yield from table.cast(self._arrow_schema).to_batches()

    def _is_sparks(self, error: QueryError) -> bool:
        """Does Spark know better how this query ends? It always does if a value is in doubt."""
        return isinstance(error, DoubtfulValueError) or (self._spark_errors and error.is_of_data)

    def _leave_to_spark(self, error: QueryError) -> None:
        """From here on it is Spark that answers, with rows or an error. No row may have been given away before."""
        if detail := error.fields.get("detail"):
            _log.warning("left to Spark while running: %s %s", error.what, detail)
        else:
            _log.info("left to Spark while running: %s", error.what)
        self.native = False
        self._left = error
        self._sparks = SparkResult(self._df)

    def _from_spark(self, ask: Callable[[SparkResult], Any]) -> Any:
        assert self._sparks is not None, "it was left to Spark"
        try:
            return ask(self._sparks)
        except (PySparkException, Py4JError) as sparks:
            raise sparks from self._left

    def _raise_as_spark(self, error: QueryError) -> None:
        """Raise Spark's own error, if it has one for what went wrong. Its rows are not wanted, and not kept."""
        if detail := error.fields.get("detail"):
            _log.error("%s %s", error.what, detail)
        if not (self._spark_errors and error.is_of_spark_too):
            return
        try:
            SparkResult(self._df).drain()
        except (PySparkException, Py4JError) as sparks:
            raise sparks from error

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table, exactly as `DataFrame.toArrow` gives it."""
        return self._whole_as(lambda known: known.toArrow(), SparkResult.arrow)

    def rows(self) -> list[Row]:
        """All rows as PySpark rows, exactly as `DataFrame.collect` gives them."""
        rows: list[Row] = self._whole_as(lambda known: known.collect(), SparkResult.rows)
        return rows

    def pandas(self) -> pd.DataFrame:
        """All rows as a pandas data frame, exactly as `DataFrame.toPandas` gives it."""
        frame: pd.DataFrame = self._whole_as(lambda known: known.toPandas(), SparkResult.pandas)
        return frame

    def _whole_as(self, here: Callable[[Answered], Any], there: Callable[[SparkResult], Any]) -> Any:
        """All rows, from the engine's or, if it has left the query to Spark, as Spark gives them itself."""
        if self._sparks is None:
            self._await_all()
        if self._whole is None:
            return self._from_spark(there)
        return here(Answered(self._df, self._whole))

    def cancel(self) -> None:
        """Cancel the query; anyone waiting for its rows gets `QueryCancelledError`."""
        self._collected.cancel()
        if self._sparks is not None:
            self._sparks.cancel()

    @property
    def plan(self) -> PhysicalPlan | None:
        """The stages of the query; None if Spark runs it."""
        observation = self._collected.observation
        return None if observation is None else observation.plan

    @property
    def is_over(self) -> bool:
        """Whether the query has ended, successfully or not."""
        return self._collected.is_over

    @property
    def stats(self) -> dict[str, Any]:
        """Figures of the run: complete when the query has ended, before that what is known so far."""
        if self._collected.is_over:
            self._collected.removed.wait(FIGURES_SECONDS)
        figures = self._collected.figures
        return {
            "native": self.native,
            "query": self._collected.query,
            "stages": figures.stages,
            "tasks": figures.tasks,
            "rows": figures.rows,
            "bytes": figures.bytes,
            "seconds": round(figures.seconds, 3),
            "recoveries": figures.recoveries,
            "restarts": figures.restarts,
            **self._observed(),
        }

    def _observed(self) -> dict[str, Any]:
        observation = self._collected.observation
        if observation is None:
            return {}
        seen = observation.stats()
        return {
            "lost_workers": list(seen.lost_workers),
            "channels_rewound": seen.channels_rewound,
            "outputs_delivered_again": seen.outputs_delivered_again,
            "outputs_read_again": seen.outputs_read_again,
            "frozen_seconds": round(seen.frozen_seconds, 3),
            **(
                {
                    "exchanged_bytes": seen.exchanged_bytes,
                    "sent_bytes": seen.pushed_bytes,
                    "spilled_bytes": sum(totals.spilled_bytes for totals in seen.stages),
                    "commits": seen.carried.commits,
                    "lineage_bytes": seen.carried.lineage_bytes,
                    "store_calls": seen.carried.store_calls + seen.head_store_calls,
                    "store_seconds": round(seen.carried.store_seconds, 4),
                    "pushes": seen.carried.pushes,
                    "push_seconds": round(seen.carried.push_seconds, 4),
                    "backup_seconds": round(seen.carried.backup_seconds, 4),
                    "durable_bytes": seen.carried.durable_bytes,
                    "durable_seconds": round(seen.carried.durable_seconds, 4),
                    "snapshots": seen.carried.snapshots,
                    "per_stage": [asdict(totals) for totals in seen.stages[:-1]],
                }
                if seen.stages
                else {}
            ),
            "event_log": seen.event_log,
        }

    def observed_stats(self) -> QueryStats | None:
        """What was seen of the run, if it was observed."""
        observation = self._collected.observation
        return None if observation is None else observation.stats()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events in the query's log so far; without a log, only losses, recoveries and the end."""
        observation = self._collected.observation
        return [] if observation is None else observation.events()

    def _await_all(self) -> None:
        """Until all rows are there, or the query is left to Spark. Ctrl-C ends this query and no other."""
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
            self.cancel()  # also when the interrupt came before the first batch was waited for
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

    def collected_as_arrow(self, *arguments: bool, **named: bool) -> list[pa.RecordBatch]:
        """As PySpark collects batches, before it makes Arrow tables or pandas frames of them."""
        batches: list[pa.RecordBatch] = self._whole_as(
            lambda known: known._collect_as_arrow(*arguments, **named),
            lambda sparks: sparks.collected_as_arrow(*arguments, **named),
        )
        return batches


def result_of(
    df: DataFrame, collected: Collected, *, spark_errors: bool, replanning: Replanning | None = None
) -> Result:
    """The result of a query that has been submitted."""
    try:
        return Result(df, collected, spark_errors=spark_errors, replanning=replanning)
    except BaseException:
        collected.cancel()  # nobody will ever take its rows
        raise


class SparkResult(Result):
    """A query that Spark runs, when its rows are asked for."""

    native = False
    is_wholly_native = False

    def __init__(self, df: DataFrame) -> None:
        self.schema = df.schema
        self._df = df
        self._tag = f"wallaby-result-{uuid.uuid4().hex[:12]}"
        self._seconds = 0.0
        self._rows: int | None = None
        self._cancelled = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, all at once."""
        return iter(self.arrow().to_batches())

    def arrow(self) -> pa.Table:
        """`DataFrame.toArrow`."""
        table: pa.Table = self._ask(self._df.toArrow)
        self._rows = table.num_rows
        return table

    def rows(self) -> list[Row]:
        """`DataFrame.collect`."""
        rows: list[Row] = self._ask(self._df.collect)
        self._rows = len(rows)
        return rows

    def pandas(self) -> pd.DataFrame:
        """`DataFrame.toPandas`."""
        frame: pd.DataFrame = self._ask(self._df.toPandas)
        self._rows = len(frame)
        return frame

    def drain(self) -> None:
        """Run it, and drop the rows where they are made."""
        self._ask(lambda: self._df._jdf.queryExecution().toRdd().count())

    def collected_as_arrow(self, *arguments: bool, **named: bool) -> list[pa.RecordBatch]:
        """As PySpark collects batches."""
        collect: Callable[..., Any] = self._df._collect_as_arrow  # type: ignore[assignment]  # not a column
        batches: list[pa.RecordBatch] = self._ask(lambda: collect(*arguments, **named))
        return batches

    def cancel(self) -> None:
        """Cancel its Spark jobs; anyone waiting for its rows gets `QueryCancelledError`."""
        self._cancelled = True
        self._df.sparkSession.sparkContext.cancelJobsWithTag(self._tag)

    def observed_stats(self) -> None:
        """Spark watches its own queries."""
        return

    @property
    def plan(self) -> None:
        """It has none here."""
        return

    @property
    def events(self) -> list[dict[str, Any]]:
        """There are none: Spark has an event log of its own."""
        return []

    @property
    def stats(self) -> dict[str, Any]:
        """What is known of it here."""
        return {"native": False, "rows": self._rows, "seconds": round(self._seconds, 3)}

    def _ask(self, action: Callable[[], Any]) -> Any:
        context = self._df.sparkSession.sparkContext
        started = time.monotonic()
        context.addJobTag(self._tag)
        try:
            with on_spark():
                return action()
        except (PySparkException, Py4JError) as error:
            if self._cancelled:
                raise QueryCancelledError("The query was cancelled while Spark ran it.") from error
            raise
        finally:
            context.removeJobTag(self._tag)
            self._seconds = time.monotonic() - started


class LeafResult(Result):
    """A query of which Spark runs a part first. How it continues is decided before the first row of the result."""

    is_wholly_native = False

    def __init__(self, df: DataFrame, run: LeafRun, *, spark_errors: bool) -> None:
        self.schema = df.schema
        self._df = df
        self._spark_errors = spark_errors
        self._run = run
        self._decided: Result | None = None

    def decided(self) -> Result:
        """Wait for Spark's part: then the engine runs the rest, or, if the rows cannot be handed over, Spark does."""
        if self._decided is None:
            with only_this_query_is_interrupted():
                try:
                    outcome = self._run.outcome.result()
                except KeyboardInterrupt:
                    self._run.cancel()
                    raise
            if isinstance(outcome, Collected):
                self._decided = result_of(self._df, outcome, spark_errors=self._spark_errors)
            else:
                _log.info("left to Spark while running: %s", outcome.what)
                self.native = False
                self._decided = SparkResult(self._df)
        return self._decided

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they come in, once Spark has run its part."""
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

    def collected_as_arrow(self, *arguments: bool, **named: bool) -> list[pa.RecordBatch]:
        """As PySpark collects batches."""
        return self.decided().collected_as_arrow(*arguments, **named)

    def cancel(self) -> None:
        """Cancel the query and its Spark jobs; anyone waiting for its rows gets `QueryCancelledError`."""
        self._run.cancel()
        if self._decided is not None:
            self._decided.cancel()

    @property
    def plan(self) -> PhysicalPlan | None:
        """The stages of the query, once Spark has run its part; None if Spark runs all of it."""
        return self.decided().plan

    @property
    def stats(self) -> dict[str, Any]:
        """Figures of the run; while Spark's part runs there are none yet."""
        known = {"native": True} if self._decided is None else self._decided.stats
        return {**known, "leaves": self._run.leaves, "leaf_seconds": round(self._run.seconds, 3)}

    def observed_stats(self) -> QueryStats | None:
        """What was seen of the run, once Spark has run its part."""
        return self.decided().observed_stats()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events in the query's log so far."""
        return [] if self._decided is None else self._decided.events
