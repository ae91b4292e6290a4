"""What fault tolerance costs: the same engine with and without it, in pairs.

Two engines, each in its own processes, stay alive. In every pair each query runs on both, one right after the other,
and the order alternates. So a pair has two totals and a ratio for each query, and pairs differ only in the other load
on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

from wallaby_lab import tpch
from wallaby_lab.bench.figures import geometric_mean, machine, ratio_interval, table, where
from wallaby_lab.bench.lane import Lane
from wallaby_lab.bench.rounds import WARM_UP

_TOLD: Final = (
    "Without fault tolerance there are no checksums, no records, no commits and no backups. Both engines stay alive; "
    "each query runs on both in turn, and the engine that goes first alternates from pair to pair."
)
_METHOD: Final = "the interval is Student's t over the logarithms of the pairs' ratios."
_CALLS: Final = "calls of the head included, leases of workers not."


def run_overhead(
    queries: Sequence[int],
    data: Path,
    cores: Sequence[int],
    memory: str,
    pairs: int,
    workers: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """The times of both, by query and pair, and what the engine with fault tolerance recorded."""
    with ExitStack() as stack:
        lanes = []
        for tolerant in (True, False):
            lane = Lane("wallaby", data, cores, memory, workers=workers, tolerant=tolerant)
            stack.callback(lane.end)
            lanes.append(lane)
        for lane in lanes:
            lane.await_start()
            say(f"{lane.what}, started in {lane.start_seconds:.1f} s")
        for number in (WARM_UP, *queries):
            for lane in lanes:
                lane.ask("run", sql=tpch.query(number), save=None)
        times: dict[str, dict[str, list[float]]] = {
            key: {str(number): [] for number in queries} for key in ("on", "off")
        }
        for pair in range(pairs):
            both = [("on", lanes[0]), ("off", lanes[1])]
            for number in queries:
                for key, lane in both if pair % 2 == 0 else reversed(both):
                    told = lane.ask("run", sql=tpch.query(number), save=None)
                    times[key][str(number)].append(round(told["seconds"], 4))
            on, off = (sum(each[-1] for each in times[key].values()) for key in ("on", "off"))
            say(f"pair {pair + 1}: {on:.2f} s with, {off:.2f} s without, ratio {on / off:.4f}")
        facts = {str(number): lanes[0].ask("breakdown", sql=tpch.query(number)) for number in queries}
        return {
            "machine": machine(),
            "contenders": [lane.what for lane in lanes],
            "seconds": times,
            "breakdown": facts,
            **overhead_figures(times, facts),
        }


def overhead_figures(
    times: Mapping[str, Mapping[str, Sequence[float]]], facts: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The ratios with their intervals, and what a task records."""
    queries, pairs = list(times["on"]), len(next(iter(times["on"].values())))
    totals, means = [], []
    for pair in range(pairs):
        on, off = ([times[key][number][pair] for number in queries] for key in ("on", "off"))
        totals.append(sum(on) / sum(off))
        means.append(geometric_mean([a / b for a, b in zip(on, off, strict=True)]))
    tasks, commits, calls, lineage = (
        sum(each[key] for each in facts.values())
        for key in ("tasks", "commits", "store_calls", "lineage_bytes")
    )
    return {
        "pairs": pairs,
        "ratios_of_totals": [round(ratio, 5) for ratio in totals],
        "total": ratio_interval(totals),
        "geometric_mean": ratio_interval(means),
        "tasks": tasks,
        "lineage_bytes_per_task": lineage / max(commits, 1),
        "store_calls_per_task": calls / max(tasks, 1),
    }


def overhead_page(figures: Mapping[str, Any], title: str, **about: object) -> str:
    """The same as a page of Markdown."""
    times, facts = figures["seconds"], figures["breakdown"]
    rows = []
    for number in times["on"]:
        on, off = times["on"][number], times["off"][number]
        ratio = geometric_mean([a / b for a, b in zip(on, off, strict=True)])
        told = facts[number]
        each = max(told["tasks"], 1)
        rows.append(
            [
                number,
                f"{median(on):.3f}",
                f"{median(off):.3f}",
                f"{ratio:.3f}",
                told["tasks"],
                f"{told['lineage_bytes'] / each:.1f}",
                f"{told['store_calls'] / each:.2f}",
            ]
        )
    heads = ["query", "with s", "without s", "ratio", "tasks", "lineage bytes/task", "GCS calls/task"]
    lines = [
        f"# {title}",
        "",
        where(**about),
        "",
        *(f"- {what}" for what in figures["contenders"]),
        "",
        _TOLD,
        "",
        (
            f"**Total time, with divided by without: {_interval(figures['total'])}**; geometric mean over the queries: "
            f"{_interval(figures['geometric_mean'])}. {figures['pairs']} pairs; {_METHOD}"
        ),
        "",
        (
            f"Lineage: {figures['lineage_bytes_per_task']:.1f} bytes a task. GCS: "
            f"{figures['store_calls_per_task']:.2f} calls a task, {figures['tasks']} tasks in all; {_CALLS}"
        ),
        "",
        *table(heads, rows),
    ]
    return "\n".join(lines) + "\n"


def _interval(of: Sequence[float]) -> str:
    middle, low, high = of
    return f"{middle:.4f} (95 %: {low:.4f} to {high:.4f})"
