"""Operators: what becomes of joins, aggregations, limits and scans, and why others stay on Spark."""

from __future__ import annotations

import base64
import json
import zlib
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from tests.reading.reading import reasons_of, relation_of, walk_relations
from tests.reading.relation_text import format_relation

from wallaby.catalyst.node import decode
from wallaby.reading.reader import read_plan
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    Aggregate,
    Expand,
    Filter,
    Frame,
    FrameUnit,
    Join,
    Limit,
    Project,
    Range,
    Relation,
    Rows,
    Scan,
    Single,
    Sort,
    Union,
    Window,
)

pytestmark = pytest.mark.spark


def first(relation: Relation, kind: type) -> Relation:
    return next(part for part in walk_relations(relation) if isinstance(part, kind))


def scan_names(relation: Relation) -> list[tuple[str, ...]]:
    return [part.names for part in walk_relations(relation) if isinstance(part, Scan)]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("join orders on c_custkey = o_custkey", JoinKind.INNER),
        ("left join orders on c_custkey = o_custkey", JoinKind.LEFT),
        ("right join orders on c_custkey = o_custkey", JoinKind.RIGHT),
        ("full join orders on c_custkey = o_custkey", JoinKind.FULL),
        ("left semi join orders on c_custkey = o_custkey", JoinKind.SEMI),
        ("left anti join orders on c_custkey = o_custkey", JoinKind.ANTI),
    ],
)
def test_join_kinds_have_keys_from_each_side(spark: SparkSession, sql: str, kind: JoinKind) -> None:
    join = first(relation_of(spark, f"select * from customer {sql}"), Join)
    assert isinstance(join, Join)
    assert join.kind is kind
    assert [str(key).partition("#")[0] for key in join.left_keys] == ["c_custkey"]
    assert [str(key).partition("#")[0] for key in join.right_keys] == ["o_custkey"]
    assert join.residual is None


def test_a_residual_is_what_is_no_equality_between_the_sides(spark: SparkSession) -> None:
    sql = "select * from customer left join orders on o_custkey = c_custkey and o_totalprice > c_acctbal"
    join = first(relation_of(spark, sql), Join)
    assert isinstance(join, Join)
    assert [str(key).partition("#")[0] for key in join.left_keys] == ["c_custkey"]
    assert str(join.residual).startswith("gt(o_totalprice#")


def test_the_side_without_partner_becomes_nullable(spark: SparkSession) -> None:
    counts = "(select count(*) n, n_regionkey k from nation group by 2)"
    sql = f"select n, m from {counts} full join (select count(*) m from region) on k = m"
    result = relation_of(spark, sql)
    assert all(column.nullable for column in result.columns)


def test_a_cross_join_has_no_condition(spark: SparkSession) -> None:
    join = first(relation_of(spark, "select * from nation, region"), Join)
    assert isinstance(join, Join)
    assert (join.kind, join.left_keys, join.residual) == (JoinKind.CROSS, (), None)


def test_null_safe_keys_become_two_plain_ones(spark: SparkSession) -> None:
    join = first(relation_of(spark, "select 1 from nation join region on n_name <=> r_name"), Join)
    assert isinstance(join, Join)
    assert [str(key).partition("(")[0] for key in join.left_keys] == ["coalesce", "is_null"]
    assert not any(key.nullable for key in (*join.left_keys, *join.right_keys))


def test_a_scalar_subquery_is_a_single_row_beside_its_users(spark: SparkSession) -> None:
    relation = relation_of(spark, "select l from kinds where i > (select i from kinds where l = 3)")
    join = first(relation, Join)
    assert isinstance(join, Join)
    assert (join.kind, join.left_keys) == (JoinKind.CROSS, ())
    assert isinstance(join.right, Single)
    assert [column.name for column in relation.columns] == ["l"]


def test_equal_subqueries_of_one_operator_are_read_once(spark: SparkSession) -> None:
    value = "(select max(i) from kinds)"
    relation = relation_of(spark, f"select i + {value} as x, i - {value} as y, l + {value} as z from kinds")
    assert sum(isinstance(part, Single) for part in walk_relations(relation)) == 1


def test_merged_subqueries_are_the_columns_of_one_row(spark: SparkSession) -> None:
    values = "(select max(i) from kinds), (select min(l) from kinds)"
    relation = relation_of(spark, f"select i, {values} from kinds")
    singles = [part for part in walk_relations(relation) if isinstance(part, Single)]
    assert sum(len(single.columns) for single in singles) == 2


def test_subqueries_stand_inside_and_outside_of_aggregations(spark: SparkSession) -> None:
    value = "(select max(i) from kinds)"
    relation = relation_of(spark, f"select t, sum(i + {value}) - {value} as x from kinds group by t")
    assert isinstance(relation, Project)
    assert isinstance(relation.child, Join)
    aggregate = relation.child.left
    assert isinstance(aggregate, Aggregate)
    assert isinstance(aggregate.child, Join)


def test_an_existence_join_answers_in_a_column(spark: SparkSession) -> None:
    sql = "select i from kinds where p or exists (select 1 from nation where n_nationkey = l)"
    join = first(relation_of(spark, sql), Join)
    assert isinstance(join, Join)
    assert join.kind is JoinKind.EXISTENCE
    assert [column.name for column in join.columns][-1:] == ["exists"]
    assert len(join.left_keys) == 1


def test_not_in_is_an_anti_join_of_rows_that_can_be_decided(spark: SparkSession) -> None:
    join = first(relation_of(spark, "select i from kinds where i not in (select s from kinds)"), Join)
    assert isinstance(join, Join)
    assert (join.kind, len(join.left_keys), join.residual) == (JoinKind.ANTI, 1, None)
    assert "or(eq(rows" in str(first(join.left, Filter).condition)  # type: ignore[union-attr]  # a filter


def test_not_in_a_limit_is_decided_from_one_choice_of_rows(spark: SparkSession) -> None:
    sql = "select i from kinds where i not in (select s from kinds limit 3)"
    join = first(relation_of(spark, sql), Join)
    assert isinstance(join, Join)
    assert (join.kind, join.left_keys) == (JoinKind.ANTI, ())


def test_floating_point_keys_of_a_join_are_normalized(spark: SparkSession) -> None:
    join = first(relation_of(spark, "select a.i from kinds a join kinds b on a.d = b.d"), Join)
    assert isinstance(join, Join)
    assert [str(key).partition("(")[0] for key in (*join.left_keys, *join.right_keys)] == ["normalize"] * 2


def test_result_expressions_are_split_from_aggregations(spark: SparkSession) -> None:
    sql = "select sum(i) + count(*) as x, l, sum(i) as y from kinds group by l"
    relation = relation_of(spark, sql)
    assert isinstance(relation, Project)
    assert [column.name for column in relation.columns] == ["x", "l", "y"]
    assert isinstance(relation.child, Aggregate)
    assert [column.name for column in relation.child.columns] == ["l", "y", "count"]


def test_grouping_by_an_expression_has_a_column_for_it(spark: SparkSession) -> None:
    text = format_relation(relation_of(spark, "select i % 2 as k, count(*) as n from kinds group by i % 2"))
    assert "aggregate by [_groupingexpression#" in text


def test_select_distinct_is_an_aggregation_without_functions(spark: SparkSession) -> None:
    relation = relation_of(spark, "select distinct t from kinds")
    assert isinstance(relation, Aggregate)
    assert relation.aggregations == ()


def test_count_star_reads_one_narrow_column(spark: SparkSession) -> None:
    relation = relation_of(spark, "select count(*) as n from kinds")
    assert scan_names(relation) == [("p",)] or scan_names(relation) == [("b",)]


def test_scans_read_only_what_is_used(spark: SparkSession) -> None:
    relation = relation_of(
        spark, "select c_name from customer join orders on c_custkey = o_custkey where o_totalprice > 5"
    )
    assert scan_names(relation) == [("c_custkey", "c_name"), ("o_custkey", "o_totalprice")]


def test_a_scan_knows_its_files_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).repartition(2).write.parquet(str(tmp_path / "some table"))
    scan = read_plan(spark.read.parquet(str(tmp_path / "some table"))).relation
    assert isinstance(scan, Scan)
    assert scan.label == "some table"
    paths = [Path(file.path) for file in scan.files]
    assert sorted(paths) == sorted((tmp_path / "some table").glob("*.parquet"))
    for file in scan.files:
        status = Path(file.path).stat()
        assert (file.size_bytes, file.modified_ms) == (status.st_size, status.st_mtime_ns // 1_000_000)


def test_a_column_selected_twice_has_two_ids(spark: SparkSession) -> None:
    relation = relation_of(spark, "select i, i, l from kinds")
    assert [column.name for column in relation.columns] == ["i", "i", "l"]
    assert len({column.id for column in relation.columns}) == 3
    ordered = relation_of(spark, "select i, i, l from kinds order by i limit 3")
    assert isinstance(ordered, Limit)
    assert len({column.id for column in ordered.columns}) == 3


def test_order_by_says_where_nulls_go(spark: SparkSession) -> None:
    sort = relation_of(
        spark, "select * from nation order by n_name, n_regionkey desc, n_comment desc nulls first"
    )
    assert isinstance(sort, Sort)
    assert [(key.ascending, key.nulls_first) for key in sort.keys] == [
        (True, True),
        (False, False),
        (False, True),
    ]


def test_limit_and_offset(spark: SparkSession) -> None:
    limit = relation_of(spark, "select * from nation order by n_name limit 7 offset 3")
    assert isinstance(limit, Limit)
    assert (limit.count, limit.offset) == (7, 3)
    assert isinstance(limit.child, Sort)
    plain = relation_of(spark, "select * from nation limit 5")
    assert isinstance(plain, Limit)
    assert isinstance(plain.child, Scan)


def test_an_offset_alone_is_a_limit_without_end(spark: SparkSession) -> None:
    limit = relation_of(spark, "select i from kinds offset 2")
    assert isinstance(limit, Limit)
    assert (limit.count, limit.offset) == (None, 2)


def test_grouping_sets_begin_with_an_expansion(spark: SparkSession) -> None:
    expand = first(relation_of(spark, "select i, l, count(*) from kinds group by cube(i, l)"), Expand)
    assert isinstance(expand, Expand)
    assert len(expand.projections) == 4
    assert all(len(projection) == len(expand.columns) for projection in expand.projections)


def test_rows_of_the_query_have_their_values(spark: SparkSession) -> None:
    sql = "select * from nation, values (1L, 'x', 1.50), (null, 'é', null) as t(k, s, m)"
    rows = first(relation_of(spark, sql), Rows)
    assert isinstance(rows, Rows)
    assert rows.rows == ((1, "x", Decimal("1.50")), (None, "é", None))


def test_a_range_knows_its_numbers(spark: SparkSession) -> None:
    found = [
        first(relation_of(spark, f"select * from nation, range({text})"), Range)
        for text in ("7, 0, -3", "5", "5, 5")
    ]
    assert [(r.start, r.step, r.count) for r in found if isinstance(r, Range)] == [
        (7, -3, 3),
        (0, 1, 5),
        (5, 1, 0),
    ]


def test_the_first_of_user_rows_depends_on_their_order(spark: SparkSession) -> None:
    sql = "select first(t, true) filter (where gid = 1) from (select t, i as gid from kinds)"
    assert any("order of rows" in reason for reason in reasons_of(spark, sql))


def test_window_functions_have_their_order_and_frame(spark: SparkSession) -> None:
    sql = """select row_number() over w as r, lag(i, 2) over w as g,
                    sum(small) over (partition by t order by i desc rows between 2 preceding and 1 following) as m
             from kinds window w as (partition by t order by i desc)"""
    window = first(relation_of(spark, sql), Window)
    assert isinstance(window, Window)
    assert [call.function.function for call in window.calls] == ["row_number", "lag", "sum"]
    assert [str(key.expression).partition("#")[0] for key in window.order] == ["i"]
    assert window.calls[2].frame == Frame(FrameUnit.ROWS, -2, 1)
    assert str(window.calls[2].function.type) == "decimal(17,2)"


def test_union_columns_correspond_by_position(spark: SparkSession) -> None:
    relation = relation_of(
        spark, "select n_name, n_nationkey from nation union all select r_name, r_regionkey from region"
    )
    assert isinstance(relation, Union)
    assert [column.name for column in relation.columns] == ["n_name", "n_nationkey"]
    assert len(relation.children) == 2


def test_rows_of_a_union_can_be_counted(spark: SparkSession) -> None:
    relation = relation_of(
        spark, "select count(*) from (select * from nation union all select * from nation)"
    )
    union = first(relation, Union)
    assert isinstance(union, Union)
    assert all(len(child.columns) == len(union.columns) == 1 for child in union.children)


def test_repartitioning_is_of_no_concern(spark: SparkSession) -> None:
    assert isinstance(read_plan(spark.table("nation").repartition(3, "n_name")).relation, Scan)


def test_a_query_execution_can_be_read_as_well(spark: SparkSession) -> None:
    execution = spark.table("nation")._jdf.queryExecution()
    assert isinstance(read_plan(execution).relation, Scan)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select * from range(0, 9000000000000)", "Range: it has more than"),
        ("select 1", "local rows need no engine"),
        ("select sum(id) from range(1000)", "local rows need no engine"),
        ("select * from values (1), (2) as t(x)", "local rows need no engine"),
        ("select t.* from nation, (select id from range(20000) order by 1 limit 9) t where false", "local rows"),
        ("select json_tuple(t, t) from kinds", "JsonTuple(t, t): this generator is not supported"),
        ("select sum(i) over (order by d range between 'inf' preceding and current row) from kinds", "RANGE frame"),
        ("select collect_list(i) over (order by l) from kinds", "CollectList"),
        ("select explode(array()) from kinds", "a constant of type array<void>"),
        ("select array(interval '1' day) x, i from kinds", "the type array<interval day> is not supported"),
        ("select i from kinds sort by i", "Sort: it sorts within Spark's partitions"),
        (
            "select rank() over (order by cast('7.1077697172678890914' as decimal(20,19))) from kinds",
            "Spark shortens a constant of more than 18 digits",
        ),
        (
            "select session_window(at, '1 day').start s, count(*) from kinds group by session_window(at, '1 day')",
            "Aggregate: session windows grow",
        ),
        ("show tables", "CommandResult: commands"),
    ],
)  # fmt: skip
def test_what_stays_on_spark_is_named(spark: SparkSession, sql: str, why: str) -> None:
    found = reasons_of(spark, sql)
    assert any(why in reason for reason in found), found


def test_options_that_are_not_known(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(4).write.csv(str(tmp_path / "csv"))
    spark.range(4).write.parquet(str(tmp_path / "plain"))
    csv = read_plan(spark.read.schema("id bigint").option("lineSep", ";").csv(str(tmp_path / "csv")))
    rebased = read_plan(spark.read.option("datetimeRebaseMode", "LEGACY").parquet(str(tmp_path / "plain")))
    assert "the option linesep" in str(csv.reasons[0])
    assert "the option datetimerebasemode" in str(rebased.reasons[0]).lower()


def test_partition_columns_are_constants_of_files(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(4).selectExpr("id", "id % 2 p", "case when id > 0 then 'ü /' end q")
    rows.write.partitionBy("p", "q").parquet(str(tmp_path / "parts"))
    scan = read_plan(spark.read.parquet(str(tmp_path / "parts"))).relation
    assert isinstance(scan, Scan)
    assert scan.names == ("id", "p", "q")
    assert scan.label == "parts"
    found = {tuple((c.name, c.value, str(c.type)) for c in file.constants) for file in scan.files}
    assert found == {
        (("p", 0, "int"), ("q", None, "string")),
        (("p", 0, "int"), ("q", "ü /", "string")),
        (("p", 1, "int"), ("q", "ü /", "string")),
    }


def test_a_recursive_query_is_refused_in_words_of_sql(spark: SparkSession) -> None:
    rounds = "select 1 union all select n + 1 from t where n < 5"
    found = reasons_of(spark, f"with recursive t(n) as ({rounds}) select sum(n) from t")
    assert any("a recursive WITH repeats its query until no rows are added" in reason for reason in found)


def test_hidden_columns_of_files_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(4).write.parquet(str(tmp_path / "some"))
    found = read_plan(spark.read.parquet(str(tmp_path / "some")).select("_metadata.file_path")).reasons
    assert any("_metadata" in str(reason) or "not in the files" in str(reason) for reason in found), found


def test_settings_that_leave_files_out_are_refused(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        (reason,) = reasons_of(spark, "select * from nation")
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    assert "set spark.sql.files.ignoreMissingFiles=false" in reason


@pytest.mark.parametrize("policy", ["LEGACY", "EXCEPTION"])
def test_patterns_by_javas_older_rules_are_refused(spark: SparkSession, policy: str) -> None:
    spark.conf.set("spark.sql.legacy.timeParserPolicy", policy)
    try:
        found = reasons_of(
            spark,
            "select date_format(o_orderdate, 'yyyy'), to_date(o_clerk, 'yyyy-MM-dd'), "
            "from_unixtime(o_orderkey, 'yyyy'), unix_timestamp(o_clerk, 'yyyy') from orders",
        )
    finally:
        spark.conf.unset("spark.sql.legacy.timeParserPolicy")
    assert len([reason for reason in found if "timeParserPolicy=CORRECTED" in reason]) == 4, found


def test_cached_tables_stay_on_spark(spark: SparkSession) -> None:
    df = spark.table("region").select("r_name").cache()
    try:
        assert [reason.what for reason in read_plan(df).reasons] == ["InMemoryRelation"]
    finally:
        df.unpersist()


def test_python_functions_stay_on_spark(spark: SparkSession) -> None:
    df = spark.table("region").select(F.udf(lambda name: name)("r_name").alias("x"))
    found = [str(reason) for reason in read_plan(df).reasons]
    assert any("Python functions" in reason or "user code" in reason for reason in found), found


def test_rows_from_python_stay_on_spark(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, "a")], "x int, y string").filter("x > 0")
    assert [reason.what for reason in read_plan(df).reasons] in (["LogicalRDD"], ["LocalRelation"])


def test_a_plan_too_deep_to_read_is_a_reason(spark: SparkSession) -> None:
    condition = " or ".join(f"(i = {n} and l = {n})" for n in range(400))
    result = read_plan(spark.sql(f"select i from kinds where {condition}"))
    assert result.relation is not None or "nested too deeply" in str(result.reasons)


def test_a_defect_of_the_reader_is_a_reason_and_is_logged(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("what nobody thought of")

    monkeypatch.setattr("wallaby.reading.operators.read_scan", broken)
    (reason,) = read_plan(spark.table("nation")).reasons
    assert "reading it failed with KeyError: 'what nobody thought of'" in str(reason)
    assert "please report" in str(reason)
    assert [record.exc_info is not None for record in caplog.records] == [True]


NUMBER: dict[str, object] = {
    "c": "org.apache.spark.sql.catalyst.expressions.Literal",
    "k": [],
    "t": "int",
    "n": False,
    "v": 1,
}
SCAN: dict[str, object] = {
    "c": "org.apache.spark.sql.catalyst.plans.logical.OneRowRelation",
    "k": [],
    "f": {},
}
ODD: dict[str, dict[str, object]] = {
    "an operator of somebody else": {"c": "io.delta.DeltaScan", "k": [SCAN], "f": {"x": None}},
    "a node without fields": {"c": "org.apache.spark.sql.catalyst.plans.logical.Join", "k": [SCAN, SCAN]},
    "a node without children": {"c": "org.apache.spark.sql.catalyst.plans.logical.Project", "k": [], "f": {}},
    "too many children": {
        "c": "org.apache.spark.sql.catalyst.plans.logical.Window", "k": [SCAN] * 3, "f": {"partitionSpec": 7}},
    "an unknown expression": {
        "c": "org.apache.spark.sql.catalyst.plans.logical.Filter", "k": [SCAN],
        "f": {"condition": {"c": "com.acme.Magic", "k": [NUMBER], "t": "boolean"}}},
    "an unknown type": {
        "c": "org.apache.spark.sql.catalyst.plans.logical.Project", "k": [SCAN],
        "f": {"projectList": [{**NUMBER, "t": "geometry(4326)", "x": [5, "g"]}]}},
    "an operator where an expression should be": {
        "c": "org.apache.spark.sql.catalyst.plans.logical.Filter", "k": [SCAN], "f": {"condition": SCAN}},
    "rows that do not fit": {
        "c": "org.apache.spark.sql.catalyst.plans.logical.LocalRelation", "k": [],
        "f": {"output": [{**NUMBER, "x": [5, "a"]}], "data": [[1, 2], "three", None]}},
    "a range of words": {
        "c": "org.apache.spark.sql.catalyst.plans.logical.Range", "k": [],
        "f": {"start": "a", "end": "b", "step": 0, "output": [{**NUMBER, "x": [5, "a"]}]}},
    "a range without steps": {
        "c": "org.apache.spark.sql.catalyst.plans.logical.Range", "k": [],
        "f": {"start": 1, "end": 2, "step": 0, "output": [{**NUMBER, "x": [5, "a"]}]}},
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_plans_have_reasons_and_raise_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = {**ODD[name], "o": [{**NUMBER, "x": [5, "a"]}]}
    written = json.dumps({"plan": root, "settings": {}, "streaming": False}).encode()
    text = decode(base64.b64encode(zlib.compress(written)).decode())
    monkeypatch.setattr("wallaby.reading.reader.plan_of", lambda _: text)
    result = read_plan(object())
    assert result.relation is None
    assert result.reasons


def test_what_spark_cannot_plan_is_a_reason(spark: SparkSession) -> None:
    class Broken:
        sparkSession = spark  # noqa: N815 - PySpark's name

        @property
        def _jdf(self) -> object:
            return spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]

    (reason,) = read_plan(Broken()).reasons
    assert "did not return the plan" in str(reason)
