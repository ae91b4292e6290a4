"""Aggregations that begin below a join, where a foreign key has far fewer values than there are rows.

TPC-DS 22 averages stock by attributes of its items. A quarter of the stock of some years are tens of millions of rows,
of a hundred thousand items. If the rows are aggregated by item first, only the groups meet the item table, and only
they are multiplied by the grouping sets and compared by four texts each:

    aggregate by the item's texts               merge by the item's texts
      join on item                          →     join on item
        stock                                       aggregate by item
        items                                         stock
                                                    items

Every row of such a group finds the same partners, so whatever they multiply is a partial result instead of a row. It
needs aggregations that merge exactly and cannot fail, since some rows would have found no partner.

The right rows of a left outer join are aggregated in the same way, if only columns of theirs are: where there is no
partner, these are NULL, and so are the partial results in their place. Only a count is then 0 (TPC-H 13).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from wallaby.plan.aggregation import AggregationParts, take_apart
from wallaby.plan.early_groups import EarlyGroups, early_groups
from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.joins import flipped
from wallaby.relations import functions
from wallaby.relations.expression import (
    Aggregation,
    Call,
    Column,
    EvalMode,
    Expression,
    Literal,
    Named,
    columns_in,
)
from wallaby.relations.infallible import cannot_fail
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Aggregate, Expand, Join, Project, Relation
from wallaby.relations.tree import (
    arrange,
    ids_of,
    is_choice,
    join_columns,
    kept,
    largest_id,
    rewrite_up,
    substitute,
)
from wallaby.relations.types import LONG, DataType, Kind

#: Fewer joined rows are aggregated after the join soon enough.
_ROWS_LEAST = 1_000_000
#: There are so many rows for each group below the join.
_ROWS_PER_GROUP = 8
#: If fewer groups come out in the end, every task shrinks its joined rows to those without another exchange.
_GROUPS_LEAST = 4_096
#: Groups below the join for each group that comes out: with more, more would be exchanged than without the rule.
_GROUPS_RATIO = 2
#: A join that drops more than half of the rows comes before their aggregation.
_JOINED_LEAST = 0.5
_SHORT_KINDS = frozenset((Kind.BYTE, Kind.SHORT, Kind.INTEGER))
#: A sum has so many digits more than what it adds.
_DIGITS_OF_SUM, _PRECISION_MAX = 10, 38
#: Every whole number of so many digits is a long.
_LONG_DIGITS = 18


def aggregate_below_joins(relation: Relation, statistics: Statistics) -> Relation:
    """The relation with aggregations that begin below a join if that leaves far fewer rows to join."""
    estimator, ids = Estimator(statistics), count(largest_id(relation) + 1)
    return rewrite_up(relation, lambda each: _rewritten(each, estimator, ids))


@dataclass(frozen=True, slots=True)
class _Aggregation:
    """An aggregation over a join: what it computes of the joined rows, and how the parts become the answer."""

    parts: AggregationParts
    partials: tuple[Named, ...]
    #: The columns of the joined rows that it groups by.
    grouped: frozenset[int]
    #: The grouping sets between the two.
    sets: EarlyGroups | None

    @property
    def arguments(self) -> frozenset[int]:
        """The columns of the joined rows that it aggregates."""
        return frozenset().union(*(columns_in(named.expression) for named in self.partials))

    @property
    def ignores_padding(self) -> bool:
        """Do rows without a partner, whose columns are NULL, add nothing to any aggregation?"""
        found = [named.expression for named in self.partials]
        return self.sets is None and all(
            isinstance(each, Aggregation)
            and each.filter is None
            and each.arguments
            and all(isinstance(argument, Column) for argument in each.arguments)
            for each in found
        )

    def finish(self, groups: Join) -> Relation:
        """The answer from partial results."""
        rows = groups if self.sets is None else self.sets.repeated(groups)
        merged = Aggregate(rows, self.parts.keys, self.parts.merges)
        return Project(merged, self._outputs(padded=groups.kind is JoinKind.LEFT))

    def _outputs(self, *, padded: bool) -> tuple[Named, ...]:
        """The outputs; if partial results may be missing, with counts that are 0 then."""
        if not padded:
            return self.parts.outputs
        zeros: dict[Expression, Expression] = {
            named.column: Call(functions.COALESCE, (named.column, Literal(0, LONG)), LONG, nullable=False)
            for named in self.parts.partials
            if isinstance(named.expression, Aggregation) and named.expression.function == functions.COUNT
        }
        return tuple(
            replace(named, expression=substitute(named.expression, zeros)) for named in self.parts.outputs
        )


def _rewritten(relation: Relation, estimator: Estimator, ids: Iterator[int]) -> Relation:
    if not isinstance(relation, Aggregate) or not relation.keys:
        return relation
    join = _joined(relation.child)
    if join is None:
        return relation
    aggregation = _taken_apart(relation, ids)
    if aggregation is None:
        return relation
    if join.kind is JoinKind.LEFT:
        early = _aggregated_right(join, aggregation, estimator)
        return relation if early is None else arrange(aggregation.finish(early), relation.columns)
    for each in (join, flipped(join, JoinKind.INNER)):
        early = _aggregated_left(each, aggregation, estimator)
        if early is not None:
            return arrange(aggregation.finish(early), relation.columns)
    return relation


def _joined(relation: Relation) -> Join | None:
    """The join whose rows are aggregated, perhaps by grouping sets, perhaps below a choice of columns."""
    if isinstance(relation, Expand):
        relation = relation.child
    while isinstance(relation, Project) and is_choice(relation):
        relation = relation.child
    aggregated = (JoinKind.INNER, JoinKind.LEFT)
    return relation if isinstance(relation, Join) and relation.kind in aggregated else None


def _taken_apart(aggregate: Aggregate, ids: Iterator[int]) -> _Aggregation | None:
    """The parts of an aggregation; None if they do not merge exactly or can fail."""
    parts = take_apart(aggregate, lambda name, type_: Column(next(ids), name, type_, nullable=True))
    if not parts.mergeable or parts.arguments or not parts.partials:
        return None
    if not all(_is_exact(named.expression) for named in parts.partials):
        return None
    if not isinstance(aggregate.child, Expand):
        keys = frozenset().union(*(columns_in(named.expression) for named in parts.keys))
        return _Aggregation(parts, parts.partials, keys, None)
    sets = early_groups(aggregate, parts)
    return None if sets is None else _Aggregation(parts, sets.partials, frozenset(ids_of(sets.finest)), sets)


def _aggregated_right(join: Join, aggregation: _Aggregation, estimator: Estimator) -> Join | None:
    """A left outer join with its right rows aggregated; None if that is not possible or does not pay."""
    if not aggregation.ignores_padding:
        return None
    # As many right rows as in an inner join find a partner, and the same columns are compared.
    inner = flipped(replace(join, kind=JoinKind.INNER), JoinKind.INNER)
    early = _aggregated_left(inner, aggregation, estimator)
    if early is None:
        return None
    return replace(join, right=early.left, columns=join_columns(join, join.left, early.left))


def _aggregated_left(join: Join, aggregation: _Aggregation, estimator: Estimator) -> Join | None:
    """The join with its left rows aggregated; None if that is not possible or does not pay."""
    columns = {column.id: column for column in join.left.columns}
    if not aggregation.arguments <= columns.keys():
        return None
    compared = (*join.left_keys, *(() if join.residual is None else (join.residual,)))
    needed = aggregation.grouped.union(*map(columns_in, compared))
    keys = tuple(column for column in columns.values() if column.id in needed)
    if not keys or not all(_is_grouped_exactly(column.type) for column in keys):
        return None
    if not _pays(join, keys, aggregation, estimator):
        return None
    early = Aggregate(join.left, kept(keys), aggregation.partials)
    return replace(join, left=early, columns=join_columns(join, early, join.right))


def _pays(join: Join, keys: tuple[Column, ...], aggregation: _Aggregation, estimator: Estimator) -> bool:
    """Are the left rows many, and their groups by some keys few, but no more than come out in the end?

    A foreign key is taken to have all values of the key that it refers to: of its own, too few are often known.
    """
    left, right, joined = (estimator.of(each) for each in (join.left, join.right, join))
    below, above = left.groups(keys), joined.groups(_grouped(join, aggregation))
    for ours, theirs in zip(join.left_keys, join.right_keys, strict=True):
        below *= max(1.0, right.distinct(theirs) / left.distinct(ours))
    return (
        left.rows >= _ROWS_PER_GROUP * below
        and joined.rows >= max(_ROWS_LEAST, _JOINED_LEAST * left.rows)
        and above >= max(_GROUPS_LEAST, below / _GROUPS_RATIO)
    )


def _grouped(join: Join, aggregation: _Aggregation) -> tuple[Column, ...]:
    return tuple(column for column in join.columns if column.id in aggregation.grouped)


def _is_exact(expression: Expression) -> bool:
    """Does an aggregation give the same result however its rows are grouped first, and never an error?

    Of the sums, only those that cannot overflow do, since rows without a partner would count too: 64-bit sums of
    numbers of up to 32 bits, sums that wrap, and decimals with room. Sums of doubles depend on the order, unless they
    are whole.
    """
    assert isinstance(expression, Aggregation), "partial results are bare aggregations"
    inputs = (*expression.arguments, *(() if expression.filter is None else (expression.filter,)))
    if not all(cannot_fail(_decimal(each) or each) for each in inputs):
        return False
    if expression.function not in (functions.SUM, functions.TOTAL):
        return True
    (summed,) = expression.arguments
    match summed.type.kind:
        case Kind.DECIMAL:
            return summed.type.precision + _DIGITS_OF_SUM <= _PRECISION_MAX
        case Kind.LONG:
            money = _decimal(summed)
            small = money is not None and money.type.precision + _DIGITS_OF_SUM <= _LONG_DIGITS
            return small or expression.mode is EvalMode.LEGACY
        case Kind.DOUBLE if isinstance(summed, Call) and summed.function == functions.CAST:
            return summed.arguments[0].type.kind in _SHORT_KINDS
        case kind:
            return kind in _SHORT_KINDS


def _decimal(argument: Expression) -> Expression | None:
    """The decimal of few digits that Catalyst sums as a whole number, if the argument is one."""
    match argument:
        case Call(function=functions.UNSCALED, arguments=(value,)):
            return value
        case _:
            return None


def _is_grouped_exactly(type_: DataType) -> bool:
    """Have values that are grouped together one form? The zeros of floating-point numbers have two."""
    return not type_.is_floating and not type_.is_nested
