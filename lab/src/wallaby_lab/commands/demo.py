"""`wallaby demo`: TPC-H on this machine, Spark's answers beside ours, and a TaskManager killed on the way."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from wallaby.commands.terminal import out, say
from wallaby.observe.units import counted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from wallaby.engine import Engine
    from wallaby.results.result import Result
    from wallaby.results.worker_info import WorkerInfo

EXAMPLES = """
Examples:

  wallaby demo                         TPC-H at scale 0.5, three TaskManagers: some minutes

  wallaby demo --scale 1 --query 5 --query 9

  wallaby demo --no-kill               lose nobody
"""
QUERIES: Final = (1, 3, 5, 6, 10, 12, 14)
#: The query during which a TaskManager is killed.
KILLED_QUERY: Final = 9
#: The share of its tasks after which that happens.
KILL_AT: Final = 0.4
KILL_POLL_SECONDS: Final = 0.005
KILL_ATTEMPTS: Final = 3
ROWS_SHOWN: Final = 3
VALUE_CHARACTERS: Final = 22
#: A longer query is run only once, so that the demonstration stays short.
REPEAT_SECONDS_MAX: Final = 20.0
WAIT_FOR_WORKER_SECONDS: Final = 30.0
_SIGNAL: Final = signal.SIGKILL


@dataclass(slots=True)
class _Run:
    """One query on both engines."""

    number: int
    expected: pa.Table
    spark_seconds: float
    seconds: float = 0.0
    equal: bool = False
    native: bool = False


def demo(
    directory: Annotated[Path, typer.Option(help="Where to keep data and reports between runs.")] = Path(
        ".demo"
    ),
    scale: Annotated[float, typer.Option(help="The scale factor of the data.", min=0.001, max=1000)] = 0.5,
    query: Annotated[list[int] | None, typer.Option(help="A TPC-H query to run. Repeatable.")] = None,
    workers: Annotated[int, typer.Option(help="TaskManagers.", min=1, max=64)] = 3,
    kill: Annotated[bool, typer.Option("--kill/--no-kill", help="Kill a TaskManager during a query.")] = True,
) -> None:
    """Run TPC-H queries from their SQL text, show rows and times beside Spark's own, and survive a killed worker."""
    from wallaby.commands.session import spark_session, step_with_page
    from wallaby.engine import attach
    from wallaby_lab.tpch import query as text_of
    from wallaby_lab.tpch import register

    numbers = tuple(query or QUERIES)
    for number in numbers:
        text_of(number)
    begun = time.monotonic()
    master = f"local[{workers + 1}]"
    with spark_session(master, {"spark.driver.memory": "3g"}, "wallaby demo") as spark:
        register(spark, tables(directory, scale))
        say(f"Spark {spark.version} under {master}; first its own times, with all slots to itself:")
        runs = [_on_spark(spark, number, text_of(number)) for number in numbers]
        logs = directory / "events"
        with attach(spark, workers=workers, event_log_dir=str(logs)) as engine:
            say(
                f"\n{workers} TaskManagers are up: "
                + ", ".join(f"{w.id} (pid {w.pid})" for w in engine.workers())
            )
            step_with_page(engine, "running the same queries, and one that loses a worker …")
            for run in runs:
                _on_wallaby(spark, engine, run, text_of(run.number))
            _show_times(runs)
            good = all(run.equal for run in runs)
            if kill:
                good &= _with_a_loss(spark, engine, directory)
    say(f"\nIn all {time.monotonic() - begun:.0f} s.")
    if not good:
        say("Some answers differ: this is a bug.")
        raise typer.Exit(1)


def tables(directory: Path, scale: float) -> Path:
    """The tables, generated once and renamed when they are complete."""
    from wallaby_lab.tpch import generate

    target = directory / f"tpch-sf{scale:g}"
    if not target.exists():
        say(f"Making TPC-H data, scale {scale:g}, in {target} …")
        started = time.monotonic()
        unfinished = directory / f".unfinished-{os.getpid()}"
        try:
            generate(unfinished, scale)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        say(f"… done in {time.monotonic() - started:.1f} s.")
    return target


def _on_spark(spark: SparkSession, number: int, text: str) -> _Run:
    seconds, answer = _timed(lambda: spark.sql(text).toArrow())
    say(f"  query {number:2d}: {seconds:6.2f} s")
    return _Run(number, answer, seconds)


def _on_wallaby(spark: SparkSession, engine: Engine, run: _Run, text: str) -> None:
    from wallaby.commands.rows import as_table
    from wallaby_lab.compare import same
    from wallaby_lab.tpch import ORDERS

    reasons = engine.fallback_reasons(spark.sql(text))
    run.native = not reasons
    run.seconds, answer = _timed(lambda: engine.run(spark.sql(text)).arrow())
    run.equal = same(answer, run.expected, order=ORDERS[run.number])
    verdict = "equal to" if run.equal else "NOT equal to"
    say(f"\nTPC-H query {run.number}: {counted(answer.num_rows, 'row')}, {verdict} Spark's")
    out.print(as_table(answer, ROWS_SHOWN, VALUE_CHARACTERS))
    if reasons:
        say("  run by Spark: " + "; ".join(reasons))


def _timed(ask: Callable[[], pa.Table]) -> tuple[float, pa.Table]:
    """The better of two runs; a long one is not repeated."""
    started = time.monotonic()
    answer = ask()
    first = time.monotonic() - started
    if first > REPEAT_SECONDS_MAX:
        return first, answer
    started = time.monotonic()
    ask()
    return min(first, time.monotonic() - started), answer


def _show_times(runs: list[_Run]) -> None:
    from rich.table import Table

    table = Table(
        "query",
        "Spark",
        "Wallaby",
        "times as fast",
        "answer",
        title="Seconds, the better of two runs",
    )
    for run in runs:
        by = "" if run.native else " (by Spark)"
        table.add_row(
            str(run.number),
            f"{run.spark_seconds:.2f}",
            f"{run.seconds:.2f}{by}",
            f"{run.spark_seconds / run.seconds:.1f}",
            "equal" if run.equal else "[red]differs[/]",
        )
    say()
    out.print(table)


def _with_a_loss(spark: SparkSession, engine: Engine, directory: Path) -> bool:
    """Kill a TaskManager with SIGKILL in the middle of a query; the answer must be Spark's all the same."""
    from wallaby.spark.bypass import on_spark
    from wallaby_lab.compare import same
    from wallaby_lab.tpch import ORDERS
    from wallaby_lab.tpch import query as text_of

    text = text_of(KILLED_QUERY)
    with on_spark():
        expected = spark.sql(text).toArrow()
    undisturbed = engine.run(spark.sql(text))
    undisturbed.arrow()
    usual = undisturbed.stats
    say(
        f"\nNow query {KILLED_QUERY} again ({usual.seconds:.2f} s and {usual.tasks} tasks so far), while a "
        "TaskManager is killed:"
    )
    for attempt in range(KILL_ATTEMPTS):
        victim = _wait_for_worker(engine, attempt)
        result = engine.run(spark.sql(text))
        killer = threading.Thread(
            target=_kill_on_the_way, args=(engine, result, victim, int(usual.tasks * KILL_AT)), daemon=True
        )
        killer.start()
        equal = same(result.arrow(), expected, order=ORDERS[KILLED_QUERY])
        killer.join()
        stats = result.stats
        if stats.recoveries or not equal:
            say(f"  rewound on other workers: {counted(stats.channels_rewound, 'channel')};")
            say(f"  delivered again from backups: {counted(stats.outputs_delivered_again, 'output')};")
            say(f"  read again: {counted(stats.outputs_read_again, 'output')};")
            say(
                f"  the answer came after {stats.seconds:.2f} s and is "
                f"{'equal to' if equal else 'NOT equal to'} Spark's."
            )
            _write_report(directory, stats.query)
            return equal
        say(f"  the query was over before {victim.id} died; trying again.")
    say("  The query was too quick each time: try a larger --scale.")
    return True


def _kill_on_the_way(engine: Engine, result: Result, victim: WorkerInfo, tasks: int) -> None:
    """Kill a TaskManager once the query has committed enough tasks."""
    inspection = engine.inspection
    while not result.is_over:
        committed = inspection.status(inspection.query_of(result)).commits
        if committed >= tasks:
            os.kill(victim.pid, _SIGNAL)
            say(f"  after {committed} tasks {victim.id} (pid {victim.pid}) gets SIGKILL")
            return
        time.sleep(KILL_POLL_SECONDS)


def _wait_for_worker(engine: Engine, attempt: int) -> WorkerInfo:
    """A live TaskManager, once all of them are live."""
    deadline = time.monotonic() + WAIT_FOR_WORKER_SECONDS
    while time.monotonic() < deadline:
        live = [worker for worker in engine.workers() if worker.is_live]
        if len(live) > attempt:
            return live[attempt]
        time.sleep(0.1)
    return engine.workers()[0]


def _write_report(directory: Path, query: str) -> None:
    from wallaby.observe.log_reading import read_log
    from wallaby.observe.page import make_page

    for log in sorted((directory / "events").glob(f"*{query}.jsonl")):
        page = directory / "recovery.html"
        page.write_text(make_page(read_log(log)), encoding="utf-8")
        say(f"  What happened, as a page: {page}")
