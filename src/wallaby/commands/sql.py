"""`wallaby sql` and `wallaby explain`: one query from the command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wallaby.commands.session import (
    attached,
    default_master,
    read_configuration,
    read_tables,
    register_tables,
    session_for_engine,
    step_with_page,
)
from wallaby.commands.terminal import note, say
from wallaby.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from wallaby.engine import Engine

EXAMPLES = """
Examples:

  wallaby sql "select count(*) from t" --table t=data/orders.parquet

  wallaby sql "select * from t order by price desc limit 5" --table t=data/ --format json

  wallaby sql - --table t=data/ -o answer.parquet < query.sql

  wallaby sql "…" --table t=data/ --workers 3 --event-log logs/ && wallaby history logs/
"""
EXPLAIN_EXAMPLES = """
Examples:

  wallaby explain "select k, sum(v) from t group by k" --table t=data/t.parquet

  wallaby explain --analyze "select k, sum(v) from t group by k" --table t=data/t.parquet
"""


class Format(Enum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


Query = Annotated[str, typer.Argument(help="The query, in Spark's SQL; - reads it from standard input.")]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        "-t",
        help="A table, as name=path. The suffix of the file, or of a folder's files, tells CSV, JSON and ORC from "
        "Parquet. Repeatable.",
    ),
]
Workers = Annotated[int, typer.Option(help="How many TaskManagers to start.", min=1, max=1024)]
Master = Annotated[str | None, typer.Option(help="Spark's master; default: local, with one slot per core.")]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="A setting, spark.key=value. Repeatable.")]


def sql(
    query: Query,
    table: Tables = None,
    format_: Annotated[
        Format, typer.Option("--format", "-f", help="Output format of the rows.")
    ] = Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the rows to this file: .parquet, .csv or .json."),
    ] = None,
    rows: Annotated[int, typer.Option(help="With the format table: rows to print; 0 for all.", min=0)] = 100,
    workers: Workers = 1,
    master: Master = None,
    conf: Conf = None,
    event_log: Annotated[Path | None, typer.Option(help="Write an event log into this directory.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the rows.")] = False,
) -> None:
    """Run one SQL query over files and print its rows, or write them to a file."""
    from wallaby.commands.rows import check_suffix, print_rows, write_rows

    text, tables, configuration = _read(query), read_tables(table or []), read_configuration(conf or [])
    if output is not None:
        check_suffix(output)
    settings = {} if event_log is None else {"event_log_dir": str(event_log)}
    with _asked(text, tables, master, workers, configuration, **settings) as (df, engine):
        step_with_page(engine, "running the query …")
        started = time.monotonic()
        result = engine.run(df)
        answer = result.arrow()
        seconds = time.monotonic() - started
        by = "Wallaby" if result.native else "Spark: " + "; ".join(engine.fallback_reasons(df))
        # Before the engine and Spark are closed, which takes a second or two.
        if output is not None:
            write_rows(answer, output)
        else:
            print_rows(answer, format_.value, rows)
        if not quiet:
            plural = "" if answer.num_rows == 1 else "s"
            where = f" to {output}" if output is not None else ""
            note(f"{answer.num_rows:,} row{plural}{where} in {seconds:.2f} s by {by}")


def explain(
    query: Query,
    table: Tables = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run the query, and add what each stage did.")
    ] = False,
    workers: Workers = 1,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Show the stages that a query would run as, or why it would stay on Spark."""
    text, tables, configuration = _read(query), read_tables(table or []), read_configuration(conf or [])
    with _asked(text, tables, master, workers, configuration) as (df, engine):
        if analyze:
            step_with_page(engine, "running the query …")
        said = engine.explain(df, "analyze" if analyze else "simple").rstrip("\n")
    say(said)


@contextmanager
def _asked(
    text: str,
    tables: Mapping[str, str],
    master: str | None,
    workers: int,
    configuration: Mapping[str, str],
    **settings: object,
) -> Iterator[tuple[DataFrame, Engine]]:
    """The query, and an engine to run it. A mistake in the query is told before TaskManagers start."""
    with session_for_engine(master or default_master(workers), configuration, **settings) as spark:
        register_tables(spark, tables)
        df = spark.sql(text)
        with attached(spark, workers, **settings) as engine:
            yield df, engine


def _read(query: str) -> str:
    text = (sys.stdin.read() if query == "-" else query).strip().removesuffix(";")
    if not text:
        raise InvalidArgumentError("The query is empty.", fix='E.g. wallaby sql "select 1"')
    return text
