"""Run a query with Spark leaves: first Spark's jobs, then the query; at its end the files are removed.

All of it happens on a separate thread, so that the caller can wait, cancel or be interrupted. Until the query has been
submitted, nothing of its result exists. So if the rows cannot be handed over, Spark can still run the whole query. An
error of Spark's, from a user's function or data, is the query's error.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from wallaby.errors import HandOverError, QueryCancelledError, WallabyError
from wallaby.head.collected import Collected
from wallaby.head.time_limit import TimeLimit
from wallaby.plan.leaf import SparkLeaf
from wallaby.relations.relation import DataFile, Scan
from wallaby.spark.bypass import on_spark
from wallaby.spark.leaves.directory import LeafDirectory
from wallaby.spark.leaves.leaf import cancel, prepare, run
from wallaby.worker.scratch import remove_scratch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)
#: Submits the query once its leaves are written. The second argument is called with the query before it waits for
#: workers.
Submit = Callable[[Mapping[int, tuple[DataFile, ...]], Callable[[Collected], None]], Collected]


class LeafRun:
    """One run of one query with leaves."""

    def __init__(
        self,
        query: DataFrame,
        leaves: Sequence[tuple[SparkLeaf, Scan]],
        directory: LeafDirectory,
        submit: Submit,
        limit: TimeLimit,
    ) -> None:
        #: The running query, or the reason why Spark has to run all of it.
        self.outcome: Future[Collected | HandOverError] = Future()
        #: How long Spark's jobs took.
        self.seconds = 0.0
        self.leaves = len(leaves)
        self._query = query
        self._work = leaves
        self._directory = directory
        self._submit = submit
        self._limit = limit
        self._group = f"wallaby-leaf-{uuid.uuid4().hex[:12]}"
        self._lock = threading.Lock()
        self._ended_because: WallabyError | None = None
        #: The query, once its leaves are written.
        self._submitted: Collected | None = None
        self._thread = threading.Thread(target=self._go, name=self._group, daemon=True)

    def start(self) -> None:
        """Start the leaves."""
        self._thread.start()

    def cancel(self, because: WallabyError | None = None) -> None:
        """End the run at any point."""
        with self._lock:
            self._ended_because = (
                self._ended_because
                or because
                or QueryCancelledError("The query was cancelled while Spark ran a part of it.")
            )
            submitted = self._submitted
        if submitted is not None:
            submitted.cancel(because)
        if submitted is not None or self.outcome.done():
            return
        try:
            cancel(self._query.sparkSession.sparkContext, self._group)
        except (Py4JError, OSError) as error:
            _log.debug("cancelling a leaf failed: %s", type(error).__name__)

    def when_over(self, call: Callable[[BaseException | None], None]) -> None:
        """Register a function to call with the query's error, or None, when it has ended. It must not block.

        If the query is left to Spark, it is called with the reason.
        """

        def decided(outcome: Future[Collected | HandOverError]) -> None:
            error = outcome.exception()
            if error is not None:
                call(error)
            elif isinstance(found := outcome.result(), Collected):
                found.when_over(call)
            else:
                call(found)

        self.outcome.add_done_callback(decided)

    def join(self, seconds: float) -> None:
        """Wait for its end, and until its files are removed."""
        self._thread.join(seconds)

    # --- on its own thread ---------------------------------------------------------------------------

    def _go(self) -> None:
        directory: Path | None = None
        try:
            with self._limit.watched(self._expire):
                directory = self._directory.make()
                collected = self._hand_over(directory)
        except HandOverError as error:
            self._settle(error)
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            self.outcome.set_exception(self._ended_because or error)
        else:
            self._settle(collected)
            collected.removed.wait()
        finally:
            if directory is not None:
                remove_scratch(directory)

    def _settle(self, outcome: Collected | HandOverError) -> None:
        """Settle the outcome, unless the run was cancelled meanwhile."""
        with self._lock:
            ended = self._ended_because
            if ended is None:
                self.outcome.set_result(outcome)
                return
        if isinstance(outcome, Collected):
            outcome.cancel()
        self.outcome.set_exception(ended)

    def _hand_over(self, directory: Path) -> Collected:
        began = time.monotonic()
        jobs = [(leaf, prepare(self._query, leaf, scan, directory)) for leaf, scan in self._work]
        files: dict[int, tuple[DataFile, ...]] = {}
        for leaf, job in jobs:
            if self._ended_because is not None:
                raise self._ended_because
            with on_spark():
                files[leaf.number] = run(job, self._group, leaf)
        self.seconds = time.monotonic() - began
        return self._submit(files, self._known)

    def _known(self, collected: Collected) -> None:
        with self._lock:
            self._submitted = collected
            ended = self._ended_because
        if ended is not None:
            collected.cancel(ended)

    def _expire(self) -> None:
        self.cancel(self._limit.error(where=" while Spark ran a part of it"))
