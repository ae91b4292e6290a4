"""What Catalyst puts into plans by itself. No expression of SQL is one of these: a whole query brings them about."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "Invoke": ("to_json({struct})",),
    "AggregateExpression": ("sum({int}) filter (where {small} > 2)",),
    "UnscaledValue": ("sum({decimal_5_2})", "avg({decimal_9_0})"),
    "OnlyOfAGroupSet": (
        "select key, count(distinct int_a) c, sum(distinct small_b) s, max(date_c) m from {table} group by key",
    ),
    "KnownNotContainsNull": ("select array_compact(array_int_a) c from {table}",),
    "KnownFloatingPointNormalized": ("select id, count(*) over (partition by double_a) c from {table}",),
    "NormalizeNaNAndZero": (
        "select id, count(*) over (partition by float_a) c from {table}",
        "select l.id, r.id as other from {table} l join {table} r on l.double_a = r.double_b",
    ),
}

#: Native entries that no query is sure to have in its optimized plan, and why they need no example.
WITHOUT_EXAMPLE: Final = {
    "CheckOverflow": "Spark 4 plans it inside aggregates only; older plans had it around arithmetic",
    "UnaryPositive": "Catalyst takes it away before a plan is optimized",
    "KnownNotNull": "a tag that Catalyst puts around user-defined functions' arguments",
    "AtLeastNNonNulls": "no SQL: `dropna` with a threshold; tested on its own",
    "CharVarcharCodegenUtils#readSidePadding": "only columns that a table declares as CHAR; tested on its own",
    "KnownNullable": "a tag that Catalyst puts around columns of outer joins under construction",
}
