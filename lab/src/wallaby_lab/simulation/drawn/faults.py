"""Faults: what can go wrong, and when.

A fault strikes when an actor reaches a fail point for the n-th time, before the effect is performed or after it, before
its answer arrives. Every kind can strike at every point: at a point of a worker it strikes that worker; at a point of
the coordinator, depending on its kind, a random worker, the store or the coordinator itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

from wallaby.lineage.effects import FailPoint


class FaultKind(Enum):
    """What goes wrong."""

    CRASH = "crash"
    CRASH_TWO = "crash two"
    PAUSE = "pause (zombie)"
    STALL = "stall"
    DISK_FULL = "disk full"
    DRAIN = "drain"
    JOIN = "join late"
    DROP = "drop"
    DUPLICATE = "duplicate"
    REORDER = "delay, reorder"
    CUT = "cut in mid-stream"
    PARTITION = "partition"
    CUT_FOR_GOOD = "wire cut for good"
    ONE_WAY = "wire cut one way"
    FLAPPING = "wire flapping"
    SLOW_WIRE = "wire slow"
    PICKY_WIRE = "wire picky"
    STORE_PARTITION = "cut from store"
    REPLY_LOST = "reply lost"
    REFUSED = "refused"
    STORE_PAUSE = "store paused"
    STORE_EMPTY = "store restarted empty"
    STORE_TRUNCATED = "store truncated"
    STORE_BACK = "store went back"
    STORE_SPLIT = "store split in two"
    COORDINATOR_RESTART = "coordinator restarted"
    HEAD_PAUSE = "head paused"
    CANCEL = "cancel"
    OUT_OF_MEMORY = "out of memory"
    RELEASE = "release"


#: Kinds that rightly end the query: they are drawn seldom, or few queries would run to their end.
ENDING = (
    FaultKind.STORE_EMPTY,
    FaultKind.STORE_TRUNCATED,
    FaultKind.STORE_BACK,
    FaultKind.STORE_SPLIT,
    FaultKind.CANCEL,
    FaultKind.RELEASE,
)
#: Those of them after which the store cannot be trusted.
STORE_LOST = (
    FaultKind.STORE_EMPTY,
    FaultKind.STORE_TRUNCATED,
    FaultKind.STORE_BACK,
    FaultKind.STORE_SPLIT,
)
#: Kinds that cost a worker.
LOSING = (
    FaultKind.CRASH,
    FaultKind.CRASH_TWO,
    FaultKind.PAUSE,
    FaultKind.DISK_FULL,
    FaultKind.STORE_PARTITION,
)
#: Kinds after which a call to the store may be late or lost.
DISTURBS_CALLS = {
    FaultKind.PAUSE,
    FaultKind.STALL,
    FaultKind.REORDER,
    FaultKind.STORE_PARTITION,
    FaultKind.REPLY_LOST,
    FaultKind.REFUSED,
    FaultKind.STORE_PAUSE,
}
#: Kinds of trouble with the wire between two processes.
OF_WIRES = (
    FaultKind.PARTITION,
    FaultKind.CUT_FOR_GOOD,
    FaultKind.ONE_WAY,
    FaultKind.FLAPPING,
    FaultKind.SLOW_WIRE,
    FaultKind.PICKY_WIRE,
)
#: Points of saved states, of re-reads and of kept results: not every policy has them.
OF_STATES = (FailPoint.SAVE_STATE, FailPoint.RESTORE_STATE)
OF_REREADS = (FailPoint.CLAIM, FailPoint.REREAD, FailPoint.REREAD_BACK_UP, FailPoint.REREAD_DELIVER)
OF_READERS = (FailPoint.KEEP, FailPoint.LOCATE, FailPoint.FETCH)
#: Points that are reached only during a recovery.
RECOVERY_POINTS = (
    FailPoint.EXPEL,
    FailPoint.FREEZE,
    FailPoint.SNAPSHOT,
    FailPoint.RESUME,
    FailPoint.READ_RECORDS,
    FailPoint.RESTORE_STATE,
    FailPoint.RETRACE,
    FailPoint.RETRACE_BACK_UP,
    FailPoint.CLAIM,
    FailPoint.REREAD,
    FailPoint.REREAD_BACK_UP,
    FailPoint.REREAD_DELIVER,
    FailPoint.PING,
    FailPoint.COMPLAIN,
)
#: Points that a query reaches a few times at most.
RARE_POINTS = (
    FailPoint.REGISTER,
    FailPoint.CLOSE_EARLY,
    FailPoint.FAIL,
    FailPoint.JOIN,
    FailPoint.REMOVE,
    FailPoint.READ,
    FailPoint.SUBMIT,
    FailPoint.DRAIN,
)


@dataclass(frozen=True, slots=True)
class SimulatedFault:
    """One fault: at the `nth` visit of a fail point, before its effect or after it."""

    kind: FaultKind
    point: FailPoint
    nth: int
    after: bool

    def __str__(self) -> str:
        return f"{self.kind.value} {'after' if self.after else 'before'} {self.point.value} #{self.nth}"


def draw_faults(random: Random, *, with_errors: bool = False) -> tuple[SimulatedFault, ...]:
    """Draw a schedule: mostly a few faults of any kind, sometimes only losses, often with one during a recovery.

    `with_errors`: a task will raise its own error, so a fault may strike when it is reported.
    """
    style = random.random()
    kinds = [kind for kind in FaultKind if kind not in ENDING]
    if style < 0.3:
        kinds = list(LOSING)
    faults = [
        _draw_fault(random, random.choice(kinds), tuple(FailPoint))
        for _ in range(random.choice((1, 2, 2, 3, 4, 5)))
    ]
    if style < 0.75:
        early = (
            FailPoint.READ,
            FailPoint.EXECUTE,
            FailPoint.BACK_UP,
            FailPoint.COMMIT,
            FailPoint.ADVANCE,
            FailPoint.DELIVER,
            FailPoint.LOOK,
        )
        faults.append(_draw_fault(random, random.choice(LOSING[:3]), early))
        kind = random.choice(LOSING) if random.random() < 0.6 else random.choice(kinds)
        faults += [_draw_fault(random, kind, RECOVERY_POINTS) for _ in range(random.choice((1, 1, 2)))]
    if random.random() < 0.08:
        ending = (*ENDING, FaultKind.STORE_BACK, FaultKind.STORE_SPLIT)
        faults.append(_draw_fault(random, random.choice(ending), tuple(FailPoint)))
    if random.random() < 0.05:
        unsure = (FaultKind.REPLY_LOST, FaultKind.REFUSED, FaultKind.STORE_PARTITION, FaultKind.STORE_PAUSE)
        faults.append(SimulatedFault(random.choice(unsure), FailPoint.REMOVE, 1, after=False))
    if random.random() < 0.06:
        # A step of a recovery that is late, and comes during the recovery from another loss.
        late = random.choice((FailPoint.FREEZE, FailPoint.RESUME, FailPoint.RESUME))
        faults.append(SimulatedFault(FaultKind.REORDER, late, 1, after=False))
        then = random.choice((FailPoint.RESUME, FailPoint.READ_RECORDS, FailPoint.RETRACE, FailPoint.REREAD))
        faults.append(SimulatedFault(random.choice(LOSING[:2]), then, random.choice((1, 2)), after=True))
    if random.random() < 0.06:
        kind = random.choice((FaultKind.REPLY_LOST, FaultKind.REPLY_LOST, FaultKind.PAUSE))
        faults.append(SimulatedFault(kind, FailPoint.CLAIM, random.choice((1, 1, 2)), after=False))
    if random.random() < 0.05:
        unsure = (FaultKind.REPLY_LOST, FaultKind.REFUSED, FaultKind.REORDER, FaultKind.STORE_PAUSE)
        faults.append(SimulatedFault(random.choice(unsure), FailPoint.SUBMIT, 1, after=False))
    if random.random() < 0.05:
        # A worker is asked to leave, and the store does not answer.
        faults.append(_draw_fault(random, FaultKind.DRAIN, (FailPoint.COMMIT, FailPoint.DELIVER)))
        kind = random.choice((FaultKind.REPLY_LOST, FaultKind.REFUSED, FaultKind.REORDER))
        faults.append(SimulatedFault(kind, FailPoint.DRAIN, random.choice((1, 1, 2)), after=False))
    if random.random() < 0.12:
        # A loss, and trouble on wires during its repair: mostly on those over which outputs are sent again.
        faults.append(_draw_fault(random, random.choice(LOSING[:2]), (FailPoint.COMMIT, FailPoint.DELIVER)))
        points = (
            FailPoint.RESUME,
            *3 * (FailPoint.REREAD_DELIVER,),
            FailPoint.RETRACE_BACK_UP,
            FailPoint.DELIVER,
        )
        faults += [
            SimulatedFault(
                random.choice((*OF_WIRES, FaultKind.PICKY_WIRE)),
                random.choice(points),
                random.choice((1, 1, 2)),
                after=False,
            )
            for _ in range(random.choice((1, 1, 2)))
        ]
    if with_errors and random.random() < 0.8:
        often = (*LOSING, FaultKind.REPLY_LOST, FaultKind.REFUSED, FaultKind.REFUSED)
        kind = random.choice(often if random.random() < 0.5 else tuple(FaultKind))
        faults.append(SimulatedFault(kind, FailPoint.FAIL, 1, after=False))
    return tuple(faults)


def _draw_fault(random: Random, kind: FaultKind, points: tuple[FailPoint, ...]) -> SimulatedFault:
    point = random.choice(points)
    often = 3 if point in RECOVERY_POINTS or point in RARE_POINTS else 12
    return SimulatedFault(kind, point, 1 + int(random.random() ** 2 * often), random.random() < 0.4)
