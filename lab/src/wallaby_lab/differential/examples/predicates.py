"""Comparisons, logic and tests for NULL."""

from __future__ import annotations

from typing import Final

_MANY: Final = ", ".join(map(str, range(-6, 9)))

EXAMPLES: Final = {
    "EqualTo": ("{any} = {any}", "{any} <> {any}", "{number} = {number}"),
    "EqualNullSafe": ("{any} <=> {any}", "not ({any} <=> {any})"),
    "LessThan": ("{any} < {any}", "{number} < {number}"),
    "LessThanOrEqual": ("{any} <= {any}",),
    "GreaterThan": ("{any} > {any}",),
    "GreaterThanOrEqual": ("{any} >= {any}",),
    "And": ("{boolean} and {boolean}", "{int} <> 0 and 10 / {int} > 1"),
    "Or": ("{boolean} or {boolean}", "{small} = 0 or 10 / {small} > 1"),
    "Not": ("not {boolean}", "not ({any} < {any})"),
    "IsNull": ("{any} is null",),
    "IsNotNull": ("{any} is not null",),
    "In": (
        "{number} in (1, 2, null)",
        "{string} not in ('a', 'ß', '')",
        "{date} in (date'1582-10-04', date'2020-12-31')",
    ),
    "InSet": (
        f"{{int}} in ({_MANY})",
        f"{{double}} not in ({_MANY}, null)",
        f"cast({{small}} as string) in ({_MANY})",
    ),
    "IsNaN": ("isnan({double})", "isnan({float})"),
}
