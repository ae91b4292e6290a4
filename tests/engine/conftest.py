"""A little TPC-H data in the shared Spark session, and one engine at a time, kept while tests want the same one."""

from __future__ import annotations

import gc
import getpass
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.chaos import Chaos
from tests.spark_sessions import Engines, shared_spark

import wallaby
from wallaby.engine import Engine
from wallaby_lab import tpch

SCALE = 0.02
#: `tiny` has three thousand row groups, and as many splits if these are to be small; `short` a thousand, `few` 200.
TINY_FILES = 30
SHORT_FILES = 10
FEW_FILES = 2
GROUPS_PER_FILE = 100
ROWS_PER_GROUP = 5


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture(scope="session")
def data() -> Path:
    """TPC-H data, made once for this user and kept for the next run."""
    kept = Path(tempfile.gettempdir()) / f"wallaby-tests-{getpass.getuser()}" / f"tpch-{SCALE:g}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=kept.parent))
        tpch.generate(made, SCALE)
        made.chmod(0o755)
        if not kept.exists():
            made.rename(kept)
    return kept


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three thousand row groups of five rows each."""
    directory = tmp_path_factory.mktemp("tiny")
    rows = GROUPS_PER_FILE * ROWS_PER_GROUP
    for number in range(TINY_FILES):
        ids = range(number * rows, (number + 1) * rows)
        table = pa.table({"k": [i % 7 for i in ids], "v": list(ids)})
        pq.write_table(table, directory / f"{number:03}.parquet", row_group_size=ROWS_PER_GROUP)
    return directory


@pytest.fixture(scope="module")
def spark(data: Path, tiny: Path) -> SparkSession:
    """The shared session, with TPC-H and the tables of tiny row groups."""
    shared = shared_spark()
    session = shared.session
    if "tables" not in shared.kept:
        shared.kept["tables"] = True
        tpch.register(session, data)
        files = sorted(str(path) for path in tiny.iterdir())
        session.read.parquet(*files).createOrReplaceTempView("tiny")
        session.read.parquet(*files[:SHORT_FILES]).createOrReplaceTempView("short")
        session.read.parquet(*files[:FEW_FILES]).createOrReplaceTempView("few")
    return session


@pytest.fixture(scope="module")
def engines(spark: SparkSession) -> Engines:
    """The engine of the shared session, kept as long as tests want the same one."""
    return shared_spark().engines


@pytest.fixture
def engine(engines: Engines) -> Engine:
    """Two TaskManagers of one thread each, small splits, leaves for the smallest query: what most tests need."""
    return engines.get(workers=2, threads=1, split=1, leaf_minimum=0)


@pytest.fixture(scope="session")
def fault_orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with orders of faults: one for all modules, so that they want the same engine."""
    return tmp_path_factory.mktemp("orders")


@pytest.fixture
def chaos(engines: Engines, fault_orders: Path) -> Iterator[Chaos]:
    """Engines that can be broken, and no orders when the test has ended."""
    found = Chaos(engines, fault_orders)
    yield found
    found.book.give(())


@pytest.fixture
def setting(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Sets entries of the session for one test, by their names without `spark.wallaby.`."""
    keys: list[str] = []

    def set_entry(name: str, text: str) -> None:
        keys.append(f"spark.wallaby.{name}")
        spark.conf.set(keys[-1], text)

    yield set_entry
    for key in keys:
        spark.conf.unset(key)


class Answers(dict[int, pa.Table]):
    """Spark's own answers to TPC-H, each asked once, when somebody wants it."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self._spark = spark

    def __missing__(self, number: int) -> pa.Table:
        self[number] = self._spark.sql(tpch.query(number)).toArrow()
        return self[number]


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> Answers:
    """Kept with the session, for all modules."""
    kept = shared_spark().kept
    return cast(Answers, kept.setdefault("answers", Answers(spark)))


@pytest.fixture
def above(engine: Engine, spark: SparkSession) -> Iterator[Engine]:
    """An enabled session that lets every part run here, however small, and leaves nothing behind."""
    from tests.engine.test_ends import nothing_is_left_of_queries, until  # it needs this module itself

    wallaby.enable(spark)
    spark.conf.set("spark.wallaby.below", "always")
    yield engine
    spark.conf.unset("spark.wallaby.below")
    wallaby.disable(spark)
    until(lambda: not kept_after_collecting(engine))
    until(lambda: nothing_is_left_of_queries(engine))


#: What has become unreachable is released this soon after the JVM has collected garbage.
RELEASED_SECONDS = 0.5


def kept_after_collecting(engine: Engine) -> bool:
    """Are there rows that stay although nobody can read them? The JVM knows when it has collected garbage."""
    if engine.subplans.kept:
        gc.collect()
        let_go_of_java_objects(engine.spark)
        engine.subplans.collect()
        deadline = time.monotonic() + RELEASED_SECONDS
        while engine.subplans.kept and time.monotonic() < deadline:
            time.sleep(0.01)
    return bool(engine.subplans.kept)


def let_go_of_java_objects(spark: SparkSession) -> None:
    """Let the JVM know which of its objects are not used here any more. Py4J itself would do so once a second."""
    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client
    try:
        while True:
            _, unused = client.finalizer_deque.pop()
            client.garbage_collect_object(unused, enqueue=False)
    except IndexError:
        return


def on_spark(spark: SparkSession, action: Callable[[], Any]) -> Any:
    """What an action gives without the engine."""
    spark.conf.set("spark.wallaby.enabled", "false")
    try:
        return action()
    finally:
        spark.conf.unset("spark.wallaby.enabled")


class Counted:
    """How many sub-plans an engine has run, and how many queries in all."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self.queries = 0
        run, submit = engine.subplans._run, engine._parts.runner._submit
        write = engine.subplans._writing._write

        def running(subplan: Any) -> Any:
            self.runs += 1
            return run(subplan)

        def writing(*arguments: Any) -> Any:
            files = write(*arguments)
            self.runs += files is not None
            return files

        def submitting(*arguments: Any, **named: Any) -> Any:
            self.queries += 1
            return submit(*arguments, **named)

        monkeypatch.setattr(engine.subplans, "_run", running)
        monkeypatch.setattr(engine.subplans._writing, "_write", writing)
        monkeypatch.setattr(engine._parts.runner, "_submit", submitting)


@pytest.fixture
def counted(above: Engine, monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(above, monkeypatch)
