"""The command line, `wallaby`.

Exit codes: 0 it went well; 1 something was found wrong (a violated invariant, a store that cannot be used);
2 the command was not understood.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wallaby.errors import InvalidArgumentError, WallabyError
from wallaby.gcs.connection import connect
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.simulation import report
from wallaby.simulation.campaign import Summary, check_range, run_campaign
from wallaby.simulation.demo import run_demo
from wallaby.simulation.shrink import shrink
from wallaby.simulation.sweep import run_sweep

app = typer.Typer(
    name="wallaby",
    help="Write-ahead lineage: a pipelined query engine that survives lost workers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False)

_EXAMPLES = """
Examples:

  wallaby simulate --seeds 2000          run two thousand random seeds on all cores

  wallaby simulate --seed 173            tell the story of one seed, shrunk if it fails

  wallaby simulate --sweep               one small query, one fault, at every single step

  wallaby simulate --mutants             break the protocol on purpose; every break must be found
"""


@app.callback()
def _root() -> None:
    """A pipelined query engine that survives lost workers."""


@app.command(epilog=_EXAMPLES)
def simulate(
    seeds: Annotated[int, typer.Option(help="How many random seeds to run.")] = 200,
    first: Annotated[int, typer.Option(help="The first of them.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Run only this seed and tell its story.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Start with this many workers, whatever the seed draws.")
    ] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Try one fault at every step of one small query.")
    ] = False,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Run mutants of the protocol: each must be caught.")
    ] = False,
    mutant: Annotated[
        list[str] | None, typer.Option(help="With --mutants: only this one. Repeatable.")
    ] = None,
    seeds_max: Annotated[int, typer.Option(help="With --mutants: seeds that each may take.")] = 2_000,
    demo: Annotated[bool, typer.Option("--demo", help="A short guided tour.")] = False,
    processes: Annotated[int, typer.Option(help="Processes to use; 0 for one per core.")] = 0,
    log: Annotated[Path | None, typer.Option(help="Write a line of JSON per seed to this file.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the report, as JSON, to this file.")] = None,
    lines: Annotated[int, typer.Option(help="With --seed: lines of its story, at most.")] = 400,
) -> None:
    """Run the real protocol code in a simulated world full of faults, checking every invariant after every step."""
    if processes < 0 or seeds_max < 1 or lines < 1:
        raise InvalidArgumentError(
            "--processes, --seeds-max and --lines cannot be negative.", fix="See --help."
        )
    if sum((seed is not None, sweep, mutants, demo)) > 1:
        raise InvalidArgumentError(
            "--seed, --sweep, --mutants and --demo exclude each other.", fix="Choose one."
        )
    if mutant and not mutants:
        raise InvalidArgumentError("--mutant goes with --mutants.", fix="Add --mutants.")
    cores = processes or os.cpu_count() or 1
    if demo:
        run_demo(lambda line: _out.print(line, markup=False), cores)
    elif seed is not None:
        _tell_seed(seed, workers, lines)
    elif sweep:
        _sweep(cores)
    elif mutants:
        _hunt(tuple(mutant or ()), seeds_max, cores, save)
    else:
        _campaign(first, seeds, cores, workers, log, save)


def _tell_seed(seed: int, workers: int | None, lines: int) -> None:
    check_range(seed, 1)
    shrunk = shrink(seed, workers)
    _out.print(report.format_story(shrunk, lines), markup=False)
    _out.print(report.format_tally(shrunk.result.tally), markup=False)
    if shrunk.result.failure is not None:
        raise typer.Exit(1)


def _sweep(cores: int) -> None:
    with _progress() as bar:
        task = bar.add_task("faults", total=None)
        result = run_sweep(cores, lambda done, of: bar.update(task, completed=done, total=of))
    _out.print(report.format_sweep(result), markup=False)
    if result.failures:
        raise typer.Exit(1)


def _campaign(
    first: int, seeds: int, cores: int, workers: int | None, log: Path | None, save: Path | None
) -> None:
    check_range(first, seeds)
    lines = _open_for_writing(log) if log is not None else None
    if save is not None:
        _open_for_writing(save).close()
    try:
        with _progress() as bar:
            task = bar.add_task("seeds", total=seeds)
            summary = run_campaign(
                first, seeds, cores, workers, lines, lambda s: bar.update(task, completed=s.seeds)
            )
    finally:
        if lines is not None:
            lines.close()
    _out.print(report.format_summary(summary), markup=False)
    _save(save, {"first": first, "machine": _machine(), **summary.as_json()})
    _report_failures(summary, workers)


def _report_failures(summary: Summary, workers: int | None) -> None:
    if not summary.failures:
        _out.print("no violation")
        return
    seed, _ = min(summary.failures)
    for failed, what in sorted(summary.failures):
        _out.print(f"seed {failed}: {what}", markup=False)
    _out.print()
    _out.print(report.format_story(shrink(seed, workers), 200), markup=False)
    again = f" --workers {workers}" if workers is not None else ""
    _out.print(f"\nAgain: wallaby simulate --seed {seed}{again}")
    raise typer.Exit(1)


def _hunt(names: tuple[str, ...], seeds_max: int, cores: int, save: Path | None) -> None:
    from wallaby.simulation.mutants.hunt import format_catches, hunt_all

    catches = hunt_all(names or None, seeds_max, cores)
    _out.print(format_catches(catches), markup=False)
    _save(
        save,
        {"machine": _machine(), "seeds_max": seeds_max, "mutants": [catch.as_json() for catch in catches]},
    )
    if any(not catch.caught for catch in catches):
        raise typer.Exit(1)


@app.command()
def doctor(
    gcs_url: Annotated[
        str | None, typer.Option(help="A Redis to use as the control store, e.g. redis://host:6379.")
    ] = None,
) -> None:
    """Check what Wallaby needs on this machine, and say what to do about what is missing."""
    _out.print(f"Python {platform.python_version()}: good")
    if gcs_url is not None:
        password = os.environ.get("WALLABY_GCS_PASSWORD")
        with connect(gcs_url, password=password) as connection:
            version = connection.server.version
            _out.print(f"control store at {connection.address}: Redis {version}, good", markup=False)
        return
    with EmbeddedRedis() as server, connect(server.url, password=server.password) as connection:
        _out.print(f"embedded control store: Redis {connection.server.version}, good", markup=False)


def _progress() -> Progress:
    """A bar on a terminal; nothing in a pipe or in CI."""
    quiet = not sys.stderr.isatty() or bool(os.environ.get("CI"))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=_err, transient=True, disable=quiet)


def _open_for_writing(path: Path) -> TextIO:
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"Cannot write {path}: {error.strerror}.", fix="Name another file."
        ) from error


def _save(path: Path | None, report_: dict[str, object]) -> None:
    if path is not None:
        path.write_text(json.dumps(report_, indent=1) + "\n", encoding="utf-8")


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main() -> None:
    """Run the command line; an error of ours is one line, not a traceback."""
    try:
        app(standalone_mode=True)
    except InvalidArgumentError as error:
        _err.print(f"wallaby: {error}", markup=False)
        sys.exit(2)
    except WallabyError as error:
        _err.print(f"wallaby: {error}", markup=False)
        sys.exit(1)
