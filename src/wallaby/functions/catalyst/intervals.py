"""Intervals: whole numbers of microseconds, or of months."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import DAY_TIMES, INTEGRAL, YEAR_MONTHS
from wallaby.functions.catalyst.entry import DOUBT, exact, guarded, unsupported
from wallaby.relations.types import Kind

_MIXED: Final = "intervals that mix months, days and times are not supported"
_FITTING: Final = f"where the product is an interval; {DOUBT}"

ENTRIES: Final = (
    exact("ExtractANSIIntervalDays", "interval_days", DAY_TIMES),
    exact("ExtractANSIIntervalHours", "interval_hours", DAY_TIMES),
    exact("ExtractANSIIntervalMinutes", "interval_minutes", DAY_TIMES),
    exact("ExtractANSIIntervalSeconds", "interval_seconds", DAY_TIMES),
    exact("ExtractANSIIntervalYears", "interval_years", YEAR_MONTHS),
    exact("ExtractANSIIntervalMonths", "interval_months", YEAR_MONTHS),
    guarded("MakeYMInterval", "make_months", INTEGRAL, guard="a value that does not fit is an error"),
    guarded(
        "MakeDTInterval",
        "make_time_interval",
        *(INTEGRAL, INTEGRAL, INTEGRAL, frozenset({Kind.DECIMAL})),
        guard=f"of up to 50 million days and a billion hours; {DOUBT}",
    ),
    guarded("MultiplyDTInterval", "multiply_interval", DAY_TIMES, INTEGRAL, guard=_FITTING),
    guarded("MultiplyYMInterval", "multiply_interval", YEAR_MONTHS, INTEGRAL, guard=_FITTING),
    unsupported("MakeInterval", _MIXED, "use make_dt_interval or make_ym_interval"),
)
