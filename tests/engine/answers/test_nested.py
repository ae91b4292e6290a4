"""Arrays, structs and maps: read, moved, compared, taken apart and put together exactly as Spark does."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.outcome import outcome

from wallaby.engine import Engine
from wallaby_lab.compare import require_same

ROWS = """
    select cast(id as int) as k, id % 7 as g,
        case when id % 11 = 0 then null else transform(sequence(1, cast(id % 4 as int)),
            x -> case when (x + id) % 5 = 0 then null else cast(x * id % 6 as int) end) end as ints,
        case when id % 13 = 0 then null
            else array('b', null, concat('é', id % 3), 'A', repeat('z', cast(id % 2 as int))) end as texts,
        case when id % 9 = 0 then null when id % 9 = 1 then array()
            else array(cast('NaN' as double), -0.0D, 0.0D, id / 4, null, cast('-Infinity' as double)) end as doubles,
        case when id % 5 = 0 then null
            else named_struct('a', cast(id % 3 as int), 'B c', concat('t', id % 2),
                'in', named_struct('x', case when id % 4 = 0 then null else id % 6 end,
                    'y', array(date '2020-01-31', null))) end as s,
        case when id % 6 = 0 then null when id % 6 = 1 then map()
            else map('a', id % 4, 'b', null, concat('k', id % 3), 7L) end as m,
        case when id % 8 = 0 then null
            else array(named_struct('p', cast(id % 3 as int), 'q', array('x', null)), null,
                named_struct('p', null, 'q', null)) end as pairs,
        array(array(cast(id as decimal(10, 2)), null), null, array()) as deep,
        timestamp_micros(id * 1000000) as at
    from range(60)
"""


@pytest.fixture(scope="module")
def nested(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    path = tmp_path_factory.mktemp("nested") / "rows"
    spark.sql(ROWS).repartition(3, "k").write.option("parquet.block.size", 1 << 10).parquet(str(path))
    spark.read.parquet(str(path)).createOrReplaceTempView("nested")
    return spark


def check(engine: Engine, spark: SparkSession, query: str) -> None:
    """It runs natively, and the answer is Spark's: rows, schema and, where there is an order, that."""
    df = spark.sql(query)
    result = engine.run(df)
    assert result.native, engine.explain(df)
    require_same(result.arrow(), df.toArrow(), order=("o",) if " as o" in query else ())


TYPES = [
    "select * from nested",
    "select k, ints, s.a, s.`B c` as b, s.in.x, m from nested where k > 20",
    "select s.in.y as y, s.in from nested",
    "select k from nested where ints between array(0) and array(3) and pairs >= pairs and pairs <= pairs",
    "select k, pairs.p, pairs.q from nested",
    # the fields of rows that are compared have other names
    "select k, (k, g) = (4, 4L) a, (g, get(ints, 0)) < (3L, 2) b, (g, ints) >= (2L, array(1)) c from nested",
    "select k from nested where (k, g) > (40, 2L) or s.in <=> (3L, array(date '2020-01-31', null))",
    "select k from nested where (g, k) in ((4L, 4), (2L, 9)) or s.in in ((2L, array(date '2020-01-31', null)))",
    "select ints, count(*) c, sum(k) n from nested group by ints",
    "select doubles, count(*) c from nested group by doubles",
    "select distinct s from nested",
    "select s.in as i, pairs, max(k) m from nested group by s.in, pairs",
    "select a.k, b.k as j, a.s from nested a join nested b on a.s = b.s and a.ints = b.ints",
    "select a.k, b.k as j, b.m from nested a left join nested b on a.k = b.k + 1 and a.ints < b.ints",
    "select count(*) c from nested a join nested b on a.texts <=> b.texts",
    "select g, max(s) a, min(ints) b, max(struct(doubles, k)).k c from nested group by g",
    "select ints as o, k from nested order by ints, k",
    "select ints as o from nested order by ints desc nulls last limit 9",
    "select s as o from nested order by s desc, k",
    "select pairs as o, doubles from nested order by pairs nulls first, doubles, k",
    "select k, ints < array(1, null) a, ints = array(2) b, s.in > named_struct('x', 2L, 'y', null) c from nested",
    "select k, if(k % 2 = 0, ints, array(1)) a, coalesce(s.in.y, array(date '2000-01-01')) b from nested",
    "select ints, m from nested union all select array(null), map('a', 1L) from nested where k < 3",
    "select k, first_value(s) over (partition by g order by k) f, lag(ints) over (order by k) l from nested",
    "select count(ints) a, count(distinct ints) b, count(distinct s) c from nested",
    "select k, l, r from nested join (values (array(1, null), struct(map(1, 'x'))), (null, struct(map()))) t(l, r)",
]  # fmt: skip


FUNCTIONS = [
    "select k, ints[0] a, ints[g] b from nested where size(ints) > 6 or size(ints) > g",
    "select k, size(ints) a, cardinality(m) b, get(ints, -1) c, try_element_at(ints, 2) d, m['a'] e from nested",
    "select k, transform(ints, (x, i) -> x * i + k) a, filter(texts, x -> x > 'a') b from nested",
    "select k, aggregate(ints, 0L, (a, x) -> a + coalesce(x, 0), a -> a * 2) a, exists(ints, x -> x > 4) b from nested",
    "select k, sort_array(pairs) a, array_sort(doubles) b, sort_array(texts, false) c from nested",
    "select k, split('a.b..c', '\\\\.') a, split(s.`B c`, '[t]') b, array_join(texts, '-', '?') c from nested",
    "select transform(ints, x -> x + 1) t, count(*) c from nested group by transform(ints, x -> x + 1)",
    "select count(*) c from nested a join nested b on a.doubles <=> b.doubles",
    "select k, ints from nested where s.`B c` = 't1' and k > 5",
    "select k, sequence(k, 70, 7) a, sequence(10L, g, -3) b, sequence(g, 3) c from nested",
    "select sequence(date'2020-01-30', date'2020-02-03' + k) a from nested",
    "select k, sequence(date'2020-01-30' + k, date'2020-05-01', interval 9 day) a from nested",
    "select k, cast(ints as array<bigint>) a, cast(s.in as struct<u: int, v: array<date>>) b from nested",
    "select k, cast(m as map<string, int>) a, cast(deep as array<array<double>>) b from nested",
    "select k from nested where k in (g, 3, get(ints, 0)) or struct(k, g) in (struct(4 k, 4L g), struct(9 k, 2L g))",
    "select a.k from nested a join nested b on exists(a.ints, x -> x = b.k) and a.g = b.g",
    "select g, sort_array(collect_list(struct(k, s))) a, array_sort(collect_list(pairs)) b from nested group by g",
    "select g, size(collect_list(s)) a, sort_array(array_distinct(collect_list(k % 3))) b from nested group by g",
    "select array_sort(collect_set(k % 7)) a, sort_array(transform(collect_list(struct(k)), x -> -x.k)) b from nested",
    "select g, sort_array(filter(collect_list(k) filter (where k > 2), x -> x % 2 = 0)) a from nested group by g",
    "select g, max_by(k, struct(ints, k)) a, min_by(s, k) b, max_by(pairs, array(k % 2, k)) c from nested group by g",
    "select k, max_by(s, struct(doubles, k)) over (partition by g) a from nested",
    "select g, max_by(s, struct(doubles, k), 3) a, min_by(ints, k, 2) filter (where k > 55) b from nested group by g",
]

ROWS_OF_ROWS = [
    "select k, e from nested lateral view explode(ints) t as e",
    "select k, p, e, ints from nested lateral view outer posexplode(ints) t as p, e",
    "select k, explode_outer(m) from nested",
    "select g, posexplode(m) from nested",
    "select k, inline_outer(pairs) from nested",
    "select inline(pairs) from nested",
    "select k, e from nested lateral view explode(split(s.`B c`, 't')) t as e",
    "select k, e, f from nested lateral view explode(deep) t as e lateral view outer explode(e) u as f",
    "select e, count(*) c, sum(k) n from nested lateral view explode(ints) t as e group by e",
    "select k, sum(e) n from nested lateral view explode(sequence(1, k)) t as e group by k",
    "select count(*) c from nested lateral view explode(doubles) t as e",
    "select k, e.p, e.q from nested lateral view explode(pairs) t as e where e.p > 0",
    "select k as o, e from nested lateral view explode(texts) t as e order by k, e limit 20",
    "select x.k, x.e, y.s from (select k, explode(ints) e from nested) x left join nested y on x.e = y.k",
    "select distinct e from nested lateral view explode(map_keys(m)) t as e",
    "select k, explode(map(k, g, -1, null)) from nested where k > 3",
]

SUBQUERIES = [
    "select k, (select b.g + 1 from nested b where b.k = a.g) x from nested a",
    "select k, (select b.s.in.x from nested b where b.k = a.k + 40) x from nested a where g > 2",
    "select k from nested a where g = (select b.g from nested b where b.k = a.k + 7)",
]

ERRORS = [
    "select ints[3] x from nested",
    "select element_at(ints, 4) x from nested",
    "select element_at(ints, 0) x from nested",
    "select slice(ints, g, 2) x from nested",
    "select slice(ints, 1, g - 3) x from nested",
    "select map(g, 1, 3L, 2) x from nested",
    "select sequence(k, 5, 2) x from nested",
    "select map_from_arrays(array('a', 'b'), ints) x from nested",
    "select map(ints[0], 1) x from nested where size(ints) > 0",
    "select k, (select b.g from nested b where b.g = a.g) x from nested a",
]


@pytest.mark.parametrize("query", [*FUNCTIONS, *ROWS_OF_ROWS, *SUBQUERIES])
def test_functions_generators_and_subqueries_are_sparks(
    engine: Engine, nested: SparkSession, query: str
) -> None:
    check(engine, nested, query)


@pytest.mark.parametrize("query", ERRORS)
def test_errors_of_the_data_are_sparks(engine: Engine, nested: SparkSession, query: str) -> None:
    df = nested.sql(query)
    assert engine.run(df).native, engine.explain(df)
    expected = outcome(df.collect)
    assert isinstance(expected, str), "Spark has no error"
    assert outcome(lambda: engine.collect(df)) == expected


@pytest.mark.parametrize("query", TYPES)
def test_nested_columns_are_read_moved_and_compared(engine: Engine, nested: SparkSession, query: str) -> None:
    check(engine, nested, query)


def test_rows_and_pandas_are_sparks(engine: Engine, nested: SparkSession) -> None:
    df = nested.sql("select k, ints, s, m, pairs, deep, at from nested order by k")
    assert engine.collect(df) == df.collect()
    assert str(engine.run(df).pandas()) == str(df.toPandas())


def test_only_the_needed_fields_of_structs_are_scanned(engine: Engine, nested: SparkSession) -> None:
    explained = engine.explain(nested.sql("select s.in.x from nested"))
    result = engine.run(nested.sql("select s.in.x from nested"))
    assert result.native, explained
    assert result.plan is not None
    (scan,) = (f.scan for f in result.plan.fragments if hasattr(f, "scan"))
    assert str(scan.columns[0].type) == "struct<in:struct<x:bigint>>"


def test_fields_are_found_by_name_and_missing_ones_are_null(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    first = "select struct(1 a, array(struct(1 x, 'u' y)) b) s, map('k', struct(1 v)) m"
    second = "select struct(array(struct('w' Y, 3 z)) b, 2 c) s, map('k', struct(2 V)) m"
    spark.sql(first).write.parquet(str(tmp_path / "t"))
    spark.sql(second).write.mode("append").parquet(str(tmp_path / "t"))
    schema = "s struct<c int, a int, b array<struct<y string, z int, x int>>>, m map<string, struct<v int>>"
    spark.read.schema(schema).parquet(str(tmp_path / "t")).createOrReplaceTempView("mixed")
    check(engine, spark, "select s, m from mixed")
    check(engine, spark, "select s.b.y, s.c, m from mixed")


def test_nested_columns_are_handed_over_by_a_leaf(
    engine: Engine, nested: SparkSession, tmp_path: Path
) -> None:
    nested.sql("select k, ints, s, m, pairs from nested").write.json(str(tmp_path / "j"))
    schema = nested.table("nested").select("k", "ints", "s", "m", "pairs").schema
    nested.read.schema(schema).json(str(tmp_path / "j")).createOrReplaceTempView("by_leaf")
    check(engine, nested, "select ints, s, m, pairs, k as o from by_leaf order by k")
    check(
        engine,
        nested,
        "select e.key, count(*) c from by_leaf lateral view explode(map_entries(m)) t as e group by 1",
    )


def test_a_field_that_no_file_has_is_left_to_spark(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("select named_struct('a', 1) s").write.parquet(str(tmp_path / "t"))
    df = spark.read.schema("s struct<z int>").parquet(str(tmp_path / "t"))
    assert outcome(lambda: engine.collect(df)) == outcome(df.collect)
