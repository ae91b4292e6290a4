"""Dates."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "Year": ("year({date})", "extract(year from {date})"),
    "Quarter": ("quarter({date})",),
    "Month": ("month({date})",),
    "DayOfMonth": ("day({date})",),
    "DayOfWeek": ("dayofweek({time})",),
    "WeekDay": ("weekday({date})",),
    "DayOfYear": ("dayofyear({date})",),
    "WeekOfYear": ("weekofyear({date})",),
    "YearOfWeek": ("extract(yearofweek from {date})",),
    "DayName": ("dayname({date})",),
    "MonthName": ("monthname({date})",),
    "LastDay": ("last_day({time})",),
    "NextDay": ("next_day({date}, 'MO')", "next_day({date}, 'sunday')", "next_day({time}, 'Thu')"),
    "TruncDate": tuple(f"trunc({{date}}, '{unit}')" for unit in ("yy", "QUARTER", "mon", "week", "day", "?")),
    "DateAdd": ("date_add({date}, {small})", "{date} + 40", "date_add({date}, {int})"),
    "DateSub": ("date_sub({date}, 45)", "{date} - 1", "date_sub({date}, {small})"),
    "DateDiff": ("datediff({time}, {time})",),
    "AddMonths": (
        "add_months({date}, {small})",
        "add_months({date}, -13)",
        "unix_date(add_months({date}, 9000000))",
    ),
    "DateAddYMInterval": ("{date} + interval 1 month", "{date} - interval '2-3' year to month"),
    "SubtractDates": ("{date} - {date}",),
    "UnixDate": ("unix_date({date})",),
    "DateFromUnixDate": ("date_from_unix_date({small})", "date_from_unix_date(unix_date({date}))"),
    "MakeDate": ("make_date(2000 + {small}, {small}, {small})", "make_date({int}, {small}, 28)"),
}
