"""Functions that make much more than they are given: few rows at a time, so that the promise holds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.memory.test_memory import BESIDE, MIB, peak_of
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import MemoryLimitError

BUDGET = 256 * MIB
ROWS = 2048
#: A text of 10,000 bytes with a hundred places to replace, and another for these.
LONG, BY = ("a" + "b" * 99) * 100, "t" * 5000


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many rows as DuckDB computes at once."""
    path = tmp_path_factory.mktemp("growing") / "growing.parquet"
    words = pa.array([[f"w{number}" for number in range(100)]] * ROWS)
    columns = {"n": range(ROWS), "s": [LONG] * ROWS, "t": [BY] * ROWS, "words": words}
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def engine(engines: Engines, spark: SparkSession, growing: Path) -> Engine:
    spark.read.parquet(str(growing)).createOrReplaceTempView("growing")
    return engines.get(workers=1, threads=1, memory=BUDGET, broadcast=0)


REPLACED = len(LONG) + 100 * (len(BY) - 1)
WORDS = sum(len(f"w{number}") for number in range(100))
#: Each makes about a gigabyte of text for a vector of rows.
CASES = {
    "replace": ("select sum(length(replace(s, 'a', t))) from growing", ROWS * REPLACED),
    "array_join": ("select sum(length(array_join(words, t))) from growing", ROWS * (WORDS + 99 * len(BY))),
    "transform": (
        "select sum(length(array_join(transform(words, x -> concat(x, t)), ''))) from growing",
        ROWS * (WORDS + 100 * len(BY)),
    ),
    "an aggregation that doubles": (
        (
            "select sum(length(aggregate(sequence(1, 17 + cast(n as int) div 100000), 'abcd', (a, x) -> concat(a, a))))"
            " from growing"
        ),
        ROWS * (4 << 17),
    ),
    "regexp_replace": (
        f"select sum(length(regexp_replace(s, 'a', '{BY}'))) from growing",
        ROWS * REPLACED,
    ),
    "concat of concats": (
        (
            "select sum(length(b)) from (select concat(a, a, a, a, a, a, a, a) b from "
            "(select concat(s, s, s, s, s, s, s, s) a from growing))"
        ),
        ROWS * 64 * len(LONG),
    ),
    "rows of an array": (
        "select sum(length(replace(s, e, t))) from (select s, t, explode(array('a', 'zz')) e from growing)",
        ROWS * (REPLACED + len(LONG)),
    ),
    "an array that becomes rows": (
        "select sum(length(e)) from (select explode(transform(words, x -> concat(x, t))) e from growing)",
        ROWS * (WORDS + 100 * len(BY)),
    ),
    "split into empty parts": ("select sum(size(split(s, 'b'))) from growing", ROWS * (99 * 100 + 1)),
    "texts of ten megabytes": (
        (
            "select sum(length(array_join(split(s, 'b'), repeat(substring(t, 1, 1050), 1 + n div 9)))) "
            "from growing where n < 9"
        ),
        9 * (100 + 9900 * 1050),
    ),
    "the rows of a join": (
        "select sum(length(replace(l.s, 'a', r.t))) from growing l join growing r on l.n = r.n",
        ROWS * REPLACED,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_few_rows_are_taken_at_a_time_where_functions_make_much(
    engine: Engine, spark: SparkSession, name: str
) -> None:
    sql, expected = CASES[name]
    df = spark.sql(sql)
    with peak_of(engine) as samples:
        result = engine.run(df)
        assert result.native, engine.fallback_reasons(df)
        (row,) = result.rows()
    assert tuple(row) == (expected,)
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"


@pytest.mark.parametrize(
    "made",
    [
        "replace(replace(s, 'b', 'ccc'), 'ccc', t)",
        "aggregate(sequence(1, 29 + cast(n as int)), 'ab', (a, x) -> concat(a, a))",
        "array_join(transform(words, x -> concat(s, x)), repeat(t, 100))",
        "array_join(cast(sequence(1, 22000000 + n) as array<string>), '')",
    ],
)
def test_one_row_that_makes_too_much_ends_its_query_only(
    engine: Engine, spark: SparkSession, made: str
) -> None:
    before = {worker.pid for worker in engine.workers()}
    big = f"select sum(length({made})) from (select n, repeat(s, 20) s, t, words from growing where n = 0)"
    with peak_of(engine) as samples, pytest.raises(MemoryLimitError, match=r"spark\.wallaby\.memory"):
        engine.run(spark.sql(big)).rows()
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"
    assert {worker.pid for worker in engine.workers()} == before
