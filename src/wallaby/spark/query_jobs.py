"""Each query of an engine is also a Spark job: whatever cancels Spark jobs cancels the query, and the UI shows it.

The job has no task and takes no slot; `QueryJobs.java` keeps it active in Spark's scheduler, with the group, tags,
description, session and operation of the calling thread. Two threads here talk to it: one waits for jobs that Spark has
ended, the other ends the jobs of queries that have ended, so that no other thread ever waits for the JVM.
"""

from __future__ import annotations

import atexit
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from wallaby.batches.stopping import stop, stoppable
from wallaby.catalyst.java import load_class
from wallaby.config.registry import PREFIX
from wallaby.errors import QueryError, SparkCancelledError, WallabyError
from wallaby.observe.about import About
from wallaby.spark.about import calling

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)
DESCRIPTION = "Wallaby query"
#: How long one call waits for a job that Spark has ended.
WAIT_MS = 30_000
#: How long `close` waits for the two threads.
END_SECONDS = 2.0


class QueryJob:
    """One query as Spark sees it."""

    def __init__(
        self,
        number: int,
        operation: str,
        about: About,
        finish: Callable[[QueryJob, str | None], None],
        connect_tag: str = "",
    ) -> None:
        #: The number of its Spark job.
        self.number = number
        #: What a user would call the query.
        self.about = about
        #: The id for `SparkSession.interruptOperation`.
        self.operation = operation
        #: The tag of the operation of Spark Connect that it belongs to; empty if there is none.
        self.connect_tag = connect_tag
        self._finish = finish
        self._lock = threading.Lock()
        self._cancelled: WallabyError | None = None
        self._cancel: Callable[[WallabyError], None] | None = None

    def on_cancel(self, cancel: Callable[[WallabyError], None]) -> None:
        """Register what ends the query if Spark cancels its job: called with the error, at once if it already has."""
        with self._lock:
            self._cancel = cancel
            cancelled = self._cancelled
        if cancelled is not None:
            cancel(cancelled)

    def cancelled(self, error: WallabyError) -> None:
        """Note that Spark has cancelled the job."""
        with self._lock:
            self._cancelled = error
            cancel = self._cancel
        if cancel is not None:
            cancel(error)

    def finish(self, error: BaseException | None) -> None:
        """Note that the query has ended, without waiting for Spark."""
        self._finish(self, None if error is None else str(error))


class PlanningJob:
    """A query that is being planned. It becomes a job when planning may take long; queries left to Spark never do."""

    def __init__(self, begin: Callable[[], QueryJob]) -> None:
        self._begin = begin
        self._job: QueryJob | None = None

    def begin(self) -> QueryJob:
        """Begin its job, if that has not happened. Cancelling the job stops the planning at the next file."""
        if self._job is None:
            self._job = self._begin()
            self._job.on_cancel(self._stop)
        return self._job

    def finish(self, error: BaseException | None = None) -> None:
        """End the job of a query that is left to Spark, or whose planning failed."""
        if self._job is not None:
            self._job.finish(error)

    def _stop(self, error: WallabyError) -> None:
        assert isinstance(error, QueryError), "a cancellation is an error of the query"
        stop(self, error)


class QueryJobs:
    """The jobs of one engine's queries."""

    def __init__(self, context: SparkContext, spared: str) -> None:
        """From now on, jobs with the tag `spared` are spared when all jobs are cancelled."""
        self._context = context
        self._spared = spared
        self._java: Any = None
        self._lock = threading.Lock()
        self._running: dict[int, QueryJob] = {}
        self._over: queue.SimpleQueue[tuple[int, str | None] | None] = queue.SimpleQueue()
        self._closed = False
        self._threads = [
            threading.Thread(target=work, name=f"wallaby-jobs-{name}", daemon=True)
            for name, work in (("watch", self._watch), ("finish", self._finish_all))
        ]

    def start(self) -> None:
        """Start watching."""
        gateway: Any = self._context._gateway
        jsc: Any = self._context._jsc
        arguments = gateway.new_array(gateway.jvm.java.lang.Object, 2)
        arguments[0], arguments[1] = jsc.sc(), self._spared
        made = load_class(gateway.jvm, "wallaby.spark", "QueryJobs").getConstructors()[0]
        self._java = made.newInstance(arguments)
        self._jvm: Any = gateway.jvm
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)

    def about(self, df: DataFrame) -> About:
        """What a user would call a query that this thread is about to run."""
        try:
            sql, _, description = str(self._java.told(df._jdf)).partition("\0")
        except Py4JError as error:  # an odd plan; the query is worth more than its name
            _log.debug("Spark does not tell the text of a query: %s", type(error).__name__)
            return calling()
        return replace(calling(), sql=sql, description=description)

    def begin(self, session: SparkSession, about: About) -> QueryJob:
        """Begin the job of a query on behalf of this thread."""
        with self._lock:  # registered first, so that an immediate end finds it
            said = f"{DESCRIPTION}: {about.text}"
            number, operation, *tags = str(self._java.begin(session._jsparkSession, said)).split(" ", 2)
            job = QueryJob(int(number), operation, about, self._finish, *tags)
            self._running[job.number] = job
        return job

    @contextmanager
    def planning(self, session: SparkSession, about: About) -> Iterator[PlanningJob]:
        """Let Spark cancel a query while this thread plans it."""
        planning = PlanningJob(partial(self.begin, session, about))
        try:
            with stoppable(planning):
                yield planning
        except BaseException as error:
            planning.finish(error)
            raise

    def settings(self, session: SparkSession) -> dict[str, str]:
        """The session's `spark.wallaby.*` entries, in one call."""
        words = str(self._java.settings(session._jsparkSession, PREFIX)).split("\0")[1:]
        return dict(zip(words[::2], words[1::2], strict=True))

    def close(self) -> None:
        """Restore Spark. The jobs of running queries end."""
        with self._lock:
            if self._closed or self._java is None:
                return
            self._closed = True
            atexit.unregister(self.close)
            for number in self._running:
                self._over.put((number, "The engine was closed while the query ran."))
            self._running.clear()
        self._over.put(None)
        self._threads[1].join(END_SECONDS)
        try:
            self._java.close()
        except (Py4JError, OSError) as error:
            _log.debug("Spark did not end the queries' jobs: %s", type(error).__name__)
        self._threads[0].join(END_SECONDS)

    def _finish(self, job: QueryJob, error: str | None) -> None:
        with self._lock:
            if self._running.pop(job.number, None) is not None:
                self._over.put((job.number, error))

    # --- the threads ---------------------------------------------------------------------------------

    def _finish_all(self) -> None:
        while (over := self._over.get()) is not None:
            try:
                self._java.finish(*over)
            except (Py4JError, OSError) as error:
                _log.debug("Spark no longer accepts the ends of queries: %s", type(error).__name__)
                return

    def _watch(self) -> None:
        while not self._closed:
            try:
                end = self._java.next(WAIT_MS)
                if end is None:
                    continue
                number, error = int(end[0]), self._error(end[1])
            except (Py4JError, OSError) as gone:
                _log.debug("Spark no longer reports cancellations: %s", type(gone).__name__)
                return
            with self._lock:
                job = self._running.get(number)
            if job is not None:
                job.cancelled(error)

    def _error(self, exception: Any) -> SparkCancelledError:
        parameters = dict(self._jvm.PythonErrorUtils.getMessageParameters(exception) or {})
        if "jobId" in parameters:
            what = f"Job {parameters['jobId']} cancelled {parameters.get('reason', '')}".rstrip() + "."
        else:
            what = str(exception.getMessage())
        return SparkCancelledError(what, java_exception=exception, **parameters)
