"""One budget for a TaskManager: data several times as large is joined and aggregated, in bounded memory."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import duckdb
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession
from tests.engine.test_ends import nothing_is_left_of_queries, until
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import ConfigurationError, MemoryLimitError
from wallaby.head.collected import UNTAKEN_BYTES_MAX

MIB = 1 << 20
BUDGET = 96 * MIB
#: What a process may take beside its budget: code, and what libraries keep of freed memory.
BESIDE = 300 * MIB
ROWS = 3_000_000
GROUP_ROWS = 100_000
LONG_ROWS = 180_000
LONG_GROUP_ROWS = 20_000
SAMPLE_SECONDS = 0.02


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of about 100 bytes, three times the budget: a key that holds half of all, a text of its own each."""
    path = tmp_path_factory.mktemp("facts") / "facts.parquet"
    random = np.random.default_rng(5)
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", pa.string())])
    with pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False) as writer:
        for begin in range(0, ROWS, GROUP_ROWS):
            ids = np.arange(begin, begin + GROUP_ROWS)
            keys = np.where(ids % 2 == 0, 0, random.integers(1, ROWS, GROUP_ROWS))
            noise = pa.array(random.integers(0, 1 << 62, GROUP_ROWS)).cast(pa.string())
            texts = pc.binary_join_element_wise(noise, "text that makes the row a long one, as rows are", "-")
            table = pa.table([pa.array(keys), pa.array(ids), texts], schema=schema)
            writer.write_table(table, row_group_size=GROUP_ROWS)
    return path


@pytest.fixture
def small(engines: Engines, spark: SparkSession, facts: Path) -> Engine:
    """One TaskManager with little memory."""
    spark.read.parquet(str(facts)).createOrReplaceTempView("facts")
    return engines.get(workers=1, threads=1, memory=BUDGET, broadcast=0)


def pss_bytes(pid: int) -> int:
    """What a TaskManager has in memory, its part of what it shares included, and that of its two keepers."""
    process = psutil.Process(pid)
    beside = (process.ppid(), *(child.pid for child in process.children()))
    return sum(
        next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10
        for lines in (
            Path(f"/proc/{each}/smaps_rollup").read_text(encoding="ascii").splitlines()
            for each in (pid, *beside)
        )
    )


@contextmanager
def peak_of(engine: Engine) -> Iterator[list[int]]:
    """The samples of the memory of an engine's only TaskManager."""
    (worker,) = engine.workers()
    samples = [pss_bytes(worker.pid)]
    over = threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLE_SECONDS):
            samples.append(pss_bytes(worker.pid))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


LARGE = {
    "a join": """
        select count(*) n, sum(a.v + b.v) s, max(a.t) t, min(b.t) u
        from facts a join (select * from facts where k <> 0 or v = 0) b on a.k = b.k
    """,
    "an aggregation": """
        select count(*) n, sum(c) c, sum(s) s, max(t) t
        from (select t, count(*) c, sum(v) s from facts group by t) g
    """,
    "distinct values of one group": "select count(distinct t) n, count(*) c from facts",
}


@pytest.mark.parametrize("name", LARGE)
def test_data_of_several_times_the_budget_spills(
    small: Engine, spark: SparkSession, facts: Path, name: str
) -> None:
    df = spark.sql(LARGE[name])
    with peak_of(small) as samples:
        result = small.run(df)
        assert result.native, small.fallback_reasons(df)
        (row,) = result.rows()
    view = f"(select * from read_parquet('{facts}'))"
    (expected,) = duckdb.connect().execute(LARGE[name].replace("facts", view)).fetchall()
    assert tuple(row) == expected
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"


@pytest.fixture(scope="module")
def long_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of a kilobyte, about twice the budget, in no order; each row's number says which text it has."""
    path = tmp_path_factory.mktemp("long") / "long.parquet"
    schema = pa.schema([("n", pa.int64()), ("t", pa.string())])
    numbers = np.random.default_rng(8).permutation(LONG_ROWS)
    with pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False) as writer:
        for begin in range(0, LONG_ROWS, LONG_GROUP_ROWS):
            some = numbers[begin : begin + LONG_GROUP_ROWS]
            texts = pc.binary_join_element_wise(
                pc.utf8_lpad(pa.array(some).cast(pa.string()), 8, "0"), "wombat " * 145, "-"
            )
            writer.write_table(pa.table([pa.array(some), texts], schema=schema))
    return path


@pytest.mark.parametrize(
    ("clauses", "first", "count"),
    [
        ("order by t", 0, 180_000),
        ("order by t limit 1000", 0, 1_000),
        ("order by t limit 6000", 0, 6_000),
        ("order by t limit 60000", 0, 60_000),
        ("order by t limit 10 offset 40000", 40_000, 10),
    ],
)
def test_a_sort_of_long_texts_and_the_first_rows_of_it_keep_the_promise(
    small: Engine, spark: SparkSession, long_texts: Path, clauses: str, first: int, count: int
) -> None:
    spark.read.parquet(str(long_texts)).createOrReplaceTempView("long_texts")
    df = spark.sql(f"select n, t from long_texts {clauses}")
    with peak_of(small) as samples:
        result = small.run(df)
        assert result.native, small.fallback_reasons(df)
        found = np.concatenate([batch.column(0).to_numpy() for batch in result.batches()])
    assert (found == np.arange(first, first + count)).all()
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"


def test_a_row_group_whose_texts_are_a_dictionary_is_read_in_windows(
    small: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    """Some hundred kilobytes in the file are four times the budget as Arrow data."""
    path, rows = tmp_path / "words.parquet", 280_000
    words = [f"{number:03d}" + "wombat" * 250 for number in range(100)]
    texts = pa.DictionaryArray.from_arrays(pa.array(np.arange(rows, dtype=np.int32) % 100), words)
    pq.write_table(
        pa.table({"n": np.arange(rows), "t": texts}), path, row_group_size=rows, store_schema=False
    )
    assert path.stat().st_size < 4 * MIB < BUDGET < rows * 1500 // 4
    grouped = spark.read.parquet(str(path)).selectExpr("n % 7 k", "t").groupBy("k")
    df = grouped.agg({"t": "max", "*": "count"}).toDF("k", "t", "c")
    with peak_of(small) as samples:
        result = small.run(df)
        assert result.native, small.fallback_reasons(df)
        found = {row["k"]: (row["t"], row["c"]) for row in result.rows()}
    assert found == {k: (words[99], len(range(k, rows, 7))) for k in range(7)}
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"


def test_a_page_that_cannot_be_decompressed_ends_the_query_before(
    small: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "page.parquet"
    pq.write_table(pa.table({"t": ["x" * MIB] * 200}), path, use_dictionary=False, compression="zstd")
    with (
        peak_of(small) as samples,
        pytest.raises(MemoryLimitError, match="must be decompressed in one piece"),
    ):
        small.run(spark.read.parquet(str(path)).selectExpr("max(t)")).rows()
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"


def test_a_stripe_that_is_tiny_in_its_file_is_read_in_windows(
    small: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    """Some kilobytes in the file are more than three times the budget as Arrow data."""
    path, rows = tmp_path / "words.orc", 4_000_000
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["wombat" * 10])
    table = pa.table({"n": np.full(rows, 7), "t": texts.cast(pa.string())})
    orc.write_table(table, path, compression="zstd", stripe_size=1 << 30, dictionary_key_size_threshold=0.9)
    assert orc.ORCFile(path).nstripes == 1
    assert path.stat().st_size < MIB < 3 * BUDGET < table.nbytes + rows * 8
    del table, texts
    df = spark.read.orc(str(path)).selectExpr("sum(n) s", "max(t) t", "count(*) c")
    with peak_of(small) as samples:
        result = small.run(df)
        assert result.native, small.fallback_reasons(df)
        (row,) = result.rows()
    assert tuple(row) == (7 * rows, "wombat" * 10, rows)
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"


def test_a_row_that_makes_too_much_ends_the_query_before(small: Engine, spark: SparkSession) -> None:
    df = spark.sql(
        "select sum(e) s from (select explode(sequence(1, v * 0 + 60000000)) e from facts where v = 1)"
    )
    with peak_of(small) as samples, pytest.raises(MemoryLimitError, match="A single row produces"):
        small.run(df).rows()
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"


def test_a_slow_client_holds_a_sorted_result_back(small: Engine, spark: SparkSession) -> None:
    """What has come to the driver without being taken is bounded; then all of it comes, in order."""
    with peak_of(small) as samples:
        result = small.run(spark.sql("select * from facts order by t"))
        stream = result.batches()
        first = next(stream)
        figures, seen = result._collected.figures, -1
        while figures.bytes != seen:  # whatever comes without being taken
            seen = figures.bytes
            time.sleep(1.0)
        assert seen < 2 * UNTAKEN_BYTES_MAX < ROWS * 80
        last, count = "", 0
        for batch in chain((first,), stream):
            texts = batch.column(2)
            assert last <= texts[0].as_py()
            assert pc.all(pc.less_equal(texts[:-1], texts[1:])).as_py() in (True, None)
            last, count = texts[-1].as_py(), count + batch.num_rows
    assert count == ROWS
    assert max(samples) <= BUDGET + BESIDE, f"{max(samples) / MIB:.0f} MiB at the peak"


def test_a_result_that_nobody_holds_ends_its_query(small: Engine, spark: SparkSession) -> None:
    result = small.run(spark.table("facts"))
    assert not nothing_is_left_of_queries(small)
    del result
    gc.collect()
    until(lambda: nothing_is_left_of_queries(small))


def test_what_cannot_spill_ends_with_operator_stage_and_setting(
    small: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    """A text that is larger than what a kernel may hold is one value of one group."""
    path = tmp_path / "huge.parquet"
    pq.write_table(pa.table({"t": ["x" * (BUDGET // 2)]}), path)
    with pytest.raises(MemoryLimitError) as caught:
        small.run(spark.read.parquet(str(path)).groupBy("t").count()).rows()
    fields = caught.value.fields
    assert fields["operator"] in ("scan", "aggregation")
    assert str(fields["task"]) not in str(caught.value), "a name of ours"
    # The kernel says it if the value is too large for it, the TaskManager if it grew too fast for that.
    assert f"the {fields['operator']} of stage {fields['stage']}" in str(caught.value).replace("The ", "the ")
    assert "spark.wallaby.memory" in str(caught.value)
    assert small.count(spark.table("nation")) == 25


def test_a_budget_that_is_too_small_is_refused(engines: Engines, spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match=r"spark\.wallaby\.memory to \d+m"):
        engines.get(workers=1, threads=2, memory=64 * MIB)
