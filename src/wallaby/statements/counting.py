"""Which aggregations can be computed by counting: sums and counts for each value of one whole-number key.

They need no SQL, and so no hash table; see `operators.counted_groups`.
"""

from __future__ import annotations

from typing import Final

from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Column, Expression, Literal
from wallaby.relations.relation import Aggregate
from wallaby.relations.types import Kind

#: Kinds of numbers without a fraction, or with a fixed number of digits after the point.
_WHOLE: Final = frozenset({Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG})
_KEYS: Final = _WHOLE | {Kind.DATE}


def is_counted(aggregate: Aggregate) -> bool:
    """Is this an aggregation by one whole-number column, with nothing but exact sums and counts of columns?"""
    columns = [column.id for column in aggregate.columns]
    return (
        len(aggregate.keys) == 1
        and _is_column(aggregate.keys[0].expression, _KEYS)
        and len(set(columns)) == len(columns)
        and all(_is_counted(named.expression) for named in aggregate.aggregations)
    )


def _is_counted(expression: Expression) -> bool:
    if not isinstance(expression, Aggregation) or expression.distinct or expression.filter is not None:
        return False
    if expression.function == functions.COUNT:
        return (
            all(
                isinstance(argument, Column) or (isinstance(argument, Literal) and argument.value is not None)
                for argument in expression.arguments[:1]
            )
            and len(expression.arguments) <= 1
        )
    if expression.function != functions.SUM or len(expression.arguments) != 1:
        return False
    kind = expression.type.kind
    return (kind is Kind.LONG and _is_column(expression.arguments[0], _WHOLE)) or (
        kind is Kind.DECIMAL and _is_column(expression.arguments[0], frozenset({Kind.DECIMAL}))
    )


def _is_column(expression: Expression, kinds: frozenset[Kind]) -> bool:
    return isinstance(expression, Column) and expression.type.kind in kinds
