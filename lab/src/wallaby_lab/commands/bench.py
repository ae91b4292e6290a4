"""`wallaby bench`: TPC-H by several engines side by side, and what the parts of this one cost."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from wallaby.commands.terminal import note, open_for_writing, say
from wallaby.errors import InvalidArgumentError

app = typer.Typer(
    no_args_is_help=True,
    help="Measure: engines side by side, and what fault tolerance, losses and size cost.",
)

Directory = Annotated[Path, typer.Argument(help="Where the eight tables are.")]
Queries = Annotated[list[int] | None, typer.Option("--query", help="A query, 1 to 22. Repeatable.")]
Cores = Annotated[int, typer.Option(help="Number of cores to use; 0: all.", min=0)]
Memory = Annotated[str, typer.Option(help="Total memory of each engine, e.g. 8g.")]
Save = Annotated[Path | None, typer.Option(help="Write the raw figures to this JSON file.")]
Page = Annotated[Path | None, typer.Option(help="Write the report to this Markdown file.")]

QUERIES_EXAMPLES = """
Examples:

  wallaby bench queries data/sf10

  wallaby bench queries data/sf1 --engine spark --engine wallaby --query 3 --query 9 --rounds 5

  wallaby bench queries data/sf10 --save reports/bench-sf10.json --page docs/results/bench-sf10.md
"""
OVERHEAD_EXAMPLES = """
Examples:

  wallaby bench overhead data/sf10 --pairs 7
"""
RECOVERY_EXAMPLES = """
Examples:

  wallaby bench recovery data/sf10 --repetitions 3

  wallaby bench recovery data/sf30 --spark-tables data/sf10 --memory 16g
"""
SCALING_EXAMPLES = """
Examples:

  wallaby bench scaling data/sf1 data/sf3 data/sf10 --workers 1 --workers 2 --workers 4 --query 3 --query 9
"""
BLOCKS_EXAMPLES = """
Examples:

  wallaby bench blocks data/sf1
"""


@app.command(epilog=QUERIES_EXAMPLES)
def queries(
    directory: Directory,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            help="spark, wallaby, wallaby-2 (two TaskManagers, and so on), wallaby-off (no fault tolerance), duckdb, "
            "polars, datafusion, sail or sail-cluster; the first is the measure. Default: spark, wallaby and "
            "duckdb. Repeatable."
        ),
    ] = None,
    query: Queries = None,
    rounds: Annotated[int, typer.Option(help="How often each query is timed.", min=1, max=100)] = 3,
    cores: Cores = 0,
    memory: Memory = "8g",
    packages: Annotated[
        Path,
        typer.Option(help="Where datafusion and sail are, if not installed: see requirements-bench.txt."),
    ] = Path(".bench/packages"),
    save: Save = None,
    page: Page = None,
) -> None:
    """Time TPC-H queries by Wallaby, SparkSQL and others, in interleaved rounds on the same cores."""
    from wallaby_lab.bench.contenders import CONTENDERS, is_installed, known
    from wallaby_lab.bench.figures import at_scale
    from wallaby_lab.bench.report import drawings, to_json, to_page
    from wallaby_lab.bench.rounds import run_rounds

    names = engine or ["spark", "wallaby", "duckdb"]
    for name in names:
        if known(name) is None:
            raise InvalidArgumentError(
                f"There is no engine {name}.", fix=f"Choose from {', '.join(CONTENDERS)}."
            )
    missing = {name: "it is not installed" for name in names if not is_installed(name, packages)}
    numbers = _numbers(directory, query)
    chosen = chosen_cores(cores)
    taking_part = [name for name in names if name not in missing]
    measured = run_rounds(
        taking_part, numbers, directory.absolute(), chosen, memory, rounds, note, packages.absolute()
    )
    measured["absent"] = {**missing, **measured["absent"]}
    about = {"data": directory.name, "cores": len(chosen), "memory": memory, "rounds": rounds}
    plots = drawings(measured["results"], directory.name, page.stem) if page is not None else {}
    for name, drawn in plots.items():
        assert page is not None
        _write(page.with_name(name), drawn.svg())
    text = to_page(measured, f"TPC-H {at_scale(directory.name)}", tuple(plots), **about)
    _hand_over(text, to_json(measured, **about), save, page)


@app.command(epilog=OVERHEAD_EXAMPLES)
def overhead(
    directory: Directory,
    query: Queries = None,
    pairs: Annotated[
        int, typer.Option(help="How often each query runs on both engines.", min=2, max=100)
    ] = 7,
    workers: Annotated[int, typer.Option(help="TaskManagers.", min=1)] = 1,
    cores: Cores = 0,
    memory: Memory = "8g",
    save: Save = None,
    page: Page = None,
) -> None:
    """Measure what fault tolerance costs: the same engine with it and without, in alternating pairs."""
    from wallaby_lab.bench.figures import at_scale
    from wallaby_lab.bench.overhead import overhead_page, run_overhead

    numbers, chosen = _numbers(directory, query), chosen_cores(cores)
    figures = run_overhead(numbers, directory.absolute(), chosen, memory, pairs, workers, note)
    about = {"data": directory.name, "cores": len(chosen), "memory": memory, "pairs": pairs}
    text = overhead_page(figures, f"What fault tolerance costs, TPC-H {at_scale(directory.name)}", **about)
    _hand_over(text, {**about, **figures}, save, page)


@app.command(epilog=RECOVERY_EXAMPLES)
def recovery(
    directory: Directory,
    engine: Annotated[
        list[str] | None, typer.Option(help="wallaby or spark. Default: both. Repeatable.")
    ] = None,
    query: Annotated[
        list[int] | None, typer.Option(help="A query. Default: 1, 3, 5, 6, 7, 8, 9 and 10. Repeatable.")
    ] = None,
    repetitions: Annotated[int, typer.Option(help="How often a worker is killed.", min=1, max=100)] = 3,
    spark_tables: Annotated[
        Path | None,
        typer.Option(help="Tables for SparkSQL, if its queries take ten seconds at a smaller scale."),
    ] = None,
    cores: Cores = 0,
    memory: Memory = "8g",
    save: Save = None,
    page: Page = None,
) -> None:
    """Measure what a lost worker costs: one of four is killed at half of the time, under Wallaby and SparkSQL."""
    from wallaby_lab.bench.figures import at_scale
    from wallaby_lab.bench.recovery import QUERIES, recovery_page, run_recovery

    names = engine or ["wallaby", "spark"]
    for name in names:
        if name not in ("wallaby", "spark"):
            raise InvalidArgumentError(f"{name} does not survive a loss.", fix="Choose wallaby or spark.")
    numbers, chosen = _numbers(directory, query or list(QUERIES)), chosen_cores(cores)
    beside = spark_tables or directory
    require_tables(beside)
    tables = {name: (beside if name == "spark" else directory).absolute() for name in names}
    report = run_recovery(tables, numbers, chosen, memory, repetitions, note)
    about = {"memory": memory, "repetitions": repetitions}
    text = recovery_page(report, f"What a lost worker costs, TPC-H {at_scale(directory.name)}", **about)
    _hand_over(text, {**about, **report}, save, page)
    figures = [each for by_query in report["figures"].values() for each in by_query.values()]
    if wrong := sum(each["answers"] - each["equal"] for each in figures):
        say(f"{wrong:.0f} answers were WRONG.")
        raise typer.Exit(1)


@app.command(epilog=SCALING_EXAMPLES)
def scaling(
    directories: Annotated[list[Path], typer.Argument(help="Tables of several sizes, the smallest first.")],
    query: Annotated[
        list[int] | None, typer.Option(help="A query. Default: 1, 3, 6, 9 and 18. Repeatable.")
    ] = None,
    workers: Annotated[
        list[int] | None, typer.Option(help="TaskManagers. Default: 1, 2, 4 and 8. Repeatable.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often each query is timed.", min=1, max=100)] = 3,
    cores: Cores = 0,
    memory: Memory = "8g",
    save: Save = None,
    page: Page = None,
) -> None:
    """Measure how cost grows with data, TaskManagers, stages, channels and splits."""
    from wallaby_lab.bench.scaling import run_scaling, scaling_page

    chosen = chosen_cores(cores)
    numbers, *_ = [_numbers(directory, query or [1, 3, 6, 9, 18]) for directory in directories]
    where = [directory.absolute() for directory in directories]
    report = run_scaling(where, numbers, workers or [1, 2, 4, 8], chosen, memory, rounds, note)
    about = {"cores": len(chosen), "memory": memory, "rounds": rounds}
    _hand_over(scaling_page(report, "How cost grows", **about), {**about, **report}, save, page)


@app.command(epilog=BLOCKS_EXAMPLES)
def blocks(
    directory: Directory,
    rounds: Annotated[
        int, typer.Option(help="How often each is timed; the best counts.", min=1, max=100)
    ] = 5,
    cores: Cores = 0,
    save: Save = None,
    page: Page = None,
) -> None:
    """Measure building blocks, each beside a bare reference: partitioning, push, commit, join probe, plan reading."""
    from wallaby_lab.bench.blocks import blocks_page, run_blocks

    _numbers(directory, None)
    chosen = chosen_cores(cores)
    os.sched_setaffinity(0, chosen)
    report = run_blocks(directory.absolute(), rounds, note)
    about = {"data": directory.name, "cores": len(chosen), "rounds": rounds}
    _hand_over(blocks_page(report, "Building blocks", **about), {**about, **report}, save, page)


def require_tables(directory: Path) -> None:
    """Refuse a directory without TPC-H tables."""
    if not (directory / "lineitem.parquet").exists():
        raise InvalidArgumentError(
            f"{directory} holds no TPC-H tables.", fix=f"wallaby tpch generate {directory} --scale 1"
        )


def _numbers(directory: Path, query: list[int] | None) -> tuple[int, ...]:
    """The queries that are asked for, of tables that are there."""
    from wallaby_lab import tpch

    require_tables(directory)
    numbers = tuple(query or tpch.QUERIES)
    for number in numbers:
        tpch.query(number)
    return numbers


def chosen_cores(cores: int) -> list[int]:
    """The first n of the cores that this process may use; 0: all."""
    available = sorted(os.sched_getaffinity(0))
    return available[: cores or len(available)]


def _hand_over(text: str, raw: Mapping[str, Any], save: Path | None, page: Path | None) -> None:
    say(text)
    if save is not None:
        _write(save, json.dumps(raw, indent=1) + "\n")
    if page is not None:
        _write(page, text)


def _write(path: Path, text: str) -> None:
    with open_for_writing(path) as file:
        file.write(text)
