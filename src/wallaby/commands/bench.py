"""`wallaby bench`: TPC-H by several engines side by side."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from wallaby.commands.terminal import note, say
from wallaby.errors import InvalidArgumentError

EXAMPLES = """
Examples:

  wallaby bench data/sf10

  wallaby bench data/sf1 --engine spark --engine wallaby --query 3 --query 9 --rounds 5

  wallaby bench data/sf10 --save reports/bench-sf10.json --page docs/bench-sf10.md
"""


def bench(
    directory: Annotated[Path, typer.Argument(help="Where the eight tables are.")],
    engine: Annotated[
        list[str] | None,
        typer.Option(
            help="spark, wallaby, wallaby-2 (two TaskManagers), duckdb or datafusion; the first is the measure. "
            "Default: spark, wallaby, duckdb. Repeatable."
        ),
    ] = None,
    query: Annotated[list[int] | None, typer.Option(help="A query, 1 to 22. Repeatable.")] = None,
    rounds: Annotated[int, typer.Option(help="How often each query is timed.", min=1, max=100)] = 3,
    cores: Annotated[int, typer.Option(help="On how many cores; 0: on all.", min=0)] = 0,
    memory: Annotated[str, typer.Option(help="What each engine gets in all, e.g. 8g.")] = "8g",
    save: Annotated[Path | None, typer.Option(help="Write the raw figures to this JSON file.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write the report to this Markdown file.")] = None,
) -> None:
    """Measure TPC-H queries by Wallaby, SparkSQL and others, in interleaved rounds on the same cores."""
    from wallaby import tpch
    from wallaby.bench.contenders import CONTENDERS
    from wallaby.bench.course import run_course
    from wallaby.bench.report import to_json, to_page

    names = engine or ["spark", "wallaby", "duckdb"]
    for name in names:
        if name not in CONTENDERS:
            raise InvalidArgumentError(
                f"There is no engine {name}.", fix=f"Choose from {', '.join(CONTENDERS)}."
            )
    if not (directory / "lineitem.parquet").exists():
        raise InvalidArgumentError(
            f"{directory} holds no TPC-H tables.", fix=f"wallaby tpch generate {directory} --scale 1"
        )
    numbers = tuple(query or tpch.QUERIES)
    for number in numbers:
        tpch.query(number)
    available = sorted(os.sched_getaffinity(0))
    chosen = available[: cores or len(available)]
    course = run_course(names, numbers, directory.absolute(), chosen, memory, rounds, note)
    about = {"data": directory.name, "cores": len(chosen), "memory": memory, "rounds": rounds}
    text = to_page(course, f"TPC-H, {directory.name}", **about)
    say(text)
    if save is not None:
        save.write_text(json.dumps(to_json(course, **about), indent=1) + "\n", encoding="utf-8")
    if page is not None:
        page.write_text(text, encoding="utf-8")
