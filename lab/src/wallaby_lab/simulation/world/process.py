"""Simulated processes, with their actors and everything that is lost with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wallaby.coordinator.query import Query
from wallaby.gcs.memory import MemoryGcs
from wallaby.lineage.attempt import ChannelRun
from wallaby.lineage.effects import Output, Push
from wallaby.lineage.names import HEAD, ChannelName, QueryId, TaskName, WorkerId
from wallaby.node.driving import DrivenActor, DrivenSession
from wallaby.node.session import QuerySession
from wallaby_lab.invariants.audit import InvariantViolation


@dataclass(slots=True, eq=False)
class SimulatedActor(DrivenActor):
    """One generator that the simulation drives."""

    process: Process
    worker_query: SimulatedQuery | None = None
    #: Its last effect, and whether it was just told that nothing came within the time.
    last: Any = None
    eager: bool = False
    #: It is held until this time; see `schedules`.
    held_until_us: int = 0
    #: How many times longer than others it takes for everything.
    lag: float = 1.0
    #: The channel run that it drives.
    run: ChannelRun | None = None
    #: The last answered push and its answer, until it is judged; see `complaining`.
    answered: tuple[Push, Any] | None = None
    #: How much longer its next backup takes.
    keeps_late_us: int = 0
    #: The effect whose answer is lost, and since when.
    lost: Any = None
    lost_us: int = 0


@dataclass(slots=True, eq=False)
class SimulatedQuery(DrivenSession[SimulatedActor]):
    """One query at one process: its session, its backups, and the generators that run for it."""

    query: Query
    #: Outputs, with the epoch of the run that made them.
    backups: dict[TaskName, tuple[Output, bool, int]] = field(default_factory=dict)
    bytes_kept: int = 0
    #: Side inputs that were too large; see `beside`.
    given_up: set[tuple[ChannelName, int, int]] = field(default_factory=set)
    refused_sides: bool = False
    #: The latest run that has kept an output of each task.
    latest: dict[TaskName, int] = field(default_factory=dict)

    def require_latest(self, task: TaskName, since_epoch: int) -> None:
        """The output of a later run stays in the backup, whichever of two is stored last (invariant 2)."""
        self.latest[task] = max(since_epoch, self.latest.get(task, 0))
        kept = self.backups[task][2]
        if kept != self.latest[task]:
            raise InvariantViolation(
                2, f"{task} is kept as the run of epoch {kept} made it, not that of {self.latest[task]}"
            )


def worker_query_of(actor: SimulatedActor) -> SimulatedQuery:
    """The session that an actor belongs to."""
    assert actor.worker_query is not None, f"{actor.name} belongs to no session"
    return actor.worker_query


def channel_run_of(actor: SimulatedActor, session: QuerySession) -> ChannelRun | None:
    """The channel run that an actor drives; None for any other actor."""
    channel = actor.name.of
    return session.runs.get(channel) if isinstance(channel, ChannelName) else None


@dataclass(slots=True, eq=False)
class Process:
    """One incarnation of a worker, or the head."""

    id: WorkerId
    gcs: MemoryGcs
    #: How many times longer than others it takes for everything.
    slowness: float = 1.0
    #: The room for its backups, in memory and on disk together, and how much is left.
    capacity_bytes: int = 1 << 40
    room_bytes: int = 1 << 40
    alive: bool = True
    paused_until_us: int = 0
    draining: bool = False
    #: It wants to leave and, once it is free, waits to be dismissed.
    lingers: bool = False
    worker_queries: dict[QueryId, SimulatedQuery] = field(default_factory=dict)
    actors: list[SimulatedActor] = field(default_factory=list)
    #: One-shot faults waiting for the next message or call of this process, by name.
    armed: dict[str, int] = field(default_factory=dict)
    #: Until this time no message passes between this process and the store.
    store_cut_until_us: int = 0
    #: The world's healing does not connect it to the store again: it has to leave by itself.
    is_cut_from_store_for_good: bool = False

    @property
    def is_head(self) -> bool:
        """Is this the driver?"""
        return self.id == HEAD

    def disarm(self, fault: str) -> bool:
        """Use up one armed fault, if there is one."""
        if not self.armed:
            return False
        left = self.armed.get(fault, 0)
        if left:
            self.armed[fault] = left - 1
        return bool(left)

    def dissolve(self) -> None:
        """Let go of its actors and its queries, which refer to each other."""
        for worker_query in self.worker_queries.values():
            worker_query.actors.clear()
        self.worker_queries.clear()
        for actor in self.actors:
            actor.worker_query = actor.run = None
            actor.effects.close()
        self.actors.clear()


@dataclass(slots=True)
class RunTally:
    """What happened in one run: for the report, and to see what the run covered."""

    steps: int = 0
    fired: list[tuple[Any, Any]] = field(default_factory=list)
    recoveries: int = 0
    nested_recoveries: int = 0
    commits: int = 0
    #: Calls that carried more than one commit, and actors that were held.
    commits_together: int = 0
    held: int = 0
    lineage_bytes: int = 0
    rewound: int = 0
    #: Those of them that stayed at their worker.
    rewound_in_place: int = 0
    reread: int = 0
    retraced: int = 0
    #: Channels that continued from a saved state, and outputs that were sent from the durable store.
    restored: int = 0
    fetched: int = 0
    #: Queries that were rolled back, and those of them that had no complete snapshot.
    rolled_back: int = 0
    rolled_back_to_start: int = 0
    workers_lost: int = 0
    expelled: int = 0
    virtual_ms: int = 0
    outcomes: list[str] = field(default_factory=list)
