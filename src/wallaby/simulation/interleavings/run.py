"""One seed of interleavings: which scene, which settings, and which thread goes on when."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from types import ModuleType

from wallaby.simulation.interleaved import INTERLEAVED
from wallaby.simulation.interleavings.cluster import run_cluster
from wallaby.simulation.interleavings.groups import run_groups
from wallaby.simulation.interleavings.scheduler import Scheduler, StuckError, replace_threads
from wallaby.simulation.interleavings.shelves import run_preempted, run_shelves


@dataclass(frozen=True, slots=True)
class Interleaving:
    """What a seed came to; `failure` is empty if all was well."""

    seed: int
    switches: int
    failure: str


Scene = Callable[[Scheduler, Random], None]

#: A schedule with planned preemptions takes little time: so many are tried for one seed.
PLANNED = 8


def run_interleaving(seed: int) -> Interleaving:
    """Run one seed. The same seed always gives the same run."""
    modules = [importlib.import_module(name) for name in INTERLEAVED]
    turn = seed % 8
    if turn >= 4:
        first = (seed // 8 * 4 + turn - 4) * PLANNED
        scenes: list[Scene] = [partial(_run_planned, number) for number in range(first, first + PLANNED)]
        modules = [
            importlib.import_module(f"wallaby.exchange.{name}") for name in ("backup", "segment", "memory")
        ]
    else:
        scenes = [(run_cluster, run_groups, run_shelves, run_shelves)[turn]]
    switches = 0
    for scene in scenes:
        switched, failure = _run(scene, Random(seed), modules)
        switches += switched
        if failure:
            return Interleaving(seed, switches, failure)
    return Interleaving(seed, switches, "")


def _run_planned(number: int, scheduler: Scheduler, _random: Random) -> None:
    run_preempted(scheduler, number)


def _run(scene: Scene, random: Random, modules: list[ModuleType]) -> tuple[int, str]:
    """One scene under one schedule: how often threads were switched, and what was wrong."""
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
