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

    #: Its tasks, each counted once.
    tasks: int
    #: The rows of its outputs.
    rows: int
    #: The bytes of its outputs, in memory.
    bytes: int
    #: The rows that its tasks consumed.
    input_rows: int
    #: The bytes that its tasks consumed, in memory.
    input_bytes: int
    #: Time in kernels, summed over all threads.
    seconds: float
    #: Time spent waiting for a kernel thread.
    queued_seconds: float
    #: Tasks that were repeated after a loss.
    retraced: int
    #: Reads that were repeated after a loss.
    reread: int
    #: Bytes that its tasks wrote to disk because they did not fit into their share of memory.
    spilled_bytes: int
    #: The part of `seconds` spent reading files.
    scan_seconds: float
    #: The part of `seconds` spent dividing rows among the channels of the next stage.
    partition_seconds: float
    #: The part of `seconds` spent computing checksums of outputs.
    checksum_seconds: float
    #: The part of `seconds` spent repeating work after a loss.
    again_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """Figures of the workers in an observed run. Seconds are summed over threads and workers."""

    #: The bytes that stages exchanged, within one process and between processes.
    exchanged_bytes: int
    #: The bytes that were sent from one process to another.
    sent_bytes: int
    #: Bytes that tasks wrote to disk because they did not fit into their share of memory.
    spilled_bytes: int
    #: Committed tasks.
    commits: int
    #: The size of the lineage records of the committed tasks.
    lineage_bytes: int
    #: Calls to the control store.
    store_calls: int
    #: The time that calls to the control store took.
    store_seconds: float
    #: Calls by which outputs were sent from one process to another.
    pushes: int
    #: The time that pushes took.
    push_seconds: float
    #: The time that it took to write backups to disk.
    backup_seconds: float
    #: Bytes written to the durable store.
    durable_bytes: int
    #: The time that it took to write to the durable store.
    durable_seconds: float
    #: States of channels that were saved in the durable store.
    checkpoints: int
    #: The figures of each stage, in order; the last stage, which collects the result, has none.
    per_stage: tuple[StageStats, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStats:
    """Figures of one run of a query: complete when it has ended, until then the present ones."""

    #: Did the engine run it, or Spark?
    native: bool
    #: The rows of the result; None if they have not been counted yet.
    rows: int | None
    #: The time from the beginning to the end, or until now.
    seconds: float
    #: The id of the query; empty if Spark ran it.
    query: str = ""
    #: The stages of its plan.
    stages: int = 0
    #: The tasks that were committed.
    tasks: int = 0
    #: The bytes of the result, in memory.
    bytes: int = 0
    #: How often it recovered from a loss without starting over.
    recoveries: int = 0
    #: How often it was restarted from the beginning.
    restarts: int = 0
    #: The ids of the TaskManagers that it lost.
    lost_workers: tuple[str, ...] = ()
    #: Channels whose work was repeated, from the beginning or from a checkpoint.
    channels_rewound: int = 0
    #: Outputs that had arrived and had to be sent again, because their receiver was lost or rewound.
    outputs_delivered_again: int = 0
    #: Outputs that were made again by reading their part of a table again.
    outputs_read_again: int = 0
    #: How long the query stood still during recoveries.
    frozen_seconds: float = 0.0
    #: Parts of the plan that Spark ran first.
    leaves: int = 0
    #: How long Spark took to run them.
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
    """One event of a query, as in the event log."""

    #: One of the kinds of the event log: `froze`, `resumed`, `task`, …
    kind: str
    #: Its time, in seconds since 1970.
    at: float
    #: The TaskManager that saw it; empty for the driver.
    worker: str = ""
    #: The other fields of its kind.
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
