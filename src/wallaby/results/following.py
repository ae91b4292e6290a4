"""Record the queries of an engine while they run, log a line about each when it ends, and keep the latest.

A record holds texts and figures, never rows. What it needs for findings (the observation of a run) is kept for the
latest queries only; older records have made their findings of it. So the memory is bounded, however many queries run.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from wallaby.errors import QueryCancelledError, WallabyError
from wallaby.head.collected import Collected
from wallaby.observe.about import About
from wallaby.observe.finding import Finding, found_in_run, found_on_spark, stages_of
from wallaby.observe.history import History
from wallaby.observe.log_reading import read_log
from wallaby.observe.observation import Observation
from wallaby.observe.units import counted, duration
from wallaby.relations.reason import NOTHING_TO_DO, Reason
from wallaby.results.record import QueryHistory, QueryRecord, QueryState, Where

_log = logging.getLogger("wallaby.queries")
#: How many queries are remembered, and of how many the observations.
RECORDS_MAX: Final = 1000
OBSERVED_MAX: Final = 50
#: How many different reasons for leaving a query to Spark are warned about, each once.
WARNED_MAX: Final = 20
REASON_CHARACTERS: Final = 400
_thread = threading.local()


class FollowedQuery:
    """One query, from its beginning to its end. Any thread may use it."""

    def __init__(
        self,
        number: int,
        about: About,
        ended: Callable[[FollowedQuery], None],
        asking: Callable[[FollowedQuery], AbstractContextManager[None]],
    ) -> None:
        self.number = number
        self.about = about
        self.where = Where.NATIVE
        self.state: QueryState = "running"
        self.reasons: list[str] = []
        self._ended = ended
        self._asking = asking
        #: Does an action of Spark's own decide when the query has ended?
        self._is_sparks = False
        self._lock = threading.Lock()
        self._started, self._began = time.time(), time.monotonic()
        self._seconds: float | None = None
        self._rows: int | None = None
        self._error = ""
        self._queries: list[str] = []
        self._restarts = 0
        self._leaf_seconds = 0.0
        #: The latest run, by a weak reference because it holds rows, and its observation, which is kept after it.
        self._collected: weakref.ref[Collected] | None = None
        self._observation: Observation | None = None
        self._lost_workers: tuple[str, ...] = ()
        self._recoveries = 0
        self._event_log = ""
        self._client_seconds = 0.0
        self._findings: tuple[Finding, ...] | None = None

    # --- on the way ----------------------------------------------------------------------------------

    def partly(self, reasons: Iterable[object], leaf_seconds: float = 0.0) -> None:
        """Note that Spark runs a part of the query."""
        self.where = Where.PART
        self._leaf_seconds = leaf_seconds or self._leaf_seconds
        self._because(reasons)

    def on_spark(self, reasons: Iterable[object]) -> None:
        """Note that Spark runs the whole query, and why."""
        self.where = Where.SPARK
        self._because(reasons)

    def _because(self, reasons: Iterable[object]) -> None:
        texts = (str(reason)[:REASON_CHARACTERS] for reason in reasons)
        self.reasons += [text for text in texts if text not in self.reasons]

    def runs(self, collected: Collected) -> None:
        """Note that a run has begun in the TaskManagers."""
        self._collected = weakref.ref(collected)
        self._observation = collected.observation
        self._queries.append(str(collected.query))
        collected.when_over(partial(self._run_ended, weakref.ref(collected)))

    def begins_again(self, why: str) -> None:
        """Note that the query is restarted with another plan."""
        self._restarts += 1
        self._because((f"restarted: {why}",))

    def partly_if(self, reasons: Iterable[object]) -> None:
        """Note that Spark runs a part of the query first, if there are reasons for that."""
        reasons = tuple(reasons)
        if reasons:
            self.partly(reasons)

    def part_ran(self, collected: Collected | None, rows: int) -> None:
        """Note that the TaskManagers ran the query or a part of it, and keep or wrote its rows."""
        if collected is not None:
            self._queries.append(str(collected.query))
            self._observation = collected.observation
        if not self._is_sparks:
            self.finish("done", rows if rows >= 0 else None)
        elif self.where is Where.SPARK:
            self.where = Where.PART

    def _run_ended(self, collected: weakref.ref[Collected], error: BaseException | None) -> None:
        known = collected()
        if known is not None:
            self._observation = known.observation or self._observation
            self._rows = known.figures.rows
            self._restarts += known.figures.restarts
            self._client_seconds = known.client_seconds
            if str(known.query) not in self._queries:
                self._queries.append(str(known.query))
        if error is None:
            self.finish("done", self._rows)
        elif isinstance(error, QueryCancelledError):
            self.finish("cancelled", error=str(error))

    # --- the end -------------------------------------------------------------------------------------

    def finish(self, state: QueryState, rows: int | None = None, error: str = "") -> None:
        """Note that the query has ended. Only the first call counts."""
        with self._lock:
            if self._seconds is not None:
                return
            self._seconds = time.monotonic() - self._began
        self._rows = rows
        self._error = error.partition("\n")[0][:REASON_CHARACTERS]
        self.state = state
        self._ended(self)

    def failed(self, error: BaseException) -> None:
        """Note that the query failed or was cancelled."""
        cancelled = isinstance(error, QueryCancelledError | KeyboardInterrupt)
        self.finish("cancelled" if cancelled else "failed", error=str(error) or type(error).__name__)

    def answered_by_spark(self, action: Callable[[], Any]) -> Any:
        """Run the action on Spark; parts that run in TaskManagers during it belong to this query."""
        before = getattr(_thread, "record", None)
        _thread.record = self
        self._is_sparks = True
        try:
            with self._asking(self):
                answer = action()
        except BaseException as error:
            self.failed(error)
            raise
        finally:
            _thread.record = before
        self.finish("done", _rows_in(answer))
        return answer

    # --- for users -----------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Has the query ended?"""
        return self._seconds is not None

    def record(self) -> QueryRecord:
        """The record as it is now."""
        self._look()
        live = self._collected() if self._collected is not None else None
        rows = self._rows if self.is_over or live is None else live.figures.rows
        return QueryRecord(
            number=self.number,
            where=self.where,
            state=self.state,
            text=self.about.text,
            reasons=tuple(self.reasons),
            started=self._started,
            seconds=round(self._seconds if self._seconds is not None else time.monotonic() - self._began, 3),
            rows=rows,
            lost_workers=self._lost_workers,
            recoveries=self._recoveries,
            restarts=self._restarts,
            sql=self.about.sql,
            action=self.about.action,
            line=self.about.line,
            error=self._error,
            queries=tuple(self._queries),
            event_log=self._event_log,
            _find=self.findings,
        )

    def _look(self) -> None:
        seen = self._observation
        if seen is not None:
            self._lost_workers, self._recoveries = seen.lost_workers, seen.recoveries
            self._event_log = seen.event_log

    def run_history(self) -> History | None:
        """The history of the latest run, for the live page, from memory or its event log; None if it is gone."""
        known = None if self._observation is None else self._observation.history()
        if known is not None or not self._event_log:
            return known
        try:
            return read_log(self._event_log)
        except WallabyError:
            return None

    def findings(self) -> tuple[Finding, ...]:
        """What cost the query most, as far as that is known."""
        if self._findings is not None:
            return self._findings
        return self._find()

    def settle(self) -> None:
        """Make the findings, and release the observations from which they are made."""
        if self._findings is None and self.is_over:
            self._findings = self._find(wait_seconds=0.0)
            self._look()
            self._observation = None

    def _find(self, wait_seconds: float = 1.0) -> tuple[Finding, ...]:
        seconds = self._seconds if self._seconds is not None else time.monotonic() - self._began
        on_spark = found_on_spark(
            self.where is Where.SPARK, self.reasons, self._leaf_seconds, seconds, self.about
        )
        if self._observation is None or self.where is Where.SPARK:
            return on_spark
        stats = self._observation.stats(wait_seconds)
        run = found_in_run(
            stages_of(self._observation.plan), stats, seconds, self._client_seconds, self._restarts
        )
        return tuple(sorted((*on_spark, *run), key=lambda finding: -finding.share))


def current() -> FollowedQuery | None:
    """The query for which this thread runs an action on Spark; None if there is none."""
    found: FollowedQuery | None = getattr(_thread, "record", None)
    return found


@dataclass(slots=True)
class Counts:
    """The totals of the queries that have ended."""

    ended: dict[tuple[Where, QueryState], int] = field(default_factory=dict)
    seconds: dict[Where, float] = field(default_factory=dict)
    rows: int = 0
    losses: int = 0

    def add(self, record: QueryRecord) -> None:
        """Count one more query."""
        kind = (record.where, record.state)
        self.ended[kind] = self.ended.get(kind, 0) + 1
        self.seconds[record.where] = self.seconds.get(record.where, 0.0) + record.seconds
        self.rows += record.rows or 0
        self.losses += len(record.lost_workers)


class FollowedQueries:
    """The records of one engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._records: deque[FollowedQuery] = deque(maxlen=RECORDS_MAX)
        self._warned: set[tuple[str, str]] = set()
        self._counts = Counts()
        #: The queries that Spark runs now.
        self._asked: list[FollowedQuery] = []

    def begin(self, about: About) -> FollowedQuery:
        """Begin the record of a query."""
        with self._lock:
            self._count += 1
            record = FollowedQuery(self._count, about, self._ended, self._asking)
            self._records.append(record)
            settling = self._records[-OBSERVED_MAX] if len(self._records) >= OBSERVED_MAX else None
        if settling is not None:
            settling.settle()
        return record

    @contextmanager
    def part(self, about: Callable[[], About], where: Where) -> Iterator[FollowedQuery]:
        """In this block, a part of a query of Spark's, or a query whose rows stay, runs to its end.

        If Spark runs a query that is recorded, the part belongs to it.
        """
        told = about()
        whole = self._whole_of(told)
        if whole is not None:
            yield whole
            return
        record = self.begin(told)
        record.where = where
        try:
            yield record
        except BaseException as error:
            record.failed(error)
            raise

    def _whole_of(self, part: About) -> FollowedQuery | None:
        """The query that a part belongs to. Spark may plan it on another thread: then only one query may be running."""
        whole = current()
        with self._lock:
            asked = tuple(self._asked)
        if whole is None and len(asked) == 1 and part.sql in ("", asked[0].about.sql):
            return asked[0]
        return whole

    @contextmanager
    def _asking(self, record: FollowedQuery) -> Iterator[None]:
        """In this block, Spark runs this query."""
        with self._lock:
            self._asked.append(record)
        try:
            yield
        finally:
            with self._lock:
                self._asked.remove(record)

    def warn(self, reasons: Sequence[Reason]) -> None:
        """Say why a query was left to Spark, once per kind of reason."""
        if not reasons or reasons[0].why in NOTHING_TO_DO:
            return
        # Only the first reason counts: others follow from it. Its arguments differ from query to query.
        kind = (reasons[0].what.partition("(")[0], reasons[0].why)
        with self._lock:
            if kind in self._warned or len(self._warned) >= WARNED_MAX:
                return
            self._warned.add(kind)
        # A warning, because Python shows warnings even if no logging is configured.
        _log.warning("Spark runs a query: %s. This is logged once; engine.history() lists all.", reasons[0])

    def find(self, number: int) -> FollowedQuery | None:
        """The query with this number, if it is still known."""
        with self._lock:
            return next((record for record in self._records if record.number == number), None)

    def counts(self) -> Counts:
        """The totals of all queries so far."""
        with self._lock:
            return replace(self._counts, ended=dict(self._counts.ended), seconds=dict(self._counts.seconds))

    def history(self) -> QueryHistory:
        """The latest queries, oldest first."""
        with self._lock:
            records = tuple(self._records)
        return QueryHistory([record.record() for record in records])

    def _ended(self, record: FollowedQuery) -> None:
        found = record.record()
        with self._lock:
            self._counts.add(found)
        if not _log.isEnabledFor(logging.INFO):
            return
        rows = "" if found.rows is None else f"{counted(found.rows, 'row')} in "
        state = "" if found.state == "done" else f"{found.state} after "
        lost = f", lost {', '.join(found.lost_workers)}" if found.lost_workers else ""
        why = f" because {found.why}" if found.why else ""
        ran = f"{rows or state}{duration(found.seconds)}{lost}{why}"
        _log.info("%s: %s: %s", found.where, ran, found.text)


def _rows_in(answer: object) -> int | None:
    """The number of rows in PySpark's answer, if it is known."""
    if isinstance(answer, list):
        return sum(getattr(each, "num_rows", 1) for each in answer)
    if hasattr(answer, "num_rows"):
        return int(answer.num_rows)
    return len(answer) if hasattr(answer, "iloc") else None  # type: ignore[arg-type]  # a pandas data frame
