"""The format of the event log, version 1: one line of JSON per event; the first line identifies the file.

Every event has `event`, its kind, and `at`, its time in seconds since 1970 by the clock of the process that saw it;
events of workers also have `worker`. Events with a duration have `seconds`, and began at `at`. Tasks are named
`s2.c1.t7`. Lines of different processes are not sorted, because each process sends its own when it can. Readers ignore
unknown fields and kinds, and refuse a log of another version.

kind      | from   | more
----------|--------|---------------------------------------------------------------------------------------------
log       | head   | version, query; always the first line
plan      | head   | stages (label, kind, channels, splits), links (producer, consumer, kind, routing, phase);
          |        | about the query, empty if unknown: sql, action, line (of the program), description (Spark's)
members   | head   | workers (id, host, pid), hosts: the worker of every channel
task      | worker | seconds, task, how (read, execute, retrace, re-read), queued, rows, bytes, inputs, input_rows,
          |        | input_bytes, split, last, error; inputs are those drawn, without build sides sent to all
commit    | worker | seconds, tasks, refused: how many the store did not take, by its answer
push      | worker | seconds, target, outputs, bytes, held (how many found room), route (flight, memory)
spill     | worker | seconds, task, bytes: a backup that went to disk
stored    | worker | seconds, task, bytes: an output, or the state after a task, that went to the durable store
memory    | worker | step (shed, spill, end, leave, relax), used, limit, held (by this query), freed, all in bytes:
          |        | the worker is short of memory, or no longer is; see docs/memory.md
joined    | head   | worker, host, pid: it may host channels from the next recovery on
froze     | head   | lost (id, host), draining: the gate closes
resumed   | head   | seconds frozen, rewound, moved, delivered_again, read_again, hosts: the gate opens
dropped   | head   | worker, count: events of a worker that found no room in its buffer
cut       | head   | the file has reached its limit: only the head's events follow
end       | head   | outcome (done, failed, cancelled), condition, error, commits, seconds

A worker sends its events a few times a second and at the end of the query. What a lost worker had not sent is
lost: its last quarter of a second, as a rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

VERSION: Final = 1
SUFFIX: Final = ".jsonl"

Event = dict[str, Any]


class EventKind(Enum):
    """Every kind of event."""

    LOG = "log"
    PLAN = "plan"
    MEMBERS = "members"
    TASK = "task"
    COMMIT = "commit"
    PUSH = "push"
    SPILL = "spill"
    STORED = "stored"
    MEMORY = "memory"
    JOINED = "joined"
    FROZE = "froze"
    RESUMED = "resumed"
    DROPPED = "dropped"
    CUT = "cut"
    END = "end"


class TaskAction(Enum):
    """What a task did: read or compute something for the first time, or repeat it."""

    READ = "read"
    EXECUTE = "execute"
    RETRACE = "retrace"
    REREAD = "re-read"


def make(kind: EventKind, at: float, **fields: object) -> Event:
    """Make an event."""
    return {"event": kind.value, "at": round(at, 6), **fields}


def encode(event: Mapping[str, Any]) -> str:
    """Encode an event as a line, without the line feed."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))
