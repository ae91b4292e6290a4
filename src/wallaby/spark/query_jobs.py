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
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from wallaby.catalyst.janino import load_class
from wallaby.config.registry import PREFIX
from wallaby.errors import SparkCancelledError, WallabyError
from wallaby.observe.about import About
from wallaby.spark.about import calling

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)
DESCRIPTION = "Wallaby query"
#: How long one call waits for a job that Spark has ended.
WAIT_MS = 30_000
#: After how many failures in a row Spark is no longer asked for cancellations, and the pause between them.
FAILURES_MAX = 30
PAUSE_SECONDS = 1.0
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
        #: The query as its user knows it.
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


class QueryJobs:
    """The jobs of one engine's queries."""

    def __init__(self, context: SparkContext, spared: str) -> None:
        """From now on, jobs with the tag `spared` are spared when all jobs are cancelled."""
        self._context = context
        self._spared = spared
        self._java: Any = None
        #: A result that nobody holds any more ends its job, and that may happen in the middle of anything.
        self._lock = threading.RLock()
        self._running: dict[int, QueryJob] = {}
        self._over: queue.SimpleQueue[tuple[int, str | None] | None] = queue.SimpleQueue()
        self._closed = False
        self._ending = threading.Event()
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
        """The description of a query that this thread is about to run, as its user knows the query."""
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
            self._ending.set()
            atexit.unregister(self.close)
            for number in list(self._running):
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
            except (Py4JError, OSError) as error:  # the next may succeed
                _log.debug("Spark does not accept the end of a query: %s", type(error).__name__)

    def _watch(self) -> None:
        """Pass on what Spark cancels. One failure must not end this: no later query could be cancelled."""
        failures = 0
        while not self._closed:
            try:
                end = self._java.next(WAIT_MS)
                number = None if end is None else int(end[0])
            except (Py4JError, OSError) as failure:
                failures += 1
                _log.debug("Spark does not report cancellations: %s", type(failure).__name__)
                if failures >= FAILURES_MAX or self._context._jsc is None:  # Spark has ended
                    return
                self._ending.wait(PAUSE_SECONDS)
                continue
            failures = 0
            if number is None:
                continue
            with self._lock:
                job = self._running.get(number)
            if job is not None:
                job.cancelled(self._error(number, end[1]))

    def _error(self, number: int, exception: Any) -> SparkCancelledError:
        """Spark's error for a job that it has ended, as one of Wallaby's."""
        try:
            parameters = dict(self._jvm.PythonErrorUtils.getMessageParameters(exception) or {})
        except (Py4JError, OSError):  # only errors with a condition have parameters
            parameters = {}
        if "jobId" in parameters:
            what = f"Job {parameters['jobId']} cancelled {parameters.get('reason', '')}".rstrip() + "."
            return SparkCancelledError(what, java_exception=exception, **parameters)
        try:
            what = str(exception.getMessage())
        except (Py4JError, OSError):
            what = f"Spark ended job {number}."
        return SparkCancelledError(what, java_exception=exception, **parameters)
