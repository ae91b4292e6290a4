"""When a TaskManager takes more memory than it should, and what to do: pure, figures and times are passed in.

Shares bound what is counted. What a library takes inside a call, what allocators keep, and what nobody thought of is
not counted; so what the process really has is watched too. Its limit is the budget and an allowance beside it, for
code and allocators, and never more than what the kernel leaves. There are three steps on the way to it, each at a part
of the allowance:

    shed   caches go, allocators give back what they keep, and one task runs at a time
    spill  backups and states go to files although they are within their shares
    end    the query that takes most ends with `MemoryLimitError`

A step is taken only when those before it have been tried, unless memory grows too fast for that: if it would be over
the limit at the next look, a query ends at once. One query ends at a time: the next only after the memory of the last
has had time to go. A query that cannot be stopped, since native code holds its thread, costs the process: beyond twice
the allowance, where the kernel is about to act, or after some seconds, the worker leaves before it is ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

MIB: Final = 1 << 20
#: What a process may take beside its budget: code, and what libraries keep of freed memory.
ALLOWANCE_BYTES: Final = 300 * MIB
#: So much of what the kernel leaves is not for us: it is what the worker needs to end a query, or to leave.
RESERVE_BYTES: Final = 100 * MIB
#: Parts of the allowance at which each step begins. Below the first one all is well again.
CALM_PART: Final = 0.5
SHED_PART: Final = 0.6
SPILL_PART: Final = 0.8
END_PART: Final = 0.9
AT_ONCE_PART: Final = 0.95
LEAVE_PART: Final = 2.0
#: A query that takes less than this, or than this part of the budget, is not what takes the memory; but where the
#: allowance is exceeded by a quarter, the one that takes most has to go all the same.
GREED_BYTES_MIN: Final = 32 * MIB
GREED_PART: Final = 0.25
HELPLESS_PART: Final = 1.25
#: Steps are repeated no more often than this; what they free needs a moment to show.
AGAIN_SECONDS: Final = 1.0
SETTLE_SECONDS: Final = 0.1
#: A query that was ended has so long to let go of its memory.
LET_GO_SECONDS: Final = 10.0


class MemoryAct(IntEnum):
    """What to do now."""

    NOTHING = 0
    SHED = 1
    SPILL = 2
    END = 3
    LEAVE = 4
    #: All is well again: go on as before.
    RELAX = 5


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """What a TaskManager may take: its budget, and an allowance beside it."""

    budget_bytes: int
    allowance_bytes: int = ALLOWANCE_BYTES

    @property
    def limit_bytes(self) -> int:
        """The promise."""
        return self.budget_bytes + self.allowance_bytes

    @property
    def near_bytes(self) -> int:
        """Below this nothing has to be looked at closely."""
        return self.budget_bytes + int(self.allowance_bytes * CALM_PART)

    def is_greedy(self, held_bytes: int, used_bytes: int, room_bytes: int | None) -> bool:
        """Is a query that takes so much what makes memory short?"""
        least = max(GREED_BYTES_MIN, int(self.budget_bytes * GREED_PART))
        return held_bytes >= least or self.part(used_bytes, room_bytes) >= HELPLESS_PART

    def part(self, used_bytes: int, room_bytes: int | None) -> float:
        """How much of the allowance is used up: by the process, or because the kernel leaves no more."""
        part = (used_bytes - self.budget_bytes) / self.allowance_bytes
        if room_bytes is None:
            return part
        room = room_bytes - RESERVE_BYTES
        if room_bytes < RESERVE_BYTES / 2:
            return max(part, LEAVE_PART)
        return max(part, 1.0 - room / self.allowance_bytes)


@dataclass(slots=True)
class MemoryFloor:
    """The memory of one watch: which steps have been tried since memory became short."""

    limits: MemoryLimits
    #: Has any step been taken that is not taken back yet?
    strained: bool = False
    #: When each step came to its end last; None if it was not taken since all was well.
    shed_at: float | None = None
    spilled_at: float | None = None
    #: When a query was told to end, while it is not gone; and until when what has gone may take to show.
    ended_at: float | None = None
    _patient_until: float = 0.0

    def decide(
        self, now: float, used_bytes: int, room_bytes: int | None, *, at_work: bool, grown_bytes: int = 0
    ) -> MemoryAct:
        """What to do. `at_work` says that a step is still being taken; it has grown by so much since the last look."""
        part = self.limits.part(used_bytes, room_bytes)
        if self.ended_at is not None:
            late = now - self.ended_at > LET_GO_SECONDS and part >= END_PART
            return MemoryAct.LEAVE if part >= LEAVE_PART or late else MemoryAct.NOTHING
        if part < SHED_PART:
            calm = part < CALM_PART and not at_work and self.strained
            return MemoryAct.RELAX if calm else MemoryAct.NOTHING
        soon = self.limits.part(used_bytes + grown_bytes, room_bytes)
        too_fast = part >= AT_ONCE_PART or (part >= END_PART and soon >= 1.0)
        if too_fast and now >= self._patient_until:
            return MemoryAct.END
        if at_work:
            return MemoryAct.NOTHING
        return self._next_step(now, part)

    def _next_step(self, now: float, part: float) -> MemoryAct:
        if self.shed_at is None:
            return MemoryAct.SHED
        if part >= SPILL_PART and self.spilled_at is None:
            return MemoryAct.SPILL
        tried_at = max(self.shed_at, self.spilled_at or 0.0)
        if part >= END_PART and now >= max(tried_at + SETTLE_SECONDS, self._patient_until):
            return MemoryAct.END
        if part >= SPILL_PART and now - tried_at >= AGAIN_SECONDS:
            return MemoryAct.SPILL
        return MemoryAct.SHED if now - tried_at >= AGAIN_SECONDS * 4 else MemoryAct.NOTHING

    def took(self, act: MemoryAct, now: float) -> None:
        """A step has come to its end; of an end, only that the query was told."""
        match act:
            case MemoryAct.SHED:
                self.strained, self.shed_at = True, now
            case MemoryAct.SPILL:
                self.strained, self.spilled_at = True, now
            case MemoryAct.END:
                self.strained, self.ended_at = True, now
            case MemoryAct.RELAX:
                self.strained, self.shed_at, self.spilled_at = False, None, None
            case MemoryAct.NOTHING | MemoryAct.LEAVE:
                pass

    def query_gone(self, now: float) -> None:
        """The query that was told to end is gone: what it held is given back, and may take a moment to show."""
        self.ended_at = None
        self.shed_at = None
        self._patient_until = now + SETTLE_SECONDS * 3
