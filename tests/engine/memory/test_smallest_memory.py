"""The smallest budget that is accepted, with two kernel threads: joins get through, in bounded memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.memory.test_memory import BESIDE, MIB, peak_of
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import ConfigurationError
from wallaby.worker.memory.shares import MemoryShares

THREADS = 2
LINES = 600_000
LINES_PER_ORDER = 4
FEW_ROWS = 16_000
FEW_KEYS = 16


def smallest_mib() -> int:
    """The smallest budget, in MiB, that two kernel threads may have."""
    for mib in range(1, 1024):
        try:
            MemoryShares(mib * MIB, THREADS).require_enough()
        except ConfigurationError:
            continue
        return mib
    raise AssertionError("no budget is enough")


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """`lines`, four to an order; and `pairs`, in which every row matches a thousand others."""
    directory, random = tmp_path_factory.mktemp("smallest"), np.random.default_rng(18)
    for name, rows, keys in (
        ("lines", LINES, np.arange(LINES) // LINES_PER_ORDER),
        ("pairs", FEW_ROWS, np.arange(FEW_ROWS) % FEW_KEYS),
    ):
        noise = pa.array(random.integers(0, 1 << 62, rows)).cast(pa.string())
        text = pc.binary_join_element_wise(noise, "a comment of the usual length", "-")
        table = pa.table({"k": keys, "v": random.integers(0, 1 << 20, rows), "t": text})
        pq.write_table(table, directory / f"{name}.parquet", row_group_size=max(rows // 12, 1))
        spark.read.parquet(str(directory / f"{name}.parquet")).createOrReplaceTempView(name)


@pytest.fixture
def smallest(engines: Engines, tables: None) -> Engine:
    return engines.get(workers=1, threads=THREADS, memory=smallest_mib() * MIB, stall_timeout=30)


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) n, sum(a.v + b.v) s from lines a join lines b on a.k = b.k and a.t < b.t",
        "select count(*) n, sum(a.v + length(b.t)) s, max(b.t) m from pairs a join pairs b on a.k = b.k",
    ],
    ids=["a self-join with an inequality", "a join with a thousand matches for each row"],
)
def test_a_join_gets_through_within_the_smallest_budget(
    smallest: Engine, spark: SparkSession, sql: str
) -> None:
    df = spark.sql(sql)
    with peak_of(smallest) as samples:
        found = smallest.run(df).rows()
    assert found == df.collect()
    peak, limit = max(samples), smallest_mib() * MIB + BESIDE
    assert peak <= limit, f"{peak / MIB:.0f} MiB at the peak, with a budget of {smallest_mib()}"


def test_less_is_refused(engines: Engines, spark: SparkSession) -> None:
    engines.close()
    with pytest.raises(ConfigurationError, match=f"{smallest_mib()}m or more"):
        engines.get(workers=1, threads=THREADS, memory=(smallest_mib() - 1) * MIB)
