"""Decide when a TaskManager takes too much memory, and what to do. Pure; figures and times are passed in.

Shares bound the memory that is counted. Memory that a library takes inside a call, memory that allocators keep, and
memory that nobody thought of is not counted, so the real usage of the process is watched too. Its limit is the budget
plus an allowance for code and allocators, and never more than what the kernel leaves. On the way to the limit there are
three steps, each at a fraction of the allowance:

    shed   caches go, allocators give back what they keep, and one task runs at a time
    spill  backups and states go to files although they are within their shares
    end    the query that takes most ends with `MemoryLimitError`

A step is taken only when those before it have been tried, unless memory grows too fast: if it would exceed the limit
before a query that is told to end has ended, one ends at once. Queries end one at a time: the next only after the
memory of the last has had time to be freed. A query that cannot be stopped, because native code holds its thread, costs
the process: beyond twice the allowance, when the kernel is about to act, or after some seconds, the worker leaves
before it is killed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

MIB: Final = 1 << 20
#: The default allowance on top of the budget, for code and for freed memory that libraries keep.
ALLOWANCE_BYTES: Final = 300 * MIB
#: The reserve of what the kernel leaves: the worker needs it to end a query, or to leave.
RESERVE_BYTES: Final = 100 * MIB
#: The fractions of the allowance at which each step begins. Steps are undone when less than the first one has been
#: used for some time.
CALM_PART: Final = 0.5
SHED_PART: Final = 0.6
SPILL_PART: Final = 0.8
END_PART: Final = 0.9
AT_ONCE_PART: Final = 0.95
LEAVE_PART: Final = 2.0
#: A query that takes less than this, or than this fraction of the budget, is not blamed; but if the allowance is
#: exceeded by a quarter, the query that takes most ends all the same.
GREED_BYTES_MIN: Final = 32 * MIB
GREED_PART: Final = 0.25
HELPLESS_PART: Final = 1.25
#: How long a running query takes to notice that it must end; meanwhile it grows on, at the last pace.
END_SECONDS: Final = 0.02
#: The minimum time between repetitions of a step, because freed memory takes a moment to show.
AGAIN_SECONDS: Final = 1.0
SETTLE_SECONDS: Final = 0.1
#: How long memory must be sufficient before steps are undone: the next tasks of a stage will need as much as the last.
CALM_SECONDS: Final = 2.0
#: How long a query that was ended may take to free its memory.
LET_GO_SECONDS: Final = 10.0


class MemoryAct(IntEnum):
    """A step against a memory shortage."""

    NOTHING = 0
    SHED = 1
    SPILL = 2
    END = 3
    LEAVE = 4
    #: Memory is no longer short: undo the steps.
    RELAX = 5


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """The memory limits of a TaskManager: its budget, and an allowance on top."""

    budget_bytes: int
    allowance_bytes: int = ALLOWANCE_BYTES

    @property
    def limit_bytes(self) -> int:
        """The promised limit."""
        return self.budget_bytes + self.allowance_bytes

    @property
    def near_bytes(self) -> int:
        """Below this, no close look is needed."""
        return self.budget_bytes + int(self.allowance_bytes * CALM_PART)

    def is_greedy(self, held_bytes: int, used_bytes: int, room_bytes: int | None) -> bool:
        """Does a query take so much that it is to blame for the shortage?"""
        least = max(GREED_BYTES_MIN, int(self.budget_bytes * GREED_PART))
        return held_bytes >= least or self.part(used_bytes, room_bytes) >= HELPLESS_PART

    def part(self, used_bytes: int, room_bytes: int | None) -> float:
        """The fraction of the allowance that is used up, by the process or because the kernel leaves no more."""
        part = (used_bytes - self.budget_bytes) / self.allowance_bytes
        if room_bytes is None:
            return part
        room = room_bytes - RESERVE_BYTES
        if room_bytes < RESERVE_BYTES / 2:
            return max(part, LEAVE_PART)
        return max(part, 1.0 - room / self.allowance_bytes)


@dataclass(slots=True)
class MemoryFloor:
    """The state of one watch: which steps have been tried since memory became short."""

    limits: MemoryLimits
    #: Has any step been taken that is not yet undone?
    strained: bool = False
    #: When each step last ended; None if it has not been taken since memory became short.
    shed_at: float | None = None
    spilled_at: float | None = None
    #: When a query was told to end, as long as it is still there; and until when freed memory may take to show.
    ended_at: float | None = None
    _patient_until: float = 0.0
    #: Since when usage has been below the level at which steps are undone; None if it is above.
    _calm_since: float | None = None

    def decide(
        self, now: float, used_bytes: int, room_bytes: int | None, *, at_work: bool, growing_bytes: int = 0
    ) -> MemoryAct:
        """Decide what to do, given the usage, and its growth in `END_SECONDS`. `at_work`: a step is being taken."""
        part = self.limits.part(used_bytes, room_bytes)
        if part >= CALM_PART:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = now
        if self.ended_at is not None:
            late = now - self.ended_at > LET_GO_SECONDS and part >= END_PART
            return MemoryAct.LEAVE if part >= LEAVE_PART or late else MemoryAct.NOTHING
        if part < SHED_PART:
            calm = self._calm_since is not None and now - self._calm_since >= CALM_SECONDS
            return MemoryAct.RELAX if calm and not at_work and self.strained else MemoryAct.NOTHING
        soon = self.limits.part(used_bytes + growing_bytes, room_bytes)
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
        """Note that a step has ended; for ending a query, only that the query was told."""
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
        """Note that the query that had to end is gone; it may take a moment until its memory counts as free."""
        self.ended_at = None
        self.shed_at = None
        self._patient_until = now + SETTLE_SECONDS * 3
