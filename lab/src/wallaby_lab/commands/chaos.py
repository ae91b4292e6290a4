"""`wallaby chaos`: TPC-H on real processes that are killed, stopped and cut off; answers must be Spark's."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wallaby.commands.terminal import note, out, progress, say
from wallaby.errors import InvalidArgumentError

if TYPE_CHECKING:
    from wallaby_lab.chaos.faults import ChaosFault
    from wallaby_lab.chaos.grid import RunGrid
    from wallaby_lab.chaos.run import ChaosArena

#: With policies that save states: the seconds between two of them.
CHECKPOINT_SECONDS = 0.1
EXAMPLES = """
Examples:

  wallaby chaos --list                          every fault, by name

  wallaby chaos --query 9 --kinds               TPC-H 9 under every fault except kills at a fail point

  wallaby chaos --query 9 --wires               the wire between two workers cut in every phase of TPC-H 9

  wallaby chaos --query 5 --fault "commit: kill after" --fault "w1:deliver:3:stop=4s"

  wallaby chaos --query 9 --seeds 20            twenty schedules drawn at random

  wallaby chaos --policy spool --policy restart  eight queries and five faults under each of these policies, or "all"

  wallaby chaos --soak 30 --workers 4            half an hour of queries and faults of all kinds; resumable

  wallaby chaos --calm --workers 8 --data sf10  no faults: no worker may be lost on a busy machine

  wallaby chaos --frozen 30                     how long a recovery freezes a query with 10,000 committed tasks

  wallaby chaos                                 the grid: all queries and all fail points; resumable
"""


def chaos(
    query: Annotated[list[int] | None, typer.Option(help="A TPC-H query; default: all. Repeatable.")] = None,
    fault: Annotated[
        list[str] | None, typer.Option(help="A fault by name, a fail point, or an order. Repeatable.")
    ] = None,
    kinds: Annotated[bool, typer.Option("--kinds", help="All faults except kills at a fail point.")] = False,
    wires: Annotated[
        bool, typer.Option("--wires", help="Cut the wire between two workers in every phase.")
    ] = False,
    seeds: Annotated[int, typer.Option(help="Number of random schedules.", min=0)] = 0,
    first: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
    data: Annotated[
        Path | None, typer.Option(help="TPC-H tables; default: generated, and kept in --out.")
    ] = None,
    scale: Annotated[float, typer.Option(help="The scale factor of generated tables.")] = 0.1,
    workers: Annotated[int, typer.Option(help="TaskManagers.", min=1, max=64)] = 3,
    master: Annotated[str, typer.Option(help="Spark's master; default: local, with enough slots.")] = "",
    tolerant: Annotated[
        bool,
        typer.Option(
            "--fault-tolerance/--no-fault-tolerance",
            help="Without it, every loss must fail its query: the control.",
        ),
    ] = True,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A fault-tolerance policy, or all of them: all. Repeatable."),
    ] = None,
    results: Annotated[Path, typer.Option("--out", help="Where to keep results between runs.")] = Path(
        ".chaos"
    ),
    limit: Annotated[
        float, typer.Option(help="Start no run after this many minutes; 0: no limit.", min=0)
    ] = 0,
    soak: Annotated[
        float, typer.Option(help="Instead: run queries and faults for this many minutes.", min=0)
    ] = 0,
    calm: Annotated[
        bool, typer.Option("--calm", help="Instead: run queries without faults; no worker may be lost.")
    ] = False,
    frozen: Annotated[
        int,
        typer.Option(
            help="Instead: kill this many workers after 10,000 commits, and measure the freezes.", min=0
        ),
    ] = 0,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            help="With --soak: the budget of each TaskManager; default: 128m, 256m and 1g in turn. Repeatable."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="With --soak: the report; default: in --out.")] = None,
    page: Annotated[Path | None, typer.Option(help="With --soak: write a page after every round.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Print the names of all faults.")] = False,
) -> None:
    """Run TPC-H queries under faults, prove that each fault struck, and compare every answer with Spark's."""
    from wallaby.lineage.tolerance import POLICIES
    from wallaby_lab import tpch
    from wallaby_lab.chaos.faults import (
        POLICY_QUERIES,
        all_faults,
        chosen,
        drawn_fault,
        other_faults,
        point_faults,
        wire_faults,
    )
    from wallaby_lab.chaos.grid import RunGrid, circumstances, summary_of

    if listed:
        for name in all_faults():
            say(name)
        return
    for number in query or ():
        tpch.query(number)
    if calm:
        _run_calmly(query or list(tpch.QUERIES), data or _tables(results, scale), workers, master)
        return
    if frozen:
        _measure_frozen(frozen, data or _tables(results, scale), workers, master)
        return
    if soak:
        _soak(
            query or [3, 9, 18],
            soak,
            first,
            memory or ["128m", "256m", "1g"],
            data or _tables(results, scale),
            workers,
            master,
            report or results / "soak.json",
            page,
        )
        return
    faults = (
        *(chosen(fault) if fault else ()),
        *(other_faults() if kinds else ()),
        *(wire_faults() if wires else ()),
        *(drawn_fault(first + at) for at in range(seeds)),
    )
    if policy:
        names = [name for name in POLICIES if name != "off"] if policy == ["all"] else policy
        tables = _required(data or _tables(results, scale))
        _run_policies(names, query or list(POLICY_QUERIES), faults, results, tables, workers, master, limit)
        return
    faults = faults or point_faults()
    executors = master.startswith(("local-cluster", "spark:"))
    cells = [
        (number, each)
        for number in query or tpch.QUERIES
        for each in faults
        if executors or each.outside != "kill executor"
    ]
    Random(0).shuffle(cells)  # noqa: S311 - so that a part of the grid is a fair sample of it
    cells.sort(key=lambda cell: cell[1].name.endswith(" after"))  # each point once, then once more
    tables = _required(data or _tables(results, scale))
    settings = {"fault_tolerance_policy": "lineage" if tolerant else "off"}
    of = circumstances(tables, workers, master, **settings)
    grid = RunGrid(results / ("cells" if tolerant else "control"), of)
    _run(_missing(grid, cells), grid, tables, workers, master, limit, **settings)
    found = summary_of(grid, cells)
    (results / ("summary.json" if tolerant else "control.json")).write_text(
        json.dumps(found, indent=1) + "\n", encoding="utf-8"
    )
    _show(found)
    if found["bad"]:
        raise typer.Exit(1)


def _tables(results: Path, scale: float) -> Path:
    from wallaby_lab.commands.demo import tables

    return tables(results, scale)


def _required(data: Path) -> Path:
    if not data.is_dir():
        raise InvalidArgumentError(f"There is no directory {data}.", fix="Check --data.")
    return data


def _missing(
    grid: RunGrid, cells: list[tuple[int, ChaosFault]], of: str = ""
) -> list[tuple[int, ChaosFault]]:
    """The cells that this code has not run on these tables and with these settings; prints the counts."""
    missing = grid.missing(cells)
    note(f"{of}{len(cells)} cells, {len(cells) - len(missing)} of them run before")
    if others := grid.others():
        note(f"{of}{others} cells of other code, tables or settings are left alone")
    return missing


@contextmanager
def _arena(data: Path, workers: int, master: str, **settings: object) -> Iterator[ChaosArena]:
    """A Spark session with an engine that may be broken."""
    from wallaby.commands.session import spark_session
    from wallaby_lab import tpch
    from wallaby_lab.chaos.run import ChaosArena

    _required(data)
    configuration = {"spark.driver.memory": "2g", "spark.sql.session.timeZone": "UTC"}
    with (
        tempfile.TemporaryDirectory(prefix="wallaby-chaos-") as book,
        spark_session(master or f"local[{workers + 1}]", configuration, "wallaby chaos") as spark,
    ):
        tpch.register(spark, data)
        # Small tasks, because at a small scale a query would otherwise have too few for every fault.
        small = {"threads": 1, "split": "1m", "task_target": "256k"}
        arena = ChaosArena(spark, Path(book), workers, **{**small, **settings})
        try:
            yield arena
        finally:
            arena.close()


def _run(
    cells: list[tuple[int, ChaosFault]],
    grid: RunGrid,
    data: Path,
    workers: int,
    master: str,
    limit: float,
    **settings: object,
) -> None:
    if not cells:
        return
    began = time.monotonic()
    with _arena(data, workers, master, **settings) as arena, progress() as bar:
        task = bar.add_task("runs", total=len(cells))
        for number, fault in cells:
            if limit and time.monotonic() - began > limit * 60:
                note("The time is up; the same command goes on from here, unless the code is changed.")
                break
            outcome = arena.run(number, fault)
            grid.keep(outcome)
            bar.update(task, advance=1)
            detect = f", found in {outcome.detect_seconds:.2f} s" if outcome.detect_seconds else ""
            note(
                f"q{number} {fault.name}: {outcome.verdict}, {outcome.seconds:.2f} s "
                f"({outcome.undisturbed_seconds:.2f} s undisturbed){detect} {outcome.detail}"
            )


def _run_policies(
    names: list[str],
    queries: list[int],
    faults: tuple[ChaosFault, ...],
    results: Path,
    data: Path,
    workers: int,
    master: str,
    limit: float,
) -> None:
    """The same cells under each policy; the summary of all of them in one file."""
    from wallaby.lineage.tolerance import tolerance_of
    from wallaby_lab.chaos.faults import POLICY_FAULTS, chosen
    from wallaby_lab.chaos.grid import RunGrid, circumstances, summary_of

    policies = {name: tolerance_of(name) for name in names}
    cells = [(number, each) for each in faults or chosen(list(POLICY_FAULTS)) for number in queries]
    found: dict[str, Any] = {}
    for name, tolerance in policies.items():
        settings: dict[str, Any] = {"fault_tolerance_policy": name}
        if tolerance.uses_durable_store:
            settings["fault_tolerance_checkpoint"] = CHECKPOINT_SECONDS
        grid = RunGrid(results / f"policy-{name}", circumstances(data, workers, master, **settings))
        with tempfile.TemporaryDirectory(prefix="wallaby-store-") as store:
            if tolerance.uses_durable_store:
                settings["fault_tolerance_store"] = store
            missing = _missing(grid, cells, f"{name}: ")
            _run(missing, grid, data, workers, master, limit, **settings)
        found[name] = summary_of(grid, cells)
        say(f"\n{name}:")
        _show(found[name])
        (results / "policies.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if any(each["bad"] for each in found.values()):
        raise typer.Exit(1)


def _soak(
    queries: list[int],
    minutes: float,
    seed: int,
    budgets: list[str],
    data: Path,
    workers: int,
    master: str,
    report: Path,
    page_path: Path | None,
) -> None:
    from wallaby_lab.chaos.grid import circumstances
    from wallaby_lab.chaos.soak import Soaked, load, save, soak
    from wallaby_lab.chaos.soak_page import page, problems
    from wallaby_lab.provenance import commit

    of = circumstances(_required(data), workers, master, queries=queries, budgets=budgets, seed=seed)
    found = load(report, of)
    if found.rounds:
        note(f"going on after {len(found.rounds)} rounds in {found.seconds:.0f} s")
    with (
        tempfile.TemporaryDirectory(prefix="wallaby-soak-") as scratch,
        _arena(data, workers, master, local_directory=scratch) as arena,
        progress() as bar,
    ):
        task = bar.add_task("soaking", total=None)

        def told(now: Soaked) -> None:
            save(report, commit(), of, now)
            if page_path is not None:
                page_path.write_text(page(now, commit(), dict(of)), encoding="utf-8")
            last = now.rounds[-1]
            bar.update(task, description=f"{len(now.rounds)} rounds, {len(now.bad)} bad")
            note(f"q{last.query} {last.fault}: {last.verdict}, {last.seconds:.1f} s {last.detail}")

        soak(arena, queries, budgets, minutes * 60, seed, found, told)
    wrong = problems(found)
    say(f"{len(found.rounds)} rounds in {found.seconds:.0f} s, {len(found.bad)} bad")
    for line in wrong:
        say(line)
    if wrong:
        raise typer.Exit(1)


def _run_calmly(queries: list[int], data: Path, workers: int, master: str) -> None:
    from wallaby.commands.session import spark_session
    from wallaby.engine import attach
    from wallaby_lab import tpch
    from wallaby_lab.chaos.calm import run_calmly

    configuration = {"spark.driver.memory": "2g", "spark.sql.session.timeZone": "UTC"}
    with spark_session(master or f"local[{workers + 1}]", configuration, "wallaby chaos") as spark:
        tpch.register(spark, data)
        with attach(spark, workers=workers, attach_timeout=180, progress_enabled=False) as engine:
            found = run_calmly(engine, spark, queries, note)
    say(
        f"{found.queries} queries of {found.tasks} tasks by {found.workers} workers in {found.seconds:.0f} s: "
        f"{len(found.false_alarms)} false alarms"
    )
    for line in found.false_alarms:
        say(line)
    if found.false_alarms:
        raise typer.Exit(1)


def _measure_frozen(kills: int, data: Path, workers: int, master: str) -> None:
    from wallaby_lab.chaos.frozen import FROZEN_COMMITS, FROZEN_SECONDS_MAX, measure_frozen

    # The limit is raised, because the query's workers are killed on purpose.
    settings = {"max_task_worker_losses": 1000, "split": 1}
    with (
        tempfile.TemporaryDirectory(prefix="wallaby-frozen-") as directory,
        _arena(data, workers, master, **settings) as arena,
    ):
        found = measure_frozen(arena, Path(directory), FROZEN_COMMITS, kills, note)
    say(
        f"{found.kills} workers killed from {found.commits_first} committed tasks on, up to {found.commits}; "
        f"the answer was {'right' if found.equal else 'WRONG'}"
    )
    if not found.frozen_seconds:
        raise typer.Exit(1)
    median, p95, most = (found.quantile(share) * 1000 for share in (0.5, 0.95, 1.0))
    say(
        f"frozen in {len(found.frozen_seconds)} recoveries: median {median:.1f} ms, 95th percentile {p95:.1f} ms, "
        f"most {most:.1f} ms"
    )
    if not found.equal or p95 > FROZEN_SECONDS_MAX * 1000:
        raise typer.Exit(1)


def _show(found: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("fault", "runs", "what came of them")
    for name, verdicts in found["faults"].items():
        told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
        table.add_row(name, str(sum(verdicts.values())), told)
    out.print(table)
    say(
        f"{found['cells']} runs in {found['seconds']:.0f} s; the fault struck in {found['struck']}, "
        f"and the query had to recover in {found['recovered']} and was restarted {found['restarts']} times; "
        f"{found['repairs_checked']} repairs were checked"
    )
    for name in ("detect_seconds", "frozen_seconds", "overhead_seconds"):
        told = ", ".join(f"{key} {value:g} s" for key, value in found[name].items())
        say(f"{name.removesuffix('_seconds')}: {told or 'nothing to tell'}")
    if found["not_reached"]:
        say(f"NOT REACHED in {found['not_reached']} runs: they show nothing")
    if found["not_run"]:
        say(
            f"NOT RUN yet: {found['not_run']} of {found['cells_asked_for']} cells; this is a part of the grid"
        )
    for cell in found["bad"]:
        say(f"q{cell['query']} {cell['fault']}: {cell['verdict']}: {cell['detail']}")
