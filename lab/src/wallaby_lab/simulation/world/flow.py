"""The flow of outputs besides windows: cut pushes, little room for arriving data, and pauses.

A process really sends only what fits in one push, asks before it sends much, and drops on the way in what it has no
memory for. Each of these keeps an output from its consumer for a reason other than the consumer's window, and none
may do so for ever. A slow client, a long task and an effect that is lost by mistake stop everything: the first two are
no stalls, the last one is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import Protocol

from wallaby.lineage.effects import FailPoint, PushReply, Slice
from wallaby.lineage.names import WorkerId

PLENTY_BYTES = 1 << 40
#: A time longer than the stall limit.
LONG_MS = 20_000


class Receives(Protocol):
    """Receives slices: a session, or a watched one."""

    def preview(self, epoch: int, target: WorkerId, slices: tuple[Slice, ...], /) -> PushReply:
        """What would be held of these."""
        ...

    def receive(self, epoch: int, target: WorkerId, slices: tuple[Slice, ...], /) -> PushReply:
        """Take them in."""
        ...


@dataclass(frozen=True, slots=True)
class Flow:
    """How outputs get from process to process, besides windows."""

    #: The largest push, unless its first slice is larger.
    push_bytes: int = PLENTY_BYTES
    #: The room for arriving data, with one overdraft; slices without room are read and dropped.
    incoming_bytes: int = PLENTY_BYTES
    #: The size from which a sender first asks what would be held.
    ask_bytes: int = PLENTY_BYTES
    #: At which rows the client pauses, and which task takes long; 0: never.
    slow_collect: int = 0
    slow_execute: int = 0
    #: The fail point and the visit of the effect whose answer is lost, and whether it is performed.
    forgotten: tuple[FailPoint, int, bool] | None = None
    #: The round of the stall watch in which that answer comes after all; 0: never.
    comes_in_round: int = 0

    def cut(self, pieces: tuple[Slice, ...]) -> tuple[Slice, ...]:
        """The part of the due slices that one push sends, as in `Backup.slices_of`."""
        total_bytes = 0
        for at, piece in enumerate(pieces):
            total_bytes += piece.size_bytes
            if at and total_bytes > self.push_bytes:
                return pieces[:at]
        return pieces

    def receive(
        self, session: Receives, epoch: int, target: WorkerId, pieces: tuple[Slice, ...], *, local: bool
    ) -> PushReply:
        """Slices come in: what is wanted of them if that was asked, and of that what there is memory for."""
        sent = (True,) * len(pieces)
        if local or sum(piece.size_bytes for piece in pieces) >= self.ask_bytes:
            wanted = session.preview(epoch, target, pieces)
            if not wanted.accepted:
                return wanted
            sent = wanted.held
        coming_bytes = 0
        fits = []
        for piece, is_sent in zip(pieces, sent, strict=True):
            room = local or not piece.size_bytes or coming_bytes < self.incoming_bytes
            fits.append(is_sent and room)
            coming_bytes += piece.size_bytes if fits[-1] else 0
        return session.receive(epoch, target, tuple(compress(pieces, fits))).of_all(fits)


#: A flow without limits.
FREE = Flow()


class Lapses:
    """The one-time events of a flow."""

    def __init__(self, flow: Flow, tell: Callable[[str], None]) -> None:
        self._flow = flow
        self._tell = tell
        self._counts = {"collect": 0, "execute": 0, "forgotten": 0}
        #: An answer was lost, and a query may stall because of it.
        self.forgot = False
        self.stalls = False

    @property
    def performs(self) -> bool:
        """Is the effect performed whose answer is lost?"""
        return self._flow.forgotten is not None and self._flow.forgotten[2]

    def forgets(self, point: FailPoint) -> bool:
        """Is this the effect whose answer is lost?"""
        if self._flow.forgotten is None or point is not self._flow.forgotten[0] or self.forgot:
            return False
        self.forgot = self._is_it("forgotten", self._flow.forgotten[1])
        return self.forgot

    def collect_ms(self) -> int:
        """How long the client takes for these rows."""
        return LONG_MS if self._is_it("collect", self._flow.slow_collect) else 0

    def execute_ms(self) -> int:
        """How much longer than usual this task takes."""
        return LONG_MS if self._is_it("execute", self._flow.slow_execute) else 0

    def _is_it(self, what: str, nth: int) -> bool:
        self._counts[what] += 1
        found = self._counts[what] == nth
        if found:
            self._tell(f"*** {what}: this one")
        return found
