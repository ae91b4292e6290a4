"""Check the readers of kept results: which workers they report, how long they wait, what they receive.

A reader accuses a worker whenever, and only because, a fetch from it was not answered, takes that back with the next
answer and at its end, goes to the worker that it was last told of, and gives up when nothing has come, and nothing
was seen to move, for as long as its patience lasts, neither before nor later.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from wallaby.errors import WallabyError
from wallaby.lineage.names import ChannelName, WorkerId
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.drawn.stay import Visit
from wallaby_lab.simulation.drawn.workload import Row
from wallaby_lab.simulation.world.running import Running

#: How much longer than its patience a reader may take until it gives up, because it may be held for a while.
SLACK_MS = 4_000


@dataclass(slots=True)
class Reader:
    """A reader of a kept result: what it received, which workers it reports, how it ended."""

    running: Running
    visit: Visit
    #: When it came, last got an output, or was last told that something had moved.
    came_ms: int
    rows: Counter[Row] = field(default_factory=Counter)
    over: bool = False
    error: WallabyError | None = None
    #: The worker that has not answered its last fetch, until it says so.
    _unanswered: WorkerId | None = None
    _accused: set[WorkerId] = field(default_factory=set)
    #: The accused worker that has answered since.
    _excused: WorkerId | None = None
    #: What it was last told of moves.
    _moves: int | None = None
    #: Where it was last told that channels are.
    _places: dict[ChannelName, WorkerId] = field(default_factory=dict)

    def asks(self, now_ms: int, worker: WorkerId | None = None, channel: ChannelName | None = None) -> None:
        """It fetches a channel from a worker, or asks where a channel is."""
        self._require_accused()
        if self._excused is not None:
            raise InvariantViolation(8, f"{self._excused} answers a reader again, and stays accused")
        waited_ms = now_ms - self.came_ms
        if waited_ms > self.visit.patience_ms + SLACK_MS:
            raise InvariantViolation(7, f"a reader goes on waiting, although nothing came for {waited_ms} ms")
        if channel in self._places and self._places[channel] != worker:
            raise InvariantViolation(
                7, f"a reader goes to {worker} for {channel}, which is at {self._places[channel]}"
            )
        self._unanswered = worker

    def _require_accused(self) -> None:
        """A worker that does not answer is accused at once: perhaps nobody else needs it."""
        if self._unanswered is not None:
            raise InvariantViolation(7, f"a reader does not say that {self._unanswered} has not answered it")

    def gets(self, worker: WorkerId, outputs: int, now_ms: int) -> None:
        """A worker answers its fetch."""
        self._unanswered = None
        if worker in self._accused:
            self._excused = worker
        if outputs:
            self.came_ms = now_ms

    def is_sent(self, channel: ChannelName, worker: WorkerId) -> None:
        """The head tells it where a channel is."""
        self._places[channel] = worker

    def is_told(self, moves: int, now_ms: int) -> None:
        """The head tells it how often something has moved at the workers."""
        if self._moves is not None and moves != self._moves:
            self.came_ms = now_ms
        self._moves = moves

    def says(self, worker: WorkerId, *, reachable: bool) -> None:
        """It reports that a worker does not answer, or does again."""
        if reachable:
            self._accused.discard(worker)
            self._excused = None
        elif self._unanswered != worker:
            raise InvariantViolation(8, f"a reader accuses {worker}, which has answered it")
        else:
            self._accused.add(worker)
            self._unanswered = None

    def ends(self, now_ms: int, *, gone: bool) -> None:
        """It has ended: with the whole result, or with an error for which there must be a reason."""
        query = self.running.query.id
        if not gone:
            self._require_accused()
        if self.error is None:
            difference = self.running.workload.explain_difference(self.rows)
            if difference:
                raise InvariantViolation(7, f"a reader of {query} got a wrong result: {difference}")
            if self._accused:
                raise InvariantViolation(
                    8, f"a reader has all rows, and {sorted(self._accused)} stay accused"
                )
        elif not gone and now_ms - self.came_ms <= self.visit.patience_ms:
            raise InvariantViolation(7, f"a reader of {query} failed without a reason: {self.error}")
