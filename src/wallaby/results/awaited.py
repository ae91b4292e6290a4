"""A query whose rows are not streamed: it runs to its end, planned again if necessary, before its result is used."""

from __future__ import annotations

import pyarrow as pa

from wallaby.errors import HandOverError, QueryCancelledError, QueryError, QueryTimeoutError
from wallaby.frontend.replanning import Replanning
from wallaby.head.collected import Collected
from wallaby.results.answered import only_this_query_is_interrupted
from wallaby.results.lifetime import QueryLifetime
from wallaby.spark.leaves.run import LeafRun


class AwaitedRun:
    """One run of a query; Spark may run a part of it first."""

    def __init__(
        self, begun: Collected | LeafRun, lifetime: QueryLifetime, replanning: Replanning | None
    ) -> None:
        self._begun = begun
        self._lifetime = lifetime
        self._replanning = replanning
        self.collected: Collected | None = begun if isinstance(begun, Collected) else None

    def await_rows(self) -> list[pa.RecordBatch]:
        """Wait for the end and return the rows that reached the driver. Ctrl-C ends this query and no other.

        Raises:
            HandOverError: Spark ran a part of the query, and its rows could not be handed over.
            QueryError: the query failed or was cancelled.
        """
        try:
            with only_this_query_is_interrupted():
                return self._await()
        except (QueryCancelledError, QueryTimeoutError) as error:
            self._lifetime.finish(error)
            raise
        except QueryError as error:  # Spark may run what has failed, but not what was cancelled meanwhile
            cancelled = self._lifetime.cancelled
            self._lifetime.finish(cancelled or error)
            if cancelled is None:
                raise
            raise cancelled from error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                self.cancel()
            self._lifetime.finish(error)
            raise

    def _await(self) -> list[pa.RecordBatch]:
        if isinstance(self._begun, LeafRun):
            outcome = self._begun.outcome.result()
            if isinstance(outcome, HandOverError):
                raise outcome
            self.collected = outcome
        while True:
            assert self.collected is not None
            try:
                return list(self.collected.batches())
            except QueryError as error:
                self._lifetime.goes_on_after_run()
                again = None if self._replanning is None else self._replanning.after(error)
                if again is None:
                    raise
                self.collected = again

    def cancel(self) -> None:
        """End the query, unless it has ended."""
        self._lifetime.cancel()
