"""Dates, times and intervals."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "Year": ("year({date})", "extract(year from {date})"),
    "Month": ("month({date})",),
    "DayOfMonth": ("day({date})",),
    "DateAdd": ("date_add({date}, {small})", "{date} + 40", "date_add({date}, {int})"),
    "DateSub": ("date_sub({date}, 45)", "{date} - 1"),
    "AddMonths": ("add_months({date}, {small})", "add_months({date}, -13)"),
    "DateAddYMInterval": ("{date} + interval 1 month", "{date} - interval '2-3' year to month"),
}
