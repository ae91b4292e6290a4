"""Programs of Spark Connect use the engine as they are: answers, writes, errors, losses, isolation and interrupts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from tests.engine.conftest import on_spark
from tests.engine.connect.conftest import Client, ClientError
from tests.engine.test_ends import LONG, nothing_is_left_of_queries, until

from wallaby.engine import Engine
from wallaby.results.record import Where
from wallaby.serving import ConnectServer

JOIN = (
    "select o_orderpriority, count(*) n, sum(l_quantity) q from orders join lineitem on o_orderkey = l_orderkey "
    "group by 1 order by 1"
)
#: Runs for minutes if nobody ends it.
ENDLESS = (
    "select count(*) from lineitem a join lineitem b on a.l_linenumber = b.l_linenumber "
    "where a.l_extendedprice + b.l_extendedprice > 10"
)
Connect = Callable[[], Client]


def sparks(spark: SparkSession, query: str) -> list[Row]:
    """Spark's own answer."""
    return list(on_spark(spark, spark.sql(query).collect))


def parts(engine: Engine) -> int:
    """How many queries have run in the TaskManagers, at least in part."""
    return sum(record.where is not Where.SPARK for record in engine.history())


def test_a_program_gets_sparks_answers_from_the_taskmanagers(
    connect: Connect, served: Engine, spark: SparkSession
) -> None:
    client, before = connect(), parts(served)
    expected = [[str(value) for value in row] for row in sparks(spark, JOIN)]
    client.run(f"df = spark.sql('{JOIN}')")
    assert client.run("answer = [[str(v) for v in row] for row in df.collect()]") == expected
    assert client.run("answer = [[str(v) for v in row] for row in df.toPandas().values.tolist()]") == expected
    assert client.run("answer = df.count()") == len(expected)
    assert "Wallaby" in client.run("answer = df._explain_string()")
    assert parts(served) >= before + 3


def test_a_program_writes_files_and_tables(
    connect: Connect, served: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    client, before, expected = connect(), parts(served), sparks(spark, JOIN)
    client.run(f"df = spark.sql('{JOIN}')\ndf.write.parquet('{tmp_path}/out')")
    assert spark.read.parquet(f"{tmp_path}/out").orderBy("o_orderpriority").collect() == expected
    try:
        client.run("df.write.saveAsTable('priorities')")
        assert client.run("answer = spark.table('priorities').count()") == len(expected)
        assert spark.table("priorities").orderBy("o_orderpriority").collect() == expected
    finally:
        spark.sql("drop table if exists priorities")
    assert parts(served) >= before + 2


def test_python_functions_run_above_a_join(connect: Connect, served: Engine, spark: SparkSession) -> None:
    client, before = connect(), parts(served)
    client.run(
        "def twice(frames):\n"
        "    for frame in frames:\n"
        "        yield frame.assign(n=frame.n * 2)\n"
        f"df = spark.sql('{JOIN}')"
    )
    found = client.run(
        "answer = sorted([row[0], row[1]] for row in df.mapInPandas(twice, df.schema).collect())"
    )
    assert found == sorted([row[0], row[1] * 2] for row in sparks(spark, JOIN))
    assert parts(served) > before


def test_clients_are_isolated(connect: Connect, served: Engine) -> None:
    one, other = connect(), connect()
    one.run("spark.sql('select 1 as mine').createOrReplaceTempView('v')")
    with pytest.raises(ClientError, match="TABLE_OR_VIEW_NOT_FOUND"):
        other.run("spark.table('v').collect()")
    one.run("spark.conf.set('spark.wallaby.enabled', 'false')")
    before = parts(served)
    count = "answer = spark.sql('select l_linenumber, count(*) from lineitem group by 1').count()"
    other.begin(count)
    assert one.run(count) == 7
    assert other.end() == 7
    assert parts(served) == before + 1
    assert "Wallaby" not in one.run(f"answer = spark.sql('{JOIN}')._explain_string()")


def test_a_lost_taskmanager_costs_a_client_nothing(
    connect: Connect, served: Engine, spark: SparkSession
) -> None:
    client = connect()
    client.begin(f"answer = sorted(list(row) for row in spark.sql('{LONG}').collect())")
    until(lambda: any(served._parts.gcs.snapshot(query) for query in served._parts.gcs.queries()))
    os.kill(served.workers()[0].pid, signal.SIGKILL)
    found = client.end()
    assert served.history()[-1].recoveries >= 1
    assert found == sorted(list(row) for row in sparks(spark, LONG))
    until(lambda: len([worker for worker in served.workers() if worker.is_live]) == 2, 90)


@pytest.mark.parametrize("how", ["spark.interruptTag('mine')", "spark.interruptAll()"])
def test_an_interrupt_ends_the_query(connect: Connect, served: Engine, how: str) -> None:
    client = connect()
    client.run(
        "import threading\n"
        "ended = []\n"
        "def run():\n"
        "    spark.addTag('mine')\n"
        "    try:\n"
        f"        spark.sql('{ENDLESS}').collect()\n"
        "    except Exception as error:\n"
        "        ended.append(error.getCondition() or str(error))\n"
        "thread = threading.Thread(target=run, daemon=True)\n"
        "thread.start()"
    )
    until(lambda: not nothing_is_left_of_queries(served))
    assert client.run(f"answer = len({how})") == 1
    client.run("thread.join(60)")
    (said,) = client.run("answer = ended")
    assert "OPERATION_CANCELED" in said
    until(lambda: nothing_is_left_of_queries(served))


def test_a_killed_client_leaves_nothing(connect: Connect, served: Engine) -> None:
    client = connect()
    client.begin(f"spark.sql('{ENDLESS}').collect()")
    until(lambda: not nothing_is_left_of_queries(served))
    client.process.kill()
    until(lambda: nothing_is_left_of_queries(served))


def test_a_client_that_reattaches_gets_the_whole_answer(connect: Connect, spark: SparkSession) -> None:
    client = connect()
    client.run(
        "from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator as Rows\n"
        "made, reattached = Rows._create_reattach_execute_request, []\n"
        "def counted(self, *arguments, **named):\n"
        "    reattached.append(1)\n"
        "    return made(self, *arguments, **named)\n"
        "Rows._create_reattach_execute_request = counted"
    )
    query = "select l_orderkey, count(*) n from lineitem group by 1"
    found = client.run(f"answer = spark.sql('{query}').toPandas().values.tolist()")
    assert sorted(found) == sorted(list(row) for row in sparks(spark, query))
    assert client.run("answer = len(reattached)") > 0


def test_progress_reaches_the_client(connect: Connect) -> None:
    client = connect()
    client.run(
        "seen = []\n"
        "def note(stages, **_):\n"
        "    seen.append([[stage.num_tasks, stage.num_completed_tasks] for stage in stages])\n"
        "spark.registerProgressHandler(note)\n"
        "spark.conf.set('spark.connect.progress.reportInterval', '100ms')\n"
        "spark.sql('select k, sum(v) from short group by k').collect()"
    )
    seen = client.run("answer = seen")
    between = {done for stages in seen for tasks, done in stages if tasks > 100}
    assert any(0 < done < 1000 for done in between), between


def test_errors_keep_their_conditions(connect: Connect) -> None:
    client = connect()
    with pytest.raises(ClientError) as cast:
        client.run(
            "spark.sql('select k, sum(cast(concat(v, \"x\") as int)) from short group by k').collect()"
        )
    assert cast.value.condition == "CAST_INVALID_INPUT"
    client.run("spark.conf.set('spark.wallaby.timeout', '1')")
    with pytest.raises(ClientError) as late:
        client.run(f"spark.sql('{ENDLESS}').collect()")
    assert late.value.condition == "WALLABY_QUERY_TIMEOUT"
    assert "spark.wallaby.timeout" in late.value.message


def test_many_operations_leave_no_threads(connect: Connect) -> None:
    client = connect()
    operation = "spark.sql('select n_regionkey, count(*) from nation group by 1').collect()"
    client.run(operation)
    before = threading.active_count()
    client.run(f"for _ in range(12): {operation}")
    assert threading.active_count() <= before + 6


@pytest.mark.parametrize("token", ["", "token=wrong"])
def test_a_client_without_the_token_is_refused(server: ConnectServer, token: str) -> None:
    client = Client(f"{server.address}/;{token}")
    try:
        with pytest.raises(ClientError, match="authentication token"):
            client.run("spark.range(1).collect()")
    finally:
        client.close()


def test_a_client_that_enables_is_told_where(connect: Connect) -> None:
    client = connect()
    try:
        client.run("import wallaby")
    except ClientError:
        pytest.skip("the clients' Python has no Wallaby")
    for call in ("enable", "attach"):
        with pytest.raises(ClientError, match="wallaby connect") as refused:
            client.run(f"wallaby.{call}(spark)")
        assert refused.value.condition == "WALLABY_ATTACH"
