"""How a kept result is read: by which readers, when, and when it is released."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

#: Longer than all faults and the retraces after them take: a reader that gives up has been forgotten.
PATIENCE_MS = 60_000
#: Readers that come so late, or give up so soon, are rare.
LATE_MS, SOON_MS = 20_000, 700


@dataclass(frozen=True, slots=True)
class Visit:
    """A reader of a result: when it starts after the result is whole, and how many outputs it fetches at once."""

    delay_ms: int
    outputs: int
    #: It gives up if nothing comes for so long.
    patience_ms: int = PATIENCE_MS


@dataclass(frozen=True, slots=True)
class Stay:
    """The readers of a result, and whether it is released while they read or after all of them are done."""

    visits: tuple[Visit, ...]
    #: When it is released after it is whole, even if readers are not done; None: when all readers are done.
    release_ms: int | None


def stay_of(seed: int) -> Stay:
    """How a seed's result is read."""
    random = Random(f"stay {seed}")
    visits = tuple(
        Visit(random.choice((0, 5, 200, 1_000, 3_000)), random.choice((1, 1, 2, 100)))
        for _ in range(random.choice((0, 1, 1, 2, 3)))
    )
    early = random.random() < 0.25
    release_ms = random.choice((0, 20, 300, 1_500)) if early else None
    return Stay(tuple(_unusual(random, visit) for visit in visits), release_ms)


def _unusual(random: Random, visit: Visit) -> Visit:
    """Let some readers come so late that nothing has moved for long, and some give up soon."""
    drawn = random.random()
    if drawn < 0.06:
        return replace(visit, delay_ms=LATE_MS)
    return replace(visit, patience_ms=SOON_MS) if drawn < 0.2 else visit
