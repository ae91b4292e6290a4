"""Whom a worker cannot reach: pushes that were not answered, counted for every output and not for every wire.

A wire may carry what is small and lose what is large, so an answer to one push says nothing of another: a worker is out
of reach while some output has been pushed to it several times in a row without an answer. Deliveries and re-reads count
alike. An epoch begins with nothing counted: what had to go over a wire may have another way, or none.

A complaint has an end. Whoever complained takes it back once it has been answered, or has nothing more to send there;
in the store it also expires unless it is renewed, for whoever complained may have left the query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from wallaby.lineage.names import Edge, TaskName, WorkerId

#: Unanswered pushes of one output to one worker before this one complains about it.
COMPLAIN_AFTER_PUSHES = 3


class UnansweredPushes:
    """For one query at one worker."""

    def __init__(self) -> None:
        self._unanswered: dict[WorkerId, Counter[tuple[Edge, TaskName]]] = {}
        #: Workers about which the store may hold a complaint of this one.
        self.accused: set[WorkerId] = set()

    def begin_epoch(self) -> None:
        """What was due to whom is decided anew."""
        self._unanswered.clear()

    def note(self, target: WorkerId, items: Iterable[tuple[Edge, TaskName]], *, answered: bool) -> None:
        """A push of these outputs has been answered, or has not been in time."""
        counts = self._unanswered.setdefault(target, Counter())
        for item in items:
            if answered:
                counts.pop(item, None)
            else:
                counts[item] += 1

    def is_out_of_reach(self, target: WorkerId) -> bool:
        """Has some output been pushed there often enough without an answer?"""
        counts = self._unanswered.get(target)
        return counts is not None and max(counts.values(), default=0) >= COMPLAIN_AFTER_PUSHES
