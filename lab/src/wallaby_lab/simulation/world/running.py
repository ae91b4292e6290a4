"""One query in the simulated world, as seen from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import Any

from wallaby.coordinator.query import Query
from wallaby.lineage.barriers import ChannelCut, Start
from wallaby.lineage.effects import Output, RestoredState
from wallaby.lineage.names import ChannelName, TaskName, WorkerId
from wallaby.lineage.snapshot import Snapshot
from wallaby.node.session import QuerySessionSettings
from wallaby_lab.invariants.audit import Audit, InvariantViolation
from wallaby_lab.invariants.cuts import CutAudit
from wallaby_lab.simulation.drawn.workload import Row, ToyWorkload
from wallaby_lab.simulation.judges.scrutiny import Scrutiny


@dataclass(slots=True)
class Running:
    """One query in the world: what was drawn for it, and what is observed from outside."""

    query: Query
    workload: ToyWorkload
    audit: Audit
    scrutiny: Scrutiny
    collected: Counter[Row] = field(default_factory=Counter)
    #: Its data in the durable store: outputs by task, checksum and whether it is the last; saved states.
    spooled: dict[tuple[TaskName, int, bool], Output] = field(default_factory=dict)
    saved: dict[tuple[TaskName, str], RestoredState] = field(default_factory=dict)
    #: The settings of its sessions, if they are not those of its scenario.
    settings: QuerySessionSettings | None = None
    #: Under coordinated snapshots: what is known of them, the parts that were saved, and the last complete one.
    cuts: CutAudit | None = None
    parts: dict[tuple[ChannelName, int], ChannelCut] = field(default_factory=dict)
    covered: Start | None = None
    #: The run that was rolled back to this one.
    before: Running | None = None
    #: It was rolled back: another run has taken its place.
    superseded: bool = False
    #: The tasks of `spooled`.
    spooled_tasks: set[TaskName] = field(default_factory=set)
    checked_version: int = 0
    changed: bool = False
    #: Workers at which something has arrived since the last full check.
    arrived_at: set[WorkerId] = field(default_factory=set)
    #: Workers that were short of memory because of it when they were lost.
    strained: set[WorkerId] = field(default_factory=set)
    #: It was cancelled before its whole result was there.
    cancelled: bool = False
    #: Its whole result was with the workers at some time.
    was_whole: bool = False
    #: Its whole result was there before anybody asked for its end.
    whole_first: bool = False
    #: It was cancelled so, or released: nobody wants anything of it any more.
    unwanted: bool = False
    #: Its side inputs were too large at some worker.
    too_much_beside: bool = False
    #: How often its fickle task was executed.
    fickle_runs: int = 0
    without_worker_since_ms: int | None = None
    #: How often a coordinator has found it past its limit without workers.
    looks_too_late: int = 0

    def taken_by(self, start: Start) -> dict[tuple[ChannelName, int], ChannelCut]:
        """The parts of snapshots that a run has saved, this one or one before it."""
        run: Running | None = self
        while run is not None and run.query.id != start.query:
            run = run.before
        assert run is not None, "a snapshot is of one of the runs"
        return run.parts

    def require_not_too_large(self, before: Snapshot, losses_max: int) -> None:
        """A query that has cost too many workers their memory must have ended."""
        cost = [worker for worker in self.strained if before.departed.get(worker) is False]
        if len(cost) >= losses_max:
            raise InvariantViolation(7, f"{self.query.id} goes on: {sorted(cost)} ran out of memory")


class CutJudge:
    """Stands for the audit and the scrutiny of a query without records, of which `CutAudit` judges what is left."""

    def __init__(self, cuts: CutAudit) -> None:
        self.leaving = cuts.leaving

    def __getattr__(self, _check: str) -> Any:
        return lambda *_args, **_named: None


def running_of(
    query: Query, workload: ToyWorkload, settings: QuerySessionSettings, before: Running | None
) -> Running:
    """A run of a query; under coordinated snapshots it may go on from one of an earlier run."""
    if not query.tolerance.rolls_back:
        return Running(query, workload, Audit(workload.graph), Scrutiny(workload.graph, settings))
    start = before.covered if before is not None else None
    parts = {} if before is None or start is None else before.taken_by(start)
    past = {
        name: cut for (name, number), cut in parts.items() if start is not None and number == start.number
    }
    cuts = CutAudit(workload.graph, start, past)
    judge: Any = CutJudge(cuts)
    running = Running(query, workload, judge, judge, settings=replace(settings, start=start), cuts=cuts)
    if before is not None:
        running.collected, running.covered, running.before = before.collected, start, before
    return running


@dataclass(frozen=True, slots=True)
class BackedUp:
    """The outputs that a worker can send: its own backups, and those in the durable store."""

    own: Container[TaskName]
    durable: Container[TaskName]

    def __contains__(self, task: object) -> bool:
        return task in self.own or task in self.durable
