"""What users are told of a run: figures, figures by stage, and events, as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from wallaby.head.collected import Figures
from wallaby.observe.event import Event
from wallaby.observe.observation import QueryStats


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStats:
    """What the tasks of one stage did, on all workers. Rows and bytes are those of outputs, each counted once."""

    tasks: int
    rows: int
    bytes: int
    input_rows: int
    input_bytes: int
    #: In kernels, summed over all threads.
    seconds: float
    #: Waiting for a kernel thread.
    queued_seconds: float
    #: Tasks and reads that were repeated after a loss.
    retraced: int
    reread: int
    spilled_bytes: int
    #: Of the seconds: reading, cutting rows by channel, computing checksums of outputs, and repeated work.
    scan_seconds: float
    partition_seconds: float
    checksum_seconds: float
    again_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """What the workers did in one run of a query that was observed. Seconds are summed over threads and workers."""

    #: What the stages gave each other, and what of it went over the network.
    exchanged_bytes: int
    sent_bytes: int
    spilled_bytes: int
    #: Tasks that were committed, and the size of their records.
    commits: int
    lineage_bytes: int
    #: Calls of the control store.
    store_calls: int
    store_seconds: float
    pushes: int
    push_seconds: float
    #: Writing backups to disk.
    backup_seconds: float
    #: What went to the durable store, and how many states of channels.
    durable_bytes: int
    durable_seconds: float
    snapshots: int
    per_stage: tuple[StageStats, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStats:
    """Figures of one run of a query: complete when it has ended, before that what is known so far."""

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
    #: Where the event log is; empty if there is none.
    event_log: str = ""
    #: What workers did, if the run was observed: `engine.run(df, observed=True)`, or an event log.
    detail: RunDetail | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all figures in one dictionary, for example to write them as JSON; those of `detail` among them."""
        found = asdict(self)
        return found | (found.pop("detail") or {})


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """One event of a query, as it is in the event log.

    `kind` is one of the kinds of the event log (`froze`, `resumed`, `task`, …), `at` its time in seconds since 1970,
    `worker` the TaskManager that saw it, empty for the driver. `fields` has what else belongs to an event of its kind.
    """

    kind: str
    at: float
    worker: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


def event_of(event: Event) -> QueryEvent:
    """An event of the log as users are given it."""
    known = ("event", "at", "worker")
    more = {name: value for name, value in event.items() if name not in known}
    return QueryEvent(
        str(event["event"]), float(event["at"]), str(event.get("worker", "")), MappingProxyType(more)
    )


def stats_of(query: str, figures: Figures, seen: QueryStats | None, *, native: bool) -> RunStats:
    """The figures of a run by the engine: what the head counts, and what was seen on the way."""
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
        snapshots=carried.snapshots,
        per_stage=tuple(StageStats(**asdict(totals)) for totals in seen.stages[:-1]),
    )
