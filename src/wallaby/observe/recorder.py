"""Record a worker's events of one query: they are counted, buffered, and sent to the head a few times a second.

Only observed queries have a recorder. For a task it costs two readings of the clock and an append; encoding and sending
happen on a thread that waits for the network anyway. The buffer is bounded: events that do not fit are counted and
dropped, and never make a task wait.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Final

from wallaby.batches.task_timing import taken
from wallaby.lineage.effects import CommitTask, Execute, Executed, FailPoint, Output, Push, PushReply, Slice
from wallaby.lineage.lineage import is_saved
from wallaby.lineage.names import QueryId, TaskName, WorkerId
from wallaby.lineage.verdict import CommitReply, Verdict
from wallaby.observe.event import Event, EventKind, TaskAction, encode, make
from wallaby.observe.event_batch import (
    EVENT_BATCH_BYTES_MAX,
    Carried,
    EventBatch,
    StageTotals,
    encode_event_batch,
)

#: The most events that wait to be sent; about ten megabytes.
EVENTS_MAX: Final = 20_000
#: The most events in one call: a task's event has about three hundred bytes.
EVENTS_PER_CALL: Final = 2_000
#: How often a worker sends its events.
SEND_SECONDS: Final = 0.25
#: How long the last call waits for one under way.
CLOSE_SECONDS: Final = 2.0

_HOW: Final = {
    FailPoint.READ: TaskAction.READ,
    FailPoint.EXECUTE: TaskAction.EXECUTE,
    FailPoint.RETRACE: TaskAction.RETRACE,
    FailPoint.REREAD: TaskAction.REREAD,
}
_TAKEN: Final = (Verdict.DONE, Verdict.ALREADY)

#: The type of a function that runs a task.
Runs = Callable[[Execute], Executed]


class EventRecorder:
    """The recorder of one query at one worker. Any thread may use it; `send` returns whether the head has accepted."""

    def __init__(
        self,
        query: QueryId,
        worker: WorkerId,
        send: Callable[[bytes], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._query = query
        self._worker = worker
        self._send = send
        self._clock = clock
        self._events: deque[Event] = deque()
        self._lock = threading.Lock()
        self._totals: dict[int, StageTotals] = {}
        self._channels: dict[tuple[int, int], float] = {}
        self._pushed_bytes = 0
        self._carried = Carried(store_calls=1)  # the call by which the worker discovered the query
        self._dropped = 0
        self._sending = threading.Lock()

    def now(self) -> float:
        """The time for events."""
        return self._clock()

    # --- what happens --------------------------------------------------------------------------------

    def watched(self, run: Runs) -> Runs:
        """Wrap a task so that it records an event. The time from now to its start is time in the queue."""
        submitted = self._clock()

        def run_watched(effect: Execute) -> Executed:
            taken()
            started = self._clock()
            try:
                executed = run(effect)
            except Exception as error:
                self._executed(effect, submitted, started, None, type(error).__name__)
                raise
            self._executed(effect, submitted, started, executed.output, "")
            return executed

        return run_watched

    def _executed(
        self, effect: Execute, submitted: float, started: float, output: Output | None, error: str
    ) -> None:
        seconds = self._clock() - started
        rows, size_bytes = (0, 0) if output is None else _size_of_output(output)
        input_bytes = sum(piece.size_bytes for piece in effect.inputs)
        input_rows = sum(_rows(piece.body) for piece in effect.inputs)
        laps = taken()
        how = _HOW.get(effect.point, TaskAction.EXECUTE)
        event = make(
            EventKind.TASK,
            started,
            worker=self._worker,
            seconds=round(seconds, 6),
            task=str(effect.task),
            how=how.value,
            queued=round(started - submitted, 6),
            rows=rows,
            bytes=size_bytes,
            inputs=len(effect.inputs),
            input_rows=input_rows,
            input_bytes=input_bytes,
        )
        if effect.split is not None:
            event["split"] = effect.split
        if effect.last:
            event["last"] = True
        if error:
            event["error"] = error
        self._add(event)
        again = how in (TaskAction.RETRACE, TaskAction.REREAD)
        with self._lock:
            totals = self._totals.setdefault(effect.task.stage, StageTotals())
            totals.seconds += seconds
            channel = (effect.task.stage, effect.task.channel)
            self._channels[channel] = self._channels.get(channel, 0.0) + seconds
            totals.queued_seconds += started - submitted
            totals.scan_seconds += laps.scan_seconds
            totals.partition_seconds += laps.partition_seconds
            totals.checksum_seconds += laps.checksum_seconds
            totals.spilled_bytes += laps.spilled_bytes
            totals.again_seconds += seconds if again else 0.0
            totals.retraced += how is TaskAction.RETRACE
            totals.reread += how is TaskAction.REREAD
            if not again:
                totals.tasks += 1
                totals.rows += rows
                totals.bytes += size_bytes
                totals.input_rows += input_rows
                totals.input_bytes += input_bytes

    def committed(self, started: float, tasks: Sequence[CommitTask], replies: object) -> None:
        """Record a call that committed some tasks, or tried to."""
        answers = replies if isinstance(replies, tuple) else (None,) * len(tasks)
        refused: dict[str, int] = {}
        checkpoints = 0
        for effect, reply in zip(tasks, answers, strict=True):
            verdict = reply.verdict if isinstance(reply, CommitReply) else None
            if verdict not in _TAKEN:
                name = "no answer" if verdict is None else verdict.value
                refused[name] = refused.get(name, 0) + 1
            else:
                checkpoints += is_saved(effect.record)
        event = self._timed(EventKind.COMMIT, started, tasks=[str(effect.task) for effect in tasks])
        if refused:
            event["refused"] = refused
        self._add(event)
        with self._lock:
            self._carried.commits += len(tasks) - sum(refused.values())
            self._carried.checkpoints += checkpoints
            self._carried.lineage_bytes += sum(len(effect.record) for effect in tasks)
            self._carried.store_calls += 1
            self._carried.store_seconds += event["seconds"]

    def asked(self, started: float) -> None:
        """Count another call to the store."""
        with self._lock:
            self._carried.store_calls += 1
            self._carried.store_seconds += self._clock() - started

    def pushed(
        self, started: float, effect: Push, slices: Sequence[Slice], reply: PushReply | None, route: str
    ) -> None:
        """Record a push of outputs to another worker, successful or not."""
        size_bytes = sum(piece.size_bytes for piece in slices)
        answers = () if reply is None or not reply.accepted else reply.held
        held = sum(answers)
        event = self._timed(
            EventKind.PUSH,
            started,
            target=effect.target,
            outputs=len(effect.items),
            bytes=size_bytes,
            held=held,
        )
        event["route"] = route
        self._add(event)
        if route != "memory":
            with self._lock:
                self._pushed_bytes += sum(piece.size_bytes for piece in compress(slices, answers))
                self._carried.pushes += 1
                self._carried.push_seconds += event["seconds"]

    def spilled(self, started: float, task: TaskName, size_bytes: int) -> None:
        """Record that backups went to disk to make room."""
        event = self._timed(EventKind.SPILL, started, task=str(task), bytes=size_bytes)
        self._add(event)
        with self._lock:
            self._carried.backup_seconds += event["seconds"]
            self._totals.setdefault(task.stage, StageTotals()).spilled_bytes += size_bytes

    def stored(self, started: float, task: TaskName, size_bytes: int) -> None:
        """Record that an output or a state was written to the durable store."""
        event = self._timed(EventKind.STORED, started, task=str(task), bytes=size_bytes)
        self._add(event)
        with self._lock:
            self._carried.durable_bytes += size_bytes
            self._carried.durable_seconds += event["seconds"]

    def snapped(self) -> None:
        """Count a channel's part of a coordinated snapshot."""
        with self._lock:
            self._carried.checkpoints += 1

    def short_of_memory(
        self, step: str, used_bytes: int, limit_bytes: int, held_bytes: int, freed_bytes: int
    ) -> None:
        """Record a step against a shortage of memory."""
        fields = {"step": step, "used": used_bytes, "limit": limit_bytes, "held": held_bytes}
        self._add(make(EventKind.MEMORY, self._clock(), worker=self._worker, **fields, freed=freed_bytes))

    def _timed(self, kind: EventKind, started: float, **fields: object) -> Event:
        seconds = round(self._clock() - started, 6)
        return make(kind, started, worker=self._worker, seconds=seconds, **fields)

    def _add(self, event: Event) -> None:
        if len(self._events) >= EVENTS_MAX:
            self._dropped += 1
        else:
            self._events.append(event)

    # --- sending -------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send the buffered events. One thread at a time: another call does nothing meanwhile."""
        if self._events and self._sending.acquire(blocking=False):
            try:
                self._send_all(last=False)
            finally:
                self._sending.release()

    def close(self) -> None:
        """Send the rest, marked as the last."""
        if self._sending.acquire(timeout=CLOSE_SECONDS):
            try:
                self._send_all(last=True)
            finally:
                self._sending.release()

    def _send_all(self, *, last: bool) -> None:
        while True:
            events = [self._events.popleft() for _ in range(min(len(self._events), EVENTS_PER_CALL))]
            lines = list(map(encode, events))
            ends = last and not self._events
            body = encode_event_batch(self._batch(last=ends), lines)
            if len(body) > EVENT_BATCH_BYTES_MAX:  # only if task lists of commits are very long
                self._dropped += len(events)
                body = encode_event_batch(self._batch(last=ends), ())
            if not self._send(body):
                self._events.extendleft(reversed(events))
                return
            if not self._events:
                return

    def _batch(self, *, last: bool) -> EventBatch:
        with self._lock:
            return EventBatch(
                self._query,
                self._worker,
                b"",
                self._dropped,
                last,
                self._pushed_bytes,
                dict(self._totals),
                replace(self._carried),
                dict(self._channels),
            )


def _size_of_output(output: Output) -> tuple[int, int]:
    """Rows and bytes of an output, counted once: over its first link, and only one copy of a broadcast."""
    if not output.slices:
        return 0, 0
    first = min(edge.link for edge in output.slices)
    bodies = {id(body): (size, body) for edge, (size, body) in output.slices.items() if edge.link == first}
    return sum(_rows(body) for _, body in bodies.values()), sum(size for size, _ in bodies.values())


def _rows(body: object) -> int:
    """The rows of a slice: record batches in production, anything in tests."""
    return sum(getattr(batch, "num_rows", 0) for batch in body) if isinstance(body, tuple | list) else 0
