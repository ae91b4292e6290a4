"""Directed schedules: one actor is delayed for long at a chosen place, while others continue.

Random delays are all of similar length, so bugs that need a slow thread at one particular place hardly ever show. A
*hold* keeps one actor at one visit of a fail point for longer than a recovery takes, and lets another worker crash at
the same moment: what began in one epoch ends two epochs later. An *uneven* world gives some actors ten or forty times
the delays of others, so that one is always last.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

from wallaby.lineage.effects import FailPoint

#: The fail points of effects that separate threads perform, one of which may be slow.
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
#: How many times longer an actor of an uneven world may take.
LAGS = (1.0, 1.0, 1.0, 10.0, 40.0)


class Aim(Enum):
    """The target of an aimed loss."""

    #: The host of a channel with saved states: the channel will continue from one of them elsewhere.
    OWN = "own"
    #: A host of a consumer of a channel that continued from a saved state: the channel is rewound in place.
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold: an actor stays at the `nth` visit of a fail point, before its effect or after it, for a time."""

    point: FailPoint
    nth: int
    after: bool
    hold_ms: int
    #: Does another worker crash at the same time?
    crash: bool
    #: Only an actor of a certain kind is held, and a certain worker crashes.
    aimed: Aim | None = None
    #: Not the actor is held, but its backup takes this long.
    keeps_late: bool = False
    #: Meanwhile another worker joins, and the last query is submitted.
    submits: bool = False
    #: For most of that time the wires to its process are cut.
    cuts: bool = False

    def __str__(self) -> str:
        if self.submits:
            return f"held for {self.hold_ms} ms, while a worker comes and a query is submitted"
        where = f"{'after' if self.after else 'before'} {self.point.value} #{self.nth}"
        if self.keeps_late:
            return f"late by {self.hold_ms} ms in keeping an output, and a consumer crashes"
        return f"held {where} for {self.hold_ms} ms" + (", and another worker crashes" if self.crash else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule that a seed draws."""

    holds: tuple[Hold, ...] = ()
    uneven: bool = False


EVEN = Schedule()


def draw_schedule(random: Random) -> Schedule:
    """Draw a schedule; most seeds have none."""
    holds = tuple(_draw_hold(random) for _ in range(random.choice((0, 0, 0, 1, 1, 2))))
    return Schedule(holds, uneven=random.random() < 0.12)


def draw_aimed(random: Random) -> tuple[Hold, ...]:
    """Draw losses that rewind a channel in place, while its generator is about to back up or commit an output."""
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
