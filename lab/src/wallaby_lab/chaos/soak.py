"""A soak: rounds of a query and a fault for a long time, with a check for leaks after each.

Each round is a run of the grid (`run.py`): the fault is proved to have struck, the answer is Spark's or the query ends
as it must, and the engine has fully recovered afterwards. Then everything that could leak is measured. The report is
written after every round, so an interrupted soak has one, and the same command continues it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final

import psutil

from wallaby.errors import QueryCancelledError, WallabyError
from wallaby.worker.scratch import PREFIX
from wallaby_lab import tpch
from wallaby_lab.chaos.faults import ChaosFault, all_faults
from wallaby_lab.chaos.run import HANG_SECONDS, ChaosArena, RunVerdict
from wallaby_lab.compare import DifferentError, require_same

CANCEL: Final = "the query is cancelled"
#: A query is cancelled within this share of its usual time: later it might have ended by itself.
CANCEL_SHARE_MAX: Final = 0.5
NOTHING: Final = "nothing"
#: The faults of rounds: kills, stops, cuts, pauses and losses of Redis, lost answers, cancels, and none.
ROUNDS: Final = (
    NOTHING,
    CANCEL,
    "a worker is killed at 50 %",
    "two workers are killed",
    "a zombie wakes",
    "the wire between two workers is cut",
    "the wire between two workers is silent",
    "the store is paused",
    "the driver's connections to the store are reset",
    "the store is restarted empty",
    "a commit's answer is lost",
    "pushes are not answered",
    "the backup disk is full",
    "three deep",
)


@dataclass(slots=True)
class Round:
    """One round, and the measurements after it."""

    query: int
    fault: str
    verdict: str
    detail: str
    seconds: float
    #: The proof that the fault struck.
    struck: list[str]
    measured: dict[str, int]
    #: The budget of each TaskManager.
    memory: str = ""


@dataclass(slots=True)
class Soaked:
    """The results of a soak so far."""

    seconds: float = 0.0
    rounds: list[Round] = field(default_factory=list)

    @property
    def bad(self) -> list[Round]:
        """The rounds in which a promise was broken."""
        return [each for each in self.rounds if not RunVerdict(each.verdict).is_good]

    def under(self, memory: str) -> Soaked:
        """The rounds with this budget."""
        return Soaked(self.seconds, [each for each in self.rounds if each.memory == memory])


def schedule(
    seed: int, queries: Sequence[int], budgets: Sequence[str], done: int = 0
) -> Iterator[tuple[int, str, str]]:
    """Draw queries, faults and budgets, without the first n.

    Each fault comes once before any of them repeats; then the next budget is used.
    """
    random = Random(seed)  # noqa: S311 - a schedule, no secret
    at = 0
    for budget in cycle(budgets):
        faults = list(ROUNDS)
        random.shuffle(faults)
        for fault in faults:
            number = random.choice(list(queries))
            at += 1
            if at > done:
                yield number, fault, budget


def soak(
    arena: ChaosArena,
    queries: Sequence[int],
    budgets: Sequence[str],
    seconds: float,
    seed: int,
    found: Soaked,
    told: Callable[[Soaked], None],
) -> None:
    """Continue a soak until it has taken this long in total; `told` is called after every round."""
    random = Random(seed + len(found.rounds))  # noqa: S311 - a schedule, no secret
    before = found.seconds
    began = time.monotonic()
    for number, fault, memory in schedule(seed, queries, budgets, len(found.rounds)):
        if found.seconds >= seconds:
            return
        arena.change(memory=memory)
        for each in queries:
            arena.undisturbed(each)
        started = time.monotonic()
        verdict, detail, struck = _round(arena, number, fault, random)
        took = time.monotonic() - started
        found.rounds.append(
            Round(number, fault, verdict.value, detail, round(took, 2), struck, measured(arena), memory)
        )
        found.seconds = round(before + time.monotonic() - began, 1)
        told(found)


def _round(arena: ChaosArena, number: int, fault: str, random: Random) -> tuple[RunVerdict, str, list[str]]:
    if fault == CANCEL:
        return _cancel(arena, number, random)
    try:
        known = all_faults().get(fault) or ChaosFault(fault)
        outcome = arena.run(number, known)
    except WallabyError as error:
        arena.close()
        return RunVerdict.FAILED, str(error), []
    return RunVerdict(outcome.verdict), outcome.detail, [str(each["what"]) for each in outcome.struck]


def _cancel(arena: ChaosArena, number: int, random: Random) -> tuple[RunVerdict, str, list[str]]:
    """Cancel a query while it runs; a result that was complete by then counts as a result."""
    usual = arena.undisturbed(number)
    result = arena.engine.run(arena.spark.sql(tpch.query(number)))
    # If the result is not there long after it was cancelled, the query hangs, and `timeout` below ends the wait.
    timer = threading.Timer(usual.seconds * CANCEL_SHARE_MAX * random.random(), result.cancel)
    timer.daemon = True
    timer.start()
    began = time.monotonic()
    try:
        require_same(result.arrow(), usual.answer, order=tpch.ORDERS[number])
        verdict, detail, struck = RunVerdict.NOT_REACHED, "it was there before", []
    except QueryCancelledError as error:
        verdict, detail, struck = RunVerdict.FAILED_AS_IT_MUST, "", [str(error)]
    except DifferentError as error:
        verdict, detail, struck = RunVerdict.DIFFERS, str(error), []
    except WallabyError as error:
        verdict, detail, struck = RunVerdict.FAILED, str(error), []
    finally:
        timer.cancel()
    if time.monotonic() - began > HANG_SECONDS:
        verdict = RunVerdict.HUNG
    if arena.settle() is None and verdict.is_good:
        verdict, detail = RunVerdict.LEFT_SOMETHING, "the engine is not as good as new"
    return verdict, detail, struck


def measured(arena: ChaosArena) -> dict[str, int]:
    """Measure everything that could leak, once the engine has fully recovered."""
    arena.settle()
    engine, here = arena.engine, psutil.Process()
    inspection = engine.inspection
    pids = [int(worker.pid) for worker in engine.workers()]
    workers = [_own_bytes(pid) for pid in pids]
    # Each TaskManager has its own folder for what it spills and backs up.
    local = Path(engine.settings.local_directory)
    assert engine.settings.local_directory, "a soak has a directory of its own for what is spilled"
    scratch = list(local.glob(f"{PREFIX}*"))
    return {
        "keys": inspection.count_keys(),
        "queries": len(inspection.queries_in_store()),
        "driver_threads": threading.active_count(),
        "driver_files": here.num_fds(),
        "driver_bytes": _own_bytes(here.pid),
        "workers": len(pids),
        "worker_bytes_max": max(workers, default=0),
        "scratch_folders": len(scratch),
        "scratch_bytes": sum(
            path.stat().st_size for folder in scratch for path in folder.rglob("*") if path.is_file()
        ),
        "redis_servers": sum("redis-server" in child.name() for child in here.children(recursive=True)),
    }


def _own_bytes(pid: int) -> int:
    """The proportional set size of a process without its children."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) << 10


def load(path: Path, of: object) -> Soaked:
    """Load the results of an earlier soak with the same circumstances; empty if there is none."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Soaked()
    if held.get("of") != of:
        return Soaked()
    return Soaked(held["seconds"], [Round(**each) for each in held["rounds"]])


def save(path: Path, commit: str, of: object, found: Soaked) -> None:
    """Write the report atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    young = path.with_suffix(".new")
    young.write_text(
        json.dumps({"commit": commit, "of": of, **asdict(found)}, indent=1) + "\n", encoding="utf-8"
    )
    young.replace(path)
