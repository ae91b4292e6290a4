"""Aggregate functions.

Statistics are of finite numbers: with infinite ones Spark's answer depends on how rows are divided.
"""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "Count": (
        *("count({any})", "count(*)", "count(distinct {any})", "count({int}, {string})"),
        *("count(distinct {int}, {small})", "count_if({boolean})"),
    ),
    "Sum": ("sum({number})", "try_sum({whole})", "sum(distinct {number})"),
    "Average": ("avg({number})", "try_avg({decimal})", "avg(distinct {whole})"),
    "Min": ("min({any})", "bool_and({boolean})", "min({array})", "min(struct({int}, {string}))"),
    "Max": ("max({any})", "bool_or({boolean})", "max({array})", "max({struct})"),
    "StddevSamp": (
        "stddev({whole})",
        "stddev({decimal})",
        "stddev({small} / 4e0)",
        "stddev(distinct {small})",
    ),
    "StddevPop": (
        "stddev_pop({whole})",
        "stddev_pop({decimal})",
        "stddev_pop({small} / 4e0)",
    ),
    "VarianceSamp": (
        "variance({whole})",
        "variance({decimal})",
        "variance({small} / 4e0)",
    ),
    "VariancePop": (
        "var_pop({whole})",
        "var_pop({decimal})",
        "var_pop({small} / 4e0)",
    ),
    "CovSample": ("covar_samp({whole}, {whole})", "covar_samp({small} / 4e0, {decimal})"),
    "CovPopulation": ("covar_pop({whole}, {whole})", "covar_pop({small} / 4e0, {decimal})"),
    "Corr": ("corr({whole}, {whole})", "corr({small} / 4e0, {decimal})"),
    "Skewness": ("select key, skewness(small_a) x from {table} group by key",),
    "Kurtosis": ("select key, kurtosis(small_a) x from {table} group by key",),
    "RegrReplacement": ("regr_sxx({small}, {whole})", "regr_syy({small} / 4e0, {whole})"),
    "RegrSXY": ("regr_sxy({small}, {whole})",),
    "RegrSlope": ("regr_slope({small}, {whole})",),
    "RegrIntercept": ("regr_intercept({small}, {whole})",),
    "RegrR2": ("regr_r2({small}, {whole})",),
    "BitAndAgg": ("bit_and({whole})",),
    "BitOrAgg": ("bit_or({whole})",),
    "BitXorAgg": ("bit_xor({whole})", "bit_xor(distinct {whole})"),
    "PivotFirst": (
        "select * from (select key, small_a, int_a x from {table}) pivot (max(x) for small_a in (1, 2, null, 99))",
        "select * from (select key, boolean_a p, int_a x from {table}) pivot (count(x), min(x) for p in (true, false))",
    ),
    "Percentile": (
        "percentile({number}, 0.3)",
        "median({number})",
        "percentile({number}, array(0.25, 0.5, 0.9))",
        "percentile_cont(0.75) within group (order by {whole} desc)",
    ),
    "PercentileDisc": (
        "percentile_disc(0.07) within group (order by {number})",
        "percentile_disc(0.5) within group (order by {number} desc)",
    ),
    "MinBy": ("min_by({any}, id)", "min_by({int}, struct({double}, {string}, id))"),
    "MaxBy": ("max_by({any}, id)", "max_by(struct({int}, {string}), struct({date}, id))"),
    "MaxMinByK": ("max_by({any}, id, 2)", "min_by({int}, struct({double}, id), 3)"),
    "Mode": ("mode() within group (order by {any})", "mode() within group (order by {any} desc)"),
    "CollectListUnordered": (
        "sort_array(collect_list({any}))",
        "size(collect_list({int}))",
        "array_sort(array_distinct(collect_list({string})))",
        "sort_array(collect_list(struct({int} as a, {string} as b)), false)",
        "sort_array(transform(filter(collect_list({int}), x -> x > 0), x -> -x))",
    ),
    "HyperLogLogPlusPlus": (
        "approx_count_distinct({whole})",
        "approx_count_distinct({string}, 0.02)",
        "approx_count_distinct({double})",
        "approx_count_distinct({date}) filter (where {boolean})",
    ),
    "CollectSetUnordered": ("sort_array(collect_set({whole}), false)", "array_max(collect_set({date}))"),
    "ListAgg": (
        "listagg({string}, ',') within group (order by id)",
        "string_agg(distinct {string}) within group (order by {string} desc)",
    ),
}
