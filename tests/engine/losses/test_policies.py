"""Every fault-tolerance policy and way of execution: Spark's answers, undisturbed and after a loss."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engine.chaos import Chaos, require_all_struck
from tests.engine.test_ends import LONG, nothing_is_left_of_queries, until
from tests.spark_sessions import Engines
from tests.spoiling import SPOILS
from tests.stores import s3, s3_service

from wallaby.engine import Engine
from wallaby.errors import ConfigurationError, DurableStoreError, WorkerLostError
from wallaby.exchange.durable import DurableStore, new_folder
from wallaby.faults.orders import FaultOrders, parse_all
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby.lineage.snapshot import ChannelState, Snapshot
from wallaby.lineage.tolerance import POLICIES, tolerance_of
from wallaby.node.process_identity import this_process
from wallaby.observe.event import EventKind, TaskAction
from wallaby.observe.log_reading import read_log
from wallaby.results.facts import QueryEvent
from wallaby.spark.durable_registration import ALIVE
from wallaby_lab import tpch
from wallaby_lab.compare import require_same

#: An aggregation of a hundred splits.
BRIEF = "select k, count(*) n, sum(v) s from brief group by k"
#: Join trees that lose a worker in a read and in a delivery, and channels that have a past when they are lost.
LOSSES = (
    (tpch.query(5), "*:read:2:kill"),
    (tpch.query(3), "*:deliver:2:kill"),
    (BRIEF, "*:execute:4:kill"),
)
STORED = ("spool", "checkpoint", "checkpoint+lineage", "spool+checkpoint")
#: Whatever a policy is made of; `lineage` is everybody's, and `off` survives nothing.
SURVIVING = tuple(name for name in POLICIES if name not in ("lineage", "off"))
SPOILT = (
    ("spool", "garbage"),
    ("spool", "swapped"),
    ("checkpoint+lineage", "cut"),
    ("checkpoint+lineage", "emptied"),
    ("spool+checkpoint", "changed"),
)
MODES = {
    "static(2)": {"execution_dependencies": "static(2)", "execution_draw": "one"},
    "stagewise": {"fault_tolerance_policy": "stagewise"},
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policies")


def settings_of(policy: str, store: Path) -> dict[str, object]:
    """A policy's own settings; states are saved after every task."""
    stored: dict[str, object] = {"fault_tolerance_store": str(store), "fault_tolerance_checkpoint": 0}
    return {"fault_tolerance_policy": policy, **(stored if tolerance_of(policy).uses_durable_store else {})}


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tiny: Path) -> dict[str, pa.Table]:
    """Spark's own answers."""
    spark.read.parquet(str(min(tiny.iterdir()))).createOrReplaceTempView("brief")
    return {query: spark.sql(query).toArrow() for query, _ in LOSSES}


@pytest.mark.parametrize("policy", SURVIVING)
def test_a_policy_answers_as_spark_does_and_survives_a_loss(
    chaos: Chaos, spark: SparkSession, expected: dict[str, pa.Table], directory: Path, policy: str
) -> None:
    store = directory / "store"
    settings = settings_of(policy, store)
    engine = chaos.engine(**settings)
    undisturbed = engine.run(spark.sql(BRIEF), observed=True)
    require_same(undisturbed.arrow(), expected[BRIEF])
    assert undisturbed.stats.detail is not None
    assert bool(undisturbed.stats.detail.durable_bytes) is tolerance_of(policy).uses_durable_store
    for query, fault in LOSSES:
        engine = chaos.engine(**settings)  # the same, with all its TaskManagers again
        name = chaos.order(fault)
        result = engine.run(spark.sql(query))
        require_same(result.arrow(), expected[query])
        require_all_struck(chaos, name)
        runs_again = tolerance_of(policy).run_again
        assert (result.stats.restarts if runs_again else result.stats.recoveries) >= 1
        until(lambda: nothing_is_left_of_queries(engine))  # noqa: B023 - it is called here
    engine.close()
    assert not store.exists() or not list(store.iterdir()), "nothing is left in the durable store"


#: A join whose outputs an aggregation takes, each in several channels that have states. No channel is without groups.
JOINED = "select a.v % 61 k, count(*) n, sum(b.v) s from brief a join brief b on a.v = b.v group by 1"


def rewound_in_place(events: Sequence[QueryEvent]) -> list[str]:
    """The channels that were rewound although their hosts lived: they stayed where they were."""
    hosts: dict[str, str] = {}
    found = []
    for event in events:
        if event.kind in (EventKind.MEMBERS.value, EventKind.RESUMED.value):
            now = {**hosts, **event.fields["hosts"]}
            found += [name for name in event.fields.get("rewound", ()) if hosts[name] == now[name]]
            hosts = now
    return found


class LateAggregation:
    """A query that joins and aggregates, of which one aggregating worker does not get its first commit through."""

    def __init__(self, chaos: Chaos, engine: Engine, df: DataFrame) -> None:
        physical = engine._plan(df).physical
        assert physical is not None
        self.graph = physical.graph
        (aggregates,) = (
            link.producer for link in self.graph.links if link.consumer == self.graph.collector.stage
        )
        (self.joins,) = (link.producer for link in self.graph.links if link.consumer == aggregates)
        name = chaos.order(f"*:commit@s{aggregates}:1:delay=300s; *:execute@s{self.joins}:1:slow=200ms:x9")
        self.engine = engine
        self.result = engine.run(df, observed=True)
        until(lambda: any("delay" in strike.order for strike in chaos.book.struck(name)))
        (self.late,) = (strike.worker for strike in chaos.book.struck(name) if "delay" in strike.order)
        self._pids = {worker.id: worker.pid for worker in engine.workers()}

    def snapshot(self) -> Snapshot:
        found = self.engine._parts.gcs.snapshot(self.result._collected.query)
        assert found is not None
        return found

    def joining(self, snapshot: Snapshot) -> dict[ChannelName, ChannelState]:
        """The channels of the join that are not at the late worker."""
        states = snapshot.channels.items()
        return {name: state for name, state in states if name.stage == self.joins and state.host != self.late}

    def ahead(self) -> list[WorkerId]:
        """The workers of whose channels of the join everybody has several outputs."""
        snapshot = self.snapshot()
        received: dict[WorkerId, list[int]] = {}
        for name, state in self.joining(snapshot).items():
            edges = self.graph.edges_from(name)
            received.setdefault(state.host, []).extend(snapshot.delivered[edge] for edge in edges)
        return [worker for worker, numbers in received.items() if min(numbers) >= 3]

    def kill(self, worker: str) -> None:
        os.kill(self._pids[worker], signal.SIGKILL)

    def goes_on_from_a_snapshot(self) -> bool:
        """Has a channel of the join been moved, past its first outputs, to a worker that is not the late one?"""
        until(lambda: self.snapshot().epoch >= 3 and self.snapshot().gate_open)
        return any(state.base > 0 for state in self.joining(self.snapshot()).values())


def test_a_live_channel_is_rewound_in_place_if_a_later_loss_needs_what_its_snapshot_passed_over(
    chaos: Chaos, spark: SparkSession, expected: dict[str, pa.Table], directory: Path
) -> None:
    """A join went on from a snapshot elsewhere. Then a consumer is lost that had its outputs and no commit."""
    df = spark.sql(JOINED)
    answer = df.toArrow()
    chaos.workers = 3
    # Two channels of the join at each worker: of the two that are lost, one at most goes to the late worker.
    settings = settings_of("checkpoint+lineage", directory / "store") | {"broadcast": 0, "channels": 6}
    late = LateAggregation(chaos, chaos.engine(**settings, event_log_dir=str(directory)), df)
    until(lambda: bool(late.ahead()))
    late.kill(late.ahead()[0])
    assert late.goes_on_from_a_snapshot()
    late.kill(late.late)
    require_same(late.result.arrow(), answer)
    assert rewound_in_place(late.result.events), "the channel lived, and was rewound"
    until(lambda: nothing_is_left_of_queries(late.engine))


def test_all_channels_go_on_from_the_last_complete_snapshot_and_rows_are_given_once(
    chaos: Chaos, spark: SparkSession, expected: dict[str, pa.Table], directory: Path
) -> None:
    """The second loss strikes in the middle of going on. What snapshot that was is seen at the head."""
    engine = chaos.engine(**settings_of("checkpoint", directory / "store"))
    name = chaos.order("*:read:1:slow=50ms; *:restore-state:1:kill")
    result = engine.run(spark.sql(BRIEF))
    submissions = engine._parts.head._submissions
    until(lambda: any(each.covered is not None for each in submissions.values()))
    reader = chaos.book.struck(name)[0]
    os.kill(reader.pid, signal.SIGKILL)
    require_same(result.arrow(), expected[BRIEF])
    struck = [strike.order for strike in chaos.book.struck(name)]
    assert "*:restore-state:1:kill" in struck
    assert result.stats.restarts >= 2
    until(lambda: nothing_is_left_of_queries(engine))
    engine.close()


def test_a_query_that_is_run_again_too_often_fails(chaos: Chaos, spark: SparkSession) -> None:
    engine = chaos.engine(fault_tolerance_policy="restart", max_task_worker_losses=2)
    name = chaos.order("*:execute@s2:1:kill:x9")
    with pytest.raises(WorkerLostError):
        engine.run(spark.sql(tpch.query(5))).arrow()
    assert len(chaos.book.struck(name)) == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_way_of_execution_changes_the_tasks_and_not_the_answer(
    engines: Engines, spark: SparkSession, answers: dict[int, pa.Table], tmp_path: Path, mode: str
) -> None:
    engine = engines.get(
        workers=2, threads=1, split=1, task_target="1k", event_log_dir=str(tmp_path), **MODES[mode]
    )
    result = engine.run(spark.sql(tpch.query(5)))
    require_same(result.arrow(), answers[5], order=tpch.ORDERS[5])
    seen = result._observed_stats()  # waits for the last events
    assert seen is not None
    history = read_log(seen.event_log)
    tasks = [event.fields for event in result.events if event.kind == EventKind.TASK.value]
    drawn = [task["inputs"] for task in tasks if task["how"] == TaskAction.EXECUTE.value and task["inputs"]]
    if mode == "stagewise":
        for link in (link for link in history.links if link.consumer < len(history.stages) - 1):
            ends = [t.at + t.seconds for t in history.tasks if t.stage == link.producer]
            begins = [t.at for t in history.tasks if t.stage == link.consumer]
            assert max(ends) <= min(begins), link
    else:
        assert max(drawn) == 2
        assert drawn.count(2) > len(drawn) / 2, "fewer only at the end of a channel's input"


def test_impossible_ways_of_execution_are_refused(spark: SparkSession, engines: Engines) -> None:
    for key, value in (
        ("execution_dependencies", "static(0)"),
        ("execution_dependencies", "static(99999)"),
        ("execution_draw", "two"),
        ("fault_tolerance_policy", "raid"),
    ):
        with pytest.raises(ConfigurationError, match=value.split("(")[0]):
            engines.get(**{key: value})


def test_a_policy_that_needs_a_store_is_refused_without_one_that_works(
    engines: Engines, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for store, why in (
        ("", "needs a durable store"),
        (str(tmp_path / "file"), "cannot be used"),
        ("x:y", "not the address"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            engines.get(fault_tolerance_policy="spool", fault_tolerance_store=store)


def test_outputs_and_states_on_s3_survive_the_loss_of_their_worker(
    engines: Engines, directory: Path, spark: SparkSession
) -> None:
    book = FaultOrders(directory)
    chaos = {"chaos_enabled": True, "chaos_directory": str(directory)}
    with s3() as store:
        left = DurableStore(store, new_folder())  # by a driver of this host that is no more
        said = {"process": f"{this_process()}1", "abandoned_seconds": 86_400}
        left.write(ALIVE, [pa.py_buffer(json.dumps(said).encode())])
        settings = {"fault_tolerance_policy": "spool+checkpoint", "fault_tolerance_checkpoint": 0}
        engine = engines.get(workers=2, threads=1, fault_tolerance_store=store, **settings, **chaos)
        assert "secret" not in repr(engine.settings)
        until(lambda: left.written_at(ALIVE) is None)
        name = book.give(parse_all("*:execute:1:kill"))
        result = engine.run(spark.sql(tpch.query(3)))
        require_same(result.arrow(), spark.sql(tpch.query(3)).toArrow(), order=tpch.ORDERS[3])
        assert [strike.order for strike in book.struck(name)] == ["*:execute:1:kill"]
        book.give(())
        engine.close()
        assert left.engines() == ()


def test_an_s3_store_that_fails_during_a_query_ends_it_with_an_error(
    chaos: Chaos, spark: SparkSession
) -> None:
    with s3_service() as server:
        settings = {"fault_tolerance_policy": "spool+checkpoint", "fault_tolerance_checkpoint": 0}
        engine = chaos.engine(fault_tolerance_store=server.store, **settings)
        workers = [worker.pid for worker in engine.workers()]

        def is_undone(fail: Callable[[], None]) -> None:
            result = engine.run(spark.sql(LONG))
            until(lambda: engine._parts.gcs.status(result._collected.query).commits > 5)
            fail()
            with pytest.raises(DurableStoreError, match=r"durable store s3://wallaby/store.* failed to"):
                result.arrow()
            until(lambda: nothing_is_left_of_queries(engine))

        is_undone(server.deny_writes)
        server.allow_writes()
        assert engine.count(spark.table("nation")) == 25
        is_undone(server.lose_bucket)
        server.make_bucket()
        assert engine.count(spark.table("nation")) == 25
        is_undone(server.stop)
        assert [worker.pid for worker in engine.workers()] == workers, "no worker was lost"
        engine.close()


def is_under_way(engine: Engine, query: str, store: Path) -> bool:
    """Has a query done a part of its work? Without lineage, what it has stored says so."""
    return (
        engine._parts.gcs.status(QueryId(query)).commits > 20 or len(list(store.glob(f"*/{query}/**/*"))) > 60
    )


def replace_by_a_file(store: Path) -> None:
    """Take a folder away for good, although workers make it again whenever they miss it."""
    for number in range(100):
        store.rename(store.with_suffix(f".gone-{number}"))
        with contextlib.suppress(IsADirectoryError):
            store.write_text("")
            return
    raise AssertionError("the folder is made again each time")


@pytest.mark.parametrize("policy", STORED)
def test_a_store_that_goes_away_during_a_query_ends_it_with_an_error(
    chaos: Chaos, spark: SparkSession, directory: Path, policy: str
) -> None:
    store = directory / f"going-{policy}"
    engine = chaos.engine(**settings_of(policy, store))
    result = engine.run(spark.sql(LONG))
    query = result._collected.query
    until(lambda: is_under_way(engine, query, store))
    replace_by_a_file(store)
    with pytest.raises(DurableStoreError, match="durable store"):
        result.arrow()
    until(lambda: nothing_is_left_of_queries(engine))
    store.unlink()
    assert engine.count(spark.table("nation")) == 25


def has_a_past(engine: Engine, query: QueryId, worker: str) -> bool:
    """Has a channel at a worker, other than a reader, committed tasks? Then a successor needs what is in the store."""
    snapshot = engine._parts.gcs.snapshot(query)
    assert snapshot is not None
    states = (state for state in snapshot.channels.values() if state.host == worker and state.split is None)
    return any(state.length > 2 and not state.ended for state in states)


@pytest.mark.parametrize(("policy", "how"), SPOILT)
def test_a_query_that_needs_what_was_spoilt_in_the_store_ends_with_an_error(
    chaos: Chaos, spark: SparkSession, directory: Path, policy: str, how: str
) -> None:
    store = directory / "spoilt"
    engine = chaos.engine(**settings_of(policy, store))
    worker, spared = (worker for worker in engine.workers())
    result = engine.run(spark.sql(LONG))
    query = result._collected.query
    until(lambda: has_a_past(engine, query, worker.id))
    os.kill(worker.pid, signal.SIGSTOP)  # what it writes after the files were spoilt would do
    try:
        written = (path for path in store.glob(f"*/{query}/**/*") if path.is_file())
        SPOILS[how](sorted(path for path in written if path.suffix != ".unfinished"))
    finally:
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(DurableStoreError, match=rf"{query}/(outputs|states)/s"):
        result.arrow()
    until(lambda: nothing_is_left_of_queries(engine))
    assert spared.pid in [worker.pid for worker in engine.workers()], "no other worker was lost"
    assert engine.count(spark.table("nation")) == 25


@pytest.mark.parametrize("policy", STORED)
def test_a_store_that_fills_up_during_a_query_ends_it_with_an_error(
    chaos: Chaos, spark: SparkSession, directory: Path, policy: str
) -> None:
    store = directory / f"going-{policy}"
    engine = chaos.engine(**settings_of(policy, store))
    workers = [worker.pid for worker in engine.workers()]
    result = engine.run(spark.sql(LONG))
    query = result._collected.query
    until(lambda: is_under_way(engine, query, store))
    limits = [resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in workers]
    for pid, (_, most) in zip(workers, limits, strict=True):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (64, most))  # no file has room for more
    with pytest.raises(DurableStoreError, match="has free space"):
        result.arrow()
    until(lambda: nothing_is_left_of_queries(engine))
    until(lambda: not list(store.glob("*/q-*")))
    for pid, limit in zip(workers, limits, strict=True):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)
    assert engine.count(spark.table("nation")) == 25
    assert [worker.pid for worker in engine.workers()] == workers, "no worker was lost"
