"""`wallaby simulate`: the protocol under random faults, in one process and without Spark."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO

import typer

from wallaby.commands.terminal import open_for_writing, progress, say
from wallaby.errors import InvalidArgumentError
from wallaby.lineage.tolerance import POLICIES

if TYPE_CHECKING:
    from wallaby_lab.simulation.campaign import Summary

EXAMPLES = """
Examples:

  wallaby simulate --seeds 2000          run two thousand random seeds on all cores

  wallaby simulate --seed 173            show one seed step by step, shrunk if it fails

  wallaby simulate --policy all          the same seeds under every fault-tolerance policy

  wallaby simulate --sweep               one small query, one fault, at every single step

  wallaby simulate --grid                every kind of fault at every fail point

  wallaby simulate --interleavings       real threads of real nodes, switched at any line

  wallaby simulate --mutants             break the protocol on purpose; each break must be caught

  wallaby simulate --generated           break it anywhere by small edits; print the share that is caught
"""
#: The number of seeds between two saved summaries.
BLOCK_SEEDS = 500
#: What `--policy` is unless it is given: every seed draws its own.
MIXED: Final = "mixed"
#: Without records there is nothing to simulate.
SIMULATED = tuple(name for name, parts in POLICIES.items() if parts.recorded or parts.rolls_back)


def simulate(
    seeds: Annotated[int, typer.Option(help="How many random seeds to run.")] = 200,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Run only this seed and print what happens.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Start with this many workers, whatever the seed draws.")
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            help="The fault-tolerance policy (docs/protocol.md). mixed: every seed its own, lineage in half of them; "
            "all: the same seeds under each in turn."
        ),
    ] = MIXED,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Try one fault at every step of one small query.")
    ] = False,
    grid: Annotated[
        bool,
        typer.Option("--grid", help="Let every kind of fault strike at every fail point, and print a table."),
    ] = False,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Run mutants of the protocol: each must be caught.")
    ] = False,
    mutant: Annotated[
        list[str] | None, typer.Option(help="With --mutants: only this one. Repeatable.")
    ] = None,
    seeds_max: Annotated[
        int, typer.Option(help="With --mutants and --generated: most seeds to try for each.")
    ] = 5_000,
    generated: Annotated[
        bool, typer.Option("--generated", help="Run generated mutants, and print the share that is caught.")
    ] = False,
    module: Annotated[
        list[str] | None, typer.Option(help="With --generated: mutants of this module only. Repeatable.")
    ] = None,
    share: Annotated[float, typer.Option(help="With --generated: run about this share of them.")] = 0.02,
    interleavings: Annotated[
        bool, typer.Option("--interleavings", help="Run --seeds interleavings of the threads of real nodes.")
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="A short guided tour.")] = False,
    processes: Annotated[int, typer.Option(help="Processes to use; 0 for one per core.")] = 0,
    log: Annotated[Path | None, typer.Option(help="Write a line of JSON per seed to this file.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the report, as JSON, to this file.")] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue after the seeds, or with --grid the fail points, of the saved report."
        ),
    ] = False,
    commit: Annotated[str, typer.Option(help="The commit that is run, to be noted in the report.")] = "",
    lines: Annotated[int, typer.Option(help="With --seed: most lines to print.")] = 400,
) -> None:
    """Run the real protocol code in a simulated world full of faults, checking every invariant after every step."""
    if processes < 0 or seeds_max < 1 or lines < 1:
        raise InvalidArgumentError(
            "--processes, --seeds-max and --lines cannot be negative.", fix="See --help."
        )
    if sum((seed is not None, sweep, grid, mutants, generated, interleavings, demo)) > 1:
        raise InvalidArgumentError(
            "--seed, --sweep, --grid, --mutants, --generated, --interleavings and --demo exclude each other.",
            fix="Choose one.",
        )
    if mutant and not mutants:
        raise InvalidArgumentError("--mutant goes with --mutants.", fix="Add --mutants.")
    if module and not generated:
        raise InvalidArgumentError("--module goes with --generated.", fix="Add --generated.")
    cores = processes or os.cpu_count() or 1
    if demo:
        from wallaby_lab.simulation.demo import run_demo

        run_demo(say, cores)
    elif seed is not None:
        _tell_seed(seed, workers, policy, lines)
    elif sweep:
        _sweep(cores, policy)
    elif grid:
        _grid(policy, save, commit, resume=resume)
    elif mutants:
        _hunt(tuple(mutant or ()), seeds_max, cores, save, commit)
    elif generated:
        _survey(tuple(module or ()), share, seeds_max, cores, save, commit)
    elif interleavings:
        _interleave(first, seeds)
    else:
        run = _Campaigns(first, seeds, cores, workers, log, save, commit)
        run.go(policy, resume=resume)


def _tell_seed(seed: int, workers: int | None, policy: str, lines: int) -> None:
    from wallaby_lab.simulation import report
    from wallaby_lab.simulation.campaign import check_range
    from wallaby_lab.simulation.shrink import shrink

    check_range(seed, 1)
    shrunk = shrink(seed, workers, policy)
    say(report.format_story(shrunk, lines))
    say(report.format_tally(shrunk.result.tally))
    if shrunk.result.failure is not None:
        raise typer.Exit(1)


def _sweep(cores: int, policy: str) -> None:
    from wallaby_lab.simulation import report
    from wallaby_lab.simulation.drawn.policies import policies_of
    from wallaby_lab.simulation.sweep import run_sweep

    failed = False
    for name in SIMULATED if policy == "all" else policies_of(policy):
        with progress() as bar:
            task = bar.add_task("faults", total=None)
            result = run_sweep(
                cores,
                lambda done, of, task=task, bar=bar: bar.update(task, completed=done, total=of),  # type: ignore[misc]
                name,
            )
        say(f"{name}: {report.format_sweep(result)}")
        failed |= bool(result.failures)
    if failed:
        raise typer.Exit(1)


def _grid(policy: str, save: Path | None, commit: str, *, resume: bool) -> None:
    from wallaby_lab.simulation.grid import FaultGrid, as_markdown, run_grid

    said = _saved(save, {"commit": commit or None}) if resume else None
    with progress() as bar:
        task = bar.add_task("fail points", total=None)
        found = run_grid(
            lambda done, of: bar.update(task, completed=done, total=of),
            MIXED if policy == "all" else policy,
            FaultGrid.of_json(said) if said else None,
            lambda grid: _save(save, {**_about(commit), **grid.as_json()}),
        )
    say(as_markdown(found))
    for seed, (point, kind), what in found.failures:
        say(f"seed {seed} with {kind.value} at {point.value}: {what}")
    if found.failures or found.empty:
        raise typer.Exit(1)


class _Campaigns:
    """One campaign, or one for each policy; summaries are saved as they progress."""

    def __init__(
        self,
        first: int,
        seeds: int,
        cores: int,
        workers: int | None,
        log: Path | None,
        save: Path | None,
        commit: str,
    ) -> None:
        from wallaby_lab.simulation.campaign import check_range

        check_range(first, seeds)
        self._first, self._seeds, self._cores, self._workers = first, seeds, cores, workers
        self._log, self._save = log, save
        self._about = {"first": first, **_about(commit)}

    def go(self, policy: str, *, resume: bool) -> None:
        """Run the remaining seeds, and fail if there was a violation."""
        from wallaby_lab.simulation.campaign import Summary

        policies = SIMULATED if policy == "all" else (policy,)
        found = self._found(policy) if resume else {}
        if self._save is not None and not resume:
            open_for_writing(self._save).close()
        lines = open_for_writing(self._log) if self._log is not None else None
        try:
            for name in policies:
                if policy == "all":
                    say(f"{name}:")
                self._run(found.setdefault(name, Summary()), name, lines, lambda: self._keep(policy, found))
        finally:
            if lines is not None:
                lines.close()
        for name, summary in found.items():
            _report_failures(summary, self._workers, name)
        say("no violation")

    def _run(self, summary: Summary, policy: str, log: TextIO | None, keep: Callable[[], None]) -> None:
        from wallaby_lab.simulation import report
        from wallaby_lab.simulation.campaign import run_campaign

        with progress() as bar:
            task = bar.add_task("seeds", total=self._seeds, completed=summary.seeds)
            while summary.seeds < self._seeds and not summary.failures:
                seeds = min(BLOCK_SEEDS, self._seeds - summary.seeds)
                done = summary.seeds
                block = run_campaign(
                    self._first + done,
                    seeds,
                    self._cores,
                    self._workers,
                    log,
                    lambda s, done=done: bar.update(task, completed=done + s.seeds),  # type: ignore[misc]
                    policy,
                )
                summary.absorb(block)
                keep()
        say(report.format_summary(summary))

    def _keep(self, policy: str, found: dict[str, Summary]) -> None:
        said = {each: {"policy": each, **summary.as_json()} for each, summary in found.items()}
        figures = {"policies": said} if policy == "all" else said[policy]
        _save(self._save, {**self._about, **figures})

    def _found(self, policy: str) -> dict[str, Summary]:
        """The part of the saved report that belongs to the same run."""
        from wallaby_lab.simulation.campaign import Summary

        said = _saved(self._save, {key: self._about.get(key) for key in ("first", "commit")})
        if said is None:
            return {}
        kept = said["policies"] if policy == "all" else {said["policy"]: said}
        return {name: Summary.of_json(each) for name, each in kept.items() if policy in ("all", name)}


def _report_failures(summary: Summary, workers: int | None, policy: str) -> None:
    if not summary.failures:
        return
    from wallaby_lab.simulation import report
    from wallaby_lab.simulation.shrink import shrink

    seed, _ = min(summary.failures)
    for failed, what in sorted(summary.failures):
        say(f"seed {failed}: {what}")
    say()
    say(report.format_story(shrink(seed, workers, policy), 200))
    again = f" --workers {workers}" if workers is not None else ""
    again += f" --policy {policy}" if policy != MIXED else ""
    say(f"\nAgain: wallaby simulate --seed {seed}{again}")
    raise typer.Exit(1)


def _hunt(names: tuple[str, ...], seeds_max: int, cores: int, save: Path | None, commit: str) -> None:
    from wallaby_lab.simulation.mutants.hunt import format_catches, hunt_all

    catches = hunt_all(names or None, seeds_max, cores)
    say(format_catches(catches))
    _save(
        save,
        {**_about(commit), "seeds_max": seeds_max, "mutants": [asdict(catch) for catch in catches]},
    )
    if any(not catch.caught for catch in catches):
        raise typer.Exit(1)


def _survey(
    modules: tuple[str, ...], share: float, seeds_max: int, cores: int, save: Path | None, commit: str
) -> None:
    """Survey generated mutants. Survivors are not failures: some edits change nothing that a run could notice."""
    from wallaby_lab.simulation.mutants.hunt import format_catches
    from wallaby_lab.simulation.mutants.survey import SECONDS_MAX, SURVEYED, selected, survey

    chosen = selected(modules or SURVEYED, share)
    with progress() as bar:
        task = bar.add_task("mutants", total=len(chosen))
        catches = survey(chosen, seeds_max, cores, SECONDS_MAX, lambda _: bar.advance(task))
    say(format_catches(catches))
    _save(
        save,
        {
            **_about(commit),
            "seeds_max": seeds_max,
            "share": share,
            "mutants": [asdict(catch) for catch in catches],
        },
    )


def _interleave(first: int, seeds: int) -> None:
    from wallaby_lab.simulation.campaign import check_range
    from wallaby_lab.simulation.interleavings.run import run_interleaving

    check_range(first, seeds)
    switches, failed = 0, False
    with progress() as bar:
        task = bar.add_task("interleavings", total=seeds)
        for seed in range(first, first + seeds):
            found = run_interleaving(seed)
            switches += found.switches
            if found.failure:
                failed = True
                say(f"seed {seed}: {found.failure}")
            bar.advance(task)
    say(f"{seeds:,} seeds, in which threads were switched {switches:,} times.")
    if failed:
        raise typer.Exit(1)


def _saved(path: Path | None, about: dict[str, object]) -> dict[str, Any] | None:
    """The saved report of the same run; None if there is none yet."""
    text = path.read_text(encoding="utf-8") if path and path.exists() else ""
    if not text:
        return None
    said: dict[str, Any] = json.loads(text)
    if any(said.get(key) != value for key, value in about.items()):
        raise InvalidArgumentError(
            f"{path} is the report of another run.",
            fix="Give the arguments of that run, such as --first and --commit, or another file.",
        )
    return said


def _save(path: Path | None, report_: dict[str, object]) -> None:
    if path is not None:
        path.write_text(json.dumps(report_, indent=1) + "\n", encoding="utf-8")


def _about(commit: str) -> dict[str, object]:
    """What a report says of its run."""
    return {"machine": _machine(), **({"commit": commit} if commit else {})}


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
