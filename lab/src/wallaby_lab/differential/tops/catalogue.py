"""The tops: each an action, or something of Spark's below an action; by name, and drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import pyarrow as pa

from wallaby_lab.differential.tops.query import ToppedQuery
from wallaby_lab.differential.tops.sinks import SINKS
from wallaby_lab.differential.tops.transforms import TRANSFORMS

COLLECT: Final = "toArrow"
#: How many of the random tops have something between the query and the action.
_BETWEEN: Final = 0.5


@dataclass(frozen=True, slots=True)
class Top:
    """What is put on a query: an action, and what is between them, if anything."""

    sink: str
    transform: str = ""
    adaptive: bool = False

    def __str__(self) -> str:
        between = f"{self.transform}, " if self.transform else ""
        return f"{between}{self.sink}{' (AQE)' if self.adaptive else ''}"

    def act(self, query: ToppedQuery, place: Path) -> tuple[pa.Table, tuple[str, ...]]:
        """The answer, and the columns by which it is ordered."""
        topped = TRANSFORMS[self.transform](query) if self.transform else query
        sink = SINKS[self.sink]
        answer = sink.act(topped, place)
        order = topped.order if sink.keeps_order else ()
        return answer, order


def every_top() -> list[Top]:
    """Every action, and everything that Spark puts on a query with the plainest action."""
    return [*(Top(sink) for sink in SINKS), *(Top(COLLECT, transform) for transform in TRANSFORMS)]


def top_of(seed: int) -> Top:
    """The top of a seed."""
    random = Random(f"top {seed}")
    transform = random.choice(list(TRANSFORMS)) if random.random() < _BETWEEN else ""
    sinks = [sink for sink in SINKS if transform or sink != COLLECT]
    return Top(random.choice(sinks), transform, random.random() < 0.5)
