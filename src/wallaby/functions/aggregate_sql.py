"""How an aggregate function is written as SQL, of a group or over a window, and when it is refused.

A filter is inside the arguments, so that none is computed for a row it excludes; where an argument is NULL the row
does not count, in all functions but `count(*)`. What DuckDB lacks, or computes in sums that lose digits, is made of
the list of a group's values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wallaby.relations.expression import Aggregation, Expression, Literal
from wallaby.sql.types import is_comparable
from wallaby.sql.words import case

#: Writes an aggregation, given its arguments under the filter and what stands behind each aggregate function.
Writer = Callable[[Aggregation, Sequence[str], str], str]
#: Writes an aggregation, given its arguments, the filter if there is one, and what stands behind the function.
FilteredWriter = Callable[[Aggregation, Sequence[str], str | None, str], str]


def fine(aggregation: Aggregation) -> str | None:  # noqa: ARG001 - the signature of a reason
    """There is no reason to refuse."""
    return None


@dataclass(frozen=True, slots=True)
class AggregateSql:
    """How one aggregate function is written and refused."""

    write: Writer | None = None
    #: The number of arguments; None for any.
    arity: int | None = 1
    takes_distinct: bool = True
    reason: Callable[[Aggregation], str | None] = fine
    #: Instead of `write`, for a function to which a filter is more than arguments that are NULL.
    write_filtered: FilteredWriter | None = None


#: All of them, by name. The registry puts them here.
AGGREGATES: dict[str, AggregateSql] = {}


def aggregation_sql(
    aggregation: Aggregation, expression_sql: Callable[[Expression], str], over: str = ""
) -> str:
    """The SQL of an aggregation for which `aggregation_reason` has nothing against."""
    known = AGGREGATES[aggregation.function]
    written = [expression_sql(argument) for argument in aggregation.arguments]
    condition = None if aggregation.filter is None else expression_sql(aggregation.filter)
    if known.write_filtered is not None:
        return known.write_filtered(aggregation, written, condition, over)
    if condition is not None:
        # What is counted, but no constant that only says how.
        written = [
            value if place and isinstance(argument, Literal) else case([(condition, value)])
            for place, (value, argument) in enumerate(zip(written, aggregation.arguments, strict=True))
        ]
    assert known.write is not None, "one of the two is there"
    return known.write(aggregation, written, over)


def aggregation_reason(aggregation: Aggregation) -> str | None:
    """Why an aggregation is not computed here; None if it is. Its arguments are looked at elsewhere."""
    known = AGGREGATES.get(aggregation.function)
    if known is None:
        return f"the aggregate function {aggregation.function} is not supported"
    if known.arity is not None and len(aggregation.arguments) != known.arity:
        return f"{shown(aggregation)} of {len(aggregation.arguments)} arguments is not supported"
    if aggregation.distinct and not known.takes_distinct:
        return f"{shown(aggregation)} is not supported"
    return known.reason(aggregation)


# ------------------------------------------------------------------------------------- words of the families
def shown(aggregation: Aggregation) -> str:
    """The function as reasons name it."""
    return f"{distinct_word(aggregation).lower()}{aggregation.function}"


def distinct_word(aggregation: Aggregation) -> str:
    """What stands before the argument."""
    return "DISTINCT " if aggregation.distinct else ""


def list_of(aggregation: Aggregation, value: str, over: str) -> str:
    """The values of a group that are not NULL."""
    return f"list({distinct_word(aggregation)}{value}) FILTER (WHERE {value} IS NOT NULL){over}"


def constant(aggregation: Aggregation, place: int) -> object:
    """The value of an argument that says how to aggregate."""
    argument = aggregation.arguments[place]
    assert isinstance(argument, Literal), "the reader of the expression sees to it"
    return argument.value


def same_type(aggregation: Aggregation) -> str | None:
    """The result must have the type of the argument, which must have an order."""
    source = aggregation.arguments[0].type
    same = source == aggregation.type and is_comparable(source)
    return None if same else f"{shown(aggregation)} of {source} as {aggregation.type} is not supported"
