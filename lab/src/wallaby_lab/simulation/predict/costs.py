"""What a query costs, learned from its event log: how long its tasks take and how much they give out.

A read costs what the reads of that stage cost, one split after the other. Another task costs time in proportion to
what it consumes, on top of a least time, and gives out in proportion too; its channel's last task gives out what last
tasks did, shared by the channels there are. A stage with several channels has as many in a prediction as there are
kernel threads; one with a single channel keeps it.

A channel has a one-time cost, however little work it gets: it builds the index of a broadcast, opens files, allocates
memory. Each channel's first task takes it, on top of its own work.

Data that is n times as large has n times the reads, each like one that was seen, and a broadcast takes each channel n
times as long. The times and outputs of last tasks are assumed to depend on groups, whose number does not grow.

The state of a channel, which a checkpoint has to hold, is what it consumed for a later phase (the build side of a join)
and what it still owes: at most the output of its last task.

Only a part of a very large cluster is simulated, with that part of each stage's reads and channels. A consumer gets as
many bytes as from all producers, in fewer and larger pieces; only the number of messages is smaller than in the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import linear_regression, mean, median
from typing import NamedTuple

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.effects import Execute, Executed, Output
from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import Edge, TaskName
from wallaby.observe.event import TaskAction
from wallaby.observe.history import History, TaskRun

#: With fewer tasks, the minimum time of a task cannot be estimated.
_TASKS_MIN = 4
_CHECKSUM = 1


@dataclass(frozen=True, slots=True)
class StageCost:
    """The costs of one stage, as observed."""

    #: For a reader: seconds and bytes of each read.
    reads: tuple[tuple[float, int], ...]
    least_seconds: float
    seconds_per_byte: float
    bytes_per_byte: float
    #: The total seconds and output bytes of last tasks.
    last_seconds: float
    last_bytes: int
    #: The total seconds of all tasks.
    total_seconds: float
    #: The one-time cost of each channel's first task.
    start_seconds: float = 0.0


class HeldBytes(NamedTuple):
    """The bytes of a channel's state: for a later phase, and for its last task."""

    for_later: int
    owed: int

    @property
    def size_bytes(self) -> int:
        """The size of a checkpoint."""
        return self.for_later + self.owed


@dataclass(frozen=True)
class Costed:
    """A query for a simulated cluster: a stage graph of its size, and the cost of each task."""

    graph: StageGraph
    stages: tuple[StageCost, ...]
    #: The part of each stage that is simulated.
    parts: tuple[float, ...]
    #: Fields that other simulated workloads have.
    poison: TaskName | None = None
    fickle: TaskName | None = None
    error: TaskName | None = None

    def step(self, effect: Execute) -> Executed:
        """The channel's state, and an output that has only a size."""
        size, part = self._size(effect), self.parts[effect.task.stage]
        slices: dict[Edge, tuple[int, object]] = {}
        for edge in self.graph.edges_from(effect.task.of):
            link = self.graph.links[edge.link]
            sent = {
                Routing.HASH: size / part / self._channels(link.consumer),
                Routing.BROADCAST: size / part,
                Routing.PASS_THROUGH: size,
            }[link.routing]
            slices[edge] = (int(sent), None)
        return Executed(self._held(effect), Output(_CHECKSUM, slices))

    def _held(self, effect: Execute) -> HeldBytes:
        stage = effect.task.stage
        before: HeldBytes = effect.state or HeldBytes(0, 0)
        links, last = self.graph.links, self._last_phases.get(stage, 0)
        later = sum(piece.size_bytes for piece in effect.inputs if links[piece.edge.link].phase < last)
        now = sum(piece.size_bytes for piece in effect.inputs) - later
        owed = min(before.owed + now, int(self.stages[stage].last_bytes / self._channels(stage)))
        return HeldBytes(before.for_later + later, owed)

    @cached_property
    def _last_phases(self) -> dict[int, int]:
        """The last phase of each consuming stage."""
        return {
            link.consumer: max(each.phase for each in self.graph.links if each.consumer == link.consumer)
            for link in self.graph.links
        }

    def seconds(self, effect: Execute) -> float:
        """How long a task takes."""
        cost = self.stages[effect.task.stage]
        start = cost.start_seconds if effect.task.seq == 0 else 0.0
        if effect.split is not None:
            return start + (self._read(effect)[0] if cost.reads else cost.least_seconds)
        drawn = sum(piece.size_bytes for piece in effect.inputs)
        ends = cost.last_seconds / self._channels(effect.task.stage) if effect.last else 0.0
        return start + max(cost.least_seconds + drawn * cost.seconds_per_byte, ends)

    def _size(self, effect: Execute) -> float:
        cost = self.stages[effect.task.stage]
        if effect.split is not None:
            return self._read(effect)[1] if cost.reads else 0
        if effect.last:
            return cost.last_bytes / self._channels(effect.task.stage)
        return sum(piece.size_bytes for piece in effect.inputs) * cost.bytes_per_byte

    def _channels(self, stage: int) -> float:
        """The number of channels in the whole cluster."""
        return self.graph.stages[stage].channels / self.parts[stage]

    def _read(self, effect: Execute) -> tuple[float, int]:
        """Seconds and bytes of a read; if only a part of the reads is simulated, the sample is spread over all."""
        assert effect.split is not None
        reads = self.stages[effect.task.stage].reads
        return reads[int(effect.split / self.parts[effect.task.stage]) % len(reads)]


def starts(history: History, fewer: History) -> tuple[float, ...]:
    """The one-time cost of a channel by stage, from a run with more channels and one with fewer.

    If something is broadcast to a stage, each channel has its own index of it, and more indexes slow down every
    look-up: the cost is the additional total time of the stage, if the plan with fewer channels has it too. In other
    stages it is the additional time of first tasks over later ones.
    """
    before = {
        stage.label: (stage.channels, _seconds(_tasks(fewer, at))) for at, stage in enumerate(fewer.stages)
    }
    beside = _broadcast_to(history)
    found = []
    for at, stage in enumerate(history.stages):
        tasks = _tasks(history, at)
        channels, seconds = before.get(stage.label, (stage.channels, 0.0))
        if at not in beside:
            found.append(_first_longer(tasks))
        elif stage.channels > channels:
            longer = (_seconds(tasks) - seconds) / (stage.channels - channels)
            # At most the whole time: the rest is shared.
            found.append(min(max(0.0, longer), seconds / channels))
        else:
            found.append(0.0)
    return tuple(found)


def _first_longer(tasks: list[TaskRun]) -> float:
    first = [run.seconds for run in tasks if run.seq == 0]
    others = [run.seconds for run in tasks if run.seq > 0 and not run.last]
    return max(0.0, mean(first) - median(others)) if first and len(others) >= _TASKS_MIN else 0.0


def learned(
    history: History,
    channels: int,
    part: float = 1.0,
    start_seconds: Sequence[float] = (),
    times: int = 1,
) -> Costed:
    """A query as learned from its log, with this many channels in stages that have several, or a part of it.

    The data may be larger by a factor.
    """
    if history.outcome != "done" or not history.stages:
        raise InvalidArgumentError(
            f"The log of {history.query} is not that of a query that came to its end.", fix="Give another."
        )
    stages, parts = [], []
    for seen in history.stages:
        whole = seen.splits * times
        splits = max(1, round(whole * part)) if whole else 0
        if seen.kind is StageKind.READ:
            stages.append(Stage(StageKind.READ, min(channels, max(splits, 1)), splits))
            parts.append(splits / whole if whole else 1.0)
        else:
            stages.append(Stage(seen.kind, channels if seen.channels > 1 else 1))
            parts.append(part if seen.channels > 1 else 1.0)
    links = tuple(
        Link(
            seen.producer,
            seen.consumer,
            seen.kind,
            seen.phase,
            routing=_routing(seen.routing, stages[seen.producer], stages[seen.consumer]),
        )
        for seen in history.links
    )
    costs, beside = [], _broadcast_to(history)
    for at, seen in enumerate(history.stages):
        cost = _cost(_tasks(history, at))
        if start_seconds:
            cost = _split_off(cost, start_seconds[at], seen.channels)
            # Broadcasts are larger too.
            cost = replace(cost, start_seconds=cost.start_seconds * (times if at in beside else 1))
        costs.append(cost)
    return Costed(StageGraph(tuple(stages), links), tuple(costs), tuple(parts))


def _broadcast_to(history: History) -> set[int]:
    """The stages that receive a broadcast."""
    return {link.consumer for link in history.links if link.kind is LinkKind.SIDE}


def _tasks(history: History, stage: int) -> list[TaskRun]:
    wanted = (TaskAction.READ, TaskAction.EXECUTE)
    return [run for run in history.tasks if run.stage == stage and run.how in wanted and not run.error]


def _seconds(tasks: list[TaskRun]) -> float:
    return sum(run.seconds for run in tasks)


def _split_off(cost: StageCost, start_seconds: float, channels: int) -> StageCost:
    """Subtract the one-time costs of channels from the times of their tasks."""
    if not start_seconds or not cost.total_seconds:
        return cost
    left = max(0.0, 1 - start_seconds * channels / cost.total_seconds)
    return replace(
        cost,
        reads=tuple((seconds * left, size) for seconds, size in cost.reads),
        least_seconds=cost.least_seconds * left,
        seconds_per_byte=cost.seconds_per_byte * left,
        last_seconds=cost.last_seconds * left,
        start_seconds=start_seconds,
    )


def _routing(seen: str, producer: Stage, consumer: Stage) -> Routing:
    routing = Routing(seen)
    same = producer.channels == consumer.channels
    return Routing.HASH if routing is Routing.PASS_THROUGH and not same else routing


def _line(points: list[tuple[int, float]]) -> tuple[float, float]:
    """Minimum time and time per byte, by least squares; proportional to the bytes if that is not plausible."""
    drawn, seconds = sum(size for size, _ in points), sum(each for _, each in points)
    proportional = (0.0, seconds / drawn) if drawn else (seconds / max(len(points), 1), 0.0)
    if len(points) < _TASKS_MIN or len({size for size, _ in points}) == 1:
        return proportional
    slope, least = linear_regression([size for size, _ in points], [each for _, each in points])
    return (least, slope) if least >= 0 and slope >= 0 else proportional


def _cost(tasks: list[TaskRun]) -> StageCost:
    reads = tuple((run.seconds, run.bytes) for run in tasks if run.how is TaskAction.READ and not run.last)
    between = [run for run in tasks if run.how is TaskAction.EXECUTE and not run.last]
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
        _seconds(tasks),
    )
