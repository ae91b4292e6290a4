"""Build sides that turn out larger than estimated: the query begins again with a plan that divides them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.test_ends import until
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import MemoryLimitError

MIB = 1 << 20
ROWS = 1_200_000
#: Every text has all of these. The planner takes each of them to keep one row in twenty.
PARTS = ("row", "that", "long", "side")
TEXT = "row that is long, " * 4 + "as the rows of a build side are"
#: Of all numbers below so many, as text.
LARGEST = "999999"
DIVIDED = "planned again"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> None:
    """Rows of about 110 bytes, as much as the whole budget."""
    path = tmp_path_factory.mktemp("wide") / "wide.parquet"
    ids = np.arange(ROWS)
    texts = pc.binary_join_element_wise(pa.array(ids).cast(pa.string()), TEXT, "-")
    pq.write_table(pa.table({"id": ids, "t": texts}), path, row_group_size=50_000, use_dictionary=False)
    spark.read.parquet(str(path)).createOrReplaceTempView("wide")


@pytest.fixture
def small(engines: Engines, wide: None) -> Engine:
    return engines.get(workers=1, threads=1, memory=128 * MIB)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, "wallaby.frontend.replanning"):
        yield caplog


def underestimated() -> str:
    return "select id, t from wide where " + " and ".join(f"t like '%{part}%'" for part in PARTS)


def test_a_build_side_that_was_underestimated_is_divided(
    small: Engine, spark: SparkSession, told: pytest.LogCaptureFixture
) -> None:
    df = spark.sql(
        f"select count(*) n, sum(a.id) s, max(b.t) t from wide a join ({underestimated()}) b on a.id = b.id"
    )
    (row,) = small.collect(df)
    assert tuple(row) == (ROWS, ROWS * (ROWS - 1) // 2, f"{LARGEST}-{TEXT}")
    assert DIVIDED in told.text


def test_a_stream_begins_again_while_no_row_has_been_given(
    small: Engine, spark: SparkSession, told: pytest.LogCaptureFixture
) -> None:
    df = spark.sql(
        f"select a.id, length(concat(a.t, b.t)) l from wide a join ({underestimated()}) b on a.id = b.id"
    )
    result = small.run(df)
    found = pa.Table.from_batches(list(result.batches())).sort_by("id")
    assert found["id"].to_pylist() == list(range(ROWS))
    assert result.native
    assert DIVIDED in told.text


def test_what_every_plan_must_send_everywhere_ends_the_query(small: Engine, spark: SparkSession) -> None:
    df = spark.sql(
        f"select max(concat(a.t, b.t)) m from wide a join ({underestimated()}) b on a.id < length(b.t) - 100"
    )
    with pytest.raises(MemoryLimitError, match=r"spark\.wallaby\.memory"):
        small.run(df).rows()
    # An error refers to the frames that it passed, and those to rows in files: nothing of them may stay mapped.
    (worker,) = small.workers()
    maps = Path(f"/proc/{worker.pid}/maps")
    until(lambda: ".segment" not in maps.read_text(encoding="utf-8"))
