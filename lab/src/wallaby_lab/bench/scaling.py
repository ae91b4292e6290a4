"""How cost grows: the same queries at several sizes of data, and with one TaskManager up to eight.

The cores stay the same. More TaskManagers on them show the cost of division: more channels, smaller slices, data that
crosses processes. More data shows how cost grows with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from wallaby.observe.units import number as whole
from wallaby.observe.units import size
from wallaby_lab import tpch
from wallaby_lab.bench.figures import geometric_mean, machine, table, where
from wallaby_lab.bench.lane import Lane
from wallaby_lab.bench.rounds import WARM_UP


def run_scaling(
    directories: Sequence[Path],
    queries: Sequence[int],
    workers: Sequence[int],
    cores: Sequence[int],
    memory: str,
    rounds: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """One engine after the other, for every size of data and number of TaskManagers."""
    cells: list[dict[str, Any]] = []
    for data in directories:
        for count in workers:
            lane = Lane("wallaby", data, cores, memory, workers=count)
            try:
                lane.await_start()
                lane.ask("run", sql=tpch.query(WARM_UP), save=None)
                for number in queries:
                    cell = measure_cell(lane, number, rounds)
                    cells.append({"data": data.name, "workers": count, "query": number, **cell})
                    say(f"{data.name}, {count} TaskManager(s), query {number}: {cell['seconds']:.2f} s")
            finally:
                lane.end()
    return {"machine": machine(), "cells": cells}


def measure_cell(lane: Lane, number: int, rounds: int) -> dict[str, Any]:
    """One query on one engine: its times after an untimed run, and the breakdown of one more run."""
    sql = tpch.query(number)
    lane.ask("run", sql=sql, save=None)
    times = [round(lane.ask("run", sql=sql, save=None)["seconds"], 4) for _ in range(rounds)]
    facts = lane.ask("breakdown", sql=sql)
    return {"seconds": median(times), "all_seconds": times, **facts}


def scaling_page(report: Mapping[str, Any], title: str, **about: object) -> str:
    """The same as a page of Markdown."""
    cells = report["cells"]
    heads = [
        *("data", "TaskManagers", "query", "seconds", "stages", "channels", "splits", "tasks"),
        *("task seconds", "ms/task", "GCS calls/task", "lineage bytes/task", "exchanged", "sent", "spilled"),
    ]
    rows = [
        [
            *(cell[key] for key in ("data", "workers", "query")),
            f"{cell['seconds']:.2f}",
            *(whole(cell[key]) for key in ("stages", "channels", "splits", "tasks")),
            f"{_task_seconds(cell):.2f}",
            f"{1000 * _task_seconds(cell) / max(cell['tasks'], 1):.1f}",
            f"{cell['store_calls'] / max(cell['tasks'], 1):.2f}",
            f"{cell['lineage_bytes'] / max(cell['tasks'], 1):.1f}",
            *(size(cell[key]) for key in ("exchanged_bytes", "sent_bytes", "spilled_bytes")),
        ]
        for cell in cells
    ]
    lines = [f"# {title}", "", where(**about), "", *_against_one(cells), *table(heads, rows)]
    return "\n".join(lines) + "\n"


def _task_seconds(cell: Mapping[str, Any]) -> float:
    parts = ("scan_seconds", "kernel_seconds", "partition_seconds", "checksum_seconds")
    return float(sum(cell[part] for part in parts))


def _against_one(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """The total times with several TaskManagers, and with more data, relative to the first of each."""
    counts = list(dict.fromkeys(cell["workers"] for cell in cells))
    sizes = list(dict.fromkeys(cell["data"] for cell in cells))
    times = {(cell["data"], cell["workers"], cell["query"]): cell["seconds"] for cell in cells}
    rows = []
    for data in sizes:
        row: list[object] = [data]
        for count in counts:
            found = {q: s for (d, w, q), s in times.items() if (d, w) == (data, count)}
            least = geometric_mean([s / times[data, counts[0], q] for q, s in found.items()])
            more = geometric_mean([s / times[sizes[0], count, q] for q, s in found.items()])
            row += [f"{sum(found.values()):.2f}", f"{least:.2f}", f"{more:.2f}"]
        rows.append(row)
    heads = ["data"]
    for count in counts:
        heads += [f"{count}: seconds", f"against {counts[0]}", f"against {sizes[0]}"]
    told = (
        "By the number of TaskManagers on the same cores: the sum over the queries, and geometric means of their times "
        "relative to the first number of TaskManagers and to the first data size."
    )
    return [told, "", *table(heads, rows), ""]
