"""CASE, IF, COALESCE and their like."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "CaseWhen": (
        "case when {boolean} then {any} when {boolean} then {any} end",
        "case {small} when 1 then {any} when 2 then null else {any} end",
        "case when {small} = 0 then 0 else 10 div {small} end",
    ),
    "If": ("if({boolean}, {any}, {any})", "nullif({any}, {any})", "if({small} = 0, 0, 10 / {small})"),
    "Coalesce": ("coalesce({any}, {any})", "nvl({number}, {number})", "coalesce({small}, 1 / 0)"),
    "Greatest": ("greatest({any}, {any})", "greatest({double}, {double}, null)"),
    "Least": ("least({any}, {any})", "least({double}, 0.0D, {double})"),
    "NaNvl": ("nanvl({double}, {double})", "nanvl({float}, {float})"),
}
