"""SQL for a window over one portion of the rows at a time; `window_plan` tells how each function is computed.

Beside the rows of a portion, some before and after it, a statement gets the parts of the edges of other portions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from wallaby.relations.expression import SortKey, columns_in
from wallaby.relations.relation import Window
from wallaby.sql.types import column_name
from wallaby.sql.words import case, column_identifier, identifier, text
from wallaby.statements.window import sort_key_sql
from wallaby.statements.window_plan import CallPlan, FramedPart, PortionEdge, RowPlace, call_plan

#: The columns of a table of edges, beside the parts: which edge, of which portion, with the number of which group.
_EDGE: Final = identifier("edge")
_PORTION: Final = identifier("portion")
_GROUP: Final = identifier("group")
#: The edge of other portions that continues an edge.
_CONTINUATION: Final = {
    PortionEdge.FIRST_PARTITION: PortionEdge.LAST_PARTITION,
    PortionEdge.FIRST_PEERS: PortionEdge.LAST_PEERS,
    PortionEdge.LAST_PARTITION: PortionEdge.FIRST_PARTITION,
    PortionEdge.LAST_PEERS: PortionEdge.FIRST_PEERS,
}
_FIRST: Final = (PortionEdge.FIRST_PARTITION, PortionEdge.FIRST_PEERS)


@dataclass(frozen=True, slots=True)
class Portion:
    """The number of a portion, and the numbers of the partitions and groups of peers at its edges."""

    number: int
    first_partition: int
    last_partition: int
    first_peers: int
    last_peers: int

    def at(self, edge: PortionEdge) -> int:
        """The number of the partition or the peers at an edge."""
        match edge:
            case PortionEdge.FIRST_PARTITION:
                return self.first_partition
            case PortionEdge.LAST_PARTITION:
                return self.last_partition
            case PortionEdge.FIRST_PEERS:
                return self.first_peers
            case PortionEdge.LAST_PEERS:
                return self.last_peers


def divided_window(window: Window) -> DividedWindow | None:
    """The statements of a window over portions; None: a function of it cannot be divided."""
    plans = [plan for call in window.calls if (plan := call_plan(call)) is not None]
    return DividedWindow(window, plans) if len(plans) == len(window.calls) else None


class DividedWindow:
    """The statements of a window, and what they need. `rows` and `edges` are names of tables."""

    def __init__(self, window: Window, plans: Sequence[CallPlan]) -> None:
        self._window = window
        self._plans = plans
        framed_parts = dict.fromkeys(framed for plan in plans for framed in plan.parts)
        self._names: dict[FramedPart, str] = {
            framed: identifier(f"part {n}") for n, framed in enumerate(framed_parts)
        }
        self._magnitudes = [plan.magnitude for plan in plans if plan.magnitude is not None]
        #: How many rows before and after a portion its functions see.
        self.tail = max((plan.tail for plan in plans), default=0)
        self.head = max((plan.head for plan in plans), default=0)
        #: With more rows than this, the results may differ; None: with no number of rows.
        self.rows_max = min((plan.rows_max for plan in plans if plan.rows_max is not None), default=None)
        self.needs_peers = any(plan.needs_peers for plan in plans)
        self._continued = [
            edge
            for edge in PortionEdge
            if any(edge in (framed.reach.before, framed.reach.after) for framed in framed_parts)
        ]
        #: Does a portion need the edges of others?
        self.has_edges = bool(self._continued)
        #: Must all portions be seen before the first one is computed?
        self.looks_ahead = bool(
            self.head or self._magnitudes or any(edge not in _FIRST for edge in self._continued)
        )

    @property
    def places(self) -> list[RowPlace]:
        """What the rows must have beside their columns; `own` is known only in a portion."""
        peers = (RowPlace.PEERS, RowPlace.PEERS_BEGIN, RowPlace.PEERS_NUMBER)
        return [
            place
            for place in RowPlace
            if place is not RowPlace.OWN and (self.needs_peers or place not in peers)
        ]

    @property
    def order(self) -> tuple[SortKey, ...]:
        """The order in which the rows must come."""
        return (*_ascending(self._window), *self._window.order)

    @property
    def used(self) -> list[str]:
        """The names of the columns that the functions read."""
        found: set[int] = set()
        for function in (call.function for call in self._window.calls):
            parts = (*function.arguments, *(() if function.filter is None else (function.filter,)))
            found = found.union(*map(columns_in, parts))
        return list(
            dict.fromkeys(
                column_name(column.id) for column in self._window.child.columns if column.id in found
            )
        )

    def keys_sql(self, rows: str) -> str:
        """Bytes that are equal for the rows of a partition, and for peers within it."""
        order = self._window.order if self.needs_peers else ()
        keys = ((_ascending(self._window), RowPlace.PARTITION), (order, RowPlace.PEERS))
        return _select((f"{sort_key_sql(key)} AS {place.sql}" for key, place in keys), identifier(rows))

    def magnitudes_sql(self, rows: str) -> str | None:
        """The sums that must not become too large, each in a column; None if no function has such sums."""
        if not self._magnitudes:
            return None
        sums = (f"coalesce({sql}, 0) AS {identifier(f'sum {n}')}" for n, sql in enumerate(self._magnitudes))
        return _select(sums, identifier(rows))

    def edges_sql(self, rows: str, portion: Portion) -> str:
        """The parts of a portion's edges that continue those of others, a row for each edge."""
        parts = [f"{framed.part.over_rows()} AS {name}" for framed, name in self._names.items()]
        rows_of = []
        for edge in map(_CONTINUATION.__getitem__, self._continued):
            group = portion.at(edge)
            named = (
                f"{text(edge.value)} AS {_EDGE}",
                f"{portion.number} AS {_PORTION}",
                f"{group} AS {_GROUP}",
            )
            rows_of.append(f"{_select((*named, *parts), identifier(rows))} WHERE {edge.column.sql} = {group}")
        return " UNION ALL ".join(rows_of)

    def results_sql(self, rows: str, portion: Portion, edges: str | None) -> str:
        """The results for the rows of a portion, in order. Without `edges` there are no other portions yet."""
        places = [place.sql for place in (*self.places, RowPlace.OWN)]
        direct = {
            identifier(f"direct {n}"): plan.direct
            for n, plan in enumerate(self._plans)
            if plan.direct is not None
        }
        here = [
            f"{framed.part.over_window(framed.reach.over)} AS {name}" for framed, name in self._names.items()
        ]
        here += [f"{sql} AS {name}" for name, sql in direct.items()]
        source = f"({_select((*places, *here), identifier(rows))}) AS here"
        continued = self._continued if edges is not None else []
        for edge in continued:
            elsewhere = self._elsewhere(identifier(edges or ""), portion, edge)
            source += f" CROSS JOIN ({elsewhere}) AS {identifier(edge.value)}"
        parts = [
            f"{_together(framed, name, portion, continued)} AS {name}" for framed, name in self._names.items()
        ]
        # The parts are columns of an inner statement, because results name them several times.
        source = f"({_select((*places, *direct, *parts), source)} WHERE {RowPlace.OWN.sql} = 0) AS t"
        names = iter(direct)
        results = (
            f"{next(names) if plan.result is None else plan.result(self._names)} AS {column_identifier(call.column.id)}"
            for plan, call in zip(self._plans, self._window.calls, strict=True)
        )
        return f"{_select(results, source)} ORDER BY {RowPlace.ROW.sql}"

    def _elsewhere(self, edges: str, portion: Portion, edge: PortionEdge) -> str:
        """Put together what other portions have of the partition, or group of peers, at an edge of this portion."""
        parts = (f"{framed.part.over_results(name)} AS {name}" for framed, name in self._names.items())
        return (
            f"{_select(parts, edges)} WHERE {_EDGE} = {text(_CONTINUATION[edge].value)} AND "
            f"{_PORTION} {'<' if edge in _FIRST else '>'} {portion.number} AND {_GROUP} = {portion.at(edge)}"
        )


def _together(framed: FramedPart, name: str, portion: Portion, continued: Sequence[PortionEdge]) -> str:
    """A part over all rows of its frame: those before this portion, those here, those after it."""
    found = f"here.{name}"
    for edge in (framed.reach.before, framed.reach.after):
        if edge is None or edge not in continued:
            continue
        other = f"{identifier(edge.value)}.{name}"
        both = framed.part.both(other, found) if edge in _FIRST else framed.part.both(found, other)
        found = case([(f"here.{edge.column.sql} = {portion.at(edge)}", both)], found)
    return found


def _ascending(window: Window) -> tuple[SortKey, ...]:
    return tuple(SortKey(key, ascending=True, nulls_first=True) for key in window.partition)


def _select(listed: Iterable[str], source: str) -> str:
    return f"SELECT {', '.join(listed)} FROM {source}"  # noqa: S608 - from typed trees, identifiers quoted
