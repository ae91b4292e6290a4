"""A progress bar on a terminal or in a notebook, for queries that take a while; it disappears with the answer.

It is shown only while a caller waits for a query's first rows, and is removed on the caller's thread, before the caller
can print anything. Nothing is shown in pipes and in CI. A separate thread reads the progress from the store, at most
five times a second.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from wallaby.errors import GcsError
from wallaby.gcs.interface import Gcs
from wallaby.lineage.graph import StageGraph, StageKind
from wallaby.lineage.names import ChannelName, QueryId
from wallaby.lineage.snapshot import Snapshot
from wallaby.observe.bars import Bars, bars_on

#: A faster query is not shown at all.
QUIET_SECONDS: Final = 0.7
POLL_SECONDS: Final = 0.2
#: The largest share of time that reading the progress may take.
POLL_SHARE: Final = 0.05


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """How far a query is."""

    splits_read: int
    splits: int
    stages_done: int
    stages: int
    tasks: int
    frozen: bool

    @property
    def share(self) -> float:
        """Estimate the progress: mostly from splits read, the rest from finished stages."""
        read = self.splits_read / self.splits if self.splits else 1.0
        return 0.8 * read + 0.2 * self.stages_done / max(self.stages, 1)

    def __str__(self) -> str:
        recovering = " · recovering" if self.frozen else ""
        return (
            f"{self.splits_read}/{self.splits} splits · {self.stages_done}/{self.stages} stages · "
            f"{self.tasks} tasks{recovering}"
        )


def standing(graph: StageGraph, snapshot: Snapshot) -> QueryProgress:
    """The progress of a query according to a snapshot; the collector does not count as a stage for users."""
    read = splits = done = tasks = 0
    for number, stage in enumerate(graph.stages[:-1]):
        channels = [snapshot.channels[ChannelName(number, at)] for at in range(stage.channels)]
        length = sum(channel.length for channel in channels)
        tasks += length
        done += all(channel.ended for channel in channels)
        if stage.kind is StageKind.READ:
            splits += stage.splits
            read += min(length, stage.splits)
    return QueryProgress(read, splits, done, len(graph.stages) - 1, tasks, not snapshot.gate_open)


def is_wanted(console: Console, environment: dict[str, str] | None = None) -> bool:
    """Is there a user to look at a bar?"""
    environment = dict(os.environ) if environment is None else environment
    if environment.get("CI") or environment.get("TERM") == "dumb":
        return False
    return console.is_jupyter or console.is_terminal


@dataclass(slots=True)
class _Followed:
    query: QueryId
    graph: StageGraph
    since: float
    is_shown: bool = False


class ProgressBoard:
    """The bars of an engine's queries, one line for each query that a caller waits for."""

    def __init__(self, gcs: Gcs, console: Console) -> None:
        self._gcs = gcs
        self._console = console
        self._lock = threading.Lock()
        self._followed: list[_Followed] = []
        self._display: Bars | None = None
        self._thread: threading.Thread | None = None

    def follow(self, query: QueryId, graph: StageGraph) -> Callable[[], None]:
        """Show a query until the returned function is called."""
        followed = _Followed(query, graph, time.monotonic())
        with self._lock:
            self._followed.append(followed)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="wallaby-progress", daemon=True)
                self._thread.start()
        return lambda: self._leave(followed)

    def _leave(self, followed: _Followed) -> None:
        with self._lock:
            if followed not in self._followed:
                return
            self._followed.remove(followed)
            if self._display is not None and followed.is_shown:
                self._display.hide(followed.query)
            if self._display is not None and not any(each.is_shown for each in self._followed):
                self._display.close()
                self._display = None

    def _run(self) -> None:
        """Read and draw while a caller waits; the thread ends with the last of them."""
        pause_seconds = POLL_SECONDS
        while True:
            time.sleep(pause_seconds)
            with self._lock:
                if not self._followed:
                    self._thread = None
                    return
                now = time.monotonic()
                due = [each for each in self._followed if now - each.since >= QUIET_SECONDS]
            for followed in due:
                self._draw(followed)
            pause_seconds = max(POLL_SECONDS, (time.monotonic() - now) / POLL_SHARE)

    def _draw(self, followed: _Followed) -> None:
        try:
            snapshot = self._gcs.snapshot(followed.query)
        except (GcsError, OSError):
            return
        if snapshot is None:
            return
        stands = standing(followed.graph, snapshot)
        with self._lock:
            if followed not in self._followed:
                return
            if self._display is None:
                self._display = bars_on(self._console)
            followed.is_shown = True
            self._display.show(followed.query, stands.share, str(stands), time.monotonic() - followed.since)
