"""A Spark session for one command, with an engine attached or without, and quiet.

The output of the JVM and its Python workers goes to a file, so that an answer can be piped; if Spark does not start,
the end of that file is shown as the reason.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from wallaby.commands.java import find_java
from wallaby.commands.terminal import step
from wallaby.config.settings import read_settings
from wallaby.errors import AttachError, InvalidArgumentError
from wallaby.observe.units import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wallaby.engine import Engine

_LOCAL: Final = re.compile(r"local(?:\[.*\])?|local-cluster\[.*\]")
_READERS: Final = {".csv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}
_REASON_LINES: Final = 3


def default_master(workers: int) -> str:
    """As many slots as cores, and at least one more than TaskManagers."""
    return f"local[{max(os.cpu_count() or 1, workers + 1)}]"


@contextmanager
def spark_session(
    master: str, configuration: Mapping[str, str], name: str = "wallaby"
) -> Iterator[SparkSession]:
    """A session that ends with the block."""
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(name)
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **(
            {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
            if _LOCAL.fullmatch(master)
            else {}
        ),
    }
    for key, value in {**defaults, **configuration}.items():
        builder = builder.config(key, value)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # It prints errors with the JVM's whole stack, although they are raised as well.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    with tempfile.NamedTemporaryFile("w+", prefix="wallaby-spark-", suffix=".log") as said:
        try:
            with _deferring_interrupts() as interrupts, _stderr_to(said.fileno()):
                spark = builder.getOrCreate()
        except Exception as error:  # PySpark raises bare errors of py4j, among others
            find_java()  # only now, because asking a Java that works takes half a second
            raise AttachError(
                f"Spark does not start under {master}: {_reason(Path(said.name), error)}",
                fix="Try wallaby doctor.",
            ) from error
        try:
            if interrupts:
                raise KeyboardInterrupt
            yield spark
        finally:
            spark.stop()


@contextmanager
def engine_session(
    master: str, workers: int, configuration: Mapping[str, str], **settings: object
) -> Iterator[tuple[SparkSession, Engine]]:
    """A session with an engine attached; both end with the block."""
    with (
        session_for_engine(master, configuration, **settings) as spark,
        attached(spark, workers, **settings) as engine,
    ):
        yield spark, engine


@contextmanager
def session_for_engine(
    master: str, configuration: Mapping[str, str], **settings: object
) -> Iterator[SparkSession]:
    """A session that is about to get an engine. What the block does first goes on while Python starts."""
    read_settings(configuration, settings)  # a mistake in them need not wait for Spark
    step(f"starting Spark under {master} …")
    # Spark's own start is mostly waiting for the JVM.
    threading.Thread(target=_load_engine, name="wallaby-load", daemon=True).start()
    with spark_session(master, configuration) as spark:
        from wallaby.waking import wake_python

        wake_python()
        yield spark


@contextmanager
def attached(spark: SparkSession, workers: int, **settings: object) -> Iterator[Engine]:
    """An engine on a session; it ends with the block."""
    from wallaby.engine import attach

    step(f"starting {counted(workers, 'TaskManager')} …")
    with attach(spark, workers=workers, **settings) as engine:
        yield engine


def step_with_page(engine: Engine, doing: str) -> None:
    """Say on a terminal what a command is about to do, and where to watch it.

    The live page is started only if somebody may see its address, unless it is switched off. On clusters it has to be
    switched on, as everywhere.
    """
    from wallaby.spark.cluster import Cluster

    wanted = engine.settings.ui_enabled
    is_there = wanted == "true" or (wanted == "auto" and Cluster(engine.spark.sparkContext).is_local)
    step(lambda: f"{doing}  live page: {engine.ui.url}" if is_there else doing)


def _load_engine() -> None:
    """Import the engine ahead of its use, which takes a second; whoever uses it meets the errors of the import."""
    with suppress(ImportError, PySparkException):
        importlib.import_module("wallaby.engine")


def register_tables(spark: SparkSession, tables: Mapping[str, str]) -> None:
    """Make each path a temporary view, in the format that its suffix, or those of its files, say."""
    for table, path in tables.items():
        kind = format_of(path)
        reader = spark.read.options(header="true", inferSchema="true") if kind == "csv" else spark.read
        reader.format(kind).load(path).createOrReplaceTempView(table)


def format_of(path: str) -> str:
    """The format of a table by the suffix of its path, or of the files in a folder; Parquet if they say nothing."""
    there = Path(path)
    if "://" not in path and there.is_dir() and not there.suffix:
        files = (each for each in there.rglob("*") if each.is_file() and not each.name.startswith(("_", ".")))
        there = next(files, there)
    return _READERS.get(there.suffix.lower(), "parquet")


def read_tables(options: list[str]) -> dict[str, str]:
    """Parse and check `name=path` options."""
    tables: dict[str, str] = {}
    for option in options:
        name, equals, path = option.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name) or not path:
            raise InvalidArgumentError(
                f"--table {option} is not of the form name=path.",
                fix="E.g. --table orders=data/orders.parquet",
            )
        if name in tables:
            raise InvalidArgumentError(f"--table {name} is given twice.", fix="Give each table one path.")
        if "://" not in path and not any(c in path for c in "*?[{") and not Path(path).exists():
            raise InvalidArgumentError(f"--table {name}: there is no {path}.", fix="Check the path.")
        tables[name] = path
    return tables


def read_configuration(options: list[str]) -> dict[str, str]:
    """Parse and check `key=value` options."""
    found: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key.startswith("spark."):
            raise InvalidArgumentError(
                f"--conf {option} is not of the form spark.key=value.",
                fix="E.g. --conf spark.driver.memory=4g",
            )
        found[key] = value
    return found


@contextmanager
def _deferring_interrupts() -> Iterator[list[int]]:
    """Defer Ctrl-C to the end of the block; yields how often it came.

    If PySpark is interrupted while it waits for a JVM to start, the JVM stays for ever.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def note_it(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, note_it)
    try:
        yield came
    finally:
        if signal.getsignal(signal.SIGINT) is note_it:  # otherwise PySpark has installed its own handler
            signal.signal(signal.SIGINT, before)


@contextmanager
def _stderr_to(descriptor: int) -> Iterator[None]:
    """Redirect the standard error of processes that are started in this block, as long as they live."""
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def _reason(said: Path, error: Exception) -> str:
    lines = [
        line.strip()
        for line in said.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip()
    ]
    telling = [line for line in lines if "xception" in line or "rror" in line] or lines
    return " / ".join(telling[-_REASON_LINES:]) or f"{type(error).__name__}: {error}"
