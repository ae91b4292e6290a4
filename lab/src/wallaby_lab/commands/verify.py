"""`wallaby tpch verify`: run TPC-H on the engine and on Spark over the same data, and compare every answer."""

from __future__ import annotations

import json
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wallaby.commands.terminal import note, out, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from wallaby.engine import Engine

EXAMPLES = """
Examples:

  wallaby tpch verify data/sf1

  wallaby tpch verify data/sf1 --workers 1 --workers 2 --workers 4 --master "local[5]"

  wallaby tpch verify data/sf1 --master "local-cluster[2,2,1024]" --save report.json

  wallaby tpch verify data/sf1 --answers answers/sf1

Exit codes: 0 all answers are equal and none was left to Spark; 1 some are not.
"""


@dataclass(frozen=True, slots=True)
class Verified:
    """One query with one number of TaskManagers."""

    query: int
    master: str
    workers: int
    rows: int
    #: What differs from Spark's answer; empty if nothing does.
    difference: str
    #: Why Spark ran it, or parts of it.
    reasons: tuple[str, ...]
    seconds: float
    spark_seconds: float
    #: What differs from the answer in a file; empty if nothing does, None if there is none.
    file_difference: str | None = None

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        if self.difference or self.file_difference:
            return "DIFFERS" if self.difference else "DIFFERS from its file"
        return "equal, by Spark" if self.reasons else "equal"

    @property
    def good(self) -> bool:
        """Is the answer native, and equal to Spark's?"""
        return not self.difference and not self.reasons and not self.file_difference


def verify(
    directory: Annotated[Path, typer.Argument(help="Where the eight tables are.")],
    query: Annotated[list[int] | None, typer.Option(help="A query, 1 to 22. Repeatable.")] = None,
    workers: Annotated[
        list[int] | None, typer.Option(help="TaskManagers; 0: one per executor. Repeatable.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark's master; default: local, with one slot per core.")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", help="A setting, spark.key=value. Repeatable.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="Also compare with the answers in this directory: q01.csv to q22.csv.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the figures to this JSON file.")] = None,
) -> None:
    """Run TPC-H queries natively and on Spark, and compare every answer."""
    from wallaby.commands.session import default_master, read_configuration, spark_session
    from wallaby.engine import attach
    from wallaby_lab import tpch
    from wallaby_lab.tpch.answers import answer_file

    numbers = tuple(query or tpch.QUERIES)
    texts = {number: tpch.query(number) for number in numbers}
    files = {} if answers is None else {number: answer_file(answers, number) for number in numbers}
    counts = tuple(workers or (2,))
    where = master or default_master(max(counts))
    configuration = {"spark.sql.session.timeZone": "UTC", **read_configuration(conf or [])}
    found: list[Verified] = []
    with spark_session(where, configuration, "wallaby tpch verify") as spark:
        tpch.register(spark, directory)
        sparks = {number: _timed(spark, texts[number]) for number in numbers}
        note(f"Spark's own answers took {sum(seconds for _, seconds in sparks.values()):.1f} s")
        for count in counts:
            with attach(spark, workers=count, spark_errors=False) as engine:
                for number in numbers:
                    wanted = Wanted(number, texts[number], *sparks[number], files.get(number))
                    one = _verify(spark, engine, wanted, where, count)
                    found.append(one)
                    why = one.difference or one.file_difference or ""
                    note(f"query {number:2d}, {count} TaskManagers: {one.verdict} {why}".rstrip())
    _show(found)
    if save is not None:
        report = {
            "data": directory.name,
            "machine": platform.machine(),
            "runs": [asdict(one) for one in found],
        }
        save.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    bad = [one for one in found if not one.good]
    also = "" if answers is None else f" and to those in {answers}"
    say(f"{len(found) - len(bad)} of {len(found)} are native and equal to Spark's{also}.")
    if bad:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query and its expected answer."""

    query: int
    text: str
    answer: pa.Table
    spark_seconds: float
    file: Path | None


def _verify(spark: SparkSession, engine: Engine, wanted: Wanted, master: str, workers: int) -> Verified:
    from wallaby_lab.compare import DifferentError, require_same
    from wallaby_lab.tpch import ORDERS, answers

    df = spark.sql(wanted.text)
    reasons = tuple(engine.fallback_reasons(df))
    began = time.monotonic()
    answer = engine.to_arrow(df)
    seconds = time.monotonic() - began
    difference = ""
    try:
        require_same(answer, wanted.answer, order=ORDERS[wanted.query])
    except DifferentError as error:
        difference = str(error)
    return Verified(
        wanted.query,
        master,
        workers,
        answer.num_rows,
        difference,
        reasons,
        round(seconds, 3),
        round(wanted.spark_seconds, 3),
        None if wanted.file is None else answers.difference(answer, wanted.file),
    )


def _timed(spark: SparkSession, text: str) -> tuple[pa.Table, float]:
    began = time.monotonic()
    answer = spark.sql(text).toArrow()
    return answer, time.monotonic() - began


def _show(found: Sequence[Verified]) -> None:
    from rich.table import Table

    table = Table("query", "TaskManagers", "rows", "answer", "seconds", "Spark's")
    for one in found:
        table.add_row(
            *(str(one.query), str(one.workers or "each executor"), f"{one.rows:,}", one.verdict),
            *(f"{one.seconds:.2f}", f"{one.spark_seconds:.2f}"),
        )
    out.print(table)
