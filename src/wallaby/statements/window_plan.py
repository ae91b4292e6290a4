"""How a window function is computed over portions of a partition, or that it cannot be.

Rows come in order, cut into portions, each row with its place in the partition and the place where its peers begin. A
rank is computed from these. A function that looks at a fixed number of rows around its own is computed *directly*, over
the portion and some rows before and after it. Every other function is an aggregation in parts (`functions.parts`): over
the rows of its frame in this portion, put together with those in other portions. A frame reaches into other portions
only at an *edge* of this one: the partition, or the group of peers, with which the portion begins or ends.

The result is the same to the bit as over all rows at once. A function for which that is not certain has no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from wallaby.functions.parts import AggregatePart, AggregateParts, only
from wallaby.relations.expression import Literal
from wallaby.relations.relation import Frame, FrameUnit, WindowCall
from wallaby.relations.types import DOUBLE
from wallaby.sql.types import duckdb_type
from wallaby.sql.words import case, cast, identifier
from wallaby.statements.expression import aggregation_parts, expression_sql
from wallaby.statements.window import OFFSETS, VALUES, call_sql


class RowPlace(Enum):
    """The columns that say where a row is, added to those of the rows."""

    #: Its number among all rows.
    ROW = "row"
    #: 0 for the rows of the portion, -1 for rows before it, 1 for rows after it.
    OWN = "own"
    #: The number of its partition, and its place there, from 0.
    PARTITION = "partition"
    PLACE = "place"
    #: The number of its group of peers; the place of the first of them; how many other groups are before it in the
    #: partition.
    PEERS = "peers"
    PEERS_BEGIN = "peers begin"
    PEERS_NUMBER = "peers number"

    @property
    def sql(self) -> str:
        """The column's name, quoted."""
        return identifier(self.value)


class PortionEdge(Enum):
    """The rows with which a portion begins or ends, as far as they belong together."""

    FIRST_PARTITION = "first partition"
    LAST_PARTITION = "last partition"
    FIRST_PEERS = "first peers"
    LAST_PEERS = "last peers"

    @property
    def column(self) -> RowPlace:
        """The column in which these rows are equal."""
        return (
            RowPlace.PARTITION
            if self in (PortionEdge.FIRST_PARTITION, PortionEdge.LAST_PARTITION)
            else RowPlace.PEERS
        )


@dataclass(frozen=True, slots=True)
class FrameReach:
    """Which rows a part sees: a frame in the portion, and what continues an edge of it in portions before and after."""

    over: str
    before: PortionEdge | None = None
    after: PortionEdge | None = None
    #: The condition of the rows that count.
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class FramedPart:
    """A part of an aggregation, and the rows over which it is computed."""

    part: AggregatePart
    reach: FrameReach


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How one function is computed: from parts over frames, or directly, or from the place of a row alone."""

    #: The SQL of the result, given the SQL of each part.
    result: Callable[[Mapping[FramedPart, str]], str] | None = None
    parts: tuple[FramedPart, ...] = ()
    #: The SQL over the visible rows, if it is computed directly.
    direct: str | None = None
    #: How many rows before and after its own the function sees.
    tail: int = 0
    head: int = 0
    #: Limits within which it is exact; see `AggregateParts`.
    rows_max: int | None = None
    magnitude: str | None = None
    needs_peers: bool = False


def call_plan(call: WindowCall) -> CallPlan | None:
    """The plan of a function; None: it cannot be divided."""
    name = call.function.function
    if name in _RANKS:
        return _RANKS[name](call)
    if name in OFFSETS:
        return _offset(call)
    frame = call.frame
    if frame.unit is FrameUnit.ROWS and isinstance(frame.begin, int) and isinstance(frame.end, int):
        return _bounded(call, frame.begin, frame.end)
    reach = _reach(frame)
    if reach is None:
        return None
    parts = _value_parts(call, reach) if name in VALUES else aggregation_parts(call.function, reach.condition)
    return None if parts is None else _in_parts(parts, reach, frame)


# ------------------------------------------------------------------------------------------------------- frames
def _over(order: str, frame: str) -> str:
    return f" OVER (PARTITION BY {RowPlace.PARTITION.sql} ORDER BY {order} {frame})"


_NOT_BEFORE: Final = f"{RowPlace.OWN.sql} >= 0"
_NOT_AFTER: Final = f"{RowPlace.OWN.sql} <= 0"


def _reach(frame: Frame) -> FrameReach | None:
    """The reach of a frame that has no end on one side, or ends with peers."""
    if frame.unit is FrameUnit.RANGE:
        if frame.months or frame.begin or frame.end:
            return None
        begin = "CURRENT ROW" if frame.begin is not None else "UNBOUNDED PRECEDING"
        end = "CURRENT ROW" if frame.end is not None else "UNBOUNDED FOLLOWING"
        return FrameReach(
            _over(RowPlace.PEERS.sql, f"RANGE BETWEEN {begin} AND {end}"),
            PortionEdge.FIRST_PARTITION if frame.begin is None else PortionEdge.FIRST_PEERS,
            PortionEdge.LAST_PARTITION if frame.end is None else PortionEdge.LAST_PEERS,
            f"{RowPlace.OWN.sql} = 0",
        )
    # What a frame leaves out of the rows before its portion is not known, except for none or all of them.
    if (frame.begin or 0) > 1 or (frame.end or 0) < -1:
        return None
    before = PortionEdge.FIRST_PARTITION if frame.begin is None else None
    after = PortionEdge.LAST_PARTITION if frame.end is None else None
    conditions = [_NOT_BEFORE] * (before is not None) + [_NOT_AFTER] * (after is not None)
    over = _over(
        RowPlace.ROW.sql,
        f"ROWS BETWEEN {_bound(frame.begin, 'PRECEDING')} AND {_bound(frame.end, 'FOLLOWING')}",
    )
    return FrameReach(over, before, after, " AND ".join(conditions))


def _bound(offset: float | None, side: str) -> str:
    if offset is None:
        return f"UNBOUNDED {side}"
    return f"{int(abs(offset))} {'FOLLOWING' if offset > 0 else 'PRECEDING'}" if offset else "CURRENT ROW"


_WHOLE: Final = FrameReach(
    _over(RowPlace.ROW.sql, "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
    PortionEdge.FIRST_PARTITION,
    PortionEdge.LAST_PARTITION,
    f"{RowPlace.OWN.sql} = 0",
)


# -------------------------------------------------------------------------------------------------------- kinds
def _in_parts(parts: AggregateParts, reach: FrameReach, frame: Frame) -> CallPlan:
    framed_parts = tuple(FramedPart(part, reach) for part in parts.parts)
    rows = frame.unit is FrameUnit.ROWS
    return CallPlan(
        lambda known: parts.finish([known[framed] for framed in framed_parts]),
        framed_parts,
        tail=max(-int(frame.begin or 0), 0) if rows else 0,
        head=max(int(frame.end or 0), 0) if rows else 0,
        rows_max=parts.rows_max,
        magnitude=parts.magnitude,
        needs_peers=not rows,
    )


def _bounded(call: WindowCall, begin: int, end: int) -> CallPlan | None:
    """A frame with a fixed number of rows; its function must not depend on how DuckDB groups them."""
    parts = None
    if call.function.function not in VALUES:
        parts = aggregation_parts(call.function, None)
        if parts is None:
            return None
    over = _over(RowPlace.ROW.sql, f"ROWS BETWEEN {_bound(begin, '')} AND {_bound(end, '')}")
    return CallPlan(
        direct=call_sql(call, over),
        tail=max(-begin, -end, 0),
        head=max(begin, end, 0),
        rows_max=None if parts is None else parts.rows_max,
        magnitude=None if parts is None else parts.magnitude,
    )


def _offset(call: WindowCall) -> CallPlan | None:
    distance = call.function.arguments[1]
    assert isinstance(distance, Literal), "the reader of windows sees to it"
    if call.ignore_nulls or not isinstance(distance.value, int):
        return None
    rows = distance.value if call.function.function == "lag" else -distance.value
    over = f" OVER (PARTITION BY {RowPlace.PARTITION.sql} ORDER BY {RowPlace.ROW.sql})"
    return CallPlan(direct=call_sql(call, over), tail=max(rows, 0), head=max(-rows, 0))


def _value_parts(call: WindowCall, reach: FrameReach) -> AggregateParts | None:
    """The first, last or n-th value as the first or last row that meets a condition; the value may be NULL."""
    function = call.function
    value = expression_sql(function.arguments[0])
    conditions = [] if reach.condition is None else [reach.condition]
    if function.filter is not None:
        conditions.append(expression_sql(function.filter))
    if call.ignore_nulls:
        conditions.append(f"{value} IS NOT NULL")
    if function.function == "nth_value":
        place = function.arguments[1]
        assert isinstance(place, Literal), "the reader of windows sees to it"
        if call.ignore_nulls or call.frame.begin is not None or not isinstance(place.value, int):
            return None
        conditions.append(f"{RowPlace.PLACE.sql} = {place.value - 1}")
    packed = f"struct_pack(v := {value})"
    kept = case([(" AND ".join(f"({one})" for one in conditions), packed)]) if conditions else packed
    last = function.function == "last_value"
    part = AggregatePart("last" if last else "first", kept, f"STRUCT(v {duckdb_type(function.type)})")
    return only(part, lambda found: cast(f"struct_extract({found}, 'v')", function.type))


# -------------------------------------------------------------------------------------------------------- ranks
_COUNT: Final = AggregatePart("count", case([(f"{RowPlace.OWN.sql} = 0", "1")]), "BIGINT")
_ROWS: Final = FramedPart(_COUNT, _WHOLE)
_UP_TO_PEERS: Final = FramedPart(
    _COUNT,
    FrameReach(
        _over(RowPlace.PEERS.sql, "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
        PortionEdge.FIRST_PARTITION,
        PortionEdge.LAST_PEERS,
        f"{RowPlace.OWN.sql} = 0",
    ),
)


def _placed(sql: str, *, needs_peers: bool) -> Callable[[WindowCall], CallPlan]:
    def plan(call: WindowCall) -> CallPlan:
        return CallPlan(lambda _: cast(sql, call.function.type), needs_peers=needs_peers)

    return plan


def _percent_rank(call: WindowCall) -> CallPlan:
    def result(known: Mapping[FramedPart, str]) -> str:
        share = f"{cast(RowPlace.PEERS_BEGIN.sql, DOUBLE)} / {cast(f'({known[_ROWS]} - 1)', DOUBLE)}"
        return cast(case([(f"{known[_ROWS]} > 1", share)], "0"), call.function.type)

    return CallPlan(result, (_ROWS,), needs_peers=True)


def _cume_dist(call: WindowCall) -> CallPlan:
    def result(known: Mapping[FramedPart, str]) -> str:
        share = f"{cast(known[_UP_TO_PEERS], DOUBLE)} / {cast(known[_ROWS], DOUBLE)}"
        return cast(share, call.function.type)

    return CallPlan(result, (_UP_TO_PEERS, _ROWS), needs_peers=True)


def _ntile(call: WindowCall) -> CallPlan | None:
    """Tiles of equal size, except that each row left over makes one of the first tiles longer by one."""
    (tiles,) = call.function.arguments
    if not isinstance(tiles, Literal) or not isinstance(tiles.value, int) or tiles.value < 1:
        return None
    count, place = tiles.value, RowPlace.PLACE.sql

    def result(known: Mapping[FramedPart, str]) -> str:
        rows = known[_ROWS]
        few = f"{rows} < {count}"
        size, longer = f"({rows} // {count})", f"({rows} % {count})"
        in_longer = f"{place} < {longer} * ({size} + 1)"
        later = f"1 + {longer} + ({place} - {longer} * ({size} + 1)) // {size}"
        tile = case([(few, f"{place} + 1"), (in_longer, f"1 + {place} // ({size} + 1)")], later)
        return cast(tile, call.function.type)

    return CallPlan(result, (_ROWS,))


_RANKS: Final[Mapping[str, Callable[[WindowCall], CallPlan | None]]] = {
    "row_number": _placed(f"{RowPlace.PLACE.sql} + 1", needs_peers=False),
    "rank": _placed(f"{RowPlace.PEERS_BEGIN.sql} + 1", needs_peers=True),
    "dense_rank": _placed(f"{RowPlace.PEERS_NUMBER.sql} + 1", needs_peers=True),
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
}
