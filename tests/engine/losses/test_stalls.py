"""A query that stands still by a mistake ends and says who waits for what; one that is only slow does not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engine.chaos import places
from tests.engine.test_ends import nothing_is_left_of_queries, until
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import QueryStalledError
from wallaby.faults.orders import FaultOrders, parse_all
from wallaby.head import collected
from wallaby_lab.compare import require_same

STALL_SECONDS = 2.0
#: Several times the limit of a stall.
LONG_SECONDS = 2.5 * STALL_SECONDS


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> FaultOrders:
    return FaultOrders(tmp_path_factory.mktemp("stalls"))


@pytest.fixture
def engine(engines: Engines, book: FaultOrders) -> Iterator[Engine]:
    """Two TaskManagers that can be broken on purpose."""
    found = engines.get(
        workers=2,
        threads=1,
        split=1,
        task_target=1000,
        stall_timeout=STALL_SECONDS,
        chaos_enabled=True,
        chaos_directory=str(book.directory),
    )
    until(lambda: places(found) == {"w0", "w1"}, 90)
    yield found
    book.give(())


@pytest.fixture
def grouped(spark: SparkSession) -> DataFrame:
    """An aggregation over two hundred splits: all channels send to all others."""
    return spark.sql("select k, count(*) n, sum(v) s from few group by k")


def struck(book: FaultOrders, name: str) -> int:
    return len(book.struck(name))


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        # Whoever delivers the first rows of the result: the collector waits for that edge. It happens wherever the
        # channels are, which depends on whose leases are good when the query begins.
        (
            "*:deliver@head:1:forget",
            ("head: s2.c0 is at task 0 and waits for s1.c", "waits for an answer to Push"),
        ),
        ("*:commit@s1:1:forget", ("waits for an answer to CommitTask",)),
        # No thread computes, and the client has taken all rows: neither is an excuse.
        ("*:execute@s1:1:forget", ("waits for an answer to Execute",)),
        ("head:collect:1:forget", ("waits for an answer to Collect",)),
        # The coordinator waits for ever itself, so it ends nothing any more.
        ("head:watch:1:forget; *:commit@s1:1:forget", ("waits for an answer to CommitTask",)),
    ],
)
def test_a_query_that_stands_still_ends_and_says_who_waits_for_what(
    engine: Engine,
    spark: SparkSession,
    grouped: DataFrame,
    book: FaultOrders,
    fault: str,
    waits: tuple[str, ...],
) -> None:
    name = book.give(parse_all(fault))
    result = engine.run(grouped)
    with pytest.raises(QueryStalledError, match="although nobody is busy") as caught:
        result.arrow()
    assert struck(book, name) == fault.count("forget")
    said = "\n".join(caught.value.fields["waits"])  # type: ignore[arg-type]
    for wait in waits:
        assert wait in said, said
    assert caught.value.what.startswith(f"Query {caught.value.fields['query']} has made no progress")
    book.give(())
    until(lambda: nothing_is_left_of_queries(engine))
    assert engine.count(spark.table("nation")) == 25, "the engine goes on"


@pytest.mark.parametrize(
    "fault",
    [
        f"*:read:3:delay={LONG_SECONDS}s",
        f"*:back-up:3:delay={LONG_SECONDS}s",
        "*:deliver@head:1:fail:x2",
    ],
)
def test_a_task_that_takes_long_is_no_stall(
    engine: Engine, grouped: DataFrame, book: FaultOrders, fault: str
) -> None:
    name = book.give(parse_all(fault))
    require_same(engine.run(grouped).arrow(), grouped.toArrow())
    assert struck(book, name) == fault.count("x2") + 1


def test_a_client_that_takes_its_time_is_no_stall(
    engine: Engine, spark: SparkSession, grouped: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collected, "UNTAKEN_BYTES_MAX", 100)
    result = engine.run(spark.table("few"))
    stream = result.batches()
    rows = next(stream).num_rows
    figures = result._collected.figures
    time.sleep(LONG_SECONDS)
    assert figures.rows < 1_000, "the client was waited for all the time"
    rows += sum(batch.num_rows for batch in stream)
    assert rows == 1_000


def test_a_store_that_is_silent_for_a_while_is_no_stall(
    engine: Engine, grouped: DataFrame, book: FaultOrders
) -> None:
    """The store of a head that does not answer excuses everybody; so does a worker that stands still."""
    name = book.give(parse_all("head:status:2:fail:x40; *:execute:3:stop=1500ms"))
    require_same(engine.run(grouped).arrow(), grouped.toArrow())
    assert struck(book, name) >= 2


def test_both_sides_of_a_self_join_get_through_narrow_windows(
    engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outputs of the side that waits fill every push; those that it waits for have to come first all the same."""
    narrow = replace(engine.settings, window=1 << 14, task_target=1 << 16, broadcast=0)
    monkeypatch.setattr(engine._parts, "settings", narrow)
    df = spark.sql("""
        select count(*) n, sum(a.l_orderkey + b.l_partkey) s from lineitem a join lineitem b
        on a.l_orderkey = b.l_orderkey and a.l_comment < b.l_comment where a.l_orderkey < 12000
    """)
    assert engine.run(df).rows() == df.collect()
