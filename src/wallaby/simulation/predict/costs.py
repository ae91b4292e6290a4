"""What a query costs, learned from its event log: how long its tasks take and how much they give out.

A read costs what the reads of that stage cost, one split after the other. Another task costs time in proportion to
what it consumes, on top of a least time, and gives out in proportion too; its channel's last task gives out what last
tasks did, shared by the channels there are. A stage with several channels has as many in a prediction as there are
kernel threads; one with a single channel keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import linear_regression
from typing import Any

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.effects import Execute, Output
from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import Edge, TaskName
from wallaby.observe.event import How
from wallaby.observe.history import History, TaskRun

#: Fewer tasks say nothing about the least time of one.
_TASKS_MIN = 4
_CHECKSUM = 1


@dataclass(frozen=True, slots=True)
class StageCost:
    """One stage, as it was seen."""

    #: Of a reader: seconds and bytes of each read.
    reads: tuple[tuple[float, int], ...]
    least_seconds: float
    seconds_per_byte: float
    bytes_per_byte: float
    #: All that last tasks took and gave out.
    last_seconds: float
    last_bytes: int


@dataclass(frozen=True)
class Costed:
    """A query for a simulated cluster: a stage graph of its size, and what each task costs there."""

    graph: StageGraph
    stages: tuple[StageCost, ...]
    #: What a simulated workload may also have.
    poison: TaskName | None = None
    fickle: TaskName | None = None
    error: TaskName | None = None

    def step(self, effect: Execute) -> tuple[Any, Output]:
        """The size of an output, and nothing in it."""
        size = self._size(effect)
        slices: dict[Edge, tuple[int, object]] = {}
        for edge in self.graph.edges_from(effect.task.of):
            link = self.graph.links[edge.link]
            shared = self.graph.stages[link.consumer].channels if link.routing is Routing.HASH else 1
            slices[edge] = (size // shared, None)
        return None, Output(_CHECKSUM, slices)

    def seconds(self, effect: Execute) -> float:
        """How long a task takes."""
        cost = self.stages[effect.task.stage]
        if effect.split is not None:
            return cost.reads[effect.split % len(cost.reads)][0] if cost.reads else cost.least_seconds
        drawn = sum(piece.size_bytes for piece in effect.inputs)
        channels = self.graph.stages[effect.task.stage].channels
        ends = cost.last_seconds / channels if effect.last else 0.0
        return max(cost.least_seconds + drawn * cost.seconds_per_byte, ends)

    def _size(self, effect: Execute) -> int:
        cost = self.stages[effect.task.stage]
        if effect.split is not None:
            return cost.reads[effect.split % len(cost.reads)][1] if cost.reads else 0
        if effect.last:
            return cost.last_bytes // self.graph.stages[effect.task.stage].channels
        return int(sum(piece.size_bytes for piece in effect.inputs) * cost.bytes_per_byte)


def learned(history: History, channels: int) -> Costed:
    """A query as its log tells of it, with so many channels in the stages that have several."""
    if history.outcome != "done" or not history.stages:
        raise InvalidArgumentError(
            f"The log of {history.query} is not that of a query that came to its end.", fix="Give another."
        )
    widened = [stage.channels > 1 or stage.kind == "read" for stage in history.stages]
    stages = tuple(
        Stage(
            StageKind(seen.kind),
            min(channels, max(seen.splits, 1)) if seen.kind == "read" else channels if wide else 1,
            seen.splits,
        )
        for seen, wide in zip(history.stages, widened, strict=True)
    )
    links = tuple(
        Link(
            seen.producer,
            seen.consumer,
            LinkKind(seen.kind),
            seen.phase,
            routing=_routing(seen.routing, stages[seen.producer], stages[seen.consumer]),
        )
        for seen in history.links
    )
    tasks: dict[int, list[TaskRun]] = {at: [] for at in range(len(stages))}
    for run in history.tasks:
        if run.how in (How.READ, How.EXECUTE) and not run.error:
            tasks[run.stage].append(run)
    return Costed(StageGraph(stages, links), tuple(_cost(tasks[at]) for at in range(len(stages))))


def _routing(seen: str, producer: Stage, consumer: Stage) -> Routing:
    routing = Routing(seen)
    same = producer.channels == consumer.channels
    return Routing.HASH if routing is Routing.PASS_THROUGH and not same else routing


def _line(points: list[tuple[int, float]]) -> tuple[float, float]:
    """Least time and time per byte, by least squares; in proportion to the bytes alone if that makes no sense."""
    drawn, seconds = sum(size for size, _ in points), sum(each for _, each in points)
    proportional = (0.0, seconds / drawn) if drawn else (seconds / max(len(points), 1), 0.0)
    if len(points) < _TASKS_MIN or len({size for size, _ in points}) == 1:
        return proportional
    slope, least = linear_regression([size for size, _ in points], [each for _, each in points])
    return (least, slope) if least >= 0 and slope >= 0 else proportional


def _cost(tasks: list[TaskRun]) -> StageCost:
    reads = tuple((run.seconds, run.bytes) for run in tasks if run.how is How.READ and not run.last)
    between = [run for run in tasks if run.how is How.EXECUTE and not run.last]
    last = [run for run in tasks if run.last]
    drawn = sum(run.input_bytes for run in between)
    least, per_byte = _line([(run.input_bytes, run.seconds) for run in between])
    return StageCost(
        reads,
        least,
        per_byte,
        sum(run.bytes for run in between) / drawn if drawn else 0.0,
        sum(run.seconds for run in last),
        sum(run.bytes for run in last),
    )
