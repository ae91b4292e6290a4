"""A running engine as the live page shows it: what the driver knows anyway, read without disturbing a query."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from wallaby.errors import GcsError
from wallaby.gcs.interface import Gcs
from wallaby.observe.history import History
from wallaby.observe.units import duration, number, size
from wallaby.results.following import FollowedQueries, FollowedQuery
from wallaby.results.record import QueryRecord
from wallaby.results.worker_info import worker_info
from wallaby.ui.source import Overview, QueryPage, QueryRow, WorkerRow

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class EngineSource:
    """What one engine shows. `gcs` and `budget_bytes` are those of the present deployment."""

    def __init__(
        self,
        title: str,
        policy: str,
        recording: FollowedQueries,
        gcs: Callable[[], Gcs],
        budget_bytes: Callable[[], int],
        kept: Callable[[], Sequence[str]],
    ) -> None:
        self._title = title
        self._policy = policy
        self._recording = recording
        self._gcs = gcs
        self._budget_bytes = budget_bytes
        self._kept = kept
        self._host = socket.gethostname()

    def overview(self) -> Overview:
        """The engine, its TaskManagers and what they keep."""
        workers, store_seconds = self._workers()
        history = self._recording.history()
        texts = {query: record.text for record in history for query in record.queries}
        store = "lost" if store_seconds is None else duration(store_seconds)
        return Overview(
            self._title,
            (
                (number(sum(record.state == "running" for record in history)), "running now"),
                (number(len(history)), "queries"),
                (str(len(workers)), "TaskManagers"),
                (size(self._budget_bytes()), "memory budget of each"),
                (store, "answer of the control store"),
                (self._policy, "fault tolerance"),
            ),
            workers,
            self._budget_bytes(),
            [(query, texts.get(query, "")) for query in self._kept()],
        )

    def queries(self) -> Sequence[QueryRow]:
        """The latest queries, the last first."""
        return [_row(record) for record in reversed(self._recording.history())]

    def query(self, key: str) -> QueryPage | None:
        """The page of one query."""
        found = self._recording.find(int(key)) if key.isdecimal() else None
        if found is None:
            return None
        record = found.record()
        return QueryPage(_row(record), record.sql, record.line, _histories(found), record.findings)

    def figures(self) -> Mapping[str, Sequence[tuple[Mapping[str, str], float]]]:
        """Figures for Prometheus."""
        workers, store_seconds = self._workers()
        counts = self._recording.counts()
        states = sorted({worker.state for worker in workers} | {"live"})
        history = self._recording.history()
        return {
            "wallaby_queries_total": [
                ({"where": str(where), "state": state}, float(count))
                for (where, state), count in sorted(counts.ended.items(), key=str)
            ],
            "wallaby_queries_running": [({}, float(sum(record.state == "running" for record in history)))],
            "wallaby_query_seconds_total": [
                ({"where": str(where)}, seconds) for where, seconds in counts.seconds.items()
            ],
            "wallaby_result_rows_total": [({}, float(counts.rows))],
            "wallaby_losses_total": [({}, float(counts.losses))],
            "wallaby_task_managers": [
                ({"state": state}, float(sum(worker.state == state for worker in workers)))
                for state in states
            ],
            "wallaby_task_manager_memory_bytes": [
                ({"worker": worker.id}, float(worker.used_bytes)) for worker in workers if worker.used_bytes
            ],
            "wallaby_task_manager_memory_budget_bytes": [({}, float(self._budget_bytes()))],
            "wallaby_kept_results": [({}, float(len(self._kept())))],
            "wallaby_gcs_seconds": [({}, store_seconds)] if store_seconds is not None else [],
        }

    def _workers(self) -> tuple[list[WorkerRow], float | None]:
        """The TaskManagers, and how long the store took to tell; None if it did not."""
        began = time.monotonic()
        try:
            leases = self._gcs().workers()
        except (GcsError, OSError):
            return [], None
        took = time.monotonic() - began
        known = [worker_info(lease) for lease in leases]
        return [
            WorkerRow(
                each.id, each.host, each.pid, each.state, _used(each.pid) if each.host == self._host else 0
            )
            for each in sorted(known, key=lambda each: each.id)
        ], took


def _row(record: QueryRecord) -> QueryRow:
    return QueryRow(
        str(record.number),
        record.text,
        str(record.where),
        record.state,
        record.started,
        record.seconds,
        record.rows,
        record.why,
        record.lost_workers,
    )


def _histories(found: FollowedQuery) -> Sequence[History]:
    history = found.run_history()
    return () if history is None else (history,)


def _used(pid: int) -> int:
    """The memory of a process of this host; 0 if the process does not exist."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
