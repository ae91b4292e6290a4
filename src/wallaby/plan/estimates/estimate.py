"""How many rows and bytes a relation gives, guessed from Parquet footers.

Estimates choose between plans that all give the same answer: broadcast or partition, which side to build, whether a
partial aggregation pays. They are deterministic, and depend only on the tree and the statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import sqrt

from wallaby.plan.estimates.join_size import of_join
from wallaby.plan.estimates.selectivity import (
    UNKNOWN,
    ColumnEstimate,
    after,
    number,
    selectivity,
)
from wallaby.plan.estimates.size import Estimate
from wallaby.plan.estimates.statistics import ColumnStatistics, Statistics, TableStatistics
from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal, Named
from wallaby.relations.relation import (
    Aggregate,
    Expand,
    Filter,
    Input,
    Join,
    Limit,
    Project,
    Range,
    Relation,
    Rows,
    Scan,
    Single,
    Sort,
    Source,
    Union,
    Unnest,
    Window,
)
from wallaby.relations.tree import LIST_VALUES, width_bytes
from wallaby.relations.types import Kind

#: For a table without statistics: large enough never to be broadcast by mistake.
_ROWS_UNKNOWN = 1e9
#: Up to this many bits per row, the encoded size of a column tells how many distinct values it has.
_DICTIONARY_BITS_MAX = 20.0
#: From this many bits per row, each row group is assumed to have its own values.
_SHARED_BITS_MAX = 10.0
#: A number of distinct values this close to the number of rows counts as equal to it.
_KEY_SLACK = 1.02
#: Hardly any group has more rows than this above the mean.
_DEVIATIONS_MOST = 6
#: Groups with fewer rows on average mostly have one.
_ROWS_OF_MERGED = 1.5


@dataclass(slots=True)
class Estimator:
    """Estimates for one query; each relation is estimated once, by whichever estimator with these statistics."""

    statistics: Statistics
    #: What inputs stand for, by number.
    parts: Mapping[int, Relation] = field(default_factory=dict)
    _seen: dict[int, tuple[Relation, Estimate]] = field(init=False)

    def __post_init__(self) -> None:
        # What inputs stand for may change. A relation that was estimated without parts has no inputs.
        self._seen = {} if self.parts else self.statistics.estimates

    def of(self, relation: Relation) -> Estimate:
        """The estimate for a relation."""
        # By identity, because equal trees are expensive to hash; the relation is kept so that its id is not reused.
        seen = self._seen.get(id(relation)) or self.statistics.estimates.get(id(relation))
        if seen is None:
            seen = self._seen[id(relation)] = (relation, self._make(relation))
        return seen[1]

    def _make(self, relation: Relation) -> Estimate:
        row_bytes = sum(map(width_bytes, relation.columns))
        match relation:
            case Input(number=number) if number in self.parts:
                return self.of(self.parts[number])
            case Scan() | Rows() | Range() | Input():
                return _of_source(relation, self.statistics, row_bytes)
            case Filter(child=child, condition=condition):
                below = self.of(child)
                rows = below.rows * selectivity(condition, below.columns)
                return Estimate(rows, after(condition, below.columns), row_bytes)
            case Project(child=child, outputs=outputs):
                below = self.of(child)
                return Estimate(below.rows, _of_outputs(outputs, below), row_bytes)
            case Join():
                return of_join(relation, self.of(relation.left), self.of(relation.right), row_bytes)
            case Aggregate(child=child):
                return _of_aggregate(relation, self.of(child), row_bytes)
            case Sort(child=child) | Window(child=child):
                return replace(self.of(child), row_bytes=row_bytes)
            case Limit(child=child, count=count):
                below = self.of(child)
                return replace(below, rows=below.rows if count is None else min(below.rows, count))
            case Single(child=child):
                return Estimate(1.0, self.of(child).columns, row_bytes)
            case Expand(child=child) | Unnest(child=child):
                return _of_multiplied(relation, self.of(child), row_bytes)
            case Union(children=children):
                return _of_union(relation, tuple(map(self.of, children)), row_bytes)


def _of_source(source: Source | Input, statistics: Statistics, row_bytes: int) -> Estimate:
    match source:
        case Scan():
            return _of_scan(source, statistics.of(source), row_bytes)
        case Rows(rows=rows):
            return Estimate(float(len(rows)), {}, row_bytes)
        case Range(start=start, step=step, count=count, column=column):
            low, high = sorted((float(start), float(start + step * count)))
            known = ColumnEstimate(
                float(count), counted=True, low=low, high=high, is_key=True, unique=True, whole=True
            )
            return Estimate(float(count), {column.id: known}, row_bytes)
        case Input():
            return Estimate(_ROWS_UNKNOWN, {}, row_bytes)


def _of_scan(scan: Scan, table: TableStatistics | None, row_bytes: int) -> Estimate:
    if table is None:
        return Estimate(_ROWS_UNKNOWN, {}, row_bytes)
    columns = {
        column.id: _of_column(column, table.column(name), table, scan.columns[0].id)
        for column, name in zip(scan.columns, scan.names, strict=True)
    }
    return Estimate(float(table.rows), columns, row_bytes)


def _of_column(
    column: Column, known: ColumnStatistics, table: TableStatistics, source: int
) -> ColumnEstimate:
    low, high = number(known.minimum), number(known.maximum)
    rows = max(1, table.rows)
    bounds = [float(rows)]
    whole = column.type.is_integral or column.type.kind in (Kind.DATE, Kind.BOOLEAN)
    if low is not None and high is not None and (whole or column.type.kind is Kind.DECIMAL):
        bounds.append((high - low) * 10**column.type.scale + 1)
    if known.distinct is not None:
        bounds.append(float(known.distinct))
    elif known.encoded_bytes is not None:
        bits = 8 * known.encoded_bytes / rows
        if bits <= _DICTIONARY_BITS_MAX:
            bounds.append(2**bits * (1 if bits < _SHARED_BITS_MAX else max(1, len(table.splits))))
    nulls = known.nulls or 0
    # Dictionaries alone are not enough: row groups with the same values would be counted several times.
    counted = known.distinct is not None and min(bounds) * _KEY_SLACK >= rows
    is_key = not nulls and ((whole and _width(low, high) == rows) or counted)
    return ColumnEstimate(
        min(bounds),
        len(bounds) > 1,
        low,
        high,
        nulls / rows,
        whole=whole,
        is_key=is_key,
        unique=is_key,
        source=source,
        source_rows=float(rows),
    )


def _width(low: float | None, high: float | None) -> float | None:
    """The count of whole numbers between two bounds. If it equals the number of rows, each probably occurs once."""
    return None if low is None or high is None else high - low + 1


def _of_outputs(outputs: tuple[Named, ...], below: Estimate) -> dict[int, ColumnEstimate]:
    """Estimate projected columns: a plain column keeps its estimate, others get an upper bound of distinct values."""
    found: dict[int, ColumnEstimate] = {}
    for named in outputs:
        match named.expression:
            case Column(id=id_):
                if id_ in below.columns:
                    found[named.column.id] = below.columns[id_]
            case Call():
                found[named.column.id] = ColumnEstimate(below.known_distinct(named.expression))
            case _:
                pass
    return found


def _of_union(union: Union, children: tuple[Estimate, ...], row_bytes: int) -> Estimate:
    """Estimate a union: a column has at most the values of all children, whose keys are often the same."""
    columns: dict[int, ColumnEstimate] = {}
    for at, column in enumerate(union.columns):
        known = [
            c.columns.get(r.columns[at].id, UNKNOWN) for c, r in zip(children, union.children, strict=True)
        ]
        distincts = [each.distinct for each in known if each.distinct is not None]
        lows, highs = (
            [v for v in vs if v is not None] for vs in zip(*((k.low, k.high) for k in known), strict=True)
        )
        if len(distincts) == len(known) == len(lows) == len(highs):
            whole = all(each.whole for each in known)
            low, high = min(lows), max(highs)
            bounds = [sum(distincts), *([high - low + 1] if whole else [])]
            counted = all(each.counted for each in known)
            columns[column.id] = ColumnEstimate(min(bounds), counted, low, high, whole=whole)
    return Estimate(sum(child.rows for child in children), columns, row_bytes)


def _of_multiplied(relation: Expand | Unnest, below: Estimate, row_bytes: int) -> Estimate:
    """Estimate grouping sets, whose columns have their former values, NULL or constants; and exploded arrays."""
    if isinstance(relation, Unnest):
        return Estimate(below.rows * LIST_VALUES, {}, row_bytes)
    columns: dict[int, ColumnEstimate] = {}
    for column, sources in zip(relation.columns, zip(*relation.projections, strict=True), strict=True):
        constants = {source for source in sources if isinstance(source, Literal)}
        computed = dict.fromkeys(source for source in sources if not isinstance(source, Literal))
        if not computed:
            columns[column.id] = ColumnEstimate(float(len(constants)), counted=True)
        elif len(computed) == 1:
            known = below.known(next(iter(computed)))
            values = (known.distinct or below.rows) + len(constants)
            columns[column.id] = replace(
                known, distinct=values, left=known.left + len(constants), unique=False
            )
    return Estimate(below.rows * len(relation.projections), columns, row_bytes)


def _of_aggregate(aggregate: Aggregate, below: Estimate, row_bytes: int) -> Estimate:
    rows = below.groups(tuple(named.expression for named in aggregate.keys))
    # If only one value is left of a key, the other keys make the groups.
    several = [named.column.id for named in aggregate.keys if below.distinct(named.expression) > 1]
    source = aggregate.columns[0].id if aggregate.columns else None
    columns = {
        id_: replace(known, unique=several in ([], [id_]), source=source, source_rows=rows)
        for id_, known in _of_outputs(aggregate.keys, below).items()
    }
    # Nothing is known of a single count that could help to judge a condition on it.
    for named in aggregate.aggregations if aggregate.keys else ():
        columns[named.column.id] = _of_aggregation(named.expression, below, rows)
    return Estimate(rows, columns, row_bytes)


def _of_aggregation(expression: Expression, below: Estimate, groups: float) -> ColumnEstimate:
    """How sums and counts are spread: groups of `n` rows on average vary by the root of `n`, and so do their values."""
    rows = below.rows / max(1.0, groups)
    match expression:
        case Aggregation(function=functions.COUNT):
            most = rows + _DEVIATIONS_MOST * sqrt(rows)
            return ColumnEstimate(1 + most, counted=True, mean=rows, deviation=sqrt(rows))
        case Aggregation(function=functions.SUM, arguments=(Column(id=id_),)):
            known = below.columns.get(id_, UNKNOWN)
            if known.mean is not None and rows < _ROWS_OF_MERGED:
                return known  # partial results are merged
            if known.low is None or known.high is None:
                return UNKNOWN
            mean = (known.low + known.high) / 2
            variance = (known.high - known.low) ** 2 / 12
            return ColumnEstimate(mean=rows * mean, deviation=sqrt(rows * (variance + mean**2)))
        case _:
            return UNKNOWN
