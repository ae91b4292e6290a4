"""Timestamps and intervals."""

from __future__ import annotations

from typing import Final

_TRUNCATED: Final = (
    *("year", "yyyy", "QUARTER", "mon", "week", "DD", "day", "hour", "minute", "second", "millisecond"),
    *("microsecond", "nonsense"),
)
_UNITS: Final = (
    *("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"),
)
_PATTERNS: Final = (
    *(
        "yyyy-MM-dd HH:mm:ss.SSS",
        "d/M/yy",
        "EEE, dd MMM yyyy hh:mm:ss a",
        "EEEE MMMM d y",
        "QQ-D DDD",
        "H:m:s S",
    ),
    *("SSSSSS", "yyyyMMdd\\'T\\'HHmmss", "h %a", "LLL SSSSSSSSS"),
)
_INTERVAL: Final = "({timestamp} - {timestamp})"
_MONTHS: Final = "make_ym_interval({small}, {small})"

EXAMPLES: Final = {
    "Hour": ("hour({timestamp})", "hour({timestamp_ntz})"),
    "Minute": ("minute({timestamp})", "minute({timestamp_ntz})"),
    "Second": ("second({timestamp})", "second({timestamp_ntz})"),
    "SecondWithFraction": ("extract(second from {timestamp})", "extract(second from {timestamp_ntz})"),
    "TruncTimestamp": tuple(f"date_trunc('{unit}', {{time}})" for unit in _TRUNCATED),
    "TimestampAddInterval": (
        "{timestamp} + interval 1 day",
        "{timestamp_ntz} - interval '1 02:03:04.5' day to second",
        "{timestamp} + make_dt_interval({small}, {small})",
        "{date} + interval 3 hours",
    ),
    "TimestampAddYMInterval": (
        "{timestamp} - interval 1 month",
        "{timestamp_ntz} + interval '1-1' year to month",
    ),
    "TimestampAdd": tuple(f"timestampadd({unit}, {{small}}, {{time}})" for unit in _UNITS),
    "TimestampDiff": tuple(f"timestampdiff({unit}, {{time}}, {{time}})" for unit in _UNITS),
    "SubtractTimestamps": (_INTERVAL, "{timestamp_ntz} - {timestamp_ntz}", "{timestamp} - {date}"),
    "MonthsBetween": ("months_between({time}, {time})", "months_between({timestamp}, {timestamp}, false)"),
    "UnixSeconds": ("unix_seconds({timestamp})",),
    "UnixMillis": ("unix_millis({timestamp})",),
    "UnixMicros": ("unix_micros({timestamp})",),
    "SecondsToTimestamp": ("timestamp_seconds({int})", "timestamp_seconds({small} * 1.5e0)"),
    "MillisToTimestamp": ("timestamp_millis({int})", "timestamp_millis({bigint})"),
    "MicrosToTimestamp": ("timestamp_micros({int})", "timestamp_micros(unix_micros({timestamp}))"),
    "UnixTimestamp": ("unix_timestamp({time})", "unix_timestamp({moment}, 'yyyy-MM-dd')"),
    "ToUnixTimestamp": (
        "to_unix_timestamp({time})",
        "to_unix_timestamp(date_format({date}, 'yyyyMMdd'), 'yyyyMMdd')",
    ),
    "DateFormatClass": tuple(f"date_format({{time}}, '{pattern}')" for pattern in _PATTERNS),
    "FromUnixTime": ("from_unixtime({int})", "from_unixtime({small}, 'dd.MM.yy')"),
    "GetTimestamp": (
        "try_to_timestamp({moment}, 'yyyy-MM-dd HH:mm:ss')",
        "to_date(date_format({date}, 'dd/MM/yyyy'), 'dd/MM/yyyy')",
        "to_date({moment}, 'yyyy-MM-dd')",
        "to_timestamp(date_format({timestamp}, 'yyyyMMddHHmmss.SSSSSS'), 'yyyyMMddHHmmss.SSSSSS')",
        "to_date(date_format({date}, 'yyyy-MM'), 'yyyy-MM')",
    ),
    "FromUTCTimestamp": (
        "from_utc_timestamp({timestamp}, 'Europe/Berlin')",
        "from_utc_timestamp({timestamp}, '+05:30')",
        "from_utc_timestamp({timestamp}, 'PST')",
    ),
    "ToUTCTimestamp": (
        "to_utc_timestamp({timestamp}, 'America/New_York')",
        "to_utc_timestamp({timestamp}, 'Asia/Kolkata')",
    ),
    "ConvertTimezone": (
        "convert_timezone('America/New_York', 'Europe/Berlin', {timestamp_ntz})",
        "convert_timezone('Australia/Lord_Howe', {timestamp_ntz})",
    ),
    "MakeTimestamp": (
        "make_timestamp(2021, {small}, {small}, {small}, 30, 12.5)",
        "make_timestamp_ntz(2000, 2, 29, {small}, {small}, {decimal_5_2})",
        "make_timestamp(2021, 3, 28, 2, 30, 0, 'Europe/Berlin')",
        "try_make_timestamp({small}, {small}, {small}, {small}, {small}, {small})",
        "make_timestamp({int}, {small}, 28, 23, 59, 59.5)",
    ),
    "PreciseTimestampConversion": (
        "select window(timestamp_a, '1 hour').start at, count(*) c from {table} group by 1",
    ),
    "TemporalCast": (
        "cast({timestamp} as date)",
        "cast({timestamp_ntz} as date)",
        "cast({date} as timestamp)",
        "cast({date} as timestamp_ntz)",
        "cast({timestamp} as timestamp_ntz)",
        "cast({timestamp_ntz} as timestamp)",
        "cast({timestamp} as bigint)",
        "cast({timestamp} as double)",
        "cast({timestamp} as string)",
        "cast({timestamp_ntz} as string)",
        "cast({int} as timestamp)",
        "cast({bigint} as timestamp)",
        "try_cast({moment} as timestamp)",
        "try_cast({moment} as timestamp_ntz)",
        "cast(cast({timestamp} as string) as timestamp)",
    ),
    "MakeYMInterval": (f"extract(year from {_MONTHS})", "{date} + make_ym_interval(1, {small})"),
    "MakeDTInterval": (
        "extract(day from make_dt_interval({small}, {small}, {small}, {small} + 0.25))",
        "{timestamp} + make_dt_interval(0, {small}, {small}, 1.5)",
    ),
    "MultiplyDTInterval": (
        "{timestamp} + interval '1' hour * {small}",
        f"extract(hour from {_INTERVAL} * {{small}})",
    ),
    "MultiplyYMInterval": (
        "{date} + interval '1' month * {small}",
        f"extract(month from {_MONTHS} * {{small}})",
    ),
    "ExtractANSIIntervalYears": (f"extract(year from {_MONTHS})",),
    "ExtractANSIIntervalMonths": (f"extract(month from {_MONTHS})",),
    "ExtractANSIIntervalDays": (f"extract(day from {_INTERVAL})",),
    "ExtractANSIIntervalHours": (f"extract(hour from {_INTERVAL})",),
    "ExtractANSIIntervalMinutes": (f"extract(minute from {_INTERVAL})",),
    "ExtractANSIIntervalSeconds": (f"extract(second from {_INTERVAL})",),
}
