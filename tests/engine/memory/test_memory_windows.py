"""Windows over partitions that are larger than what a kernel may hold: Spark's answers, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.memory.test_memory import BESIDE, BUDGET, MIB, peak_of
from tests.spark_sessions import Engines

from wallaby.engine import Engine

ROWS = 80_000
GROUP_ROWS = 10_000
#: Hashes of all rows' results: a difference in any row makes one in the answer.
HASHED = "select count(*) n, sum(hash(n, a, b, c, d)) h, max(d) d from (select n, {0} from rows_of_windows)"
WINDOWS = {
    "ranks": """
        row_number() over (order by o, t) a, rank() over (order by o) b,
        cast(percent_rank() over (order by o) * 1e6 as int) + ntile(7) over (order by o, t) c,
        dense_rank() over (partition by k order by o) d
    """,
    "neighbours": """
        lag(n) over (order by o, t) a, lead(t, 2, 'none') over (order by o, t) b,
        first_value(n) over (order by o, t) c, sum(v) over (order by o, t rows between 3 preceding and 1 following) d
    """,
    "aggregates": """
        sum(v) over (order by o, t) a, count(*) over (partition by k) b,
        max(t) over (order by o, t rows between unbounded preceding and 1 preceding) c,
        sum(cast(v as decimal(10, 2))) over (partition by k order by o) d
    """,
}


@pytest.fixture(scope="module")
def rows_of_windows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of half a kilobyte: a key with nine tenths of them, an order with ties and NULLs, a text of its own each."""
    path = tmp_path_factory.mktemp("windows") / "rows.parquet"
    random = np.random.default_rng(4)
    names = ["n", "k", "o", "v", "t"]
    schema = pa.schema([*((name, pa.int64()) for name in names[:-1]), ("t", pa.string())])
    with pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False) as writer:
        for begin in range(0, ROWS, GROUP_ROWS):
            ids = np.arange(begin, begin + GROUP_ROWS)
            keys = np.where(ids % 10 < 9, 0, random.integers(1, 20, GROUP_ROWS))
            order = pa.array(random.integers(0, 3_000, GROUP_ROWS), mask=random.random(GROUP_ROWS) < 0.1)
            values = pa.array(random.integers(-1000, 1000, GROUP_ROWS), mask=random.random(GROUP_ROWS) < 0.1)
            noise = pa.array(random.permutation(ids)).cast(pa.string())
            texts = pc.binary_join_element_wise(noise, "wombat " * 70, "-")
            writer.write_table(pa.table([ids, keys, order, values, texts], schema=schema))
    return path


@pytest.fixture
def small(engines: Engines, spark: SparkSession, rows_of_windows: Path) -> Engine:
    """One TaskManager with little memory: a kernel may hold less than half of the rows."""
    spark.read.parquet(str(rows_of_windows)).createOrReplaceTempView("rows_of_windows")
    return engines.get(workers=1, threads=1, memory=BUDGET, broadcast=0)


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_over_a_large_partition_is_divided(small: Engine, spark: SparkSession, name: str) -> None:
    df = spark.sql(HASHED.format(WINDOWS[name]))
    with peak_of(small) as samples:
        result = small.run(df)
        assert result.native, small.fallback_reasons(df)
        found = result.rows()
    assert found == df.collect()
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"
