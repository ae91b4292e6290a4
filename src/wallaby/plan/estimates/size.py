"""An estimate of a relation: how many rows it gives, how wide they are, and what is known of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from wallaby.plan.estimates.selectivity import (
    UNKNOWN,
    ColumnEstimate,
    Columns,
)
from wallaby.relations.expression import Column, Expression, columns_in
from wallaby.relations.types import Kind

#: True and false.
_TRUTHS = 2.0


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
        return min(max(1.0, self.rows), combinations(sized))


def combinations(columns: Sequence[tuple[ColumnEstimate, float]]) -> float:
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
