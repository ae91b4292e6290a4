"""Survey generated mutants: what share of them do seeds notice, and after how many seeds?

Starting an interpreter for each would take too long, so one process forks for every mutant. It has not imported any
mutated module, and each child imports the mutated modules afresh.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from wallaby.errors import InvalidArgumentError
from wallaby_lab.simulation.interleaved import INTERLEAVED
from wallaby_lab.simulation.mutants.generated import GeneratedMutant, generate
from wallaby_lab.simulation.mutants.hunt import Catch, chase, import_path

#: The modules that run inside the simulation.
SIMULATED = (
    "wallaby.lineage.attempt",
    "wallaby.lineage.reconcile",
    "wallaby.lineage.choose",
    "wallaby.lineage.inbox",
    "wallaby.lineage.outbox",
    "wallaby.lineage.recoverable",
    "wallaby.lineage.lineage",
    "wallaby.lineage.snapshot",
    "wallaby.lineage.tolerance",
    "wallaby.lineage.graph",
    "wallaby.node.session",
    "wallaby.worker.taskmanager",
    "wallaby.node.reaching",
    "wallaby.gcs.memory",
    "wallaby.gcs.complaints",
    "wallaby.coordinator.coordinator",
    "wallaby.coordinator.detector",
    "wallaby.coordinator.requests",
    "wallaby.coordinator.stalls",
)
SURVEYED = (*SIMULATED, *INTERLEAVED)
#: The CPU time for each mutant.
SECONDS_MAX = 60.0
#: A child that takes this many times its CPU time has been starved, or does not end.
_PATIENCE = 20.0
_START_SECONDS = 60.0


def selected(modules: Sequence[str], share: float = 1.0) -> tuple[GeneratedMutant, ...]:
    """The generated mutants of some modules, or a fixed share of them."""
    if not 0 < share <= 1:
        raise InvalidArgumentError(f"No mutants are a share of {share}.", fix="Use a number up to 1.")
    unknown = [module for module in modules if module not in SURVEYED]
    if unknown:
        raise InvalidArgumentError(
            f"No seed runs {', '.join(unknown)}.", fix=f"Choose from: {', '.join(SURVEYED)}."
        )
    return tuple(mutant for module in modules for mutant in _all_of(module) if _draw(mutant) < share)


def _all_of(module: str) -> tuple[GeneratedMutant, ...]:
    return generate(module, interleaved=module in INTERLEAVED)


def _draw(mutant: GeneratedMutant) -> float:
    """A number in [0, 1) that depends on the edit, but not on its position in the file."""
    words = f"{mutant.module} {mutant.before} {mutant.after} {mutant.number}".encode()
    return int.from_bytes(hashlib.blake2b(words, digest_size=6).digest()) / (1 << 48)


def survey(
    mutants: Sequence[GeneratedMutant],
    seeds_max: int,
    processes: int,
    seconds_max: float,
    on_catch: Callable[[Catch], None] | None = None,
) -> list[Catch]:
    """Hunt generated mutants, several at a time; results come in the order of the mutants."""
    if seeds_max < 1 or processes < 1:
        raise InvalidArgumentError(f"Nothing can be hunted with {seeds_max} seeds on {processes} processes.")
    parts = [list(mutants[at::processes]) for at in range(processes)]
    found: dict[str, Catch] = {}

    def follow(part: list[GeneratedMutant]) -> None:
        for catch in _caught(part, seeds_max, seconds_max):
            found[catch.mutant] = catch
            if on_catch is not None:
                on_catch(catch)

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(follow, [part for part in parts if part]))
    return [found[mutant.name] for mutant in mutants]


def _caught(mutants: list[GeneratedMutant], seeds_max: int, seconds_max: float) -> Iterator[Catch]:
    command = [
        sys.executable,
        "-m",
        "wallaby_lab.simulation.mutants.survey",
        str(seeds_max),
        str(seconds_max),
    ]
    environment = {**os.environ, "PYTHONPATH": import_path()}
    with subprocess.Popen(  # noqa: S603 - this interpreter
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for mutant in mutants:
            child.stdin.write(json.dumps([mutant.module, mutant.name]) + "\n")
            child.stdin.flush()
            answer = json.loads(child.stdout.readline())
            yield Catch(**{**answer, "breaks": tuple(answer["breaks"])})
        child.stdin.close()


def main(arguments: Sequence[str]) -> int:
    """Run the forking process: reads modules and names, and prints outcomes."""
    seeds_max, seconds_max = int(arguments[0]), float(arguments[1])
    known: dict[str, dict[str, GeneratedMutant]] = {}
    for line in _lines():
        module, name = json.loads(line)
        if module not in known:
            known[module] = {mutant.name: mutant for mutant in _all_of(module)}
        said = _forked(known[module][name], seeds_max, seconds_max)
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    return 0


def _lines() -> Iterable[str]:
    while line := sys.stdin.readline():
        yield line


def _forked(mutant: GeneratedMutant, seeds_max: int, seconds_max: float) -> dict[str, object]:
    reading, writing = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        catch = chase(mutant, seeds_max, seconds_max)
        with os.fdopen(writing, "w") as answer:
            json.dump(asdict(catch), answer)
        os._exit(0)
    os.close(writing)
    data = b""
    deadline = began + seconds_max * _PATIENCE + _START_SECONDS
    with os.fdopen(reading, "rb", buffering=0) as answer:
        while select.select([answer], [], [], max(0.0, deadline - time.monotonic()))[0]:
            more = answer.read(1 << 16)
            if not more:
                break
            data += more
        else:
            os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if data:
        found: dict[str, object] = json.loads(data)
        return found
    seconds = time.monotonic() - began
    # It neither failed nor finished a seed: the seed does not end, or the process has ended.
    how = "no end" if seconds > seconds_max * _PATIENCE else "an error"
    return asdict(Catch(mutant.name, mutant.breaks, how, "the process gave no answer", 0, seconds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
