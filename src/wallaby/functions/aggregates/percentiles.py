"""Percentiles, computed from the sorted list of a group's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import NUMERIC
from wallaby.catalyst.node import Node
from wallaby.functions.aggregate_sql import AggregateSql, constant, list_of
from wallaby.functions.entry import Entry, Refusal, guarded, unsupported
from wallaby.functions.family import Family
from wallaby.relations.expression import Aggregation, Expression, Literal
from wallaby.relations.types import BOOLEAN, DOUBLE, DataType, Kind
from wallaby.sql.words import case, cast


def _read_percentile(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, part, *frequency = arguments
    if not isinstance(part, Literal) or part.type.kind is not Kind.DOUBLE or part.value is None:
        return Refusal("its percentages are not constants", "write the numbers themselves")
    if not all(isinstance(f, Literal) and f.value == 1 for f in frequency):
        return Refusal("frequencies are not supported yet", "repeat the rows")
    if value.type.kind not in NUMERIC or kind.kind is not Kind.DOUBLE:
        return Refusal(f"it is not supported on {value.type}")
    if frequency == [] and node.flag("legacyCalculation"):
        return Refusal("with spark.sql.legacy.percentileDiscCalculation the result is a different value")
    reverse = Literal(node.flag("reverse"), BOOLEAN)
    return Aggregation(entry.function, (value, part, reverse), kind, node.nullable)


def _sorted(aggregation: Aggregation, arguments: Sequence[str], over: str, *, reverse: bool) -> str:
    values = list_of(aggregation, cast(arguments[0], DOUBLE), over)
    return f"{'list_reverse_sort' if reverse else 'list_sort'}({values})"


def _write_percentile(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """Interpolate between two values, as Spark does; the arguments are value, constant percentage and direction."""
    ordered = _sorted(aggregation, arguments, over, reverse=constant(aggregation, 2) is True)
    position = f"((len({ordered}) - 1) * CAST('{constant(aggregation, 1)!r}' AS DOUBLE))"
    low, high = f"floor({position})", f"ceil({position})"
    below, above = (f"{ordered}[CAST({place} AS BIGINT) + 1]" for place in (low, high))
    between = f"{below} + ({position} - {low}) * ({above} - {below})"
    return case([(f"{low} = {high} OR {below} = {above}", below)], between)


def _percentile_disc(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """The first value such that at least the given share of values comes up to it."""
    ordered = _sorted(aggregation, arguments, over, reverse=constant(aggregation, 2) is True)
    part, count = f"CAST('{constant(aggregation, 1)!r}' AS DOUBLE)", f"CAST(len({ordered}) AS DOUBLE)"
    place = f"greatest(ceil({count} * {part}), 1)"
    exact = case([(f"{place} > 1 AND ({place} - 1) / {count} >= {part}", f"{place} - 1")], place)
    return f"{ordered}[CAST({exact} AS BIGINT)]"


FAMILY: Final = Family(
    "Aggregates",
    (
        guarded(
            "Percentile",
            "percentile",
            guard="the percentages are constants; zeros of both signs are one value",
            build=_read_percentile,
            sql=AggregateSql(_write_percentile, arity=3),
            examples=(
                "percentile({number}, 0.3)",
                "median({number})",
                "percentile({number}, array(0.25, 0.5, 0.9))",
                "percentile_cont(0.75) within group (order by {whole} desc)",
            ),
        ),
        guarded(
            "PercentileDisc",
            "percentile_disc",
            guard="one percentage, a constant; zeros of both signs are one value",
            build=_read_percentile,
            sql=AggregateSql(_percentile_disc, arity=3),
            examples=(
                "percentile_disc(0.07) within group (order by {number})",
                "percentile_disc(0.5) within group (order by {number} desc)",
            ),
        ),
        unsupported("ApproximatePercentile", "it depends on how rows are partitioned", "use percentile"),
        unsupported("HistogramNumeric", "it depends on how rows are partitioned"),
    ),
)
