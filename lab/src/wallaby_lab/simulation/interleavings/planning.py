"""Schedules of two threads with one preemption or two, all of them, at the lines where they touch what both use.

Most races need no more: one thread has looked at something, another changes a part of it, and the first goes on. Both
threads are run once, one after the other, to see which lines they touch shared attributes at. Then every schedule is
a plan: one thread stops before one of these lines until the other is through, or until that comes to a line that
writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from wallaby_lab.simulation.interleavings.touching import Touch

#: Always the same order, in which neighbours have little in common.
_ORDER = 20


@dataclass(frozen=True, slots=True)
class ThreadPlan:
    """Which of two threads goes first, and before which line of its, if any, each of them stops."""

    first: str
    stop: int | None = None
    other_stop: int | None = None


Traces = Mapping[str, Sequence[Touch]]


def plans_of(one: str, of_one: Traces, other: str, of_other: Traces) -> tuple[ThreadPlan, ...]:
    """All plans for two threads, in an order that mixes them.

    What each line of both touches is given twice: as seen when the one went first, and when the other did.
    """
    shared = _shared([of_one[one], of_other[one]], [of_one[other], of_other[other]])
    plans = [
        *_plans(one, of_one[one], of_other[other], shared),
        *_plans(other, of_other[other], of_one[one], shared),
    ]
    Random(_ORDER).shuffle(plans)
    return tuple(plans)


def _shared(one: Sequence[Sequence[Touch]], other: Sequence[Sequence[Touch]]) -> frozenset[str]:
    """What one of two threads writes and the other touches, in any run."""
    written, touched = [], []
    for traces in (one, other):
        touches = [touch for trace in traces for touch in trace]
        written.append(frozenset().union(*(touch.writes for touch in touches)))
        touched.append(frozenset().union(*(touch.names for touch in touches)))
    return (written[0] & touched[1]) | (written[1] & touched[0])


def _plans(
    first: str, its: Sequence[Touch], others: Sequence[Touch], shared: frozenset[str]
) -> list[ThreadPlan]:
    stops = [line for line, touch in enumerate(its, 1) if touch.names & shared]
    writes = [line for line, touch in enumerate(others, 1) if touch.writes & shared]
    return [
        *(ThreadPlan(first, stop) for stop in stops),
        *(ThreadPlan(first, stop, write) for stop in stops for write in writes),
    ]
