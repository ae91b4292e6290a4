"""How many rows and bytes a relation gives, guessed from Parquet footers.

Estimates choose between plans that all give the same answer: broadcast or partition, which side to build,
whether a partial aggregation pays. They are deterministic and need nothing but the tree and the statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod, sqrt

from wallaby.plan import functions
from wallaby.plan.expression import Aggregation, Call, Column, Expression, Named, columns_in
from wallaby.plan.relation import (
    Aggregate,
    Expand,
    Filter,
    Input,
    Join,
    JoinKind,
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
from wallaby.plan.selectivity import UNKNOWN, ColumnEstimate, Columns, number, selectivity
from wallaby.plan.statistics import ColumnStatistics, Statistics, TableStatistics
from wallaby.plan.tree import LIST_VALUES, width_bytes

#: For a table without statistics: large enough never to be broadcast by mistake.
_ROWS_UNKNOWN = 1e9
#: Up to so many bits per row, the encoded size of a column tells how many different values it has.
_DICTIONARY_BITS_MAX = 20.0
#: From so many bits per row on, each row group is taken to have values of its own.
_SHARED_BITS_MAX = 10.0
#: Some rows are always taken to have no partner.
_ANTI_LEAST = 0.05
#: Hardly any count of a group's rows is further above the mean.
_DEVIATIONS_MOST = 6


@dataclass(frozen=True, slots=True)
class Estimate:
    """A guess at a relation's size, with what is thought of its columns."""

    rows: float
    columns: Columns
    row_bytes: int

    @property
    def size_bytes(self) -> float:
        """Of all rows, decoded."""
        return self.rows * self.row_bytes

    def distinct(self, expression: Expression) -> float:
        """How many different values an expression has; if nothing is known, as many as there are rows."""
        known = self.known_distinct(expression)
        return max(1.0, min(self.rows, self.rows if known is None else known))

    def known_distinct(self, expression: Expression) -> float | None:
        """At most so many as its columns have combinations; None if nothing is known of one of them."""
        distincts = [self.columns.get(id_, UNKNOWN).distinct for id_ in sorted(columns_in(expression))]
        known = [each for each in distincts if each is not None]
        return prod(known) if len(known) == len(distincts) else None

    def is_counted(self, expression: Expression) -> bool:
        """Does `distinct` come from what is known of the values?"""
        return isinstance(expression, Column) and self.columns.get(expression.id, UNKNOWN).counted

    def groups(self, keys: tuple[Expression, ...]) -> float:
        """How many groups there are by some keys; without keys, one."""
        return min(max(1.0, self.rows), prod(self.distinct(key) for key in keys))


@dataclass(slots=True)
class Estimator:
    """Estimates over one query; each relation is looked at once."""

    statistics: Statistics
    #: What inputs stand for, by their number.
    parts: Mapping[int, Relation] = field(default_factory=dict)
    _seen: dict[int, tuple[Relation, Estimate]] = field(default_factory=dict)

    def of(self, relation: Relation) -> Estimate:
        """The estimate for a relation."""
        # By identity, for equal trees are expensive to hash; the relation is kept so that its id stays taken.
        seen = self._seen.get(id(relation))
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
                return Estimate(below.rows * selectivity(condition, below.columns), below.columns, row_bytes)
            case Project(child=child, outputs=outputs):
                below = self.of(child)
                return Estimate(below.rows, _of_outputs(outputs, below), row_bytes)
            case Join():
                return _of_join(relation, self.of(relation.left), self.of(relation.right), row_bytes)
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
                times = len(relation.projections) if isinstance(relation, Expand) else LIST_VALUES
                return Estimate(self.of(child).rows * times, {}, row_bytes)
            case Union(children=children):
                return Estimate(sum(self.of(child).rows for child in children), {}, row_bytes)


def _of_source(source: Source | Input, statistics: Statistics, row_bytes: int) -> Estimate:
    match source:
        case Scan():
            return _of_scan(source, statistics.of(source), row_bytes)
        case Rows(rows=rows):
            return Estimate(float(len(rows)), {}, row_bytes)
        case Range(start=start, step=step, count=count, column=column):
            low, high = sorted((float(start), float(start + step * count)))
            known = ColumnEstimate(float(count), counted=True, low=low, high=high)
            return Estimate(float(count), {column.id: known}, row_bytes)
        case Input():
            return Estimate(_ROWS_UNKNOWN, {}, row_bytes)


def _of_scan(scan: Scan, table: TableStatistics | None, row_bytes: int) -> Estimate:
    if table is None:
        return Estimate(_ROWS_UNKNOWN, {}, row_bytes)
    columns = {
        column.id: _of_column(column, table.column(name), table)
        for column, name in zip(scan.columns, scan.names, strict=True)
    }
    return Estimate(float(table.rows), columns, row_bytes)


def _of_column(column: Column, known: ColumnStatistics, table: TableStatistics) -> ColumnEstimate:
    low, high = number(known.minimum), number(known.maximum)
    rows = max(1, table.rows)
    bounds = [float(rows)]
    counted = column.type.is_integral or column.type.kind.value in ("date", "boolean")
    if counted and low is not None and high is not None:
        bounds.append(high - low + 1)
    if known.distinct is not None:
        bounds.append(float(known.distinct))
    elif known.encoded_bytes is not None:
        bits = 8 * known.encoded_bytes / rows
        if bits <= _DICTIONARY_BITS_MAX:
            bounds.append(2**bits * (1 if bits < _SHARED_BITS_MAX else max(1, len(table.splits))))
    return ColumnEstimate(min(bounds), len(bounds) > 1, low, high, (known.nulls or 0) / rows)


def _of_outputs(outputs: tuple[Named, ...], below: Estimate) -> dict[int, ColumnEstimate]:
    """What is thought of computed columns: the same as of those that they are, else how many values they can have."""
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


def _of_aggregate(aggregate: Aggregate, below: Estimate, row_bytes: int) -> Estimate:
    rows = below.groups(tuple(named.expression for named in aggregate.keys))
    columns = _of_outputs(aggregate.keys, below)
    # Of a single count, nothing is known that a condition on it could be judged by.
    for named in aggregate.aggregations if aggregate.keys else ():
        columns[named.column.id] = _of_aggregation(named.expression, below, rows)
    return Estimate(rows, columns, row_bytes)


def _of_aggregation(expression: Expression, below: Estimate, groups: float) -> ColumnEstimate:
    """How sums and counts lie: groups of `n` rows on average vary by the root of `n`, and so do their values."""
    rows = below.rows / max(1.0, groups)
    match expression:
        case Aggregation(function=functions.COUNT):
            most = rows + _DEVIATIONS_MOST * sqrt(rows)
            return ColumnEstimate(1 + most, counted=True, mean=rows, deviation=sqrt(rows))
        case Aggregation(function=functions.SUM, arguments=(Column(id=id_),)):
            known = below.columns.get(id_, UNKNOWN)
            if known.low is None or known.high is None:
                return UNKNOWN
            mean = (known.low + known.high) / 2
            variance = (known.high - known.low) ** 2 / 12
            return ColumnEstimate(mean=rows * mean, deviation=sqrt(rows * (variance + mean**2)))
        case _:
            return UNKNOWN


def _of_join(join: Join, left: Estimate, right: Estimate, row_bytes: int) -> Estimate:
    rights = right.groups(join.right_keys)
    share = 1.0 if join.residual is None else selectivity(join.residual, {**left.columns, **right.columns})
    # What is known of distinct keys are upper bounds; a foreign key's is often too high (sparse keys), never
    # that of the key it refers to. So the lower of both is nearer, and errs towards more rows.
    domain = max(1.0, min(_domain(join.left_keys, left), _domain(join.right_keys, right)))
    matched = left.rows * right.rows / domain * share
    found = min(1.0, rights / domain) * share
    rows = _rows_of_kind(join.kind, matched, left.rows, right.rows, found)
    only_left = join.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)
    return Estimate(rows, left.columns if only_left else {**left.columns, **right.columns}, row_bytes)


def _rows_of_kind(kind: JoinKind, matched: float, left: float, right: float, found: float) -> float:
    """`matched` pairs; `found` is the share of left rows with a partner."""
    match kind:
        case JoinKind.INNER | JoinKind.CROSS:
            return matched
        case JoinKind.LEFT:
            return max(matched, left)
        case JoinKind.RIGHT:
            return max(matched, right)
        case JoinKind.FULL:
            return max(matched, left + right)
        case JoinKind.EXISTENCE:
            return left
        case JoinKind.SEMI:
            return left * found
        case JoinKind.ANTI:
            return left * max(1 - found, _ANTI_LEAST)


def _domain(keys: tuple[Expression, ...], side: Estimate) -> float:
    """How many different keys there could be on a side, filtered or not: for a join, 1 / its selectivity.

    Keys of several columns are taken to be at most as many as the larger of rows and the largest column.
    """
    distincts = [_distinct_before_filters(key, side) for key in keys]
    return min(prod(distincts), max(side.rows, *distincts)) if distincts else 1.0


def _distinct_before_filters(key: Expression, side: Estimate) -> float:
    known = side.columns.get(key.id, UNKNOWN).distinct if isinstance(key, Column) else None
    return side.rows if known is None else known
