"""One query as the driver sees it: counters, its workers' events, its event log, and a warning for each lost worker.

Every query has an observation. One that is not `detailed` counts only what passes the head anyway, and remembers the
head's own events: which workers joined, which were lost, and the cost of that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

from wallaby.errors import QueryCancelledError, WallabyError
from wallaby.gcs.interface import QueryStatus
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.lineage.snapshot import RecoveryPlan, Snapshot
from wallaby.observe.about import NOTHING_KNOWN, About
from wallaby.observe.event import Event, EventKind, encode, make
from wallaby.observe.event_batch import Carried, EventBatch, StageTotals
from wallaby.observe.exchange_bytes import exchanged_bytes
from wallaby.observe.history import History
from wallaby.observe.lines import KeptLines
from wallaby.observe.log import EventLog
from wallaby.observe.log_reading import LiveReading
from wallaby.observe.units import counted, duration
from wallaby.plan.physical import PhysicalPlan

_log = logging.getLogger(__name__)
#: How long the log of an ended query stays open for the last events of workers.
SETTLE_SECONDS: Final = 3.0
#: How many events of a query are remembered if there is no log.
REMEMBERED_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """The host and process of a worker, for users."""

    host: str
    pid: int = 0


@dataclass(frozen=True, slots=True)
class QueryStats:
    """The figures of a query. `stages` is empty unless it was observed in detail."""

    query: str
    seconds: float
    commits: int
    recoveries: int
    lost_workers: tuple[str, ...]
    channels_rewound: int
    outputs_delivered_again: int
    outputs_read_again: int
    frozen_seconds: float
    pushed_bytes: int = 0
    exchanged_bytes: int = 0
    stages: tuple[StageTotals, ...] = ()
    labels: tuple[str, ...] = ()
    event_log: str = ""
    #: What workers did besides their tasks, and how often the head called the store for the query.
    carried: Carried = field(default_factory=Carried)
    head_store_calls: int = 0
    #: Seconds in kernels by stage and channel, if it was observed in detail.
    channels: Mapping[tuple[int, int], float] = field(default_factory=dict)
    workers: int = 0
    #: The line of the program whose action ran the query.
    line: str = ""


@dataclass(slots=True)
class _Counts:
    """The counters of the head."""

    commits: int = 0
    recoveries: int = 0
    rewound: int = 0
    delivered_again: int = 0
    read_again: int = 0
    frozen_seconds: float = 0.0
    lost: list[WorkerId] = field(default_factory=list)
    store_calls: int = 1  # the call that submitted it


class Observation:
    """The observation of one query. Any thread may use it."""

    def __init__(
        self,
        query: QueryId,
        plan: PhysicalPlan,
        *,
        detailed: bool = False,
        log: EventLog | None = None,
        about: About = NOTHING_KNOWN,
        lines: KeptLines | None = None,
        reported: Callable[[tuple[WorkerId, ...]], bool] = lambda _lost: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.query = query
        self.detailed = detailed
        self.plan = plan
        self.about = about
        #: Has another query reported the loss of these workers?
        self._reported = reported
        self._log = log
        #: Its events in memory, if somebody may look at them while it runs.
        self._lines = lines
        self._live = LiveReading(query, clock())
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = _Counts()
        self._batches: dict[WorkerId, EventBatch] = {}
        self._open: set[WorkerId] = set()
        #: The workers that host its channels.
        self._members: set[WorkerId] = set()
        self._workers = 0
        self._started = clock()
        self._ended_at: float | None = None
        self._finishing = False
        self._frozen_at: float | None = None
        self._lost_now: list[WorkerId] = []
        self._snapshot: Snapshot | None = None
        self._settled = threading.Event()
        #: Workers that have asked to leave, and do not count as lost when they do.
        self._leaving: set[WorkerId] = set()
        #: The head's own events, if there is no log.
        self._remembered: list[Event] = []

    # --- the beginning -------------------------------------------------------------------------------

    def began(
        self, hosts: Mapping[ChannelName, WorkerId], processes: Mapping[WorkerId, WorkerProcess]
    ) -> None:
        """The query is submitted, with these hosts of its channels."""
        self._open = set(hosts.values()) - {HEAD}
        self._workers = len(self._open)
        self._members = set(self._open)
        if self._log is None and self._lines is None:
            return
        graph = self.plan.graph
        stages = [
            {"label": label, "kind": stage.kind.value, "channels": stage.channels, "splits": stage.splits}
            for label, stage in zip(self.plan.labels, graph.stages, strict=True)
        ]
        links = [
            {
                "producer": link.producer,
                "consumer": link.consumer,
                "kind": link.kind.value,
                "routing": link.routing.value,
                "phase": link.phase,
            }
            for link in graph.links
        ]
        self._write(EventKind.PLAN, stages=stages, links=links, **asdict(self.about))
        workers = [{"id": w, "host": at.host, "pid": at.pid} for w, at in sorted(processes.items())]
        self._write(
            EventKind.MEMBERS, workers=workers, hosts={str(name): worker for name, worker in hosts.items()}
        )

    # --- on the way ----------------------------------------------------------------------------------

    def asked(self) -> None:
        """The head has called the store for the query."""
        self._counts.store_calls += 1

    def saw(self, status: QueryStatus) -> None:
        """The coordinator has read the query's status."""
        self._counts.commits = max(self._counts.commits, status.commits)

    def joined(self, worker: WorkerId, processes: Mapping[WorkerId, WorkerProcess]) -> None:
        """A worker has joined."""
        at = processes.get(worker, WorkerProcess(""))
        self._write(EventKind.JOINED, worker=worker, host=at.host, pid=at.pid)

    def froze(
        self,
        lost: Iterable[WorkerId],
        draining: Iterable[WorkerId],
        processes: Mapping[WorkerId, WorkerProcess],
    ) -> None:
        """The gate is closed."""
        lost = tuple(lost)
        with self._lock:
            self._leaving.update(draining)
            new = [w for w in lost if w not in self._counts.lost and w not in self._leaving]
            self._counts.lost += new
            self._lost_now += new
            self._open.difference_update(lost)
            self._members.difference_update(lost)
            if self._frozen_at is None:
                self._frozen_at = self._clock()
        named = [{"id": w, "host": processes.get(w, WorkerProcess("")).host} for w in lost]
        self._write(EventKind.FROZE, lost=named, draining=list(draining))

    def will_report(self, worker: WorkerId) -> bool:
        """Does the query still need this worker, so that it will report its loss?"""
        over = self._ended_at is not None or (self._finishing and not self.plan.graph.keeps)
        with self._lock:
            return not over and (worker in self._members or worker in self._lost_now)

    def took(self, snapshot: Snapshot | None) -> None:
        """The coordinator has taken the snapshot for the next plan."""
        self._snapshot = snapshot

    def resumed(self, plan: RecoveryPlan, processes: Mapping[WorkerId, WorkerProcess]) -> None:
        """The gate is open again."""
        now = self._clock()
        again = _delivered_again(self._snapshot, plan)
        reads = sum(reread.end - reread.first for reread in plan.rereads)
        with self._lock:
            seconds = now - self._frozen_at if self._frozen_at is not None else 0.0
            self._frozen_at = None
            lost, self._lost_now = tuple(self._lost_now), []
            self._counts.recoveries += 1
            self._counts.rewound += len(plan.rewound)
            self._counts.delivered_again += again
            self._counts.read_again += reads
            self._counts.frozen_seconds += seconds
            self._members.update(set(plan.hosts.values()) - {HEAD})
            self._open.update(set(plan.hosts.values()) - {HEAD})
        self._write(
            EventKind.RESUMED,
            seconds=round(seconds, 6),
            rewound=[str(name) for name in plan.rewound],
            moved=[str(name) for name in plan.bases],
            delivered_again=again,
            read_again=reads,
            hosts={str(name): worker for name, worker in plan.hosts.items()},
        )
        if lost:
            who = ", ".join(f"{w} on host {processes.get(w, WorkerProcess('unknown')).host}" for w in lost)
            # A warning, because Python shows warnings even if no logging is configured; but one for each loss.
            _log.log(
                logging.INFO if self._reported(lost) else logging.WARNING,
                "lost %s: %s rewound, %s moved, %s delivered again, %s to read again; query %s was frozen for %s",
                who,
                counted(len(plan.rewound), "channel"),
                counted(len(plan.bases), "reader"),
                counted(again, "output"),
                counted(reads, "output"),
                self.query,
                duration(seconds),
            )

    def received(self, batch: EventBatch) -> None:
        """A worker has sent events."""
        with self._lock:
            before = self._batches.get(batch.worker)
            self._batches[batch.worker] = batch
            if batch.last:
                self._open.discard(batch.worker)
        if self._log is not None and batch.lines:
            self._log.write_lines(batch.lines)
        if self._lines is not None and batch.lines:
            self._lines.add(batch.lines)
        dropped = batch.dropped - (before.dropped if before else 0)
        if dropped:
            self._write(EventKind.DROPPED, worker=batch.worker, count=dropped)
        self._settle_if_done()

    # --- the end -------------------------------------------------------------------------------------

    def has_whole_result(self) -> None:
        """The client has the whole result; only cleaning up remains."""
        self._finishing = True

    def ended(self, error: BaseException | None) -> None:
        """The query has ended. The log stays open for a moment, for the last events of workers."""
        with self._lock:
            if self._ended_at is not None:
                return
            self._ended_at = self._clock()
        outcome = (
            "done" if error is None else "cancelled" if isinstance(error, QueryCancelledError) else "failed"
        )
        self._write(
            EventKind.END,
            outcome=outcome,
            condition=error.condition
            if isinstance(error, WallabyError)
            else type(error).__name__
            if error
            else "",
            error=str(error or ""),
            commits=self._counts.commits,
            seconds=round(self._ended_at - self._started, 6),
        )
        self._settle_if_done()

    def is_settled(self) -> bool:
        """Has the query ended, and have all workers sent their last events or had time to? Then the log is closed."""
        ended_at = self._ended_at
        if ended_at is not None and self._clock() - ended_at > SETTLE_SECONDS:
            self.close()
        return self._settled.is_set()

    def close(self) -> None:
        """Close the log, whatever is missing."""
        if self._log is not None:
            self._log.close()
        if self._lines is not None:
            self._lines.pack()
        self._settled.set()

    def _settle_if_done(self) -> None:
        with self._lock:
            done = self._ended_at is not None and not (self.detailed and self._open)
        if done:
            self.close()

    def stats(self, wait_seconds: float = SETTLE_SECONDS) -> QueryStats:
        """The figures so far; after the query's end the complete ones, for which this waits a moment."""
        if self._ended_at is not None or self._finishing:
            self._settled.wait(wait_seconds)
        with self._lock:
            counts = self._counts
            stages = [StageTotals() for _ in self.plan.graph.stages] if self.detailed else []
            carried = Carried()
            channels: dict[tuple[int, int], float] = {}
            for batch in self._batches.values():
                carried.add(batch.carried)
                for channel, seconds in batch.channels.items():
                    channels[channel] = channels.get(channel, 0.0) + seconds
                for stage, totals in batch.totals.items():
                    if stage < len(stages):
                        stages[stage].add(totals)
            return QueryStats(
                query=self.query,
                seconds=(self._ended_at or self._clock()) - self._started,
                commits=counts.commits,
                recoveries=counts.recoveries,
                lost_workers=tuple(counts.lost),
                channels_rewound=counts.rewound,
                outputs_delivered_again=counts.delivered_again,
                outputs_read_again=counts.read_again,
                frozen_seconds=counts.frozen_seconds,
                pushed_bytes=sum(batch.pushed_bytes for batch in self._batches.values()),
                exchanged_bytes=self._exchanged(stages),
                stages=tuple(stages),
                labels=tuple(self.plan.labels),
                event_log=self.event_log,
                carried=carried,
                head_store_calls=counts.store_calls,
                channels=channels,
                workers=self._workers,
                line=self.about.line,
            )

    def history(self) -> History | None:
        """What it has done so far, for the live page; None if its events are not kept in memory."""
        if self._lines is None:
            return None
        return self._live.read(self._lines, self._ended_at or self._clock(), self._counts.commits)

    @property
    def lost_workers(self) -> tuple[str, ...]:
        """The workers that it has lost so far."""
        return tuple(self._counts.lost)

    @property
    def recoveries(self) -> int:
        """How often it has recovered from a loss so far."""
        return self._counts.recoveries

    @property
    def event_log(self) -> str:
        """The path of the event log; empty if the query has none."""
        return str(self._log.path) if self._log is not None else ""

    def _exchanged(self, stages: list[StageTotals]) -> int:
        return exchanged_bytes(self.plan.graph, stages, self._workers) if stages else 0

    def events(self) -> list[Event]:
        """The events in the log, or else the head's own; complete after the query's end, which may take a moment."""
        if self._ended_at is not None or self._finishing:
            self._settled.wait(SETTLE_SECONDS)
        return list(self._remembered) if self._log is None else self._log.read()

    def _write(self, kind: EventKind, **fields: object) -> None:
        event = make(kind, self._clock(), **fields)
        if self._lines is not None:
            self._lines.add(encode(event).encode() + b"\n", always=True)
        if self._log is not None:
            self._log.write(event)
        elif len(self._remembered) < REMEMBERED_MAX:
            self._remembered.append(event)


def _delivered_again(snapshot: Snapshot | None, plan: RecoveryPlan) -> int:
    """The number of outputs that had been delivered and count as undelivered from now on."""
    if snapshot is None:
        return 0
    return sum(max(snapshot.delivered.get(edge, 0) - now, 0) for edge, now in plan.delivered.items())
