"""The live page of a real engine: a query while it runs, a loss, and figures for Prometheus."""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.request

import pytest
from pyspark.sql import SparkSession
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import AttachError

LONG = "select k, count(*) n, sum(v) s from short group by k"


@pytest.fixture
def watched(engines: Engines) -> Engine:
    return engines.get(workers=2, threads=1, split=1, ui_enabled="true")


def body(engine: Engine, path: str) -> str:
    page = engine.ui
    request = urllib.request.Request(
        page.address + path[1:], headers={"Authorization": f"Bearer {page.token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def awaited(engine: Engine, path: str, pattern: str) -> str:
    """A page once it shows something; looked at as often as a browser does."""
    deadline = time.monotonic() + 120
    while re.search(pattern, shown := body(engine, path)) is None:
        assert time.monotonic() < deadline, f"{pattern} is never shown: {shown}"
        time.sleep(0.5)
    return shown


def test_a_query_is_seen_while_it_runs_and_loses_a_worker(watched: Engine, spark: SparkSession) -> None:
    assert watched.ui is watched.ui
    assert watched.ui.url in watched.ui._repr_html_()
    result = watched.run(spark.sql(LONG))
    number = watched.history()[-1].number
    during = awaited(watched, f"/body/query/{number}", r"[1-9]\d* tasks?")
    assert "is running</h1>" in during
    assert "scan" in during
    assert LONG in during
    assert f'/query/{number}"' in body(watched, "/")
    victim = watched.workers()[0]
    os.kill(victim.pid, signal.SIGKILL)
    assert len(result.rows()) == 7
    after = awaited(watched, f"/body/query/{number}", "finished")
    assert "Losses and recoveries" in after
    assert victim.id in after
    front = body(watched, "/body/")
    assert f"lost {victim.id}" in front
    assert "TaskManagers" in front


def test_metrics_count_queries_by_where_they_ran(watched: Engine, spark: SparkSession) -> None:
    def count(where: str) -> float:
        found = re.search(
            rf'wallaby_queries_total{{where="{where}",state="done"}} (\S+)', body(watched, "/metrics")
        )
        return 0.0 if found is None else float(found[1])

    native, sparks = count("native"), count("Spark")
    watched.run(spark.sql("select count(*) from nation")).rows()
    watched.run(spark.sql("select sin(n_nationkey) from nation")).rows()
    assert (count("native"), count("Spark")) == (native + 1, sparks + 1)
    said = awaited(watched, "/metrics", r'wallaby_task_managers{state="live"} 2')
    assert re.search(r'wallaby_task_manager_memory_bytes{worker="w0-\w+"} [1-9]', said)
    on_spark = watched.history()[-1]
    assert "Sin" in body(watched, f"/query/{on_spark.number}")


def test_the_page_ends_with_its_engine(engines: Engines, spark: SparkSession) -> None:
    engine = engines.get(workers=1, threads=1)
    assert engine._page is None, "it is off unless somebody asks for it"
    port = engine.ui.port
    assert engine.run(spark.sql("select count(*) from nation"), observed=False).rows()[0][0] == 25
    assert engine.history()[-1].findings is not None
    engines.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
    with pytest.raises(AttachError):
        engine.ui  # noqa: B018 - it is the property that raises
