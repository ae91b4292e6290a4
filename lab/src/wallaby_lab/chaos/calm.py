"""Run queries undisturbed: none of them may lose a worker, however busy the machine is.

There are more workers than cores, each with all its kernel threads, on large data: threads that renew a lease or answer
a ping must not wait behind threads that compute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from wallaby.engine import Engine
from wallaby.observe.event import EventKind
from wallaby_lab import tpch


@dataclass(slots=True)
class Calm:
    """The result of a calm run."""

    workers: int
    queries: int = 0
    tasks: int = 0
    seconds: float = 0.0
    #: Workers that were lost although nothing was done to them, by query.
    false_alarms: list[str] = field(default_factory=list)


def run_calmly(
    engine: Engine, spark: SparkSession, queries: Iterable[int], told: Callable[[str], None]
) -> Calm:
    """Run queries one after the other, and look for losses in them and between them."""
    before = {worker.id for worker in engine.workers()}
    found = Calm(len(before))
    began = time.monotonic()
    for number in queries:
        result = engine.run(spark.sql(tpch.query(number)))
        rows = result.arrow().num_rows
        lost = [w["id"] for e in result.events if e.kind == EventKind.FROZE.value for w in e.fields["lost"]]
        found.false_alarms += [f"q{number} lost {worker}" for worker in lost]
        found.queries += 1
        found.tasks += int(result.stats.tasks)
        told(f"q{number}: {rows} rows, {result.stats.seconds:.1f} s, {len(lost)} workers lost")
    found.seconds = round(time.monotonic() - began, 1)
    after = {worker.id for worker in engine.workers()}
    said = " ".join(found.false_alarms)
    found.false_alarms += [
        f"{worker} was lost between queries" for worker in sorted(before - after) if worker not in said
    ]
    return found
