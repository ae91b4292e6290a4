"""The means by which effects are performed: the backups of a process, and the computation of a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from wallaby.lineage.effects import Execute, Executed, Slice
from wallaby.lineage.names import Edge, QueryId, TaskName


class Backups(Protocol):
    """Where outputs are kept until their query ends; see `exchange.backup`."""

    @property
    def directories(self) -> tuple[Path, ...]:
        """Where the files are."""

    def keep_in_memory(
        self, query: QueryId, task: TaskName, output: Mapping[Edge, Any], *, final: bool, since_epoch: int
    ) -> bool:
        """Keep an output if memory has room for it."""

    def keep(
        self, query: QueryId, task: TaskName, output: Mapping[Edge, Any], *, final: bool, since_epoch: int
    ) -> bool:
        """Keep an output; False if there is no room. May wait for the disk."""

    def has(self, query: QueryId, task: TaskName) -> bool:
        """Is this output kept?"""

    def disk_bytes_of(self, query: QueryId) -> int:
        """The bytes that a query has in files."""

    def release(self, query: QueryId, tasks: Iterable[TaskName]) -> None:
        """Forget some outputs of a running query."""

    def slices_of(
        self, query: QueryId, items: Iterable[tuple[Edge, TaskName]], limit_bytes: int
    ) -> tuple[Slice, ...]:
        """The first slices of kept outputs, up to a size, some with a `LazyBody`.

        Raises:
            GoneError: the query was dropped.
        """

    def drop(self, query: QueryId) -> None:
        """Forget everything of a query."""


class Work(Protocol):
    """The computation of one query; see `worker.execution`."""

    def execute(self, effect: Execute) -> Executed:
        """One step of one channel."""

    def close(self) -> None:
        """The query has ended: free what was kept for it."""
