"""The history of a query: what it did, as values for reports, pages and tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from wallaby.lineage.graph import LinkKind, StageKind
from wallaby.observe.about import About
from wallaby.observe.event import TaskAction
from wallaby.observe.event_batch import StageTotals


@dataclass(frozen=True, slots=True)
class StageInfo:
    """One stage of the plan."""

    label: str
    kind: StageKind
    channels: int
    splits: int


@dataclass(frozen=True, slots=True)
class LinkInfo:
    """One link of the plan."""

    producer: int
    consumer: int
    kind: LinkKind
    routing: str
    phase: int = 0


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One execution of one task."""

    at: float
    seconds: float
    worker: str
    stage: int
    channel: int
    seq: int
    how: TaskAction
    rows: int
    bytes: int
    input_rows: int
    input_bytes: int
    queued: float
    error: str
    last: bool = False

    @property
    def name(self) -> str:
        """The task's name, as it prints everywhere."""
        return f"s{self.stage}.c{self.channel}.t{self.seq}"


@dataclass(frozen=True, slots=True)
class Recovery:
    """One recovery: the gate closed and, unless the log ends before, opened again."""

    at: float
    lost: tuple[tuple[str, str], ...]
    draining: tuple[str, ...]
    resumed_at: float | None = None
    rewound: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    delivered_again: int = 0
    read_again: int = 0


@dataclass(slots=True)
class History:
    """What one query did, as its events tell it."""

    query: str
    started: float
    ended: float
    #: done, failed, cancelled; or unfinished, if the log has no end, and running, if it is known to grow.
    outcome: str = "unfinished"
    condition: str = ""
    error: str = ""
    commits: int = 0
    stages: tuple[StageInfo, ...] = ()
    links: tuple[LinkInfo, ...] = ()
    about: About = field(default_factory=About)
    #: Host and pid of each worker.
    workers: dict[str, tuple[str, int]] = field(default_factory=dict)
    tasks: list[TaskRun] = field(default_factory=list)
    recoveries: list[Recovery] = field(default_factory=list)
    commit_calls: int = 0
    commit_seconds: float = 0.0
    refused: dict[str, int] = field(default_factory=dict)
    pushes: int = 0
    pushed_bytes: int = 0
    push_seconds: float = 0.0
    spilled: dict[int, int] = field(default_factory=dict)
    #: How often workers took steps against a shortage of memory, by step.
    short_of_memory: dict[str, int] = field(default_factory=dict)
    #: When tasks were committed, and how many; when outputs were pushed, how many, and how many found room.
    commit_times: list[tuple[float, int]] = field(default_factory=list)
    push_times: list[tuple[float, int, int]] = field(default_factory=list)
    #: Time, worker, step, bytes in use and limit of each step against a shortage of memory; bytes spilled by worker.
    memory_steps: list[tuple[float, str, str, int, int]] = field(default_factory=list)
    spilled_by: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    cut: bool = False

    @property
    def seconds(self) -> float:
        """The time from the first event to the last."""
        return self.ended - self.started

    @property
    def lost(self) -> list[tuple[str, str]]:
        """The workers that were lost, with their hosts."""
        return [worker for recovery in self.recoveries for worker in recovery.lost]

    def totals(self) -> list[StageTotals]:
        """The totals of each stage."""
        found = [StageTotals(spilled_bytes=self.spilled.get(at, 0)) for at in range(len(self.stages))]
        for run in self.tasks:
            if run.stage >= len(found):
                continue
            totals = found[run.stage]
            totals.seconds += run.seconds
            totals.queued_seconds += run.queued
            totals.retraced += run.how is TaskAction.RETRACE
            totals.reread += run.how is TaskAction.REREAD
            totals.again_seconds += run.seconds if run.how in (TaskAction.RETRACE, TaskAction.REREAD) else 0.0
            if run.how in (TaskAction.READ, TaskAction.EXECUTE):
                totals.tasks += 1
                totals.rows += run.rows
                totals.bytes += run.bytes
                totals.input_rows += run.input_rows
                totals.input_bytes += run.input_bytes
        return found
