"""The setup of measurements, and the result of a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from wallaby_lab.bench.lane import Lane
from wallaby_lab.bench.paper.measure import Say, started

#: The paper's eight, by category: reads, simple joins, join trees.
QUERIES: Final = (1, 6, 3, 10, 5, 7, 8, 9)
JOINS: Final = (3, 10, 5, 7, 8, 9)
STATIC: Final = (1, 2, 4, 8, 16, 32, 64, 128)
SHARES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
CHECKPOINT_SECONDS: Final = 2.0
#: The figures in which states are saved.
CHECKPOINTING: Final = ("d", "policies")
OFF: Final = {"fault_tolerance_policy": "off"}


@dataclass(slots=True)
class Figure:
    """The result of a figure: bars by series and position, means beside the paper's, and all raw figures."""

    title: str
    #: The meaning of a bar.
    axis: str
    series: dict[str, dict[int, float]]
    ours: dict[str, float]
    raw: dict[str, Any]
    #: How many TaskManagers were used.
    workers: str
    table: list[list[str]] = field(default_factory=list)
    #: Notes that are needed to read the figures.
    said: str = ""
    #: The numbers of correct answers and of compared answers.
    equal: int = 0
    compared: int = 0


@dataclass(frozen=True, slots=True)
class Setup:
    """The setup of a figure."""

    data: Path
    cores: Sequence[int]
    memory: str
    workers: int
    rounds: int
    store: str
    say: Say
    #: Other queries than the figure's own; empty: its own.
    queries: tuple[int, ...] = ()
    #: For (g).
    several_workers: tuple[int, ...] = (1, 2, 4)
    #: For (c).
    static: tuple[int, ...] = STATIC
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    #: Bytes up to which a join's side is broadcast by this engine; None: its default.
    broadcast: int | None = None

    def asked(self, usual: Sequence[int]) -> tuple[int, ...]:
        """The queries to measure."""
        return self.queries or tuple(usual)

    def about(self, letter: str, figure: Figure) -> dict[str, Any]:
        """How a figure was measured, besides the machine, the store and the code."""
        found: dict[str, Any] = {
            "data": self.data.name,
            "cores": len(self.cores),
            "memory": self.memory,
            "workers": figure.workers,
            "rounds": self.rounds,
        }
        if letter in CHECKPOINTING:
            found["checkpoint_seconds"] = self.checkpoint_seconds
        return found | self.settings

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of every lane of this engine."""
        return {} if self.broadcast is None else {"broadcast": self.broadcast}

    def policy(self, name: str) -> dict[str, Any]:
        """The settings of a policy."""
        return {
            "fault_tolerance_policy": name,
            "fault_tolerance_store": self.store,
            "fault_tolerance_checkpoint": self.checkpoint_seconds,
        }

    @contextmanager
    def spark(self, **further: object) -> Iterator[Lane]:
        """SparkSQL, until it is no longer needed."""
        with _ending(started("spark", self.data, self.cores, self.memory, self.say, **further)) as lane:
            yield lane

    @contextmanager
    def wallaby(self, more: Mapping[str, Any] = MappingProxyType({}), **further: object) -> Iterator[Lane]:
        """This engine, with these settings and those that all have."""
        further |= {"more": {**self.settings, **more}}
        with _ending(started("wallaby", self.data, self.cores, self.memory, self.say, **further)) as lane:
            yield lane

    def losing(self) -> dict[str, AbstractContextManager[Lane]]:
        """The contenders that lose a worker, each on its own machines: lineage, restart, and SparkSQL."""
        return {
            "wallaby": self.wallaby(cluster=True),
            "run again": self.wallaby(self.policy("restart"), cluster=True),
            "spark": self.spark(cluster=True),
        }


@contextmanager
def _ending(lane: Lane) -> Iterator[Lane]:
    try:
        yield lane
    finally:
        lane.end()
