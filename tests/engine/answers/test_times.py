"""Dates, timestamps and intervals in several time zones, over odd days and times: the same as Spark's."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.outcome import natively, outcome

from wallaby.engine import Engine

ROWS = 300
DAY = 86_400_000_000
#: Around changes of clocks, the beginning of the calendar, its reform, and far away.
TIMES = (
    *(
        0,
        -1,
        -62_135_596_800_000_001,
        253_402_300_800_000_000,
        -12_219_292_800_000_000,
        4_108_945_000_000_000,
    ),
    *(1_616_893_200_000_000, 1_616_896_799_999_999, 1_635_640_200_000_000, 1_635_643_800_000_000),
    *(1_541_300_400_000_000, -1_680_483_600_000_000),
)
DAYS = (0, -1, -719_162, -719_528, 2_932_897, -141_428, 47_482, 59, 18_321, 18_659, 17_839)

DATES = """
    quarter(da), dayofweek(da), weekday(da), dayofyear(da), weekofyear(da), extract(yearofweek from da), year(da),
    month(da), day(da), dayname(da), monthname(da), last_day(da), next_day(da, 'MO'), next_day(da, 'sunday'),
    datediff(da, db),
    trunc(da, 'MM'), trunc(da, 'week'), trunc(da, 'quarter'), trunc(da, 'YYYY'), trunc(da, 'DAY'), date_add(da, i),
    date_sub(da, i), da - 100, add_months(da, i), da - interval 2 months, da + ym, da - db, unix_date(da),
    date_from_unix_date(i), make_date(2020, j, 28), cast(da as timestamp_ntz), unix_date(add_months(da, 3600000 + i)),
    unix_date(add_months(da, -i * 1000)), unix_date(da - interval '300000' year),
    unix_date(make_date(400000 * j, j, 28)), unix_date(make_date(-400000 * j, 2, 28))
"""
TIMESTAMPS = """
    hour(ts), hour(tn), minute(ts), second(ts), extract(second from ts), year(ts), dayofweek(ts), weekofyear(tn),
    date_trunc('HOUR', ts), date_trunc('minute', ts), date_trunc('DD', ts), date_trunc('week', ts),
    date_trunc('mon', ts),
    date_trunc('quarter', tn), date_trunc('year', ts), date_trunc('second', ts), date_trunc('millisecond', ts),
    date_trunc('foo', ts), months_between(ts, tt), months_between(ts, tt, false), months_between(da, db),
    unix_timestamp(ts), unix_timestamp(da), unix_timestamp(tn), unix_seconds(ts), unix_millis(ts), unix_micros(ts),
    timestamp_seconds(l), timestamp_seconds(d), timestamp_millis(l), timestamp_micros(l), cast(ts as bigint),
    cast(ts as double), cast(ts as date), cast(da as timestamp), cast(tn as timestamp), cast(ts as timestamp_ntz)
"""
ARITHMETIC = """
    timestampadd(MONTH, i, ts), timestampadd(HOUR, i, ts), timestampadd(DAY, i, ts), timestampadd(DAY, i, tn),
    timestampadd(QUARTER, 1, ts), timestampadd(SECOND, l, ts), timestampdiff(DAY, ts, tt), timestampdiff(MONTH, ts, tt),
    timestampdiff(QUARTER, tn, ts), timestampdiff(YEAR, ts, tt), timestampdiff(HOUR, ts, tt),
    timestampdiff(WEEK, ts, tt),
    ts + interval 1 day, ts - interval '1' month, ts + interval '1 02:03:04.5' day to second, tn + interval 25 hours,
    ts + dt, tn + dt, ts + ym, da + dt, da + interval 3 hours, ts - tt, tn - tn, ts - da, dt, dt > interval 1 hour,
    extract(day from dt), extract(hour from dt), extract(minute from dt), extract(second from dt),
    extract(year from ym), extract(month from ym), from_utc_timestamp(ts, 'Asia/Tokyo'),
    to_utc_timestamp(ts, 'America/New_York'), from_utc_timestamp(ts, 'PST'), convert_timezone('Asia/Tokyo', tn),
    convert_timezone('America/New_York', 'Europe/Berlin', tn), try_make_timestamp(2020, j, j, i, i, seconds),
    make_timestamp(2020, 3, 29, 2, i % 10 + 20, 60), make_timestamp_ntz(2020, j, j, 1, 2, 3.4),
    make_timestamp(2021, 10, j, 1, 30, 0, 'America/New_York')
"""
TEXTS = """
    date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS'), date_format(tn, 'EEE, d MMM yy h:mm:ss a'),
    date_format(da, 'EEEE MMMM D y'),
    date_format(ts, "yyyyMMdd'T'HHmmss''SSSSSSSSS %q"), from_unixtime(l), from_unixtime(i, 'QQ.DDD'),
    to_date(date_format(da, 'dd/MM/yyyy'), 'dd/MM/yyyy'), to_date(date_format(da, 'yyyy-MM'), 'yyyy-MM'),
    to_timestamp(date_format(ts, 'yyyyMMddHHmmss.SSSSSS'), 'yyyyMMddHHmmss.SSSSSS'),
    unix_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm:ss')), unix_timestamp(date_format(tn, 'dd.MM.yyyy'), 'dd.MM.yyyy'),
    try_to_timestamp(date_format(ts, 'yyyy-MM-dd'), 'yyyy-dd-MM'),
    try_to_timestamp(left(date_format(ts, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), 19 + j), "yyyy-MM-dd't'HH:mm:ss.SSSSSS"),
    try_to_timestamp(concat(left('12345', j), date_format(ts, ' HH:mm:ss dd.MM.yyyy')), 'SSS HH:mm:ss dd.MM.yyyy')
"""
ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo")


@pytest.fixture(scope="module", autouse=True)
def times(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("times")
    chance = random.Random(8)

    def time() -> int | None:
        near = chance.choice(TIMES) + chance.choice((0, 1, -1, DAY, 30 * 60_000_000, -31 * DAY))
        anywhere = chance.randrange(-5_000_000_000, 8_000_000_000) * 1_000_000 + chance.randrange(1_000_000)
        return chance.choice((near, near, anywhere, anywhere, anywhere, None))

    def day() -> int | None:
        near, anywhere = chance.choice(DAYS) + chance.choice((0, 1, -31)), chance.randrange(-800_000, 900_000)
        return chance.choice((near, near, anywhere, anywhere, None))

    def column(make: object, type_: pa.DataType) -> pa.Array:
        assert callable(make)
        return pa.array([make() for _ in range(ROWS)], type_)

    whole = [0, 1, -1, 12, 13, 29, 31, 59, 60, -500, None]
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int32()),
            "ts": column(time, pa.timestamp("us", "UTC")),
            "tt": column(time, pa.timestamp("us", "UTC")),
            "tn": column(time, pa.timestamp("us")),
            "da": column(day, pa.date32()),
            "db": column(day, pa.date32()),
            "i": column(lambda: chance.choice(whole), pa.int32()),
            "j": column(lambda: chance.choice((1, 2, 3, 11, 12, None)), pa.int32()),
            "l": column(lambda: chance.choice((chance.randrange(-(10**11), 10**11), None)), pa.int64()),
            "d": column(
                lambda: chance.choice((0.5, -1e-7, float("nan"), float("inf"), 1e9 / 3)), pa.float64()
            ),
            "u": column(lambda: chance.choice((0, -1, DAY, chance.randrange(-(10**13), 10**13))), pa.int64()),
            "m": column(lambda: chance.choice((0, -1, 12, chance.randrange(-3000, 3000), None)), pa.int32()),
        }
    )
    pq.write_table(table, directory / "raw.parquet")
    spark.read.parquet(str(directory / "raw.parquet")).selectExpr(
        "*",
        "cast(abs(u % 6100) as decimal(16,6)) / 100 as seconds",
        "make_dt_interval(0, 0, 0, cast(u as decimal(18,0)) / 1000000) as dt",
        "make_ym_interval(0, m) as ym",
    ).repartition(2).write.parquet(str(directory / "times"))
    spark.read.parquet(str(directory / "times")).createOrReplaceTempView("times")


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", before)


def values(table: pa.Table) -> dict[int, dict[str, object]]:
    """By id, with times as the numbers that they are: Python has no year 0 and none after 9999."""
    plain = []
    for field, column in zip(table.schema, table.columns, strict=True):
        as_number = pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type)
        number = pa.int64() if as_number else pa.int32() if pa.types.is_date(field.type) else field.type
        plain.append(column.cast(number))
    rows = pa.table(plain, table.column_names).to_pylist()
    return {row.pop("id"): {name: repr(value) for name, value in row.items()} for row in rows}


@pytest.mark.parametrize(
    "expressions", [DATES, TIMESTAMPS, ARITHMETIC, TEXTS], ids=["dates", "timestamps", "arithmetic", "texts"]
)
def test_a_function_of_time_gives_what_spark_gives(
    engine: Engine, spark: SparkSession, zone: str, expressions: str
) -> None:
    df = spark.sql(f"select id, {expressions} from times")
    ours, theirs = natively(engine, df).arrow(), df.toArrow()
    assert ours.schema == theirs.schema
    expected = values(theirs)
    assert values(ours) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "make_date(2020, j, i)",
        "make_timestamp(2020, 3, 1, i, 0, 0)",
        "make_timestamp(2020, 3, 1, 1, 1, j - j + 60.5)",
    ],
)
def test_a_time_that_is_none_is_sparks_error(engine: Engine, spark: SparkSession, expression: str) -> None:
    df = spark.sql(f"select {expression} as x from times")
    assert outcome(lambda: natively(engine, df).rows()) == outcome(df.collect)


def test_windows_of_time_and_intervals_are_grouped_and_joined(engine: Engine, spark: SparkSession) -> None:
    for sql in (
        "select window(ts, '1 hour', '1 hour', '7 minutes').start as at, count(*) as c from times group by 1",
        "select dt, count(*) as c, max(ts - tt) as x from times group by dt",
        "select a.id, b.id as other from times a join times b on a.dt = b.dt and a.ts - b.ts > interval 1 day",
    ):
        df = spark.sql(sql)
        ours, theirs = natively(engine, df).arrow(), df.toArrow()
        assert ours.schema == theirs.schema
        assert sorted(map(str, columns(ours))) == sorted(map(str, columns(theirs)))


def columns(table: pa.Table) -> list[tuple[object, ...]]:
    casts = [
        column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column for column in table.columns
    ]
    return list(zip(*(column.to_pylist() for column in casts), strict=True))
