"""Directed schedules: one actor gets no time for long, at a place of our choosing, while others go on.

Random delays are all about as long, so what would take a slow thread at just one place is hardly ever seen. A *hold*
keeps one actor at one visit of a fail point for longer than a recovery takes, and lets another worker crash in the same
moment: what was begun in one epoch comes to its end in the next but one. An *uneven* world gives some actors ten or
forty times the delays of others, each its own, so that one is always last.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

from wallaby.lineage.effects import FailPoint

#: Where a worker's effects are performed by threads of their own, of which one may be slow.
HELD_POINTS = (
    FailPoint.LOOK,
    FailPoint.READ,
    FailPoint.EXECUTE,
    FailPoint.BACK_UP,
    FailPoint.COMMIT,
    FailPoint.COMMIT,
    FailPoint.ADVANCE,
    FailPoint.CLOSE_EARLY,
    FailPoint.DELIVER,
    FailPoint.DELIVER,
    FailPoint.ACKNOWLEDGE,
    FailPoint.ACKNOWLEDGE,
    FailPoint.READ_RECORDS,
    FailPoint.RETRACE,
    FailPoint.RETRACE_BACK_UP,
    FailPoint.CLAIM,
    FailPoint.REREAD,
    FailPoint.REREAD_BACK_UP,
    FailPoint.REREAD_DELIVER,
)
#: How much longer than others an actor of an uneven world may take.
LAGS = (1.0, 1.0, 1.0, 10.0, 40.0)


class Aim(Enum):
    """Whom a loss is aimed at."""

    #: The host of a channel that has saved states: it will go on from one of them somewhere else.
    OWN = "own"
    #: A host of what consumes a channel that has gone on from a saved state: the channel is rewound where it is.
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Hold:
    """An actor that is at the `nth` visit of a fail point, before its effect or after it, stays there for so long."""

    point: FailPoint
    nth: int
    after: bool
    hold_ms: int
    #: Does another worker crash at the same time?
    crash: bool
    #: Only an actor of a certain kind is held, and a certain worker crashes.
    aimed: Aim | None = None
    #: It is not the actor that is held, but the output that it backs up takes so long to be kept.
    keeps_late: bool = False
    #: Meanwhile another worker comes, and the last query is submitted.
    submits: bool = False

    def __str__(self) -> str:
        if self.submits:
            return f"held for {self.hold_ms} ms, while a worker comes and a query is submitted"
        where = f"{'after' if self.after else 'before'} {self.point.value} #{self.nth}"
        if self.keeps_late:
            return f"late by {self.hold_ms} ms in keeping an output, and a consumer crashes"
        return f"held {where} for {self.hold_ms} ms" + (", and another worker crashes" if self.crash else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """What a seed draws of all this."""

    holds: tuple[Hold, ...] = ()
    uneven: bool = False


EVEN = Schedule()


def draw_schedule(random: Random) -> Schedule:
    """Most seeds have no schedule of their own."""
    holds = tuple(_draw_hold(random) for _ in range(random.choice((0, 0, 0, 1, 1, 2))))
    return Schedule(holds, uneven=random.random() < 0.12)


def draw_aimed(random: Random) -> tuple[Hold, ...]:
    """Losses that rewind a channel where it is, while its generator is about to keep an output or to commit it."""
    points = (FailPoint.EXECUTE, FailPoint.BACK_UP, FailPoint.COMMIT, FailPoint.COMMIT)
    holds = []
    for _ in range(random.choice((1, 1, 2))):
        late = random.random() < 0.35
        point = FailPoint.BACK_UP if late else random.choice(points)
        hold_ms = random.choice((300, 700, 1_500)) if late else random.choice((0, 0, 20, 400))
        after = not late and random.random() < 0.5
        holds.append(
            Hold(point, random.randint(1, 8), after, hold_ms, crash=True, aimed=Aim.CONSUMER, keeps_late=late)
        )
    return tuple(holds)


def _draw_hold(random: Random) -> Hold:
    nth = 1 + int(random.random() ** 2 * 10)
    crash = random.random() < 0.6
    return Hold(
        random.choice(HELD_POINTS), nth, random.random() < 0.6, random.choice((60, 400, 1_200)), crash
    )
