"""One query in the simulated world, as seen from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field

from wallaby.coordinator.query import Query
from wallaby.lineage.effects import Output, RestoredState
from wallaby.lineage.names import TaskName, WorkerId
from wallaby.lineage.snapshot import Snapshot
from wallaby_lab.invariants.audit import Audit, InvariantViolation
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
    #: It was cancelled so, or released: nobody wants anything of it any more.
    unwanted: bool = False
    #: Its side inputs were too large at some worker.
    too_much_beside: bool = False
    #: How often its fickle task was executed.
    fickle_runs: int = 0
    without_worker_since_ms: int | None = None
    #: How often a coordinator has found it past its limit without workers.
    looks_too_late: int = 0

    def require_not_too_large(self, before: Snapshot, losses_max: int) -> None:
        """A query that has cost too many workers their memory must have ended."""
        cost = [worker for worker in self.strained if before.departed.get(worker) is False]
        if len(cost) >= losses_max:
            raise InvariantViolation(7, f"{self.query.id} goes on: {sorted(cost)} ran out of memory")


@dataclass(frozen=True, slots=True)
class BackedUp:
    """The outputs that a worker can send: its own backups, and those in the durable store."""

    own: Container[TaskName]
    durable: Container[TaskName]

    def __contains__(self, task: object) -> bool:
        return task in self.own or task in self.durable
