"""The wires between simulated processes: cut in one or both directions, intermittently or for good; slow or picky.

A message passes a wire at one moment: it is lost if the wire is cut when it arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wallaby.lineage.effects import FailPoint
from wallaby.lineage.names import WorkerId

#: A wire that is cut for this long is not healed with the rest: one of its ends has to be expelled.
FOR_GOOD_US = 1 << 60


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with one direction of a wire."""

    until_us: int
    #: It is cut only in the first half of every such period; 0: all the time.
    period_us: int = 0
    #: It is not cut, but messages take this much longer.
    late_us: int = 0
    #: It loses only pushes of this kind, or from this size on.
    only: FailPoint | None = None
    only_bytes: int = 0

    @property
    def is_picky(self) -> bool:
        """Does it lose some pushes and nothing else?"""
        return self.only is not None or self.only_bytes > 0


class SimulatedWires:
    """The trouble of every wire, by sender and target."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._troubles: dict[tuple[WorkerId, WorkerId], Trouble] = {}

    def spoil(self, sender: WorkerId, target: WorkerId, trouble: Trouble, *, one_way: bool = False) -> None:
        """Add trouble to a wire."""
        self._troubles[sender, target] = trouble
        if not one_way:
            self._troubles[target, sender] = trouble

    def heal(self) -> None:
        """Heal all wires, except those that are cut for good."""
        self._troubles = {
            wire: trouble for wire, trouble in self._troubles.items() if trouble.until_us >= FOR_GOOD_US
        }

    def is_cut(self, sender: WorkerId, target: WorkerId) -> bool:
        """Is a message that passes now lost?"""
        if not self._troubles:
            return False
        trouble, now_us = self._troubles.get((sender, target)), self._now_us()
        if trouble is None or trouble.until_us <= now_us or trouble.late_us or trouble.is_picky:
            return False
        return not trouble.period_us or now_us % trouble.period_us < trouble.period_us // 2

    def loses(self, sender: WorkerId, target: WorkerId, point: FailPoint, size_bytes: int) -> bool:
        """Is a push lost because of its kind or its size?"""
        trouble = self._troubles.get((sender, target))
        if trouble is None or trouble.until_us <= self._now_us() or not trouble.is_picky:
            return False
        return point is trouble.only or 0 < trouble.only_bytes <= size_bytes

    def late_us(self, sender: WorkerId, target: WorkerId) -> int:
        """How much longer a message that is sent now takes."""
        trouble = self._troubles.get((sender, target))
        return trouble.late_us if trouble is not None and trouble.until_us > self._now_us() else 0
