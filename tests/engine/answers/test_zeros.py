"""Of 0.0 and -0.0, which are equal, the one that Spark gives: in aggregates the one that is met first."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.outcome import natively

from wallaby.engine import Engine

NAN = float("nan")
ROWS: dict[str, list[float | None]] = {
    "plus first": [0.0, -0.0, 1.0, None],
    "minus first": [-0.0, 0.0, -1.0, None],
    "among NaN": [NAN, -0.0, 0.0, NAN],
    "NaN alone": [NAN, None],
}
QUERIES = (
    "select min(d), max(d), min(-d), max(-d) from zeros",
    "select min(f), max(f), min(-f), max(-f) from zeros",
    "select g, min(d), max(d) from zeros group by g",
    "select min(d) filter (where d = 0), max(d) filter (where d = 0) from zeros",
    "select min(distinct d), max(distinct -d) from zeros where d = 0",
    "select i, min(d) over (order by i), max(d) over (order by i), min(d) over () from zeros",
    "select i, max(d) over (order by i rows between 1 preceding and current row) from zeros",
    "select i, greatest(d, -d), least(d, -d) from zeros",
    "select i, greatest(-d, d), least(-d, d) from zeros",  # together, Spark computes greatest once
    "select i, array_min(array(d, -d)), array_max(array(d, -d)), array_max(array(-d, d)) from zeros",
    "select min_by(i, d), max_by(i, d) from zeros where i in (0, 2)",
    "select d, count(*) from zeros group by d",
    "select distinct d from zeros",
    "select i, d from zeros order by d, i",
    "select a.i, b.i, a.d from zeros a join zeros b on a.d = b.d",
    "select min(named_struct('d', d)), max(named_struct('d', d, 'f', -f)) from zeros",
    "select min(array(d, f)), max(array(-d)) from zeros",
    "select i, array_distinct(array(d, -d, d)), array_union(array(d), array(-d)) from zeros",
    "select i, array_sort(array(d, -d, 0D)), sort_array(array(-d, d), false) from zeros",
    "select min_by(array(d), i), max_by(named_struct('d', d, 'a', array(f)), -i) from zeros",
    "select max_by(d, -i, 2), min_by(named_struct('d', d), i, 2) from zeros where i < 2",
    "select i, min(array(d)) over (order by i), max(named_struct('d', d)) over () from zeros",
    "select i, (select d from zeros z where z.i = a.i) d from zeros a",
    "select (select named_struct('d', d) from zeros where i = 0) s, (select d from zeros where i = 1) d",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("rows", ROWS)
def test_zeros_are_sparks(rows: str, query: str, engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    values = ROWS[rows]
    table = pa.table(
        {
            "i": pa.array(range(len(values)), pa.int32()),
            "g": pa.array([1] * len(values), pa.int32()),
            "d": pa.array(values, pa.float64()),
            "f": pa.array(values, pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "zeros.parquet")
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("zeros")
    df = spark.sql(query)
    assert sorted(map(repr, natively(engine, df).rows())) == sorted(map(repr, df.collect()))
