"""Simulated processes, what runs in them, and what is lost with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wallaby.coordinator.coordinator import Query
from wallaby.gcs.memory import MemoryGcs
from wallaby.lineage.attempt import Effects
from wallaby.lineage.effects import Output
from wallaby.lineage.names import HEAD, QueryId, TaskName, WorkerId
from wallaby.worker.session import Session


@dataclass(slots=True, eq=False)
class Actor:
    """One generator being driven."""

    name: str
    process: Process
    effects: Effects
    serving: Serving | None = None
    alive: bool = True
    #: The number of its present wait; a timer of an earlier wait does nothing.
    wait: int = 0
    #: Is it in an `Await` or `Pause`, so that it may be woken?
    parked: bool = False
    patient: bool = False
    #: How often it has waited since something last arrived for it.
    idle: int = 0


@dataclass(slots=True, eq=False)
class Serving:
    """One query at one process: its session, its backups, and the generators that run for it."""

    query: Query
    session: Session
    backups: dict[TaskName, tuple[Output, bool]] = field(default_factory=dict)
    actors: dict[str, Actor] = field(default_factory=dict)
    bytes_kept: int = 0
    #: What its session last said of the query; if it says something else, all are woken.
    news: tuple[int, ...] = ()
    sent_news: int = 0


@dataclass(slots=True, eq=False)
class Process:
    """One incarnation of a worker, or the head."""

    id: WorkerId
    gcs: MemoryGcs
    #: How much longer than others it takes for everything.
    slowness: float = 1.0
    #: What its backups may take, in memory and on disk together, and what is left of it.
    capacity_bytes: int = 1 << 40
    room_bytes: int = 1 << 40
    alive: bool = True
    paused_until_us: int = 0
    draining: bool = False
    servings: dict[QueryId, Serving] = field(default_factory=dict)
    actors: list[Actor] = field(default_factory=list)
    #: One-shot faults waiting for the next message or call of this process, by name.
    armed: dict[str, int] = field(default_factory=dict)
    #: No message passes between this process and the store until then.
    store_cut_until_us: int = 0

    @property
    def is_head(self) -> bool:
        """Is this the driver?"""
        return self.id == HEAD

    def disarm(self, fault: str) -> bool:
        """Use up one armed fault, if there is one."""
        left = self.armed.get(fault, 0)
        if left:
            self.armed[fault] = left - 1
        return bool(left)


@dataclass(slots=True)
class Tally:
    """What happened in one run: for the report, and to know that the run was worth something."""

    steps: int = 0
    fired: list[tuple[Any, Any]] = field(default_factory=list)
    recoveries: int = 0
    nested_recoveries: int = 0
    commits: int = 0
    lineage_bytes: int = 0
    rewound: int = 0
    reread: int = 0
    retraced: int = 0
    #: Channels that went on from a saved state, and outputs that were sent from the durable store.
    restored: int = 0
    fetched: int = 0
    workers_lost: int = 0
    expelled: int = 0
    virtual_ms: int = 0
    outcomes: list[str] = field(default_factory=list)
