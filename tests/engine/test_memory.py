"""Data larger than the memory of a TaskManager: queries finish, by spilling, with Spark's answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.comparing import require_same
from tests.engine.conftest import Engines

import wallaby
from wallaby.errors import ConfigurationError

ROWS = 1_000_000
#: The least with which one kernel thread can work.
MEMORY = "80m"

AGGREGATION = (
    "select count(*) c, sum(n) n, max(t) t from (select k, count(*) n, max(t) t from big group by k)"
)
JOIN = "select count(*) c, max(b.t) t, min(a.t) u from big a join (select k, t from big where k >= 0) b on a.k = b.k"


@pytest.fixture(scope="module")
def big(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A million rows of about 130 bytes."""
    path: Path = tmp_path_factory.mktemp("big") / "big.parquet"
    with pq.ParquetWriter(path, pa.schema([("k", pa.int64()), ("t", pa.string())])) as writer:
        for begin in range(0, ROWS, 100_000):
            keys = np.arange(begin, begin + 100_000) * 7919 % ROWS
            table = pa.table({"k": keys, "t": [f"{key:0120d}" for key in keys]})
            writer.write_table(table, row_group_size=25_000)
    spark.read.parquet(str(path)).createOrReplaceTempView("big")


@contextmanager
def peak_mib(pid: int, record: Callable[[str, object], None]) -> Iterator[None]:
    """Sample what a process has in memory, and note the peak in the test's report."""
    over = threading.Event()
    peak = 0

    def sample() -> None:
        nonlocal peak
        process = psutil.Process(pid)
        while not over.wait(0.1):
            peak = max(peak, process.memory_full_info().pss)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        record("peak_pss_mib", peak >> 20)


@pytest.mark.parametrize("query", [AGGREGATION, JOIN], ids=["an aggregation", "a join"])
def test_data_larger_than_memory_is_spilled(
    engines: Engines,
    spark: SparkSession,
    big: None,
    query: str,
    record_property: Callable[[str, object], None],
) -> None:
    engine = engines.get(workers=1, threads=1, memory=MEMORY, split="8m", broadcast=0, channels=4)
    df = spark.sql(query)
    assert engine.fallback_reasons(df) == []
    with peak_mib(engine.workers()[0]["pid"], record_property):
        found = engine.to_arrow(df)
    require_same(found, df.toArrow())


def test_too_little_memory_is_refused_with_what_is_enough(engines: Engines, spark: SparkSession) -> None:
    engines.close()
    with pytest.raises(ConfigurationError, match=r"spark\.wallaby\.memory to 80m or more"):
        wallaby.attach(spark, workers=1, threads=1, memory="40m")
