"""The queries of a session as users see them: a typed row for each, which prints as a line and as a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from typing import Any, Literal, overload

from wallaby.observe.about import shortened
from wallaby.observe.finding import Finding
from wallaby.observe.units import counted, duration, number

#: While it runs, and how it may end. `Engine.run_native` leaves a query that is not native to its caller.
QueryState = Literal["running", "done", "failed", "cancelled", "left to the caller"]


class Where(Enum):
    """Where a query ran: all of it in the TaskManagers, a part of it, or all of it on Spark."""

    NATIVE = "native"
    PART = "part"
    SPARK = "Spark"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRecord:
    """One query of a session: what it was, where it ran and why, how long it took, and what it lost."""

    #: Its number in the session, from 1.
    number: int
    #: Where it ran.
    where: Where
    #: `running`, `done`, `failed` or `cancelled`; `left to the caller` if `run_native` did not run it.
    state: QueryState
    #: What it was, in a few words: its description, SQL, or action.
    text: str
    #: Why Spark ran the query or a part of it.
    reasons: tuple[str, ...] = ()
    #: The time when it began, in seconds since 1970.
    started: float = 0.0
    #: How long it took, or has taken so far.
    seconds: float = 0.0
    #: The rows of the result; None if they were not counted.
    rows: int | None = None
    #: The ids of the TaskManagers that it lost.
    lost_workers: tuple[str, ...] = ()
    #: How often it recovered from a loss without starting over.
    recoveries: int = 0
    #: How often it was restarted from the beginning.
    restarts: int = 0
    #: Its SQL text, if it has one.
    sql: str = ""
    #: The method that was called, such as `collect`.
    action: str = ""
    #: The line of the program that called it.
    line: str = ""
    #: The text of the error with which it ended; empty if there was none.
    error: str = ""
    #: The ids of the engine's queries that belong to it; none if Spark ran all of it.
    queries: tuple[str, ...] = ()
    #: The path of the event log; empty if there is none.
    event_log: str = ""
    _find: Callable[[], tuple[Finding, ...]] = field(default=tuple, repr=False, compare=False)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What cost most, with its share of the time and what to do about it."""
        return self._find()

    @property
    def why(self) -> str:
        """The reasons and the error, in one line."""
        return "; ".join((*self.reasons, *((self.error,) if self.error else ())))

    def __str__(self) -> str:
        rows = "" if self.rows is None else f"{counted(self.rows, 'row')} in "
        state = "" if self.state == "done" else f"{self.state}, "
        lost = f", lost {', '.join(self.lost_workers)}" if self.lost_workers else ""
        why = f" ({self.why})" if self.why else ""
        return f"{self.number}. {self.where}: {state}{rows}{duration(self.seconds)}{lost}{why}: {self.text}"


class QueryHistory(Sequence[QueryRecord]):
    """The queries of a session, oldest first."""

    def __init__(self, records: Sequence[QueryRecord]) -> None:
        self._records = tuple(records)

    @overload
    def __getitem__(self, at: int) -> QueryRecord: ...
    @overload
    def __getitem__(self, at: slice) -> QueryHistory: ...
    def __getitem__(self, at: int | slice) -> QueryRecord | QueryHistory:
        found = self._records[at]
        return QueryHistory(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[QueryRecord]:
        return iter(self._records)

    def __repr__(self) -> str:
        return "\n".join(map(str, self._records)) or "no queries yet"

    def _repr_html_(self) -> str:
        heads = ("", "query", "ran", "rows", "time", "lost", "why")
        rows = "".join(f"<tr>{''.join(_cells(record))}</tr>" for record in self._records)
        return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{rows}</table>"


def _cells(record: QueryRecord) -> Iterator[str]:
    values: tuple[Any, ...] = (
        record.number,
        record.text,
        record.where if record.state == "done" else f"{record.where}, {record.state}",
        "" if record.rows is None else number(record.rows),
        duration(record.seconds),
        ", ".join(record.lost_workers),
        shortened(record.why, 300),
    )
    for value in values:
        yield f'<td style="text-align: left">{escape(str(value))}</td>'


def explained(record: QueryRecord) -> str:
    """A query in a few lines: where it ran, why, when, and what cost most."""
    when = time.strftime("%H:%M:%S", time.localtime(record.started))
    where = {Where.NATIVE: "in the TaskManagers", Where.PART: "partly on Spark", Where.SPARK: "on Spark"}
    rows = "" if record.rows is None else f", {counted(record.rows, 'row')}"
    at = f", {record.action} at {record.line}" if record.line else ""
    lines = [
        f"Query {record.number} ({when}{at}): {record.text}",
        f"  {record.state} {where[record.where]}: {duration(record.seconds)}{rows}",
        *(f"  because {reason}" for reason in record.reasons),
        *((f"  {record.error}",) if record.error else ()),
        *((f"  lost {', '.join(record.lost_workers)}, and recovered",) if record.lost_workers else ()),
        *(f"  {finding}" for finding in record.findings),
    ]
    return "\n".join(lines)
