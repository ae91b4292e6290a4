"""Hunt mutants: how many ordinary seeds does the simulation need to notice each mistake?

Each mutant gets its own process, which imports the mutated modules and runs the seeds 0, 1, 2, … like any simulation,
until one fails. A violated invariant or a wrong result counts as noticed; so does an error of the mutated code itself,
which is shown as such.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

import wallaby
import wallaby_lab
from wallaby.errors import InternalError, InvalidArgumentError
from wallaby_lab.simulation.mutants.catalogue import CATALOGUE
from wallaby_lab.simulation.mutants.mutant import AnyMutant, Mutant, apply_mutant

SEEDS_MAX = 5_000
#: A mutant that is not caught within this CPU time counts as not caught.
SECONDS_MAX = 600.0
#: How long the interpreter may take besides the seeds, and how many times longer all may take on a busy machine.
_START_SECONDS = 60.0
_PATIENCE = 10.0
_WIDTH = 150


@dataclass(frozen=True, slots=True)
class Catch:
    """The outcome of one mutant. `caught_by` is empty if it survived all seeds that were run."""

    mutant: str
    breaks: tuple[str, ...]
    caught_by: str
    what: str
    seeds: int
    seconds: float

    @property
    def caught(self) -> bool:
        """Was the mutant noticed?"""
        return bool(self.caught_by)


def mutants_named(names: Sequence[str] | None) -> tuple[Mutant, ...]:
    """The mutants of these names, or all; an unknown name is an error."""
    known = {mutant.name: mutant for mutant in CATALOGUE}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise InvalidArgumentError(
            f"There is no mutant {', '.join(unknown)}.", fix=f"Choose from: {', '.join(sorted(known))}."
        )
    return tuple(known[name] for name in names) if names is not None else CATALOGUE


def hunt_all(
    names: tuple[str, ...] | None = None,
    seeds_max: int = SEEDS_MAX,
    processes: int = 2,
    seconds_max: float = SECONDS_MAX,
    on_catch: Callable[[Catch], None] | None = None,
) -> list[Catch]:
    """Hunt the mutants of these names, or all, several at a time; results come in the catalogue's order.

    `on_catch` is called, from another thread, with the outcome of each mutant.
    """
    if seeds_max < 1 or processes < 1:
        raise InvalidArgumentError(f"Nothing can be hunted with {seeds_max} seeds on {processes} processes.")

    def hunt(mutant: Mutant) -> Catch:
        catch = hunt_one(mutant, seeds_max, seconds_max)
        if on_catch is not None:
            on_catch(catch)
        return catch

    with ThreadPoolExecutor(processes) as pool:
        return list(pool.map(hunt, mutants_named(names)))


def hunt_one(mutant: Mutant, seeds_max: int = SEEDS_MAX, seconds_max: float = SECONDS_MAX) -> Catch:
    """Hunt one mutant in its own process."""
    command = [
        sys.executable,
        "-m",
        "wallaby_lab.simulation.mutants",
        mutant.name,
        str(seeds_max),
        str(seconds_max),
    ]
    environment = {**os.environ, "PYTHONPATH": import_path()}
    began = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, with arguments from the catalogue
            command,
            capture_output=True,
            text=True,
            timeout=seconds_max * _PATIENCE + _START_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Catch(mutant.name, mutant.breaks, "", "it ran out of time", 0, time.monotonic() - began)
    if done.returncode != 0:
        raise InternalError(f"The hunt for {mutant.name} failed: {done.stderr.strip()[-2000:]}")
    answer = json.loads(done.stdout)
    return Catch(**{**answer, "breaks": tuple(answer["breaks"])})


def import_path() -> str:
    """The import path of the child: the lab and the engine first, then that of this process."""
    own = (str(Path(next(iter(package.__path__))).resolve().parent) for package in (wallaby_lab, wallaby))
    return os.pathsep.join(dict.fromkeys([*own, *filter(None, sys.path)]))


def chase(mutant: AnyMutant, seeds_max: int, seconds_max: float) -> Catch:
    """Mutate this process and run seeds until one fails. Only for a process started for it."""
    apply_mutant(mutant)
    began = time.process_time()
    caught_by = what = ""
    seed = -1
    try:
        run = _interleaving_of(mutant) if mutant.interleaved else _seed_of(mutant)
        while not caught_by and seed + 1 < seeds_max and time.process_time() - began < seconds_max:
            seed += 1
            caught_by, what = run(seed)
    except Exception as error:  # noqa: BLE001 - whatever a mutant does wrong, it has been noticed
        caught_by, what = "an error", f"{type(error).__name__}: {error}"
    return Catch(mutant.name, mutant.breaks, caught_by, what, seed + 1, time.process_time() - began)


def _seed_of(mutant: AnyMutant) -> Callable[[int], tuple[str, str]]:
    run_seed = importlib.import_module("wallaby_lab.simulation.run").run_seed

    def run(seed: int) -> tuple[str, str]:
        failure = run_seed(seed, policy=mutant.policy).failure
        return (_caught_by(failure.number, failure.what), failure.what) if failure is not None else ("", "")

    return run


def _interleaving_of(_mutant: AnyMutant) -> Callable[[int], tuple[str, str]]:
    run_interleaving = importlib.import_module("wallaby_lab.simulation.interleavings.run").run_interleaving

    def run(seed: int) -> tuple[str, str]:
        failure = run_interleaving(seed).failure
        return ("interleavings" if failure else "", failure)

    return run


def _caught_by(number: int, what: str) -> str:
    if number == 0:
        return "an error"
    if number == 7 and "the result of" in what:
        return "the oracle"
    if number == 7 and "did not end" in what:
        return "no end"
    return f"invariant {number}"


def main(arguments: Sequence[str]) -> int:
    """Run the process of one mutant: reads name, seeds and seconds, and prints the outcome as one line."""
    name, seeds_max, seconds_max = arguments
    (mutant,) = mutants_named([name])
    sys.stdout.write(json.dumps(asdict(chase(mutant, int(seeds_max), float(seconds_max)))) + "\n")
    return 0


def format_catches(catches: Sequence[Catch], width: int = _WIDTH) -> str:
    """The outcomes as a table, with totals."""
    table = Table(box=None, pad_edge=False)
    table.add_column("mutant", no_wrap=True)
    table.add_column("breaks", no_wrap=True)
    table.add_column("caught by", no_wrap=True)
    table.add_column("seeds", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("what was seen", no_wrap=True, overflow="ellipsis")
    for catch in catches:
        table.add_row(
            catch.mutant,
            " ".join(catch.breaks),
            catch.caught_by or "NOT CAUGHT",
            str(catch.seeds),
            f"{catch.seconds:.1f}",
            catch.what,
        )
    console = Console(width=width, color_system=None, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(table)
    caught = sum(catch.caught for catch in catches)
    seeds = max((catch.seeds for catch in catches if catch.caught), default=0)
    return f"{captured.get()}{caught} of {len(catches)} mutants caught; the hardest needed {seeds} seeds.\n"
