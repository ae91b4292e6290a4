"""One seed of interleavings: it determines the scene, the settings, and the schedule of threads."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from types import ModuleType

from wallaby_lab.simulation.interleaved import INTERLEAVED
from wallaby_lab.simulation.interleavings.backup_threads import (
    KEEP,
    WrongError,
    run_backup_threads,
    run_preempted,
)
from wallaby_lab.simulation.interleavings.cluster import run_cluster
from wallaby_lab.simulation.interleavings.groups import run_groups
from wallaby_lab.simulation.interleavings.planning import ThreadPlan, Traces, plans_of
from wallaby_lab.simulation.interleavings.scheduler import Scheduler, StuckError, replace_threads


@dataclass(frozen=True, slots=True)
class Interleaving:
    """The outcome of a seed; `failure` is empty if there was none."""

    seed: int
    switches: int
    failure: str


Scene = Callable[[Scheduler, Random], None]

#: The number of planned schedules per seed, and of scenes of threads at a backup: each takes little time.
PLANNED = 12
SHORT = 8
#: The actions of the second thread in planned scenes, and how often each.
_TURNS = ("read", "let go", "read", "drop", "read", "keep again")
_SHELVES = ("wallaby.exchange.backup", "wallaby.exchange.segment", "wallaby.exchange.memory")


def run_interleaving(seed: int) -> Interleaving:
    """Run one seed. The same seed always gives the same run."""
    turn = seed % 8
    names: tuple[str, ...] = INTERLEAVED
    if turn < len(_SCENES):
        scenes = [_SCENES[turn]] * (SHORT if _SCENES[turn] is run_backup_threads else 1)
    else:
        first = (seed // 8 * (8 - len(_SCENES)) + turn - len(_SCENES)) * PLANNED
        names, scenes = _SHELVES, [_planned(number) for number in range(first, first + PLANNED)]
    switches = 0
    for at, scene in enumerate(scenes):
        switched, failure = _run(scene, Random(seed + (at << 32)), _modules(names))
        switches += switched
        if failure:
            return Interleaving(seed, switches, failure)
    return Interleaving(seed, switches, "")


#: The scenes with random schedules; the other seeds have planned ones.
_SCENES: tuple[Scene, ...] = (run_cluster, run_groups, run_cluster, run_backup_threads)


def _planned(number: int) -> Scene:
    """Run a scene under one of the plans for two threads at a backup."""
    turn = number % len(_TURNS)
    others = _TURNS[turn]
    plans = _plans_for(others)
    at = number // len(_TURNS) * _TURNS.count(others) + _TURNS[:turn].count(others)
    return lambda scheduler, _random: run_preempted(scheduler, others, plans[at % len(plans)])


@cache
def _plans_for(others: str) -> tuple[ThreadPlan, ...]:
    """All plans for a thread that keeps outputs and a second one with another action."""
    traces: dict[str, Traces] = {}

    def run(first: str, scheduler: Scheduler, _random: Random) -> None:
        run_preempted(scheduler, others, ThreadPlan(first))
        traces[first] = scheduler.touches()

    for first in (KEEP, others):
        _, failure = _run(partial(run, first), Random(0), _modules(_SHELVES))
        if failure:
            raise WrongError(failure)
    return plans_of(KEEP, traces[KEEP], others, traces[others])


def _modules(names: tuple[str, ...]) -> list[ModuleType]:
    return [importlib.import_module(name) for name in names]


def _run(scene: Scene, random: Random, modules: list[ModuleType]) -> tuple[int, str]:
    """Run one scene under one schedule; returns the number of switches, and the failure."""
    scheduler = Scheduler(random.getrandbits(48), frozenset(str(module.__file__) for module in modules))
    undo = replace_threads(scheduler, modules)
    logging.disable(logging.CRITICAL)
    failure = ""
    try:
        scene(scheduler, random)
    except StuckError as stuck:
        failure = f"stuck: {stuck}"
    except Exception as error:  # noqa: BLE001 - whatever is wrong has been noticed
        failure = f"{type(error).__name__}: {error}"
    finally:
        scheduler.stop()
        undo()
        logging.disable(logging.NOTSET)
    return scheduler.switches, failure
