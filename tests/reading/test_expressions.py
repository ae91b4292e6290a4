"""Expressions: functions, types, nullability and evaluation modes are Catalyst's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from tests.reading.reading import aggregated, reasons_of, selected
from tests.trees import map_of

from wallaby.catalyst.data_types import data_type
from wallaby.reading.reader import read_plan
from wallaby.relations.expression import Aggregation, Call, EvalMode, Literal
from wallaby.relations.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    DataType,
    Kind,
    array,
    decimal,
    struct,
)

pytestmark = pytest.mark.spark

NAIVE = datetime(2020, 1, 2, 3, 4, 5, 600000, tzinfo=UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("true", True, DataType(Kind.BOOLEAN)),
        ("5Y", 5, DataType(Kind.BYTE)),
        ("5S", 5, DataType(Kind.SHORT)),
        ("5", 5, INTEGER),
        ("5L", 5, LONG),
        ("-9223372036854775808L", -(2**63), LONG),
        ("1.5F", 1.5, DataType(Kind.FLOAT)),
        ("0.1D", 0.1, DOUBLE),
        ("double('infinity')", float("inf"), DOUBLE),
        ("1.50BD", Decimal("1.50"), decimal(3, 2)),
        ("-12345678901234567890.123456789BD", Decimal("-12345678901234567890.123456789"), decimal(29, 9)),
        ("'Grüße \"\\\\ \\n 🦘'", 'Grüße "\\ \n 🦘', STRING),
        ("''", "", STRING),
        ("X'00FF'", b"\x00\xff", DataType(Kind.BINARY)),
        ("date '1998-09-02'", date(1998, 9, 2), DATE),
        ("date '0001-01-01'", date(1, 1, 1), DATE),
        (
            "timestamp '2020-01-02 03:04:05.6'",
            datetime(2020, 1, 2, 3, 4, 5, 600000, tzinfo=UTC),
            DataType(Kind.TIMESTAMP),
        ),
        ("timestamp_ntz '2020-01-02 03:04:05.6'", NAIVE, DataType(Kind.TIMESTAMP_NTZ)),
        ("cast(null as int)", None, INTEGER),
        ("cast(null as decimal(10,3))", None, decimal(10, 3)),
        ("null", None, DataType(Kind.NULL)),
    ],
)
def test_a_literal_has_its_value_and_type(
    spark: SparkSession, text: str, value: object, kind: DataType
) -> None:
    made = selected(spark, text)
    assert made == Literal(value, kind)
    assert isinstance(made, Literal)
    assert type(made.value) is type(value)
    assert str(made.value) == str(value)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("i + 1", "add(i, 1)"),
        ("i - l", "subtract(cast(i), l)"),
        ("d * 2", "multiply(d, 2.0)"),
        ("i / 2", "divide(cast(i), 2.0)"),
        ("l % 3", "remainder(l, 3)"),
        ("-i", "negate(i)"),
        ("i = 1", "eq(i, 1)"),
        ("i <> 1", "ne(i, 1)"),
        ("i <=> 1", "eq_null_safe(i, 1)"),
        ("i < 1 or i >= 5", "or(lt(i, 1), ge(i, 5))"),
        ("not (p and i > 1)", "or(not(p), le(i, 1))"),
        ("i is null", "is_null(i)"),
        ("t is not null", "is_not_null(t)"),
        ("i in (3, 1)", "in(i, 3, 1)"),
        ("l in (1, small)", "or(eq(cast(l), 1.00), eq(cast(l), cast(small)))"),
        ("cast(list as array<int>)", "transform(list, lambda(cast(part), part))"),
        ("pair.x", "field(pair, 0)"),
        ("transform(list, x -> x + l)", "transform(list, lambda(add(x, l), x))"),
        ("split(t, '[.]a\\\\|')", "split(t, '.a|')"),
        ("array(i, 1)", "array(i, 1)"),
        ("named_struct('b c', i, 'd', array(l))", "struct(i, array(l))"),
        ("array(pair, null).x", "array(field(pair, 0), None)"),
        ("array(pair, null) = array()", "eq(array(pair, None), ())"),
        ("t in ('l','k','j','i','h','g','f','e','d','c','b','a')",
         "in(t, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l')"),
        ("t like '%a_b%'", "like(t, '%a_b%', '\\\\')"),
        ("t like 'a/%_' escape '/'", "like(t, 'a/%_', '/')"),
        ("t like 'a%'", "starts_with(t, 'a')"),
        ("t like '%a'", "ends_with(t, 'a')"),
        ("t like '%a%'", "contains(t, 'a')"),
        ("case when p then 1 when i > 2 then 2 else 3 end", "case(p, 1, gt(i, 2), 2, 3)"),
        ("case when p then i end", "case(p, i)"),
        ("if(p, i, 0)", "if(p, i, 0)"),
        ("coalesce(i, 0)", "coalesce(i, 0)"),
        ("nullif(i, 0)", "if(eq(i, 0), None, i)"),
        ("substring(t, 1, 2)", "substring(t, 1, 2)"),
        ("upper(t) || lower(t)", "concat(upper(t), lower(t))"),
        ("length(trim(t))", "length(trim(t))"),
        ("year(day) + month(day) + day(day)", "add(add(year(day), month(day)), day(day))"),
        ("extract(year from day)", "year(day)"),
        ("date_add(day, 3)", "date_add(day, 3)"),
        ("date_sub(day, 3)", "date_sub(day, 3)"),
        ("day - interval 3 days", "date_add(day, -3)"),
        ("add_months(day, 3)", "add_months(day, 3)"),
        ("day + interval '1' year", "add_months(day, 12)"),
        ("cast(i as bigint)", "cast(i)"),
        ("cast(t as int)", "from_text(t)"),
        ("sha2(t, 256)", "sha2(encode_utf8(t), 256)"),
        ("t rlike '^a'", "regexp_matches(t, '^a')"),
        ("regexp_replace(t, 'a+', '$0')", "regexp_replace(t, 'a+', '$0')"),
        ("i div 2", "integral_divide(cast(i), 2)"),
        ("pmod(i, 3)", "pmod(i, 3)"),
        ("abs(d)", "abs(d)"),
        ("round(small, 1)", "round(small, 1)"),
        ("ceil(small)", "ceil(small)"),
        ("trim('x' from t)", "trim(t, 'x')"),
        ("t like any ('_a', 'b_')", "or(like(t, '_a', '\\\\'), like(t, 'b_', '\\\\'))"),
        ("t not like all ('_a', 'b_')", "and(not(like(t, '_a', '\\\\')), not(like(t, 'b_', '\\\\')))"),
        ("hash(i, t)", "murmur3(42, i, t)"),
        ("xxhash64(i)", "xxhash64(42, i)"),
        ("url_decode(t)", "url_decode(t)"),
        ("try_url_decode(t)", "try_url_decode(t)"),
        ("encode(t, 'UTF-8')", "encode_utf8(t)"),
        ("isnan(d)", "is_nan(d)"),
    ],
)  # fmt: skip
def test_an_expression_is_read_as(spark: SparkSession, sql: str, text: str) -> None:
    import re

    # Column ids are differs every time.
    assert re.sub(r"#\d+", "", str(selected(spark, sql))) == text


def test_decimal_types_are_catalysts(spark: SparkSession) -> None:
    assert selected(spark, "big * big").type == decimal(38, 6)
    assert selected(spark, "big + small").type == decimal(21, 4)
    assert selected(spark, "cast(big as decimal(10,1))").type == decimal(10, 1)
    assert aggregated(spark, "sum(big)").type == decimal(30, 4)
    assert aggregated(spark, "avg(big)").type == decimal(24, 8)


def test_a_sum_of_short_decimals_loses_catalysts_wrapper(spark: SparkSession) -> None:
    made = aggregated(spark, "sum(small)")
    assert isinstance(made, Aggregation)
    assert (made.function, made.type, made.arguments[0].type) == ("sum", decimal(17, 2), decimal(7, 2))


def test_nullability_is_catalysts(spark: SparkSession) -> None:
    assert selected(spark, "i + 1").nullable
    assert not selected(spark, "coalesce(i, 0)").nullable
    assert not selected(spark, "i is null").nullable
    assert not aggregated(spark, "count(i)").nullable
    assert aggregated(spark, "sum(i)").nullable


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("i + 1", EvalMode.ANSI),
        ("try_add(i, 1)", EvalMode.TRY),
        ("try_divide(d, 2)", EvalMode.TRY),
        ("try_multiply(big, big)", EvalMode.TRY),
        ("try_cast(l as int)", EvalMode.TRY),
        ("cast(l as int)", EvalMode.ANSI),
    ],
)
def test_evaluation_modes_of_calls(spark: SparkSession, sql: str, mode: EvalMode) -> None:
    made = selected(spark, sql)
    assert isinstance(made, Call)
    assert made.mode is mode


def test_evaluation_modes_of_aggregations(spark: SparkSession) -> None:
    for sql, mode in (
        ("sum(l)", EvalMode.ANSI),
        ("try_sum(l)", EvalMode.TRY),
        ("try_avg(big)", EvalMode.TRY),
    ):
        made = aggregated(spark, sql)
        assert isinstance(made, Aggregation)
        assert made.mode is mode, sql


def test_with_ansi_off_decimals_and_doubles_are_read_in_legacy_mode(legacy: SparkSession) -> None:
    for sql in ("big + big", "d / 2", "cast(big as decimal(10,1))"):
        made = selected(legacy, sql)
        assert isinstance(made, Call)
        assert made.mode is EvalMode.LEGACY, sql
    made = aggregated(legacy, "sum(big)")
    assert isinstance(made, Aggregation)
    assert made.mode is EvalMode.LEGACY


@pytest.mark.parametrize("sql", ["i + 1", "-l", "cast(l as int)"])
def test_with_ansi_off_whole_numbers_wrap_around(legacy: SparkSession, sql: str) -> None:
    made = selected(legacy, sql)
    assert isinstance(made, Call)
    assert made.mode is EvalMode.LEGACY


@pytest.mark.parametrize("sql", ["cast(d as bigint)", "cast(big as int)"])
def test_with_ansi_off_casts_that_saturate_are_refused(legacy: SparkSession, sql: str) -> None:
    (reason,) = reasons_of(legacy, f"select {sql} as x from kinds")
    assert "as Java does" in reason
    assert "spark.sql.ansi.enabled=true" in reason


def test_the_sum_of_a_short_decimal_constant_is_one_of_decimals(spark: SparkSession) -> None:
    made = aggregated(spark, "sum(cast('-16.75' as decimal(5,2)))")
    assert isinstance(made, Aggregation)
    assert (made.function, made.type) == ("sum", decimal(15, 2))
    assert made.arguments == (Literal(Decimal("-16.75"), decimal(5, 2)),)


def test_an_average_of_short_decimals_is_one_of_whole_numbers(spark: SparkSession) -> None:
    made = aggregated(spark, "avg(small)")
    assert isinstance(made, Aggregation)
    assert (made.function, made.type) == ("avg", DOUBLE)
    assert str(made.arguments[0]).startswith("unscaled(small")


def test_count_star_has_no_argument(spark: SparkSession) -> None:
    made = aggregated(spark, "count(*)")
    assert isinstance(made, Aggregation)
    assert (made.function, made.arguments, made.type) == ("count", (), LONG)


def test_distinct_and_filter_are_kept(spark: SparkSession) -> None:
    made = aggregated(spark, "count(distinct i)")
    assert isinstance(made, Aggregation)
    assert made.distinct
    assert made.filter is None
    made = aggregated(spark, "sum(i) filter (where p)")
    assert isinstance(made, Aggregation)
    assert not made.distinct
    assert made.filter is not None
    assert str(made.filter).startswith("p#")


def test_a_null_in_a_list_stays_there(spark: SparkSession) -> None:
    assert str(selected(spark, "i in (1, 2, null)")).endswith(", 1, 2, None)")


def test_nan_is_known_not_to_be_in_a_long_list_without_it(spark: SparkSession) -> None:
    numbers = ", ".join(map(str, range(12)))
    assert str(selected(spark, f"d in ({numbers}, null)")).startswith("if(is_nan(d")
    for others in ("", ", null, 'NaN'"):
        assert str(selected(spark, f"d in ({numbers}{others})")).startswith("in(d")


@pytest.mark.parametrize(
    ("sql", "what", "why"),
    [
        ("t rlike '\\\\ba'", "RLike(t, ", "other engines may read"),
        ("regexp_replace(t, 'a*', '')", "RegExpReplace(", "may match the empty text"),
        ("t rlike t", "RLike(t, t)", "not a constant"),
        ("cast(cast(t as binary) as string)", "Cast(Cast(t))", "a cast from binary to string"),
        ("rand()", "Rand(", "differs every time"),
        ("sin(d)", "Sin(d)", "last bit"),
        ("levenshtein(t, 'a', -2)", "Levenshtein(t, 'a', -2)", "negative"),
        ("split(t, 'a+')", "StringSplit(t, 'a+', -1)", "a regular expression, not a plain text"),
        ("split(t, 'a', 2)", "StringSplit(t, 'a', 2)", "limited"),
        ("array_sort(list, (x, y) -> 1)", "ArraySort(", "a comparator of its own"),
        ("percentile_approx(d, 0.5)", "ApproximatePercentile(d", "how rows are partitioned"),
        ("mode(i)", "Mode(i)", "returns any"),
        ("date_format(at, 'VV')", "DateFormatClass(at, 'VV')", "is not supported"),
        ("first(i)", "First(i)", "order of rows"),
        ("t like 'a\\\\b'", "Like(t, ", "escapes a character"),
        ("to_json(pair, map('pretty', 'true'))", "StructsToJsonWithOptions#evaluate(", "options"),
        ("pmod(cast(i as decimal(38,0)), cast(i as decimal(10,10)))", "Pmod(", "more than 39 digits"),
        ("t collate utf8_lcase = 'a'", "", "is not supported"),
    ],
)
def test_what_cannot_be_exact_is_refused_by_name(spark: SparkSession, sql: str, what: str, why: str) -> None:
    result = reasons_of(spark, f"select {sql} as x from kinds")
    assert any(reason.startswith(what) and why in reason for reason in result), result


def test_a_nested_value_is_cast_to_text_under_a_name_of_its_own(spark: SparkSession) -> None:
    made = selected(spark, "cast(list as string)")
    assert isinstance(made, Call)
    assert made.function == "nested_to_text"


@pytest.mark.parametrize("text", ["first(i)", "last(i + 1)", "any_value(i)", "first(7)", "max(d) + first(i)"])
def test_what_the_keys_determine_needs_no_order(spark: SparkSession, text: str) -> None:
    assert read_plan(spark.sql(f"select i, {text} x from kinds group by i")).relation is not None


@pytest.mark.parametrize("text", ["first(l)", "last(i + l)", "first(d)", "last(cast(d as string))"])
def test_first_and_last_of_anything_else_depend_on_the_order_of_rows(spark: SparkSession, text: str) -> None:
    found = reasons_of(spark, f"select i, d, {text} x from kinds group by i, d")
    assert any("order of rows" in reason for reason in found), found


def test_all_reasons_are_given_at_once(spark: SparkSession) -> None:
    found = reasons_of(spark, "select t rlike upper(soundex(t)) as x, sin(d) as z, rand() as y from kinds")
    assert len(found) == 3


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("array<int>", array(INTEGER)),
        ("map<string,array<decimal(7,2)>>", map_of(STRING, array(decimal(7, 2)))),
        ("struct<a:int,`b:,``<c>`:struct<x:map<int,string>>>", struct(
            **{"a": INTEGER, "b:,`<c>": struct(x=map_of(INTEGER, STRING))})),
        ("array<void>", None),
        ("array<interval day>", None),
        ("struct<>", None),
        ("struct<a:int", None),
        ("array<int>>", None),
        ("map<int>,string>", None),
        ("array<string collate UTF8_LCASE>", None),
    ],
)  # fmt: skip
def test_nested_types_are_read_from_their_text(text: str, read: DataType | None) -> None:
    assert data_type(text) == read
