"""Where the live page gets what it shows: a running engine, or the event logs of engines that may have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from wallaby.observe.finding import Finding
from wallaby.observe.history import History
from wallaby.results.record import QueryState
from wallaby.results.worker_info import WorkerInfoState

#: What an event log may show besides the states of a query: no end, or nothing.
LoggedState = Literal[QueryState, "unfinished", "unreadable"]


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query in the list. `key` is the name of its page."""

    key: str
    text: str
    where: str
    state: LoggedState
    started: float
    seconds: float
    rows: int | None = None
    why: str = ""
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One TaskManager: `used_bytes` is what it uses now, 0 if that is not known."""

    id: str
    host: str
    pid: int
    state: WorkerInfoState
    used_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """What the first page shows besides queries. Texts are for users; nothing secret is in them."""

    title: str
    facts: Sequence[tuple[str, str]] = ()
    workers: Sequence[WorkerRow] = ()
    #: The memory budget of each TaskManager.
    budget_bytes: int = 0
    #: Results that stay with the TaskManagers: the id of the query, and what it is.
    kept: Sequence[tuple[str, str]] = ()
    is_live: bool = True


@dataclass(frozen=True, slots=True)
class QueryPage:
    """One query as a whole. Without a history, Spark ran it."""

    row: QueryRow
    sql: str = ""
    line: str = ""
    histories: Sequence[History] = ()
    findings: Sequence[Finding] = field(default=())


class Source(Protocol):
    """The source of the pages. Every call may take a moment; none of them disturbs a query."""

    def overview(self) -> Overview:
        """The engine, its TaskManagers and what they keep."""
        ...

    def queries(self) -> Sequence[QueryRow]:
        """All queries that are known, the latest first."""
        ...

    def query(self, key: str) -> QueryPage | None:
        """The page of one query."""
        ...

    def figures(self) -> Mapping[str, Sequence[tuple[Mapping[str, str], float]]]:
        """For Prometheus: by the name of a metric, its labels and values."""
        ...
