"""Measure how long a query with thousands of committed tasks is frozen in a recovery.

A table of very many small row groups gives a query with as many tasks. Once enough of them are committed, its reads are
slowed down, so that it hardly advances, and its workers are killed one after the other, each time once all are there.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.errors import WallabyError
from wallaby.faults.orders import parse_all
from wallaby.observe.event import EventKind
from wallaby_lab.chaos.run import ChaosArena

#: The promise: with this many committed tasks, 95 of 100 recoveries are shorter than this.
FROZEN_COMMITS: Final = 10_000
FROZEN_SECONDS_MAX: Final = 0.1
ROWS_PER_GROUP: Final = 4
#: Row groups beyond those that must be committed, from which the query lives while its workers are killed.
SPARE_GROUPS: Final = 4000
_SLOW: Final = "*:read:1:slow=150ms:x64"
_LIMIT_SECONDS: Final = 600.0
_POLL_SECONDS: Final = 0.02


@dataclass(slots=True)
class Frozen:
    """The measurements."""

    #: Committed tasks of the query at the first kill, and at its end.
    commits_first: int = 0
    commits: int = 0
    kills: int = 0
    #: The time of every recovery from a loss, in order.
    frozen_seconds: list[float] = field(default_factory=list)
    equal: bool = False

    def quantile(self, share: float) -> float:
        """A quantile of the times."""
        known = sorted(self.frozen_seconds)
        return known[min(int(len(known) * share), len(known) - 1)]


def measure_frozen(
    arena: ChaosArena, directory: Path, commits: int, kills: int, told: Callable[[str], None]
) -> Frozen:
    """Kill workers of one query after a number of commits."""
    path = directory / "many.parquet"
    rows = (commits + SPARE_GROUPS) * ROWS_PER_GROUP
    values = np.arange(rows, dtype=np.int64)
    pq.write_table(pa.table({"k": values % 97, "v": values}), path, row_group_size=ROWS_PER_GROUP)
    spark, engine, found = arena.spark, arena.engine, Frozen()
    query = spark.read.parquet(str(path)).groupBy("k").sum("v")
    arena.settle()
    result = engine.run(query)
    inspection = engine.inspection
    query_id = inspection.query_of(result)
    deadline = time.monotonic() + _LIMIT_SECONDS
    killed: set[str] = set()
    while not result.is_over and found.kills < kills and time.monotonic() < deadline:
        done = inspection.status(query_id).commits
        if done < commits:
            time.sleep(_POLL_SECONDS)
            continue
        if not found.kills:
            found.commits_first = done
            arena.book.give(parse_all(_SLOW))
        members = set(inspection.status(query_id).members)
        live = [w for w in engine.workers() if w.is_live and w.id in members - killed]
        if len(live) == arena.workers:
            killed.add(live[0].id)
            os.kill(live[0].pid, signal.SIGKILL)
            found.kills += 1
            told(f"{done} tasks committed, {found.kills} workers killed")
        time.sleep(_POLL_SECONDS)
    found.commits = inspection.status(query_id).commits
    arena.book.give(())
    try:
        answer = dict(zip(*(column.to_pylist() for column in result.arrow().columns), strict=True))
    except WallabyError as error:
        told(str(error))
        answer = {}
    found.equal = answer == {k: int(values[values % 97 == k].sum()) for k in range(97)}
    lost = False
    for event in result.events:
        if event.kind == EventKind.FROZE.value:
            lost = lost or bool(event.fields["lost"])
        elif event.kind == EventKind.RESUMED.value and lost:
            found.frozen_seconds.append(float(event.fields["seconds"]))
            lost = False
    return found
