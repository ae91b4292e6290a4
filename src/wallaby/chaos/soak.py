"""A soak: queries one after the other while workers are killed every few seconds, and what is left at the end.

The engine is measured before and after, each time once it is as good as new: whatever grows with the losses is a leak.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import psutil
import redis

from wallaby.chaos.run import Arena
from wallaby.errors import GcsError, WallabyError

#: Loops of the driver need a moment to end threads and connections of workers that are gone.
_CALM_SECONDS: Final = 6.0


@dataclass(slots=True)
class Soaked:
    """What a soak found."""

    seconds: float = 0.0
    kills: int = 0
    runs: int = 0
    runs_with_a_loss: int = 0
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    before: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)


def soak(
    arena: Arena,
    queries: Sequence[int],
    seconds: float,
    kill_every_seconds: float,
    seed: int,
    told: Callable[[str], None],
) -> Soaked:
    """Run queries for so long, killing a worker every so often."""
    random = Random(seed)  # noqa: S311 - a schedule, no secret
    for number in queries:
        arena.undisturbed(number)
    found = Soaked(before=_measured(arena))
    over = threading.Event()

    def kill_now_and_then() -> None:
        while not over.wait(kill_every_seconds * (0.5 + random.random())):
            try:
                live = [worker for worker in arena.engine.workers() if worker["state"] == "live"]
                if live:
                    os.kill(random.choice(live)["pid"], signal.SIGKILL)
                    found.kills += 1
            except (GcsError, ProcessLookupError):
                continue

    killer = threading.Thread(target=kill_now_and_then, name="chaos-soak", daemon=True)
    began = time.monotonic()
    killer.start()
    try:
        while time.monotonic() - began < seconds:
            number = random.choice(list(queries))
            _run_one(arena, number, found)
            told(
                f"{found.runs} runs, {found.kills} kills, {len(found.wrong)} wrong, {len(found.failed)} failed"
            )
    finally:
        over.set()
        killer.join()
    found.seconds = round(time.monotonic() - began, 1)
    found.after = _measured(arena)
    return found


def _run_one(arena: Arena, number: int, found: Soaked) -> None:
    try:
        different, recoveries = arena.compare(number)
    except WallabyError as error:
        found.failed.append(f"q{number}: {error}")
        return
    found.runs += 1
    found.runs_with_a_loss += bool(recoveries)
    if different:
        found.wrong.append(f"q{number}: {different}")


def _measured(arena: Arena) -> dict[str, int]:
    """What there is of everything that could leak."""
    arena.settle()
    time.sleep(_CALM_SECONDS)
    arena.settle()
    engine, here = arena.engine, psutil.Process()
    store: Any = engine._deployment._redis
    with redis.Redis.from_url(store.url, password=store.password) as client:
        keys = int(client.dbsize())
    workers = [psutil.Process(worker["pid"]) for worker in engine.workers()]
    return {
        "keys": keys,
        "queries": len(engine._gcs.queries()),
        "driver_threads": threading.active_count(),
        "driver_files": here.num_fds(),
        "driver_bytes": here.memory_info().rss,
        "processes": len(here.children(recursive=True)),
        "worker_threads": sum(process.num_threads() for process in workers),
        "worker_files": sum(process.num_fds() for process in workers),
    }
