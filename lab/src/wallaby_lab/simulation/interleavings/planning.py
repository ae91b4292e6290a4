"""All schedules of two threads with one or two preemptions, at the lines where they access shared attributes.

Most races need no more: one thread has read something, another changes a part of it, and the first continues. Both
threads are run once, one after the other, to record at which lines they access shared attributes. Then every schedule
is a plan: one thread stops before one of these lines until the other has finished, or until the other reaches a line
that writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from wallaby_lab.simulation.interleavings.touching import Touch

#: A fixed order, in which neighbours have little in common.
_ORDER = 20


@dataclass(frozen=True, slots=True)
class ThreadPlan:
    """Which of two threads runs first, and before which of its lines, if any, each of them stops."""

    first: str
    stop: int | None = None
    other_stop: int | None = None


Traces = Mapping[str, Sequence[Touch]]


def plans_of(one: str, of_one: Traces, other: str, of_other: Traces) -> tuple[ThreadPlan, ...]:
    """All plans for two threads, in an order that mixes them.

    The accesses of each line are given twice: as recorded when the one ran first, and when the other did.
    """
    shared = _shared([of_one[one], of_other[one]], [of_one[other], of_other[other]])
    plans = [
        *_plans(one, of_one[one], of_other[other], shared),
        *_plans(other, of_other[other], of_one[one], shared),
    ]
    Random(_ORDER).shuffle(plans)
    return tuple(plans)


def _shared(one: Sequence[Sequence[Touch]], other: Sequence[Sequence[Touch]]) -> frozenset[str]:
    """The attributes that one of two threads writes and the other accesses, in any run."""
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
