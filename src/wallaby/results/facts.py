"""What users see of a run: figures, figures by stage, and events, as typed records."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from wallaby.head.collected import Figures
from wallaby.observe.event import Event
from wallaby.observe.observation import QueryStats


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStats:
    """Figures of one stage, over all workers. Rows and bytes are those of outputs, each counted once."""

    tasks: int
    rows: int
    bytes: int
    input_rows: int
    input_bytes: int
    #: Time in kernels, summed over all threads.
    seconds: float
    #: Time spent waiting for a kernel thread.
    queued_seconds: float
    #: Tasks and reads that were repeated after a loss.
    retraced: int
    reread: int
    spilled_bytes: int
    #: Parts of the seconds: reading, partitioning rows, computing checksums of outputs, and repeated work.
    scan_seconds: float
    partition_seconds: float
    checksum_seconds: float
    again_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """Figures of the workers in an observed run. Seconds are summed over threads and workers."""

    #: The bytes that stages exchanged, and how many of them went over the network.
    exchanged_bytes: int
    sent_bytes: int
    spilled_bytes: int
    #: Committed tasks, and the size of their records.
    commits: int
    lineage_bytes: int
    #: Calls to the control store.
    store_calls: int
    store_seconds: float
    pushes: int
    push_seconds: float
    #: Backups written to disk.
    backup_seconds: float
    #: Bytes written to the durable store, and the number of saved states.
    durable_bytes: int
    durable_seconds: float
    checkpoints: int
    per_stage: tuple[StageStats, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStats:
    """Figures of one run of a query: complete when it has ended, until then the present ones."""

    #: Did the engine run it, or Spark?
    native: bool
    #: None if they have not been counted yet.
    rows: int | None
    seconds: float
    #: The id of the query; empty if Spark ran it.
    query: str = ""
    stages: int = 0
    tasks: int = 0
    bytes: int = 0
    #: How often it recovered from a loss, and how often it was run again from the start.
    recoveries: int = 0
    restarts: int = 0
    #: What the recoveries cost.
    lost_workers: tuple[str, ...] = ()
    channels_rewound: int = 0
    outputs_delivered_again: int = 0
    outputs_read_again: int = 0
    frozen_seconds: float = 0.0
    #: Parts of the plan that Spark ran first, and how long that took.
    leaves: int = 0
    leaf_seconds: float = 0.0
    #: The path of the event log; empty if there is none.
    event_log: str = ""
    #: Figures of the workers, if the run was observed: `engine.run(df, observed=True)`, or an event log.
    detail: RunDetail | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all figures in one dictionary, including those of `detail`, for example to write them as JSON."""
        found = asdict(self)
        return found | (found.pop("detail") or {})

    # Programs that know the figures as a dictionary keep working.

    def __getitem__(self, name: str) -> Any:
        """Return the figure of this name, as `as_dict` has it."""
        return self.as_dict()[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the figures."""
        return iter(self.as_dict())

    def __contains__(self, name: object) -> bool:
        """Is there a figure of this name?"""
        return name in self.as_dict()

    def get(self, name: str, default: Any = None) -> Any:
        """Return the figure of this name, or the default if there is none."""
        return self.as_dict().get(name, default)

    def keys(self) -> KeysView[str]:
        """Return the names of the figures."""
        return self.as_dict().keys()


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """One event of a query, as in the event log.

    `kind` is one of the kinds of the event log (`froze`, `resumed`, `task`, …), `at` its time in seconds since 1970,
    `worker` the TaskManager that saw it, empty for the driver. `fields` has the other fields of its kind.
    """

    kind: str
    at: float
    worker: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


def event_of(event: Event) -> QueryEvent:
    """Convert an event of the log for users."""
    known = ("event", "at", "worker")
    more = {name: value for name, value in event.items() if name not in known}
    return QueryEvent(
        str(event["event"]), float(event["at"]), str(event.get("worker", "")), MappingProxyType(more)
    )


def stats_of(query: str, figures: Figures, seen: QueryStats | None, *, native: bool) -> RunStats:
    """The figures of a run on the engine, from the head's counters and from its observation."""
    return RunStats(
        native=native,
        query=query,
        stages=figures.stages,
        tasks=figures.tasks,
        rows=figures.rows,
        bytes=figures.bytes,
        seconds=round(figures.seconds, 3),
        recoveries=figures.recoveries,
        restarts=figures.restarts,
        **({} if seen is None else _losses(seen)),
        detail=None if seen is None or not seen.stages else _detail(seen),
    )


def _losses(seen: QueryStats) -> dict[str, Any]:
    return {
        "lost_workers": tuple(seen.lost_workers),
        "channels_rewound": seen.channels_rewound,
        "outputs_delivered_again": seen.outputs_delivered_again,
        "outputs_read_again": seen.outputs_read_again,
        "frozen_seconds": round(seen.frozen_seconds, 3),
        "event_log": seen.event_log,
    }


def _detail(seen: QueryStats) -> RunDetail:
    carried = seen.carried
    return RunDetail(
        exchanged_bytes=seen.exchanged_bytes,
        sent_bytes=seen.pushed_bytes,
        spilled_bytes=sum(totals.spilled_bytes for totals in seen.stages),
        commits=carried.commits,
        lineage_bytes=carried.lineage_bytes,
        store_calls=carried.store_calls + seen.head_store_calls,
        store_seconds=round(carried.store_seconds, 4),
        pushes=carried.pushes,
        push_seconds=round(carried.push_seconds, 4),
        backup_seconds=round(carried.backup_seconds, 4),
        durable_bytes=carried.durable_bytes,
        durable_seconds=round(carried.durable_seconds, 4),
        checkpoints=carried.checkpoints,
        per_stage=tuple(StageStats(**asdict(totals)) for totals in seen.stages[:-1]),
    )
