"""Write aggregate functions as SQL, over a group or a window, or refuse them.

A filter is part of the arguments, so that none is computed for a row that it excludes. A row in which an argument is
NULL does not count, except for `count(*)`. Functions that DuckDB lacks, or computes with a loss of digits, are computed
from the list of a group's values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wallaby.functions.parts import AggregateParts
from wallaby.relations.expression import Aggregation, Expression, Literal
from wallaby.sql.types import is_comparable
from wallaby.sql.words import case

#: Writes an aggregation, given its filtered arguments and the text after each aggregate function.
Writer = Callable[[Aggregation, Sequence[str], str], str]
#: Writes an aggregation, given its arguments, the filter if there is one, and the text after the function.
FilteredWriter = Callable[[Aggregation, Sequence[str], str | None, str], str]
#: Tells the parts of an aggregation, given its arguments and the filter if there is one; None: it has none.
PartsWriter = Callable[[Aggregation, Sequence[str], str | None], AggregateParts | None]


def fine(aggregation: Aggregation) -> str | None:  # noqa: ARG001 - the signature of a reason
    """Never refuse."""
    return None


@dataclass(frozen=True, slots=True)
class AggregateSql:
    """How one aggregate function is written and refused."""

    write: Writer | None = None
    #: The number of arguments; None for any.
    arity: int | None = 1
    takes_distinct: bool = True
    reason: Callable[[Aggregation], str | None] = fine
    #: Used instead of `write` for a function whose filter cannot be expressed by NULL arguments.
    write_filtered: FilteredWriter | None = None
    #: How the function is computed in parts, if it can be, to the same bytes.
    parts: PartsWriter | None = None


#: All aggregate functions by name; the registry fills this.
AGGREGATES: dict[str, AggregateSql] = {}


def aggregation_sql(
    aggregation: Aggregation, expression_sql: Callable[[Expression], str], over: str = ""
) -> str:
    """The SQL of an aggregation that `aggregation_reason` accepts."""
    known = AGGREGATES[aggregation.function]
    written = [expression_sql(argument) for argument in aggregation.arguments]
    condition = None if aggregation.filter is None else expression_sql(aggregation.filter)
    if known.write_filtered is not None:
        return known.write_filtered(aggregation, written, condition, over)
    assert known.write is not None, "one of the two is there"
    return known.write(aggregation, filtered(aggregation, written, condition), over)


def aggregation_parts(
    aggregation: Aggregation, expression_sql: Callable[[Expression], str], condition: str | None
) -> AggregateParts | None:
    """The parts of an aggregation over the rows that meet a condition and its filter; None: it has none."""
    known = AGGREGATES[aggregation.function]
    if known.parts is None or aggregation.distinct:
        return None
    written = [expression_sql(argument) for argument in aggregation.arguments]
    own = () if aggregation.filter is None else (expression_sql(aggregation.filter),)
    conditions = [f"({one})" for one in (condition, *own) if one is not None]
    return known.parts(aggregation, written, " AND ".join(conditions) or None)


def filtered(aggregation: Aggregation, written: Sequence[str], condition: str | None) -> Sequence[str]:
    """The arguments of an aggregation, NULL where a condition is not met."""
    if condition is None:
        return written
    # The values to aggregate, without constants that only configure the function.
    return [
        value if place and isinstance(argument, Literal) else case([(condition, value)])
        for place, (value, argument) in enumerate(zip(written, aggregation.arguments, strict=True))
    ]


def aggregation_reason(aggregation: Aggregation) -> str | None:
    """Why an aggregation is not computed here; None if it is. Its arguments are checked elsewhere."""
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
    """The word before the argument: DISTINCT, or nothing."""
    return "DISTINCT " if aggregation.distinct else ""


def list_of(aggregation: Aggregation, value: str, over: str) -> str:
    """A list of a group's values that are not NULL."""
    return f"list({distinct_word(aggregation)}{value}) FILTER (WHERE {value} IS NOT NULL){over}"


def constant(aggregation: Aggregation, place: int) -> object:
    """The value of a constant argument that configures the function."""
    argument = aggregation.arguments[place]
    assert isinstance(argument, Literal), "the reader of the expression sees to it"
    return argument.value


def same_type(aggregation: Aggregation) -> str | None:
    """Refuse unless the result has the type of the argument, and the type has an order."""
    source = aggregation.arguments[0].type
    same = source == aggregation.type and is_comparable(source)
    return None if same else f"{shown(aggregation)} of {source} as {aggregation.type} is not supported"
