"""The stall watch: end a query in which nothing moves although nobody is busy, and report who waits for what.

A stall is a bug in Wallaby that no detector of lost workers sees, because all workers are alive and wait. A query that
is only slow must never be taken for stalled, so it is judged only after a whole period in which all of this held:

- the store answered, the query's gate was open, and its epoch and its commits did not change;
- every member and the head answered, in each round that counts, on the thread that drives their generators: a worker
  that is stopped, cut off or starved of CPU is left to the detector of lost workers;
- none of them was busy: computing, waiting for a thread to compute on, writing, reading, or waiting for the client;
- nothing moved at any of them (`Standing.marks`).

Time counts from round to round, so a head that was itself paused has seen only one round. The time of a round in which
a member does not answer does not count, but earlier rounds still do: if the marks are the same afterwards, nothing has
moved. Otherwise a wire that fails from time to time would hide a stall for ever. A member that the head cannot reach at
all, although its lease is renewed, would hide a stall too. So after `SILENT_LIMITS` times the limit without a commit,
while nothing moves at those who do answer and none of them is busy, its silence ends the query. Everybody is asked in
every round, whoever is silent. While commits succeed, nobody is asked: the watch then costs one look at the store every
few seconds.

The coordinator ends stalled queries as it ends cancelled ones. If it does not, because an answer to itself was lost,
the watch does so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from wallaby.coordinator.effects import Inquire, ReadStatus, Remove
from wallaby.coordinator.query import Cancellation, Query, QueryPhase
from wallaby.errors import GcsLostError, QueryStalledError
from wallaby.gcs.interface import QueryStatus
from wallaby.lineage.effects import Effects, FailPoint, Pause, ask
from wallaby.lineage.names import HEAD, QueryId, WorkerId
from wallaby.lineage.verdict import Verdict

_log = logging.getLogger(__name__)
#: The minimum number of rounds within the limit of a stall.
ROUNDS = 12
#: One round counts for at most this many of the pauses between rounds.
PAUSES_PER_ROUND = 2
#: How many times the limit members that the head cannot reach may stay silent while nothing is committed.
SILENT_LIMITS = 8
#: In how many rounds a query may be found cancelled and not ended, before the watch ends it.
UNENDED_ROUNDS = 2
#: How many of the known waits the error message has; the log has all of them.
WAITS_SHOWN = 12


class _Round(Enum):
    """The outcome of one round of questions."""

    #: Something moved, or somebody was busy.
    MOVED = "moved"
    #: Everybody answered, and nothing moved.
    STILL = "still"
    #: Members did not answer; according to the others, nothing moved.
    SILENT = "silent"
    #: The store did not answer.
    UNKNOWN = "unknown"


@dataclass(slots=True)
class _Quiet:
    """How long nothing has moved in one query, as far as was observed, and the last observation."""

    #: What everybody said last, and the status that they were asked about.
    marks: dict[WorkerId, tuple[int, ...]] = field(default_factory=dict)
    status: QueryStatus | None = None
    quiet_ms: int = 0
    #: How long members did not answer while, according to the others, nothing moved.
    silent_ms: int = 0
    looked_ms: int = 0
    waits: list[str] = field(default_factory=list)


class StallWatch:
    """Watches the queries of one head; see the module. It ends a query as a user would cancel it."""

    def __init__(
        self,
        limit_ms: int,
        queries: Mapping[QueryId, Query],
        now_ms: Callable[[], int],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """`ended` is called when a query has been ended here."""
        self._limit_ms = limit_ms
        self._ended = ended
        self._pause_ms = max(limit_ms // ROUNDS, 1)
        self._queries = queries
        self._now_ms = now_ms
        self._quiet: dict[QueryId, _Quiet] = {}
        #: In how many rounds each query was found to be cancelled and not ended.
        self._unended: dict[QueryId, int] = {}

    def run(self) -> Effects[None]:
        """Check every running query periodically. Reporting a lost store is left to the coordinator."""
        while True:
            yield Pause(self._pause_ms, FailPoint.STATUS)
            running = [query for query in self._queries.values() if _may_stall(query)]
            self._quiet = {query.id: self._quiet.get(query.id) or _Quiet() for query in running}
            for query in running:
                with suppress(GcsLostError):
                    yield from self._look(query, self._quiet[query.id])
            with suppress(GcsLostError):
                yield from self._end_unended()

    def _end_unended(self) -> Effects[None]:
        """End queries that are to end and that the coordinator leaves alone: it may itself wait for ever."""
        begun = (QueryPhase.RUNNING, QueryPhase.ENDING)
        waiting = [query for query in self._queries.values() if query.cancelled and query.phase in begun]
        self._unended = {query.id: self._unended.get(query.id, 0) + 1 for query in waiting}
        for query in waiting:
            if self._unended[query.id] > UNENDED_ROUNDS:
                yield from _end(query)
                if query.ended:
                    self._ended()

    def _look(self, query: Query, quiet: _Quiet) -> Effects[None]:
        """One round for one query."""
        seen = yield from self._seen(query, quiet)
        now_ms = self._now_ms()
        round_ms = min(now_ms - quiet.looked_ms, PAUSES_PER_ROUND * self._pause_ms)
        quiet.looked_ms = now_ms
        match seen:
            case _Round.MOVED:
                quiet.quiet_ms = quiet.silent_ms = 0
            case _Round.STILL:
                quiet.quiet_ms += round_ms
            case _Round.SILENT:
                quiet.silent_ms += round_ms
            case _Round.UNKNOWN:
                pass
        over = quiet.quiet_ms >= self._limit_ms or quiet.silent_ms >= SILENT_LIMITS * self._limit_ms
        if over and _may_stall(query):
            query.cancellation = Cancellation(_stalled(query, quiet))

    def _seen(self, query: Query, quiet: _Quiet) -> Effects[_Round]:
        """Look at the store and, if nothing moved there, ask everybody."""
        status = yield from ask(ReadStatus(query.id))
        if status is None:
            return _Round.UNKNOWN
        before, quiet.status = quiet.status, status
        if status.verdict is not Verdict.DONE or not status.gate_open or status.error or status != before:
            quiet.marks = {}
            return _Round.MOVED
        asked = (HEAD, *status.members, *status.draining)
        standings = (yield from ask(Inquire(query.id, asked))) or {}
        marks = {worker: standing.marks for worker, standing in standings.items()}
        busy = any(standing.busy for standing in standings.values())
        moved = busy or any(quiet.marks.get(worker) != now for worker, now in marks.items())
        quiet.marks = {} if busy else quiet.marks | marks
        quiet.waits = [
            f"{worker}: {line}"
            for worker in asked
            for line in (standings[worker].waits if worker in standings else ("does not answer the driver",))
        ]
        if moved:
            return _Round.MOVED
        return _Round.STILL if len(standings) == len(asked) else _Round.SILENT


def _end(query: Query) -> Effects[None]:
    """Remove a query that is to end, as the coordinator does; it is harmless if both do."""
    if not query.is_over:
        query.end(query.cancelled_error)
    if (yield from ask(Remove(query.id, barred=query.doubtful))) is not None:
        query.advance(QueryPhase.ENDED)


def _may_stall(query: Query) -> bool:
    return query.phase is QueryPhase.RUNNING and not (query.cancelled or query.is_whole)


def _stalled(query: Query, quiet: _Quiet) -> QueryStalledError:
    """The error of a stalled query; the log has all details."""
    seconds = max(quiet.quiet_ms, quiet.silent_ms) / 1000
    _log.error(
        "query %s has made no progress for %.1f s although nobody is busy:\n  %s",
        query.id,
        seconds,
        "\n  ".join(quiet.waits),
    )
    shown = quiet.waits[:WAITS_SHOWN]
    more = f"; and {len(quiet.waits) - len(shown)} more, see the log" if len(quiet.waits) > len(shown) else ""
    return QueryStalledError(
        f"Query {query.id} has made no progress for {seconds:.1f} s although nobody is busy. "
        + "; ".join(shown)
        + more
        + ".",
        fix="This is a bug in Wallaby: please report it. The query may succeed with more spark.wallaby.memory; "
        "spark.wallaby.stallTimeout sets how long Wallaby waits before it ends such a query.",
        query=query.id,
        waits=tuple(quiet.waits),
    )
