"""Estimate how much memory each query takes in this TaskManager.

Backups, states and inboxes count their own memory. The memory of running tasks is not counted, so it is estimated from
the growth of the process while they ran (`growth`), of which the counted part is taken off.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from wallaby.errors import MemoryLimitError
from wallaby.lineage.names import QueryId, TaskName
from wallaby.node.node import WorkerQuery
from wallaby.worker.memory.floor import MIB, MemoryLimits


class CountsMemory(Protocol):
    """An object that counts memory by query; see `exchange.backup`."""

    def memory_bytes_of(self, query: QueryId) -> int:
        """The bytes that a query has in memory."""


@dataclass(frozen=True, slots=True)
class QueryMemory:
    """The memory that one query takes at a TaskManager, and where most of it is."""

    worker_query: WorkerQuery
    backup_bytes: int
    state_bytes: int
    inbox_bytes: int
    #: The bytes by which its tasks have made the process grow, without those that are counted.
    task_bytes: int
    #: The running task since whose beginning the process has grown most, if it is one of `stage`.
    task: TaskName | None
    #: The stage that takes most, by what it has collected or by the growth since one of its tasks began.
    stage: int | None

    @property
    def size_bytes(self) -> int:
        """Total memory of the query."""
        return self.backup_bytes + self.state_bytes + self.inbox_bytes + self.task_bytes

    def error(
        self, worker: str, used_bytes: int, limits: MemoryLimits, room_bytes: int | None
    ) -> MemoryLimitError:
        """The error for its user, if the query must end."""
        operator = "" if self.stage is None else self.worker_query.work.operator_of(self.stage)
        where = f", most of it in the {operator} of stage {self.stage}" if operator else ""
        limit = (
            f"{used_bytes // MIB} MiB of the {limits.limit_bytes // MIB} that it may take "
            f"({limits.budget_bytes // MIB} MiB of spark.wallaby.memory, plus {limits.allowance_bytes // MIB} MiB of "
            "spark.wallaby.memory.allowance)"
        )
        left = (
            ""
            if room_bytes is None
            else f", and the host or its control group leaves {room_bytes // MIB} MiB"
        )
        more: dict[str, Any] = {} if self.stage is None else {"stage": self.stage, "operator": operator}
        if self.task is not None:
            more["task"] = self.task
        return MemoryLimitError(
            f"The query took about {self.size_bytes // MIB} MiB of the memory of TaskManager {worker}{where}. "
            f"That TaskManager has {limit}{left}; the query was ended before the TaskManager would have been killed.",
            fix="Raise spark.wallaby.memory, lower spark.wallaby.threads, or make the query hold less: join on more "
            "selective keys, or select fewer and shorter columns. engine.explain(df) shows the stages.",
            worker=worker,
            used_bytes=used_bytes,
            held_bytes=self.size_bytes,
            memory_bytes=limits.budget_bytes,
            limit_bytes=limits.limit_bytes,
            setting="spark.wallaby.memory",
            **more,
        )


def greediest(
    worker_queries: Iterable[WorkerQuery], backup: CountsMemory, resident_bytes: int
) -> QueryMemory | None:
    """The query that takes most memory, the latest among equals; None if no query runs."""
    found = [
        greed_of(worker_query, backup, resident_bytes)
        for worker_query in worker_queries
        if worker_query.work is not None
    ]
    return max(found, key=lambda greed: (greed.size_bytes, greed.worker_query.query), default=None)


def greed_of(worker_query: WorkerQuery, backup: CountsMemory, resident_bytes: int) -> QueryMemory:
    """The memory of one query."""
    states: dict[int, int] = worker_query.work.held_bytes()
    grown = [
        (resident_bytes - task.before_bytes, task.name)
        for task in worker_query.work.tasks()
        if isinstance(task.name, TaskName)
    ]
    task_bytes, task = max(grown, key=lambda each: each[0], default=(0, None))
    grown_bytes = worker_query.work.grown_bytes(resident_bytes)
    task_bytes = min(task_bytes, grown_bytes)
    stage = max(states, key=lambda each: states[each], default=None)
    if task is not None and (stage is None or task_bytes >= states[stage]):
        stage = task.stage
    backup_bytes = backup.memory_bytes_of(worker_query.query)
    inbox_bytes = sum(run.inbox.held_bytes for run in list(worker_query.session.runs.values()))
    counted = backup_bytes + sum(states.values()) + inbox_bytes
    return QueryMemory(
        worker_query,
        backup_bytes,
        sum(states.values()),
        inbox_bytes,
        max(grown_bytes - counted, 0),
        task if task is not None and task.stage == stage else None,
        stage,
    )
