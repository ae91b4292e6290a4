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
while nobody else is busy, its silence ends the query. While commits succeed, nobody is asked: the watch then costs one
look at the store every few seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from wallaby.coordinator.effects import Inquire, ReadStatus
from wallaby.coordinator.query import Query, QueryPhase
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
#: How many of the known waits the error message has; the log has all of them.
WAITS_SHOWN = 12

Seen = tuple[QueryStatus, Mapping[WorkerId, tuple[int, ...]]]


@dataclass(slots=True)
class _Quiet:
    """How long nothing has moved in one query, as far as was observed, and the last observation."""

    seen: Seen | None = None
    quiet_ms: int = 0
    #: How long members did not answer while, according to the others, nothing moved; and those of the last round.
    silent_ms: int = 0
    silent: tuple[WorkerId, ...] = ()
    looked_ms: int = 0
    status: QueryStatus | None = None
    waits: list[str] = field(default_factory=list)


class StallWatch:
    """Watches the queries of one head; see the module. It ends a query as a user would cancel it."""

    def __init__(self, limit_ms: int, queries: Mapping[QueryId, Query], now_ms: Callable[[], int]) -> None:
        self._limit_ms = limit_ms
        self._pause_ms = max(limit_ms // ROUNDS, 1)
        self._queries = queries
        self._now_ms = now_ms
        self._quiet: dict[QueryId, _Quiet] = {}

    def run(self) -> Effects[None]:
        """Check every running query periodically. Reporting a lost store is left to the coordinator."""
        while True:
            yield Pause(self._pause_ms, FailPoint.STATUS)
            running = [query for query in self._queries.values() if _may_stall(query)]
            self._quiet = {query.id: self._quiet.get(query.id) or _Quiet() for query in running}
            for query in running:
                with suppress(GcsLostError):
                    yield from self._look(query, self._quiet[query.id])

    def _look(self, query: Query, quiet: _Quiet) -> Effects[None]:
        """One round for one query."""
        answered, seen = yield from self._seen(query, quiet)
        now_ms = self._now_ms()
        round_ms = min(now_ms - quiet.looked_ms, PAUSES_PER_ROUND * self._pause_ms)
        if answered and (seen is None or seen != quiet.seen):
            quiet.seen, quiet.quiet_ms, quiet.silent_ms = seen, 0, 0
        elif answered:
            quiet.quiet_ms += round_ms
        elif quiet.silent:
            quiet.silent_ms += round_ms
        quiet.looked_ms = now_ms
        over = quiet.quiet_ms >= self._limit_ms or quiet.silent_ms >= SILENT_LIMITS * self._limit_ms
        if over and _may_stall(query):
            query.cancelled_because = _stalled(query, quiet)
            query.cancelled = True

    def _seen(self, query: Query, quiet: _Quiet) -> Effects[tuple[bool, Seen | None]]:
        """Whether everybody answered, and an observation that changes with progress; None if there may be progress."""
        status = yield from ask(ReadStatus(query.id))
        quiet.silent = ()
        if status is None:
            return False, None
        before, quiet.status = quiet.status, status
        if status.verdict is not Verdict.DONE or not status.gate_open or status.error or status != before:
            return True, None
        asked = (*status.members, *status.draining, HEAD)
        standings = (yield from ask(Inquire(query.id, asked))) or {}
        if any(standing.busy for standing in standings.values()):
            return True, None
        quiet.silent = tuple(worker for worker in asked if worker not in standings)
        quiet.waits = [
            f"{worker}: {line}"
            for worker in asked
            for line in (standings[worker].waits if worker in standings else ("does not answer the driver",))
        ]
        if quiet.silent:
            return False, None
        return True, (status, {worker: standing.marks for worker, standing in standings.items()})


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
