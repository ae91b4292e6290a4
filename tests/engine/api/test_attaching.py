"""Attaching is refused with a reason where it cannot be, and leaves nothing behind when it is over."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession
from tests.engine.test_ends import LONG, until
from tests.spark_sessions import Engines

import wallaby
from wallaby.errors import AttachError, ConfigurationError, InvalidArgumentError
from wallaby.gcs.connection import connect
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.gcs.keys import EVERY_KEY, engine_of


def test_importing_wallaby_imports_neither_spark_nor_arrow() -> None:
    code = (
        "import sys, wallaby; sys.exit(sum(name in sys.modules for name in ('pyspark', 'pyarrow', 'duckdb')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_names_are_there_when_asked_for() -> None:
    assert callable(wallaby.attach)
    assert callable(wallaby.enable)
    assert callable(wallaby.disable)
    assert "attach" in dir(wallaby)
    with pytest.raises(AttributeError, match="wombat"):
        wallaby.wombat  # noqa: B018 - asking is the test


class ConnectSession:
    """Stands for a Spark Connect session, of which only its module counts here."""

    __module__ = "pyspark.sql.connect.session"


def test_a_connect_session_is_refused() -> None:
    with pytest.raises(AttachError, match=r"Spark Connect session.* start the server with `wallaby connect`"):
        wallaby.attach(ConnectSession())  # type: ignore[arg-type]
    with pytest.raises(AttachError, match=r"Spark Connect session.* start the server with `wallaby connect`"):
        wallaby.enable(ConnectSession())  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [ConnectSession(), "spark", None])
def test_only_a_session_can_be_disabled(other: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Expected a SparkSession, got {type(other).__name__}"):
        wallaby.disable(other)


def test_a_session_is_attached_once(engines: Engines, spark: SparkSession) -> None:
    engines.get(workers=2, threads=1, split=1)
    with pytest.raises(AttachError, match="already"):
        wallaby.attach(spark)


def test_an_external_redis_is_used_and_left_empty(engines: Engines, spark: SparkSession) -> None:
    with EmbeddedRedis() as server, connect(server.url, password=server.password) as connection:
        engine = engines.get(workers=1, threads=1, gcs_url=server.url, gcs_password=server.password)
        assert engine.count(spark.table("nation")) == 25
        assert len({engine_of(key) for key in connection.find_keys(EVERY_KEY)}) == 1
        engines.close()
        assert connection.find_keys(EVERY_KEY) == []


def test_too_many_workers_are_refused_with_the_master_to_use(engines: Engines, spark: SparkSession) -> None:
    engines.close()
    with pytest.raises(AttachError, match=r"local\[6\]"):
        wallaby.attach(spark, workers=5)


def test_wrong_settings_are_refused_by_name(engines: Engines, spark: SparkSession) -> None:
    engines.close()
    with pytest.raises(ConfigurationError, match="workers"):
        wallaby.attach(spark, worker=2)
    with pytest.raises(ConfigurationError, match="memory"):
        wallaby.attach(spark, memory="lots")


def _processes() -> set[int]:
    """Python and Redis processes below this one; Spark's idle Python workers and daemon are Spark's."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if "redis" in line:
            found.add(process.pid)
    return found


def _ports() -> set[int]:
    """What is listened on by this process and those below it."""
    found = set()
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            listening = [c for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
        except psutil.Error:
            continue
        if "java" not in process.name():
            found |= {connection.laddr.port for connection in listening}
    return found


def test_nothing_is_left_after_close(
    engines: Engines, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.close()
    spark.range(4).rdd.map(lambda row: row.id).count()  # Spark's Python daemon is there before
    here, there = tmp_path / "driver", tmp_path / "workers"
    here.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(here))
    before = None, _processes(), _ports(), set(threading.enumerate())
    engine = wallaby.attach(
        spark, workers=2, threads=1, split=1, attach_timeout=120, local_directory=str(there)
    )
    workers = [psutil.Process(worker.pid) for worker in engine.workers()]
    assert engine.count(spark.table("nation")) == 25
    running = engine.run(spark.sql(LONG))
    until(lambda: engine._parts.gcs.status(running._collected.query).commits > 5)
    assert len(_processes()) > len(before[1])
    assert list(here.iterdir())
    assert list(there.iterdir())
    assert len(_ports()) > len(before[2])
    engine.close()
    until(lambda: _ports() <= before[2])
    until(lambda: _processes() <= before[1])
    until(lambda: set(threading.enumerate()) <= before[3])
    until(lambda: not any("wallaby" in name for process in workers for name in _thread_names(process)))
    assert list(here.rglob("*")) == []
    assert [path for path in there.rglob("*") if not path.is_dir()] == []
    assert list(there.iterdir()) == []


def _thread_names(process: psutil.Process) -> list[str]:
    """Names of the threads of a process that may be gone; a worker that Spark keeps for itself has none of ours."""
    try:
        return [
            (Path(f"/proc/{process.pid}/task") / str(thread.id) / "comm").read_text()
            for thread in process.threads()
        ]
    except (psutil.Error, OSError):
        return []
