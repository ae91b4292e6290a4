"""Complaints about one worker in the in-memory store: who reports, for which query, that it cannot be reached.

The age of a complaint is the time from the first report to the latest. A complaint is renewed by reporting again; it
disappears if it is withdrawn, or if nobody renews it for some time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wallaby.lineage.names import QueryId, WorkerId


@dataclass(frozen=True, slots=True)
class _Complaint:
    since_ms: int
    latest_ms: int
    ends_ms: int


@dataclass(slots=True)
class Complaints:
    """The complaints about one worker."""

    _standing: dict[tuple[WorkerId, QueryId], _Complaint] = field(default_factory=dict)

    def say(self, reporter: WorkerId, query: QueryId, reachable: bool, now_ms: int, lasts_ms: int) -> None:
        """Begin a complaint, renew it, or withdraw it."""
        standing = {key: each for key, each in self._standing.items() if each.ends_ms >= now_ms}
        before = standing.pop((reporter, query), None)
        if not reachable:
            since_ms = before.since_ms if before is not None else now_ms
            standing[reporter, query] = _Complaint(since_ms, now_ms, now_ms + lasts_ms)
        self._standing = standing

    def forget(self, reporter: WorkerId) -> None:
        """Remove the complaints of a worker that is gone."""
        self._standing = {key: each for key, each in self._standing.items() if key[0] != reporter}

    def lasted_ms(self, now_ms: int) -> tuple[tuple[WorkerId, int], ...]:
        """Who complains and for how long; the longest over all queries."""
        found: dict[WorkerId, int] = {}
        for (reporter, _), complaint in self._standing.items():
            if complaint.ends_ms >= now_ms:
                found[reporter] = max(complaint.latest_ms - complaint.since_ms, found.get(reporter, 0))
        return tuple(sorted(found.items()))
