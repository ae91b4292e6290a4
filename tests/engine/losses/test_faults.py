"""Faults at the fail points of real processes: the same answer, and the fault is proved to have struck."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.engine.chaos import Chaos, require_all_struck
from tests.engine.test_ends import LONG, nothing_is_left_of_queries, until

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.engine import Engine
from wallaby.errors import GcsUnavailableError, PoisonTaskError, WorkerLostError
from wallaby.lineage.graph import LinkKind
from wallaby.node.reaching import COMPLAIN_AFTER_PUSHES
from wallaby_lab import tpch
from wallaby_lab.compare import require_same

#: One of each kind, at points of the attempt, the delivery, the retrace and the recovery.
FAULTS = [
    "w1:read:1:kill",
    "w0:back-up:2:fail",
    "w1:commit:2:kill:after",
    "w1:commit:1:fail:after",
    "w0:deliver:2:kill",
    "*:execute:1:kill; head:freeze:1:restart",
    "*:execute:1:kill; head:resume:1:restart:after",
    "*:execute:1:stop=8s",
    "head:submit:1:fail:after:x2",
    "head:submit:1:fail",
    "head:remove:1:fail:after",
]
QUERY = 5
#: Its aggregation commits often, so that a lost channel has a past to retrace.
LONG_FAULTS = [
    "*:execute:4:kill; *:read-records:1:kill:after",
    "*:execute:4:kill; *:retrace:2:kill",
    "*:execute:4:kill; *:retrace-back-up:1:fail",
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_time_and_nothing_else(
    chaos: Chaos, spark: SparkSession, answers: dict[int, pa.Table], fault: str
) -> None:
    engine = chaos.engine()
    name = chaos.order(fault)
    result = engine.run(spark.sql(tpch.query(QUERY)))
    require_same(result.arrow(), answers[QUERY], order=tpch.ORDERS[QUERY])
    until(lambda: nothing_is_left_of_queries(engine))
    require_all_struck(chaos, name)
    if "kill" in fault or "stop" in fault or "back-up" in fault:
        assert result.stats.recoveries >= 1


@pytest.mark.parametrize("fault", LONG_FAULTS)
def test_a_fault_during_a_recovery_is_one_more_recovery(
    chaos: Chaos, spark: SparkSession, fault: str
) -> None:
    engine = chaos.engine()
    name = chaos.order(fault)
    df = spark.sql(LONG)
    result = engine.run(df)
    require_same(result.arrow(), df.toArrow())
    require_all_struck(chaos, name)
    assert result.stats.recoveries >= 2
    until(lambda: nothing_is_left_of_queries(engine))


def test_re_reads_that_do_not_arrive_cost_one_end_of_the_wire_and_not_the_query(
    chaos: Chaos, spark: SparkSession
) -> None:
    """Deliveries pass, re-reads do not. Somebody must complain, or whoever lacks them waits for ever."""
    chaos.workers = 3
    engine = chaos.engine()
    before = {worker.id for worker in engine.workers()}
    # Whoever aggregates dies: its channel has a past, part of which only its own reader held.
    kill = chaos.order("*:execute:12:kill; head:freeze:1:delay=3s")
    df = spark.sql(LONG)
    result = engine.run(df)
    until(lambda: any("kill" in strike.order for strike in chaos.book.struck(kill)))
    (lost,) = (strike.worker for strike in chaos.book.struck(kill) if "kill" in strike.order)
    one, other = {"w0", "w1", "w2"} - {lost.partition("-")[0]}
    wires = [f"{end}:reread-deliver@{to}:1:fail:x9999" for end, to in ((one, other), (other, one))]
    cut = chaos.order("; ".join((*wires, "head:freeze:1:delay=3s")))
    until(lambda: len(before - {worker.id for worker in engine.workers()}) >= 2, 120)
    chaos.book.give(())
    require_same(result.arrow(), df.toArrow())
    pushes = [strike for strike in chaos.book.struck(cut) if "reread-deliver" in strike.order]
    assert len(pushes) > COMPLAIN_AFTER_PUSHES, "re-reads were pushed again and again"
    assert result.stats.recoveries >= 2, "of the loss, and of the wire"
    assert len(result.stats.lost_workers) >= 2
    until(lambda: nothing_is_left_of_queries(engine))


#: Longer than two workers may be out of each other's reach before one of them is expelled.
UNREACHABLE_SECONDS = CoordinatorSettings().unreachable_ms / 1000 + 2


def places_and_ids(engine: Engine) -> dict[str, str]:
    return {worker.id.partition("-")[0]: worker.id for worker in engine.workers()}


@pytest.mark.parametrize("then", ["the query ends", "a worker is lost", "the query is cancelled"])
def test_a_wire_that_works_again_or_that_nobody_needs_costs_no_worker(
    chaos: Chaos, spark: SparkSession, then: str
) -> None:
    """A few pushes without an answer make a complaint, which must not outlive its reason."""
    chaos.workers = 3 if then == "a worker is lost" else 2
    engine = chaos.engine()
    before = places_and_ids(engine)
    cancelled = then == "the query is cancelled"
    # Who aggregates, and is delivered to, depends on who came first.
    times = 9999 if cancelled else COMPLAIN_AFTER_PUSHES + 1
    wires = [f"{end}:deliver@{to}:1:fail:x{times}" for end, to in (("w0", "w1"), ("w1", "w0"))]
    name = chaos.order("; ".join((*wires, *(["w2:commit:20:kill"] if then == "a worker is lost" else []))))

    def unanswered() -> int:
        return sum("deliver" in strike.order for strike in chaos.book.struck(name))

    df = spark.sql(LONG)
    result = engine.run(df)
    if cancelled:
        until(lambda: unanswered() > COMPLAIN_AFTER_PUSHES)
        result.cancel()
        until(lambda: nothing_is_left_of_queries(engine))
        chaos.book.give(())
    else:
        require_same(result.arrow(), df.toArrow())
        assert (result.stats.recoveries > 0) is (then == "a worker is lost")
    assert unanswered() > COMPLAIN_AFTER_PUSHES, "somebody has complained"
    time.sleep(UNREACHABLE_SECONDS)
    after = places_and_ids(engine)
    assert (after["w0"], after["w1"]) == (before["w0"], before["w1"])


def test_a_submission_that_is_never_answered_blocks_no_drain(
    chaos: Chaos, spark: SparkSession, answers: dict[int, pa.Table]
) -> None:
    """The store holds the query, and its user has an error: somebody else has to remove it."""
    engine = chaos.engine()
    name = chaos.order("head:submit:1:fail:after:x9999")
    with pytest.raises(GcsUnavailableError, match="did not answer the submission"):
        engine.run(spark.sql(LONG))
    assert len(chaos.book.struck(name)) > 1
    leaving = engine.workers()[0].id
    assert engine.drain(leaving)
    until(lambda: leaving not in [worker.id for worker in engine.workers()])
    assert nothing_is_left_of_queries(engine)
    chaos.book.give(())
    require_same(engine.to_arrow(spark.sql(tpch.query(6))), answers[6])


@pytest.mark.parametrize(
    "fault", ["head:drain:1:fail:after:x2", "head:drain:1:fail; head:expel:1:fail:after"]
)
def test_a_worker_leaves_although_the_store_does_not_answer(
    chaos: Chaos, spark: SparkSession, answers: dict[int, pa.Table], fault: str
) -> None:
    engine = chaos.engine()
    name = chaos.order(fault)
    leaving = engine.workers()[0].id
    assert engine.drain(leaving)
    require_all_struck(chaos, name)
    until(lambda: leaving not in [worker.id for worker in engine.workers()])
    require_same(engine.to_arrow(spark.sql(tpch.query(6))), answers[6])


@pytest.mark.parametrize("fault", ["*:close-early:1:kill", "*:close-early:1:fail:after"])
def test_a_fault_where_a_limit_ends_what_is_before_it(chaos: Chaos, spark: SparkSession, fault: str) -> None:
    engine = chaos.engine()
    name = chaos.order(fault)
    rows = engine.run(spark.sql("select k, v from short limit 700")).rows()
    require_all_struck(chaos, name)
    assert len({row.v for row in rows}) == 700, "each row once"
    assert all(row.k == row.v % 7 for row in rows)
    until(lambda: nothing_is_left_of_queries(engine))


def test_a_task_that_takes_its_worker_down_each_time_ends_its_query_and_not_the_engine(
    chaos: Chaos, spark: SparkSession, answers: dict[int, pa.Table]
) -> None:
    engine = chaos.engine(max_task_worker_losses=3)
    name = chaos.order("*:read@s0.c0.t0:1:kill:x9")
    with pytest.raises(PoisonTaskError) as error:
        engine.collect(spark.sql(tpch.query(6)))
    assert str(error.value.fields["task"]) == "s0.c0.t0"
    assert len(chaos.book.struck(name)) == 3
    until(lambda: nothing_is_left_of_queries(engine))
    chaos.book.give(())
    require_same(engine.to_arrow(spark.sql(tpch.query(6))), answers[6])


@pytest.mark.parametrize("fault", ["w1:commit:2:kill", "w0:back-up:2:fail", "*:execute:1:stop=8s"])
def test_without_fault_tolerance_the_same_fault_fails_the_query(
    chaos: Chaos, spark: SparkSession, fault: str
) -> None:
    engine = chaos.engine(fault_tolerance_policy="off")
    name = chaos.order(fault)
    with pytest.raises(WorkerLostError):
        engine.collect(spark.sql(tpch.query(QUERY)))
    assert len(chaos.book.struck(name)) == 1
    until(lambda: nothing_is_left_of_queries(engine))


#: The keys of a year's orders filter the reads of lineitem, which is then partitioned.
FILTERED = """
    select o_orderpriority, count(*) as n, sum(l_extendedprice) as s, max(o_comment) as c, max(l_comment) as d
    from orders join lineitem on o_orderkey = l_orderkey
    where o_orderdate >= date '1994-01-01' and o_orderdate < date '1995-01-01'
    group by o_orderpriority
"""


@pytest.mark.parametrize(
    "fault", ["read@{scan}:1:kill", "commit@{scan}:1:kill:after", "commit@{keys}:1:kill"]
)
def test_a_read_that_was_filtered_is_repeated_with_the_same_filter(
    chaos: Chaos, spark: SparkSession, fault: str
) -> None:
    engine = chaos.engine(broadcast=1 << 16, task_target=1 << 16)
    df = spark.sql(FILTERED)
    expected = df.toArrow()
    physical = engine._plan(df).physical
    assert physical is not None
    (link,) = (link for link in physical.graph.links if link.kind is LinkKind.SIDE)
    fault = fault.format(scan=f"s{link.consumer}.c0.t0", keys=f"s{link.producer}.c0.t0")
    name = chaos.order(f"*:{fault}")
    result = engine.run(df)
    require_same(result.arrow(), expected)
    require_all_struck(chaos, name)
    assert result.stats.recoveries >= 1
    until(lambda: nothing_is_left_of_queries(engine))


@pytest.fixture(scope="module")
def wide(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """80 MiB of texts."""
    path = tmp_path_factory.mktemp("wide") / "rows"
    texts = "concat(sha2(cast(id as string), 256), sha2(cast(id + 1 as string), 256)) as t"
    spark.range(600_000, numPartitions=8).selectExpr("id", texts).write.parquet(str(path))
    spark.read.parquet(str(path)).createOrReplaceTempView("wide")
    return "select id, t from wide"


@pytest.mark.parametrize("fault", ["", "*:back-up:4:fill=1m"])
def test_a_disk_that_is_full_in_the_middle_of_a_segment_costs_its_worker(
    chaos: Chaos, spark: SparkSession, wide: str, fault: str
) -> None:
    """The backups are more than their share of memory, so they go to files, of which one is cut off."""
    engine = chaos.engine(memory=128 << 20, task_target=1 << 20)
    name = chaos.order(fault)
    df = spark.sql(wide)
    result = engine.run(df, observed=True)
    require_same(result.arrow(), df.toArrow())
    require_all_struck(chaos, name)
    assert (result.stats.recoveries >= 1) is bool(fault)
    until(lambda: nothing_is_left_of_queries(engine))


@pytest.mark.parametrize(
    "sql", ["select t, count(*) c from wide group by t", "select id, t from wide order by t"]
)
def test_a_disk_that_is_full_when_a_kernel_spills_costs_its_worker(
    chaos: Chaos, spark: SparkSession, wide: str, sql: str
) -> None:
    engine = chaos.engine(memory=96 << 20, task_target=1 << 20, broadcast=0)
    name = chaos.order("*:execute:3:fill=1m")
    df = spark.sql(sql)
    result = engine.run(df, observed=True)
    require_same(result.arrow(), df.toArrow())
    require_all_struck(chaos, name)
    assert result.stats.recoveries >= 1
    until(lambda: nothing_is_left_of_queries(engine))


def test_a_disk_that_is_full_when_a_stripe_is_copied_costs_its_worker(
    chaos: Chaos, spark: SparkSession, wide: str, tmp_path: Path
) -> None:
    """The file is not called damaged: another TaskManager has room for a copy of its stripe."""
    spark.sql(wide).coalesce(2).write.option("orc.compress", "none").orc(str(tmp_path / "stripes"))
    df = spark.read.orc(str(tmp_path / "stripes")).groupBy("t").count()
    engine = chaos.engine(memory=96 << 20, task_target=1 << 20, broadcast=0)
    name = chaos.order("*:execute:2:fill=1m")
    result = engine.run(df, observed=True)
    require_same(result.arrow(), df.toArrow())
    require_all_struck(chaos, name)
    assert result.stats.recoveries >= 1
    until(lambda: nothing_is_left_of_queries(engine))
