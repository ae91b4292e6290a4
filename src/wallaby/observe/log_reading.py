"""Read the history of a query from its events: a log that is complete, or one that still grows.

If its writer died, a log may end in the middle of a line; that line is ignored. Any other unreadable line is an error
that names the line. Unknown kinds and fields are ignored.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.graph import LinkKind, StageKind
from wallaby.observe.about import About
from wallaby.observe.event import VERSION, EventKind, TaskAction
from wallaby.observe.history import History, LinkInfo, Recovery, StageInfo, TaskRun
from wallaby.observe.lines import KeptLines

#: A longer line is not an event.
LINE_CHARACTERS_MAX: Final = 16 << 20
_TASK: Final = re.compile(r"s(\d+)\.c(\d+)\.t(\d+)")


class EventLogError(InvalidArgumentError):
    """A file is not an event log, or is damaged."""

    condition = "WALLABY_EVENT_LOG"


def read_log(path: Path | str) -> History:
    """The history in an event log.

    Raises:
        EventLogError: the file cannot be read, is not an event log, has another version, or is damaged.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8") as file:
            return _history(str(path), _events(str(path), file))
    except OSError as error:
        raise EventLogError(f"Cannot read {path}: {error.strerror}.", fix="Name an event log.") from error
    except UnicodeDecodeError as error:
        raise _no_log(str(path), "it is not text") from error


def _no_log(name: str, why: str) -> EventLogError:
    return EventLogError(
        f"{name} is not an event log of Wallaby: {why}.",
        fix="Wallaby writes event logs to the directory that spark.wallaby.eventLog.dir names.",
    )


def _events(name: str, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            event = None if len(line) > LINE_CHARACTERS_MAX else json.loads(line)
            if not isinstance(event, dict) or not event:
                raise TypeError("no event")
        except (ValueError, TypeError, RecursionError) as error:
            if not line.endswith("\n") and number > 1:
                return  # its writer died while it wrote this line
            if number == 1:
                raise _no_log(name, "its first line is no JSON object") from error
            raise EventLogError(
                f"Line {number} of {name} is damaged.", fix="Remove it, or report without it.", line=number
            ) from error
        yield number, event


def _history(name: str, events: Iterator[tuple[int, dict[str, Any]]]) -> History:
    first = next(events, None)
    if first is None:
        raise _no_log(name, "it is empty")
    head = first[1]
    if head.get("event") != EventKind.LOG.value or "version" not in head:
        raise _no_log(name, "it does not begin as one")
    if head["version"] != VERSION:
        raise EventLogError(
            f"{name} is an event log of version {head['version']}; this Wallaby reads version {VERSION}.",
            fix="Use the Wallaby that wrote it, or a later one.",
        )
    reading = _Reading(head)
    for number, event in events:
        try:
            reading.take(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EventLogError(f"Line {number} of {name} is damaged: {error!r}.", line=number) from error
    return reading.finished()


class _Reading:
    """A history that grows by one event at a time, in any order."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        at = float(head.get("at", 0.0))
        self._history = History(str(head.get("query", "")), at, at)
        self._gate: list[tuple[float, Mapping[str, Any]]] = []

    def take(self, event: Mapping[str, Any]) -> None:
        try:
            kind = EventKind(event.get("event"))
        except ValueError:
            return
        at = float(event["at"])
        history = self._history
        history.ended = max(
            history.ended, at + float(event.get("seconds", 0.0) if kind is EventKind.TASK else 0.0)
        )
        match kind:
            case EventKind.PLAN:
                self._plan(event)
            case EventKind.MEMBERS:
                history.workers |= {w["id"]: (str(w["host"]), int(w["pid"])) for w in event["workers"]}
            case EventKind.TASK:
                history.tasks.append(_task(at, event))
                history.workers.setdefault(str(event["worker"]), ("", 0))
            case EventKind.COMMIT | EventKind.PUSH | EventKind.SPILL | EventKind.MEMORY:
                self._count(kind, event)
            case EventKind.FROZE | EventKind.RESUMED:
                self._gate.append((at, event))
            case EventKind.DROPPED:
                history.dropped += int(event["count"])
            case EventKind.CUT:
                history.cut = True
            case EventKind.END:
                history.outcome, history.condition = str(event["outcome"]), str(event.get("condition", ""))
                history.error, history.commits = str(event.get("error", "")), int(event.get("commits", 0))
            case EventKind.JOINED:
                history.workers[str(event["worker"])] = (str(event.get("host", "")), int(event.get("pid", 0)))
            case EventKind.LOG | EventKind.STORED:
                pass

    def _count(self, kind: EventKind, event: Mapping[str, Any]) -> None:
        """Count an event that is only added up."""
        history = self._history
        if kind is EventKind.COMMIT:
            history.commit_calls += 1
            history.commit_times.append((float(event["at"]), len(event.get("tasks", ()))))
            history.commit_seconds += float(event["seconds"])
            for verdict, count in event.get("refused", {}).items():
                history.refused[verdict] = history.refused.get(verdict, 0) + int(count)
        elif kind is EventKind.MEMORY:
            step = str(event["step"])
            history.short_of_memory[step] = history.short_of_memory.get(step, 0) + 1
            used, limit = int(event.get("used", 0)), int(event.get("limit", 0))
            history.memory_steps.append((float(event["at"]), str(event.get("worker", "")), step, used, limit))
        elif kind is EventKind.SPILL:
            stage = _named(event["task"])[0]
            history.spilled[stage] = history.spilled.get(stage, 0) + int(event["bytes"])
            worker = str(event.get("worker", ""))
            history.spilled_by[worker] = history.spilled_by.get(worker, 0) + int(event["bytes"])
        else:
            outputs = int(event.get("outputs", 0))
            history.push_times.append((float(event["at"]), outputs, int(event.get("held", outputs))))
            if event.get("route") == "memory":
                return
            history.pushes += 1
            history.pushed_bytes += int(event["bytes"])
            history.push_seconds += float(event["seconds"])

    def _plan(self, event: Mapping[str, Any]) -> None:
        self._history.stages = tuple(
            StageInfo(str(s["label"]), StageKind(s["kind"]), int(s["channels"]), int(s["splits"]))
            for s in event["stages"]
        )
        links = tuple(
            LinkInfo(
                int(k["producer"]),
                int(k["consumer"]),
                LinkKind(k["kind"]),
                str(k["routing"]),
                int(k.get("phase", 0)),
            )
            for k in event["links"]
        )
        count = len(self._history.stages)
        if not all(0 <= link.producer < link.consumer < count for link in links):
            raise ValueError("links to stages that are not there")
        self._history.links = links
        self._history.about = About(*(str(event.get(each.name, "")) for each in fields(About)))

    def finished(self) -> History:
        """The history, with recoveries combined from freezes and resumes."""
        history = self._history
        history.recoveries = []
        open_: Recovery | None = None
        for at, event in sorted(self._gate, key=lambda each: each[0]):
            if event["event"] == EventKind.FROZE.value:
                lost = tuple((str(w["id"]), str(w.get("host", ""))) for w in event["lost"])
                if open_ is None:
                    open_ = Recovery(at, lost, tuple(event.get("draining", ())))
                else:
                    open_ = Recovery(open_.at, (*open_.lost, *lost), open_.draining)
            elif open_ is not None:
                history.recoveries.append(_resumed(open_, at, event))
                open_ = None
        if open_ is not None:
            history.recoveries.append(open_)
        history.tasks.sort(key=lambda run: run.at)
        if history.tasks:
            history.started = min(history.started, history.tasks[0].at)
        return history


class LiveReading:
    """The history of a query that may still run, from lines that are kept in memory; each line is read once."""

    def __init__(self, query: str, started: float) -> None:
        self._reading = _Reading({"query": query, "at": started})
        self._lock = threading.Lock()
        self._mark = 0

    def read(self, lines: KeptLines, now: float, commits: int) -> History:
        """What the lines so far say; `now` is the end of a query that has none."""
        with self._lock:
            text, self._mark = lines.since(self._mark)
            for line in text.splitlines():
                try:
                    self._reading.take(json.loads(line))
                except (KeyError, TypeError, ValueError, AttributeError):
                    continue  # a line of a worker that another version wrote; the log would name it
            history = self._reading.finished()
            history.dropped = lines.left_out
            history.commits = max(history.commits, commits)
            history.ended = max(history.ended, now)
            return replace(history, tasks=list(history.tasks), recoveries=list(history.recoveries))


def _resumed(recovery: Recovery, at: float, event: Mapping[str, Any]) -> Recovery:
    return Recovery(
        recovery.at,
        recovery.lost,
        recovery.draining,
        at,
        tuple(event["rewound"]),
        tuple(event["moved"]),
        int(event["delivered_again"]),
        int(event["read_again"]),
    )


def _task(at: float, event: Mapping[str, Any]) -> TaskRun:
    stage, channel, seq = _named(event["task"])
    return TaskRun(
        at,
        float(event["seconds"]),
        str(event["worker"]),
        stage,
        channel,
        seq,
        TaskAction(event["how"]),
        int(event["rows"]),
        int(event["bytes"]),
        int(event.get("input_rows", 0)),
        int(event.get("input_bytes", 0)),
        float(event.get("queued", 0.0)),
        str(event.get("error", "")),
        bool(event.get("last", False)),
    )


def _named(task: str) -> tuple[int, int, int]:
    found = _TASK.fullmatch(task)
    if found is None:
        raise ValueError(f"{task!r} is not the name of a task")
    return int(found[1]), int(found[2]), int(found[3])
