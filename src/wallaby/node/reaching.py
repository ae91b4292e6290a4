"""Find the workers that a worker cannot reach: count unanswered pushes for every output, not for every wire.

A wire may carry small outputs and lose large ones, so an answer to one push says nothing about another. A worker is out
of reach while some output has been pushed to it several times in a row without an answer. Deliveries and re-reads count
alike. A new epoch begins with empty counts, because outputs may now have other targets.

Its author withdraws a complaint once the push has been answered, or when there is nothing more to send there. In the
store it also expires unless it is renewed, because its author may have left the query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from wallaby.lineage.names import Edge, TaskName, WorkerId

#: Unanswered pushes of one output to one worker before this one complains about it.
COMPLAIN_AFTER_PUSHES = 3


class UnansweredPushes:
    """The unanswered pushes of one query at one worker."""

    def __init__(self) -> None:
        self._unanswered: dict[WorkerId, Counter[tuple[Edge, TaskName]]] = {}
        #: Workers about which the store may hold a complaint of this worker.
        self.accused: set[WorkerId] = set()

    def begin_epoch(self) -> None:
        """Forget all counts, because targets are assigned anew."""
        self._unanswered.clear()

    def note(self, target: WorkerId, items: Iterable[tuple[Edge, TaskName]], *, answered: bool) -> None:
        """Note that a push of these outputs was answered, or was not answered in time."""
        counts = self._unanswered.setdefault(target, Counter())
        for item in items:
            if answered:
                counts.pop(item, None)
            else:
                counts[item] += 1

    def is_out_of_reach(self, target: WorkerId) -> bool:
        """Has an output been pushed there too often without an answer?"""
        counts = self._unanswered.get(target)
        return counts is not None and max(counts.values(), default=0) >= COMPLAIN_AFTER_PUSHES
