"""Aggregate functions."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "Count": ("count({any})", "count(*)", "count(distinct {any})"),
    "Sum": ("sum({number})", "try_sum({whole})", "sum(distinct {number})"),
    "Average": ("avg({number})", "try_avg({decimal})", "avg(distinct {whole})"),
    "Min": ("min({any})", "min({array})", "min(struct({int}, {string}))"),
    "Max": ("max({any})", "max({array})", "max({struct})"),
}
