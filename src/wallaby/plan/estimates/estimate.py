"""How many rows and bytes a relation gives, guessed from Parquet footers.

Estimates choose between plans that all give the same answer: broadcast or partition, which side to build, whether a
partial aggregation pays. They are deterministic, and depend only on the tree and the statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod, sqrt

from wallaby.plan.estimates.selectivity import (
    UNKNOWN,
    ColumnEstimate,
    Columns,
    after,
    number,
    selectivity,
    selectivity_between,
)
from wallaby.plan.estimates.statistics import ColumnStatistics, Statistics, TableStatistics
from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal, Named, columns_in
from wallaby.relations.join_kind import JoinKind
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
#: Some rows are always assumed to have no partner.
_ANTI_LEAST = 0.05
#: True and false.
_TRUTHS = 2.0
#: Hardly any group has more rows than this above the mean.
_DEVIATIONS_MOST = 6


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated size of a relation, with estimates of its columns."""

    rows: float
    columns: Columns
    row_bytes: int

    @property
    def size_bytes(self) -> float:
        """The estimated size of all rows, decoded."""
        return self.rows * self.row_bytes

    def distinct(self, expression: Expression) -> float:
        """The number of distinct values of an expression; if nothing is known, the number of rows."""
        known = self.known_distinct(expression, left=True)
        return max(1.0, min(self.rows, self.rows if known is None else known))

    def known_distinct(self, expression: Expression, *, left: bool = False) -> float | None:
        """An upper bound: the combinations of its columns' values; None if nothing is known of one of them.

        With `left`, count only the values that conditions have left in a column.
        """
        columns = [self.columns.get(id_, UNKNOWN) for id_ in sorted(columns_in(expression))]
        known = [min(c.distinct, c.left if left else c.distinct) for c in columns if c.distinct is not None]
        values = prod(known) if len(known) == len(columns) else None
        if expression.type.kind is Kind.BOOLEAN and not isinstance(expression, Column):
            return _TRUTHS if values is None else min(values, _TRUTHS)
        return values

    def known(self, expression: Expression) -> ColumnEstimate:
        """The estimate of an expression; if it is not a column, only an upper bound of its distinct values."""
        if isinstance(expression, Column):
            known = self.columns.get(expression.id, UNKNOWN)
            return known if known.distinct is not None else replace(known, distinct=max(1.0, self.rows))
        values = self.known_distinct(expression)
        columns = [self.columns.get(id_, UNKNOWN) for id_ in sorted(columns_in(expression))]
        first = columns[0] if columns and len({column.source for column in columns}) == 1 else UNKNOWN
        return ColumnEstimate(
            max(1.0, self.rows if values is None else values),
            source=first.source,
            source_rows=first.source_rows,
        )

    def is_counted(self, expression: Expression) -> bool:
        """Does `distinct` rest on knowledge of the values?"""
        return isinstance(expression, Column) and self.columns.get(expression.id, UNKNOWN).counted

    def groups(self, keys: tuple[Expression, ...]) -> float:
        """The number of groups by some keys; one without keys.

        Keys that come from one table have no more combinations than that table has rows.
        """
        sized = [(self.known(key), self.distinct(key)) for key in keys]
        return min(max(1.0, self.rows), _combinations(sized))


@dataclass(slots=True)
class Estimator:
    """Estimates for one query; each relation is estimated once."""

    statistics: Statistics
    #: The estimates of inputs, by number.
    parts: Mapping[int, Relation] = field(default_factory=dict)
    _seen: dict[int, tuple[Relation, Estimate]] = field(default_factory=dict)

    def of(self, relation: Relation) -> Estimate:
        """The estimate for a relation."""
        # By identity, because equal trees are expensive to hash; the relation is kept so that its id is not reused.
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
                rows = below.rows * selectivity(condition, below.columns)
                return Estimate(rows, after(condition, below.columns), row_bytes)
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
            if known.low is None or known.high is None:
                return UNKNOWN
            mean = (known.low + known.high) / 2
            variance = (known.high - known.low) ** 2 / 12
            return ColumnEstimate(mean=rows * mean, deviation=sqrt(rows * (variance + mean**2)))
        case _:
            return UNKNOWN


def _of_join(join: Join, left: Estimate, right: Estimate, row_bytes: int) -> Estimate:
    columns = {**left.columns, **right.columns}
    pairs = [(left.known(a), right.known(b)) for a, b in zip(join.left_keys, join.right_keys, strict=True)]
    sides = (frozenset(left.columns), frozenset(right.columns))
    share = 1.0 if join.residual is None else selectivity_between(join.residual, columns, sides)
    domain = key_domain(pairs)
    matched = left.rows * right.rows / (domain * _met(join, left, right, pairs))
    # A row has at most one partner for a key that occurs once.
    to_one = any(b.unique for _, b in pairs), any(a.unique for a, _ in pairs)
    if to_one[0]:
        matched = min(matched, left.rows)
    if to_one[1]:
        matched = min(matched, right.rows)
    found = min(1.0, right.groups(join.right_keys) / domain) * share
    rows = _rows_of_kind(join.kind, matched * share, left.rows, right.rows, found)
    if join.kind is JoinKind.SEMI:
        keys = {key.id for key in join.left_keys if isinstance(key, Column)}
        met = {
            id_: replace(known, met=known.met * found) for id_, known in left.columns.items() if id_ in keys
        }
        return Estimate(rows, {**left.columns, **met}, row_bytes)
    if not join.kind.shows_right:
        return Estimate(rows, left.columns, row_bytes)
    known = _after_join(join, left.columns, right.columns, to_one)
    return Estimate(rows, _with_nulls(join.kind, known, sides, found), row_bytes)


def _met(
    join: Join,
    left: Estimate,
    right: Estimate,
    pairs: Sequence[tuple[ColumnEstimate, ColumnEstimate]],
) -> float:
    """The share of keys that can find a partner, where a semi join has kept only those of the other side."""
    share = 1.0
    for (a, b), left_key, right_key in zip(pairs, join.left_keys, join.right_keys, strict=True):
        domain = domain_of((a, b))
        of_left = [max(a.met, right.distinct(right_key) / domain)] if a.met < 1.0 else []
        of_right = [max(b.met, left.distinct(left_key) / domain)] if b.met < 1.0 else []
        share *= min(1.0, max((*of_left, *of_right), default=1.0))
    return share


def _after_join(join: Join, left: Columns, right: Columns, to_one: tuple[bool, bool]) -> Columns:
    """Estimate the columns of both sides after a join: keys are equal now; a side that met unique keys stays unique."""
    sides = [
        columns
        if once
        else {id_: replace(known, unique=False) if known.unique else known for id_, known in columns.items()}
        for columns, once in zip((left, right), to_one, strict=True)
    ]
    columns = {**sides[0], **sides[1]}
    if join.kind is not JoinKind.INNER:
        return columns
    for a, b in zip(join.left_keys, join.right_keys, strict=True):
        if isinstance(a, Column) and isinstance(b, Column) and a.id in columns and b.id in columns:
            mine, other = columns[a.id], columns[b.id]
            if mine.is_key != other.is_key:
                # The values of a foreign key are a subset of the key's.
                foreign, key = (b, mine) if mine.is_key else (a, other)
                columns[foreign.id] = replace(
                    columns[foreign.id], distinct=domain_of((mine, other)), is_key=key.is_key
                )
    return columns


def _with_nulls(
    kind: JoinKind, columns: Columns, sides: tuple[frozenset[int], frozenset[int]], found: float
) -> Columns:
    """After an outer join, the columns of a side are NULL in rows of the other side that have no partner there."""
    padded = (sides[0] if kind.keeps_right else frozenset()) | (sides[1] if kind.pads_right else frozenset())
    lacking = max(1 - found, _ANTI_LEAST)
    return {
        id_: replace(known, null_share=max(known.null_share, lacking)) if id_ in padded else known
        for id_, known in columns.items()
    }


def domain_of(columns: Iterable[ColumnEstimate]) -> float:
    """The number of values in the common domain of columns that are compared with each other.

    If one column is a key, its number of values is known, and the others refer to it. Otherwise only upper bounds are
    known, and the lowest is the best, because that of a foreign key is often too high (sparse keys). Values outside the
    range of another column find no partner and do not count.
    """
    known = tuple(columns)
    keys = [column.distinct for column in known if column.is_key and column.distinct is not None]
    bounds = [column.distinct for column in known if column.distinct is not None]
    domain = min(keys or bounds, default=_ROWS_UNKNOWN)
    ranges = [(c.low, c.high) for c in known if c.whole and c.low is not None and c.high is not None]
    if len(ranges) == len(known) and ranges:
        common = min(high for _, high in ranges) - max(low for low, _ in ranges) + 1
        domain = min(domain, max(1.0, common))
    return max(1.0, domain)


def key_domain(pairs: Sequence[tuple[ColumnEstimate, ColumnEstimate]]) -> float:
    """The number of distinct keys in the domain of two sides: 1 / the selectivity of their join."""
    return key_combinations(pairs, [domain_of(pair) for pair in pairs]) if pairs else 1.0


def key_combinations(
    pairs: Sequence[tuple[ColumnEstimate, ColumnEstimate]], domains: Sequence[float]
) -> float:
    """The number of combinations of the values of several keys, each with its own domain.

    A table has no more combinations than rows. Either table may be the one that the other refers to, as order lines
    refer to suppliers of parts, and returns to sales; so the estimate is the geometric mean of both bounds.
    """
    bounds = [
        _combinations([(pair[side], domain) for pair, domain in zip(pairs, domains, strict=True)])
        for side in (0, 1)
    ]
    return max(1.0, min(prod(domains), sqrt(prod(bounds))))


def _combinations(columns: Sequence[tuple[ColumnEstimate, float]]) -> float:
    """An upper bound of the combinations of values in a side's columns: for each table no more than its rows."""
    values: dict[int, float] = {}
    rows: dict[int, float] = {}
    free = 1.0
    for column, domain in columns:
        if column.source is None:
            free *= domain
        else:
            values[column.source] = values.get(column.source, 1.0) * domain
            rows[column.source] = column.source_rows
    return free * prod(min(values[source], rows[source]) for source in values)


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
        case JoinKind.EXISTENCE | JoinKind.SINGLE:
            return left
        case JoinKind.SEMI:
            return left * found
        case JoinKind.ANTI:
            return left * max(1 - found, _ANTI_LEAST)
