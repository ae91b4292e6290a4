"""One query from its action to its end, over all of its runs: its cancellation, its time limit and its Spark job.

A query may run several times: another plan takes the place of the first, or Spark answers in the end. A cancellation,
by a client or by Spark, and the time limit are about the query, not about one of its runs. So each run registers here
how it can be ended. A cancellation between two runs is remembered and ends the next one, so none is lost. The Spark job
that stands for the query lasts until nothing more can follow.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wallaby.batches.stopping import stop, stoppable
from wallaby.errors import QueryCancelledError, QueryError, WallabyError
from wallaby.head.time_limit import TimeLimit
from wallaby.spark.query_jobs import QueryJob

#: Ends one run of a query, with the error for its client, or None if the client itself has cancelled it.
EndRun = Callable[[WallabyError | None], None]


class QueryLifetime:
    """One query, over all of its runs. Any thread may use it."""

    def __init__(self, begin_job: Callable[[], QueryJob], timeout_seconds: float = 0.0) -> None:
        """Begin a query. Its job is begun when it is needed: a query that only Spark runs has none."""
        self._begin_job = begin_job
        self._job: QueryJob | None = None
        #: How long it may take. Time in which it only waits for its client to ask for rows does not count.
        self.limit = TimeLimit(timeout_seconds)
        #: A result that nobody holds any more gives up its query, and that may happen in the middle of anything.
        self._lock = threading.RLock()
        self._ends: list[EndRun] = []
        self._is_cancelled = False
        self._because: WallabyError | None = None
        self._may_go_on: Callable[[BaseException], bool] = lambda _error: False
        #: Since when nothing runs although the query may go on, and the error after which it may.
        self._rests_since: float | None = None
        self._rests_after: BaseException | None = None
        self._is_over = self._is_given_up = False

    def begin(self) -> QueryJob:
        """Begin its Spark job, if that has not happened. Cancelling the job cancels the query."""
        if self._job is None:
            self._job = self._begin_job()
            self._job.on_cancel(self.cancel)
        return self._job

    def end_job(self) -> None:
        """End its Spark job: Spark runs the query from the start, as jobs of its own."""
        job, self._job = self._job, None
        if job is not None:
            job.finish(None)

    # --- cancelling ----------------------------------------------------------------------------------

    def cancel(self, because: WallabyError | None = None) -> None:
        """End the query, whatever runs it now or next. Only the first call counts, and none after the end."""
        with self._lock:
            if self._is_over or self._is_cancelled:
                return
            self._is_cancelled, self._because = True, because
            ends = tuple(self._ends)
        for end in ends:
            end(because)

    @property
    def cancelled(self) -> WallabyError | None:
        """The error of a query that was cancelled."""
        with self._lock:
            if not self._is_cancelled:
                return None
            self._because = self._because or QueryCancelledError("The query was cancelled.")
            return self._because

    def require(self) -> None:
        """Raise an error if the query was cancelled or its time is over, so that nothing more is begun."""
        if (cancelled := self.cancelled) is not None:
            raise cancelled.again()
        if self.limit.is_over:
            raise self.limit.error()

    def runs(self, end: EndRun) -> None:
        """Register how to end a run that begins now. If the query has been cancelled, the run ends at once."""
        with self._lock:
            self._ends.append(end)
            cancelled, because = self._is_cancelled, self._because
        if cancelled:
            end(because)

    def ran(self, end: EndRun) -> bool:
        """Note that a run has ended; False if that was known."""
        with self._lock:
            known = end in self._ends
            if known:
                self._ends.remove(end)
        return known

    @contextmanager
    def running(self, end: EndRun) -> Iterator[None]:
        """In this block, a run can be ended by this function."""
        self.runs(end)
        try:
            yield
        finally:
            self.ran(end)

    @contextmanager
    def planning(self) -> Iterator[None]:
        """In this block, this thread plans the query. Whatever ends the query stops the planning at the next file."""
        try:
            with stoppable(self), self.running(self._stop), self.limit.watched(self._expire):
                yield
        except BaseException as error:
            self.finish(error)
            raise

    def _stop(self, because: WallabyError | None) -> None:
        error = because or self.cancelled
        assert isinstance(error, QueryError), "a cancellation is an error of the query"
        stop(self, error)

    def _expire(self) -> None:
        self.cancel(self.limit.error(where=" while it was planned"))

    # --- from run to run -----------------------------------------------------------------------------

    def goes_on_if(self, may: Callable[[BaseException], bool]) -> None:
        """Set after which errors of a run another run may follow, when the client asks for rows."""
        self._may_go_on = may

    def run_over(self, end: EndRun, error: BaseException | None) -> None:
        """Note how a run has ended. The query ends in the same way, unless another run may follow."""
        if not self.ran(end):
            return  # the client was faster: it goes on already, or is done
        with self._lock:
            rests = error is not None and not self._is_given_up and self._may_go_on(error)
            if rests:
                self._rests_after = error
                self.rest()
        if not rests:
            self.finish(error)

    def rest(self) -> None:
        """Note that nothing runs until the client asks for rows."""
        self._rests_since = time.monotonic()

    def goes_on_after_run(self) -> None:
        """Note that the client asks for more after a run has ended. There must be no other run."""
        with self._lock:
            self._ends.clear()
            self._wake()

    def goes_on(self) -> None:
        """Note that the client asks for rows. If it does so after the end, the query begins anew."""
        with self._lock:
            if self._is_over:
                self.limit = TimeLimit(self.limit.seconds)
                self._is_over = False
                self._rests_since = None
            self._wake()

    def _wake(self) -> None:
        if self._rests_since is not None:
            self.limit = self.limit.later(time.monotonic() - self._rests_since)
            self._rests_since = None

    # --- the end -------------------------------------------------------------------------------------

    def give_up(self) -> None:
        """Note that nobody will ask for its rows any more: the query ends with its run."""
        with self._lock:
            self._is_given_up = True
            rests = self._rests_since is not None
        if rests:
            self.finish(self._rests_after)

    def finish(self, error: BaseException | None = None) -> None:
        """Note that the query has ended. Only the first call counts."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            self._ends.clear()
            job = self._job
        if job is not None:
            job.finish(error)
