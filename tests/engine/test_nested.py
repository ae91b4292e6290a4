"""Arrays, structs and maps: read, moved, compared, taken apart and put together exactly as Spark does."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.outcome import outcome

from wallaby.compare import require_same
from wallaby.engine import Engine

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
    "select k, pairs.p, pairs.q from nested",
    "select ints, count(*) c, sum(k) n from nested group by ints",
    "select doubles, count(*) c from nested group by doubles",
    "select distinct s from nested",
    "select s.in as i, pairs, max(k) m from nested group by s.in, pairs",
    "select a.k, b.k as j, a.s from nested a join nested b on a.s = b.s and a.ints = b.ints",
    "select a.k, b.k as j, b.m from nested a left join nested b on a.k = b.k + 1 and a.ints < b.ints",
    "select count(*) c from nested a join nested b on a.texts <=> b.texts",
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


def test_a_field_that_no_file_has_is_left_to_spark(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("select named_struct('a', 1) s").write.parquet(str(tmp_path / "t"))
    df = spark.read.schema("s struct<z int>").parquet(str(tmp_path / "t"))
    assert outcome(lambda: engine.collect(df)) == outcome(df.collect)
