"""Statistics: variance, covariance, regression, skewness and kurtosis, as doubles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.node import Node
from wallaby.functions.aggregate_sql import AggregateSql, Writer, distinct_word, list_of
from wallaby.functions.aggregates import moments
from wallaby.functions.entry import Entry, Refusal, guarded, read_aggregation
from wallaby.functions.family import Family
from wallaby.relations.expression import Aggregation, Expression
from wallaby.relations.types import DOUBLE, DataType
from wallaby.sql.words import case, cast

_FLOATS: Final = "as doubles, to a relative 1e-9"
_SPREAD: Final = f"{_FLOATS}; to fewer digits where a mean is ten million times the spread"


def _statistic(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if not node.flag("nullOnDivideByZero"):
        return Refusal(
            "with spark.sql.legacy.statisticalAggregate the result is NaN where it would be NULL",
            "set spark.sql.legacy.statisticalAggregate=false",
        )
    return read_aggregation(entry, node, arguments, kind)


def _spread(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    return _variance(aggregation.function, aggregation, arguments, over)


def _variance(name: str, aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """Variance. Over windows DuckDB combines parts of frames, which loses digits; there the values are used."""
    if not over:
        plain = f"{name}({distinct_word(aggregation)}{arguments[0]})"
        return plain if name.endswith("samp") else f"({plain} + {_not_a_number(arguments[0])})"
    values = list_of(aggregation, cast(arguments[0], DOUBLE), over)
    count = f"(len({values}){' - 1' if name.endswith('samp') else ''})"
    found = f"({moments.SQUARES}({values}) / nullif({count}, 0))"
    return f"sqrt({found})" if name.startswith("stddev") else found


def _not_a_number(value: str) -> str:
    """0, or NaN if a value is NaN or infinite; DuckDB would treat a single infinite value as finite."""
    return f"0 * min({value}) + 0 * max({value})"


def _of_pairs(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    return cast(f"{aggregation.function}({arguments[0]}, {arguments[1]}){over}", aggregation.type)


def _paired(arguments: Sequence[str]) -> tuple[str, str]:
    """Two values, each NULL where the other is NULL."""
    first, second = arguments
    return case([(f"{second} IS NOT NULL", first)]), case([(f"{first} IS NOT NULL", second)])


def _correlation(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """Correlation: NULL for one pair, and if one of the values is constant."""
    sides = (f"var_pop({side}){over}" for side in _paired(arguments))
    return case(
        [(" OR ".join(f"{side} = 0" for side in sides), "NULL")], _of_pairs(aggregation, arguments, over)
    )


def _regression(part: str) -> Writer:
    """The dependent value comes first."""

    def write(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
        if part == "sxx":
            return f"({_variance('var_pop', aggregation, arguments, over)} * count({arguments[0]}){over})"
        y, x = _paired(arguments)
        together = f"covar_pop({arguments[0]}, {arguments[1]}){over}"
        of_x, of_y = f"var_pop({x}){over}", f"var_pop({y}){over}"
        slope = f"({together} / nullif({of_x}, 0))"
        match part:
            case "sxy":
                return f"({together} * regr_count({arguments[0]}, {arguments[1]}){over})"
            case "slope":
                return slope
            case "intercept":
                return f"(avg({y}){over} - {slope} * avg({x}){over})"
            case _:
                square = f"({together} * {together} / ({of_x} * {of_y}))"
                return case([(f"{of_x} = 0", "NULL"), (f"{of_y} = 0", cast("1", aggregation.type))], square)

    return write


def _moment(name: str) -> Writer:
    def write(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
        return f"{name}({list_of(aggregation, cast(arguments[0], DOUBLE), over)})"

    return write


FAMILY: Final = Family(
    "Aggregates",
    (
        guarded(
            "StddevSamp",
            "stddev_samp",
            build=_statistic,
            guard=_SPREAD,
            sql=AggregateSql(_spread),
            examples=(
                "stddev({whole})",
                "stddev({decimal})",
                "stddev({small} / 4e0)",
                "stddev(distinct {small})",
            ),
        ),
        guarded(
            "StddevPop",
            "stddev_pop",
            build=_statistic,
            guard=_SPREAD,
            sql=AggregateSql(_spread),
            examples=(
                "stddev_pop({whole})",
                "stddev_pop({decimal})",
                "stddev_pop({small} / 4e0)",
            ),
        ),
        guarded(
            "VarianceSamp",
            "var_samp",
            build=_statistic,
            guard=_SPREAD,
            sql=AggregateSql(_spread),
            examples=(
                "variance({whole})",
                "variance({decimal})",
                "variance({small} / 4e0)",
            ),
        ),
        guarded(
            "VariancePop",
            "var_pop",
            build=_statistic,
            guard=_SPREAD,
            sql=AggregateSql(_spread),
            examples=(
                "var_pop({whole})",
                "var_pop({decimal})",
                "var_pop({small} / 4e0)",
            ),
        ),
        guarded(
            "CovSample",
            "covar_samp",
            build=_statistic,
            guard=_SPREAD,
            sql=AggregateSql(_of_pairs, arity=2, takes_distinct=False),
            examples=("covar_samp({whole}, {whole})", "covar_samp({small} / 4e0, {decimal})"),
            cancels=True,
        ),
        guarded(
            "CovPopulation",
            "covar_pop",
            build=_statistic,
            guard=_SPREAD,
            sql=AggregateSql(_of_pairs, arity=2, takes_distinct=False),
            examples=("covar_pop({whole}, {whole})", "covar_pop({small} / 4e0, {decimal})"),
            cancels=True,
        ),
        guarded(
            "Corr",
            "corr",
            build=_statistic,
            guard=_SPREAD,
            sql=AggregateSql(_correlation, arity=2, takes_distinct=False),
            examples=("corr({whole}, {whole})", "corr({small} / 4e0, {decimal})"),
            cancels=True,
        ),
        guarded(
            "Skewness",
            "skewness",
            build=_statistic,
            guard=_SPREAD,
            sql=AggregateSql(_moment(moments.SKEWNESS)),
            examples=("select key, skewness(small_a) x from {table} group by key",),
        ),
        guarded(
            "Kurtosis",
            "kurtosis",
            build=_statistic,
            guard=_SPREAD,
            sql=AggregateSql(_moment(moments.KURTOSIS)),
            examples=("select key, kurtosis(small_a) x from {table} group by key",),
        ),
        guarded(
            "RegrReplacement",
            "regr_sxx",
            build=read_aggregation,
            guard=_FLOATS,
            sql=AggregateSql(_regression("sxx"), takes_distinct=False),
            examples=("regr_sxx({small}, {whole})", "regr_syy({small} / 4e0, {whole})"),
        ),
        guarded(
            "RegrSXY",
            "regr_sxy",
            build=read_aggregation,
            guard=_FLOATS,
            sql=AggregateSql(_regression("sxy"), arity=2, takes_distinct=False),
            examples=("regr_sxy({small}, {whole})",),
            cancels=True,
        ),
        guarded(
            "RegrSlope",
            "regr_slope",
            build=read_aggregation,
            guard=_FLOATS,
            sql=AggregateSql(_regression("slope"), arity=2, takes_distinct=False),
            examples=("regr_slope({small}, {whole})",),
            cancels=True,
        ),
        guarded(
            "RegrIntercept",
            "regr_intercept",
            build=read_aggregation,
            guard=_FLOATS,
            sql=AggregateSql(_regression("intercept"), arity=2, takes_distinct=False),
            examples=("regr_intercept({small}, {whole})",),
            cancels=True,
        ),
        guarded(
            "RegrR2",
            "regr_r2",
            build=read_aggregation,
            guard=_FLOATS,
            sql=AggregateSql(_regression("r2"), arity=2, takes_distinct=False),
            examples=("regr_r2({small}, {whole})",),
            cancels=True,
        ),
    ),
    arrow_functions=(*moments.FUNCTIONS,),
)
