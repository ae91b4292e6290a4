"""How a result that stays is read: by whom, when, and when it is released."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Visit:
    """A reader of a result: how long after the result is whole it comes, and how many outputs it fetches at once."""

    delay_ms: int
    outputs: int


@dataclass(frozen=True, slots=True)
class Stay:
    """Who reads a result, and whether it is released while they do, or when all of them have had it."""

    visits: tuple[Visit, ...]
    #: So long after it is whole it is released, whoever reads; None: when nobody reads any more.
    release_ms: int | None


def stay_of(seed: int) -> Stay:
    """How a seed's result is read."""
    random = Random(f"stay {seed}")
    visits = tuple(
        Visit(random.choice((0, 5, 200, 1_000, 3_000)), random.choice((1, 1, 2, 100)))
        for _ in range(random.choice((0, 1, 1, 2, 3)))
    )
    early = random.random() < 0.25
    return Stay(visits, random.choice((0, 20, 300, 1_500)) if early else None)
