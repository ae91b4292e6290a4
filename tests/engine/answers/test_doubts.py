"""Functions that are computed for plain values only: with others Spark's answer stands in the place of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.engine.outcome import outcome

from wallaby.engine import Engine

MOMENTS = (
    *("2020-02-29", "2020-2-3", "2020-02", "1999", " 2020-01-01 01:02:03 ", "2020-01-01T01:02:03.4"),
    *("2020-01-01 1:2:3.", "2020-01-01 01:02:03.123456789", "2020-01-01 01:02", "2020-10-25 02:30:00"),
    *("2020-03-29 02:30:00", "2020-01-01 01:02:03Z", "2020-01-01 01:02:03 UTC", "1500-01-01 00:00:00+05:30"),
    *("0002-01-01 00:00:00", "9999-12-30 23:59:59.999999-05:59", None, "1883-11-18 12:03:57"),
)
NO_MOMENTS = ("", "x", "2020-13-01", "2021-02-29 00:00:00", "2020-01-01 24:00:00", "2020-01-01 00:00:60", "é")
#: Texts that only Spark reads, for good or ill.
ODD = (
    *("12:30:00", "T12:30", "2020-01-01 01:02:03 Europe/Paris", "+2020-01-01", "20200101", "2020-01-01 12"),
    *(
        "2020-01-01 01:02:03+1:00",
        "2020-01-01 01:02:03 nowhere",
        "2020-",
    ),
)
PARTS = [f"parse_url(v, '{part}')" for part in ("HOST", "PATH", "FILE", "REF", "PROTOCOL", "AUTHORITY")]
ZONES = ("UTC", "Europe/Paris", "America/New_York")


@pytest.fixture(params=ZONES)
def zoned(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def view(spark: SparkSession, path: Path, values: tuple[object, ...]) -> None:
    pq.write_table(pa.table({"id": range(len(values)), "v": list(values)}), path)
    spark.read.parquet(str(path)).createOrReplaceTempView("doubts")


def agree(spark: SparkSession, engine: Engine, sql: str, *, native: bool) -> None:
    query = spark.sql(sql)
    assert engine.fallback_reasons(query) == []
    result = engine.run(query)
    assert outcome(result.rows) == outcome(query.collect)
    assert result.native is native
    assert result.stats.native is native


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
def test_plain_texts_are_timestamps(zoned: SparkSession, engine: Engine, tmp_path: Path, type_: str) -> None:
    view(zoned, tmp_path / "t.parquet", MOMENTS)
    agree(zoned, engine, f"select id, cast(v as {type_}) t from doubts", native=True)
    agree(
        zoned,
        engine,
        f"select cast(cast(v as {type_}) as string) t, count(*) from doubts group by 1",
        native=True,
    )


def test_what_is_no_timestamp_is_null_or_an_error(
    spark: SparkSession, engine: Engine, tmp_path: Path
) -> None:
    view(spark, tmp_path / "t.parquet", NO_MOMENTS)
    agree(spark, engine, "select id, try_cast(v as timestamp) t from doubts", native=True)
    for place in range(len(NO_MOMENTS)):
        agree(spark, engine, f"select cast(v as timestamp) t from doubts where id = {place}", native=True)


def test_a_text_in_doubt_leaves_the_query_to_spark(
    spark: SparkSession, engine: Engine, tmp_path: Path
) -> None:
    view(spark, tmp_path / "t.parquet", (*MOMENTS, *ODD))
    for place in range(len(MOMENTS), len(MOMENTS) + len(ODD)):
        if ODD[place - len(MOMENTS)].startswith(("12:", "T")):
            continue  # a time of today, which may be another day when it is asked for again
        where = f"where id in (0, {place})"
        agree(spark, engine, f"select id, try_cast(v as timestamp) t from doubts {where}", native=False)
    query = spark.sql("select id, try_cast(v as timestamp_ntz) t from doubts")
    assert engine.to_arrow(query).sort_by("id") == query.toArrow().sort_by("id")
    assert sum(batch.num_rows for batch in engine.run(query).batches()) == len(MOMENTS) + len(ODD)


def test_seconds_that_do_not_fit_are_cut_off_by_spark(
    spark: SparkSession, engine: Engine, tmp_path: Path
) -> None:
    view(spark, tmp_path / "t.parquet", (0, 1_600_000_000, -(10**11), None))
    agree(
        spark,
        engine,
        "select id, cast(v as timestamp) t, cast(cast(v as int) as timestamp) u from doubts "
        "where v > -10000000000",
        native=True,
    )
    view(spark, tmp_path / "u.parquet", (1, 1_600_000_000_000_000))
    agree(
        spark, engine, "select id, cast(v as timestamp) > timestamp'2020-01-01' t from doubts", native=False
    )


@pytest.mark.parametrize(
    ("call", "plain", "odd"),
    [
        (
            "get_json_object(v, '$.a[1].b')",
            ('{"a": [0, {"b": "é\\n"}]}', '{"a": [0, {"b": -12}]}', '{"a": [1, {"b": true}]}', '{"a": []}', "{}"),
            ('{"a": [0, {"b": 1.50}]}', '{"a": [0, {"b": {"c": 1}}]}', '{"a": {"b": 1}}', "x", '{"a": [0, {"b": 1}',
             '{"a": [0, {"b": -0}]}', f'{{"a": [0, {{"b": {"1" * 1001}}}]}}', f'{{"c": 0.{"1" * 1001}}}'),
        ),
        (
            "json_tuple(v, 'a')",
            ('{"a": "é\\n", "b": [{}]}', '{"a": -12}', '{"a": true}', '{"a": null}', '{"b": 1.5}', "{}", None),
            ('{"a": 1.50}', '{"a": [0]}', '{"a": 1, "a": 2}', "[1]", "x", '{"a": 1', '{"a": -0}'),
        ),
        (
            "from_json(v, 'a bigint, b string, c double, d date, e boolean, f tinyint')",
            (
                '{"a": 1, "b": "é\\n", "c": 0.1, "d": "2020-02-29", "e": true, "f": -128, "g": [{}]}',
                '{"c": 3, "b": "", "a": null}',
                None,
                "{}",
            ),
            ('{"a": "1"}', '{"b": 1}', '{"f": 300}', '{"c": "x"}', '{"a": 1', "[1]", "", '{"d": "2020-1-1"}'),
        ),
        (
            "mask(v)",
            ("Ab-19 z", "", None),
            ("É", "ß1"),
        ),
        (
            "parse_url(v, 'QUERY', 'q')",
            ("http://a.b/c?q=1&r=2", "https://a.b:80/c?x=1#q", "ftp://host", "http://a.b/?xq=1"),
            ("http://a.b/c d?q=1", "mailto:a@b", "http://user:secret@a.b/?q=%20"),
        ),
        (
            f"concat_ws('|', {', '.join(PARTS)})",
            ("http://a.b/c?q=1&r=2", "HTTPS://A.b:80/c?x=1#q", "ftp://host", "http://a.b/?xq=1"),
            ("http://1.2.3.4/", "a"),
        ),
    ],
)  # fmt: skip
def test_other_functions(
    spark: SparkSession,
    engine: Engine,
    tmp_path: Path,
    call: str,
    plain: tuple[str, ...],
    odd: tuple[str, ...],
) -> None:
    view(spark, tmp_path / "t.parquet", plain)
    agree(spark, engine, f"select id, {call} found from doubts", native=True)
    view(spark, tmp_path / "u.parquet", (*plain, *odd))
    for place in range(len(plain), len(plain) + len(odd)):
        agree(spark, engine, f"select id, {call} found from doubts where id in (0, {place})", native=False)


def test_several_members_of_an_object(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    view(spark, tmp_path / "t.parquet", ('{"a": 1, "b": "x"}', '{"b": false}', None, "{}"))
    view_of_members = "lateral view json_tuple(v, 'b', 'c', 'a') t as b, c, a"
    agree(spark, engine, f"select id, a, b, c from doubts {view_of_members}", native=True)
    agree(spark, engine, f"select b, count(a) n from doubts {view_of_members} group by b", native=True)
    assert engine.fallback_reasons(spark.sql("select json_tuple(v, 'a.b') from doubts"))


def test_format_string_is_native(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    view(spark, tmp_path / "t.parquet", ("a", "%s", None, "é"))
    agree(
        spark, engine, "select format_string('%d%% of %s%n%1$s %s', id, v, id = 1) t from doubts", native=True
    )
    assert engine.fallback_reasons(spark.sql("select format_string('%5d', id) t from doubts"))
    assert engine.fallback_reasons(spark.sql("select format_string('%s %s', id) t from doubts"))


@pytest.mark.parametrize(
    ("interval", "plain", "odd"),
    [
        ("make_dt_interval(int(v), int(v), int(v), v + 0.25)", (0, 3, -40, None, 40_000_000), 60_000_000),
        ("make_dt_interval(0, int(v))", (1, 1_000_000_000), -2_000_000_000),
    ],
)
def test_intervals_of_days_and_hours_are_made(
    spark: SparkSession, engine: Engine, tmp_path: Path, interval: str, plain: tuple[int, ...], odd: int
) -> None:
    sql = f"select id, extract(day from {interval}) d, extract(second from {interval}) s from doubts"
    view(spark, tmp_path / "t.parquet", plain)
    agree(spark, engine, sql, native=True)
    view(spark, tmp_path / "u.parquet", (*plain, odd))
    agree(spark, engine, sql, native=False)


@pytest.mark.parametrize(
    ("multiple", "plain", "odd"),
    [
        ("extract(second from interval '1 02:03:04.5' day to second * v)", (0, 3, -40, None), 2_000_000_000),
        ("extract(day from v * interval '1' day)", (106_751_991, -106_751_991), 106_751_992),
        ("extract(year from interval '2-7' year to month * v)", (0, 5, -7, None, 60_000_000), 80_000_000),
    ],
)
def test_intervals_are_multiplied_where_the_product_is_one(
    spark: SparkSession, engine: Engine, tmp_path: Path, multiple: str, plain: tuple[int, ...], odd: int
) -> None:
    sql = f"select id, {multiple} m from doubts"
    view(spark, tmp_path / "t.parquet", plain)
    agree(spark, engine, sql, native=True)
    view(spark, tmp_path / "u.parquet", (*plain, odd))
    result = engine.run(spark.sql(sql))
    with pytest.raises((PySparkException, Py4JJavaError), match="overflow"):
        result.rows()
    assert result.native is False
