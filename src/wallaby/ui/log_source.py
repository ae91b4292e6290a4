"""Event logs as the live page shows them: the queries of any number of engines, running or ended long ago.

Logs are listed by their first lines and their last one; a whole log is read only for its own page, and the latest few
stay in memory. A log that cannot be read is listed with the reason.
"""

from __future__ import annotations

import json
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from wallaby.errors import WallabyError
from wallaby.observe.about import About
from wallaby.observe.event import SUFFIX
from wallaby.observe.finding import found_in_log
from wallaby.observe.history import History
from wallaby.observe.log_reading import read_log
from wallaby.observe.units import number
from wallaby.ui.source import LoggedState, Overview, QueryPage, QueryRow

LOGS_MAX: Final = 5000
HISTORIES_MAX: Final = 4
#: Where the plan and the end of a query are looked for: within so many bytes of the ends of its log.
HEAD_BYTES: Final = 256 << 10
TAIL_BYTES: Final = 64 << 10
#: A query whose log has no end is shown as running for so long after the last event. A long task writes none meanwhile.
RUNNING_SECONDS: Final = 60.0
#: How a log may say that its query ended.
_ENDS: Final[dict[str, LoggedState]] = {"done": "done", "failed": "failed", "cancelled": "cancelled"}


class LogSource:
    """All event logs below a directory."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock
        self._rows: dict[Path, tuple[tuple[int, int], QueryRow]] = {}
        self._histories: OrderedDict[Path, tuple[tuple[int, int], History]] = OrderedDict()

    def overview(self) -> Overview:
        """The directory."""
        rows = self.queries()
        facts = (
            (number(len(rows)), "queries"),
            (number(sum(row.state == "running" for row in rows)), "running now"),
            (number(sum(row.state == "failed" for row in rows)), "failed"),
            (number(sum(len(row.lost) for row in rows)), "workers lost"),
        )
        return Overview(f"Event logs in {self._directory}", facts, is_live=False)

    def queries(self) -> Sequence[QueryRow]:
        """The queries of the latest logs, the last first."""
        paths = sorted(self._directory.rglob(f"*{SUFFIX}"), key=lambda path: path.name, reverse=True)[
            :LOGS_MAX
        ]
        for gone in set(self._rows) - set(paths):
            del self._rows[gone]
        found = [self._row(path) for path in paths]
        return sorted((row for row in found if row is not None), key=lambda row: -row.started)

    def _row(self, path: Path) -> QueryRow | None:
        stamp = _stamp(path)
        if stamp is None:
            return None
        known = self._rows.get(path)
        if known is None or known[0] != stamp:
            known = self._rows[path] = (stamp, _outline(path, str(path.relative_to(self._directory))))
        row = known[1]
        is_fresh = self._clock() - stamp[0] / 1e9 < RUNNING_SECONDS
        return replace(row, state="running") if row.state == "unfinished" and is_fresh else row

    def query(self, key: str) -> QueryPage | None:
        """The page of one query."""
        path = next((path for path, (_, row) in self._rows.items() if row.key == key), None)
        if path is None:
            self.queries()
            path = next((path for path, (_, row) in self._rows.items() if row.key == key), None)
        row = None if path is None else self._row(path)
        if path is None or row is None:
            return None
        try:
            history = self._history(path)
        except WallabyError as error:
            return QueryPage(
                QueryRow(row.key, row.text, row.where, "unreadable", row.started, 0.0, why=str(error))
            )
        return QueryPage(row, history.about.sql, history.about.line, (history,), found_in_log(history))

    def _history(self, path: Path) -> History:
        stamp = _stamp(path) or (0, 0)
        known = self._histories.pop(path, None)
        if known is None or known[0] != stamp:
            known = (stamp, read_log(path))
        self._histories[path] = known
        while len(self._histories) > HISTORIES_MAX:
            self._histories.popitem(last=False)
        return known[1]

    def figures(self) -> Mapping[str, Sequence[tuple[Mapping[str, str], float]]]:
        """No figures, because nothing runs here."""
        return {}


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _outline(path: Path, key: str) -> QueryRow:
    """A query by the ends of its log."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            whole_bytes = file.seek(0, os.SEEK_END)
            file.seek(max(whole_bytes - TAIL_BYTES, 0))
            tail = file.read()
    except OSError as error:
        return QueryRow(key, path.name, "", "unreadable", 0.0, 0.0, why=str(error.strerror))
    events = [*_events(head), *(_events(tail) if whole_bytes > HEAD_BYTES else ())]
    first = events[0] if events and events[0].get("event") == "log" else None
    if first is None:
        return QueryRow(key, path.name, "", "unreadable", 0.0, 0.0, why="It is not an event log of Wallaby.")
    plan: dict[str, Any] = next((event for event in events if event.get("event") == "plan"), {})
    end = next((event for event in events if event.get("event") == "end"), None)
    lost = [
        str(each.get("id"))
        for event in events
        if event.get("event") == "froze"
        for each in event.get("lost", ())
    ]
    about = About(*(str(plan.get(name, "")) for name in ("sql", "action", "line", "description")))
    text = about.text if about != About() else str(first.get("query", path.name))
    started = float(first.get("at", 0.0))
    latest = max(float(event.get("at", started)) for event in events)
    return QueryRow(
        key,
        text,
        "native",
        "unfinished" if end is None else _ENDS.get(str(end.get("outcome")), "unfinished"),
        started,
        float(end["seconds"]) if end is not None and "seconds" in end else latest - started,
        why="" if end is None else str(end.get("error", "")),
        lost=tuple(dict.fromkeys(lost)),
    )


def _events(text: bytes) -> list[dict[str, Any]]:
    """The whole lines that are events."""
    found = []
    for line in text.split(b"\n"):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            found.append(event)
    return found
