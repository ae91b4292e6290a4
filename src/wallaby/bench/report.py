"""Figures out of a course: medians, ratios, geometric means; as a page, and as JSON."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from wallaby.bench.contenders.sparksql import SETTINGS
from wallaby.bench.course import Timed
from wallaby.observe.units import size


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def machine() -> dict[str, Any]:
    """Where it was measured."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = psutil.virtual_memory().total
    return {"cpu": cpu, "cores": os.cpu_count(), "memory": size(memory), "kernel": platform.release()}


def to_json(course: Mapping[str, Any], **about: object) -> dict[str, Any]:
    """Everything that was measured."""
    results = {
        name: {str(number): asdict(one) for number, one in by_query.items()}
        for name, by_query in course["results"].items()
    }
    return {**about, "machine": machine(), "contenders": course["contenders"], "results": results}


def to_page(course: Mapping[str, Any], title: str, **about: object) -> str:
    """The same as a page of Markdown."""
    results: dict[str, dict[int, Timed]] = course["results"]
    names = list(results)
    first, *others = names
    where = machine()
    lines = [
        f"# {title}",
        "",
        f"{where['cpu']}, {where['cores']} cores, {where['memory']}, Linux {where['kernel']}. "
        + ", ".join(f"{key} {value}" for key, value in about.items())
        + ".",
        "",
        *(f"- {name}: {facts['what']}" for name, facts in course["contenders"].items()),
        "",
        f"Seconds: the median of the rounds, in brackets the first. × is the time of {first} over that of the other.",
        "",
        _row(["query", *(f"{name} s" for name in names), *(f"× {name}" for name in others), "peak memory"]),
        _row(["---"] * (2 + len(names) + len(others))),
    ]
    ratios: dict[str, list[float]] = {name: [] for name in others}
    for number in results[first]:
        cells = [_seconds(results[name][number]) for name in names]
        speedups = []
        for name in others:
            ratio = _ratio(results[first][number], results[name][number])
            speedups.append(f"{ratio:.2f}" if ratio else "")
            if ratio:
                ratios[name].append(ratio)
        peaks = " / ".join(size(results[name][number].peak_bytes) for name in names)
        lines.append(_row([str(number), *cells, *speedups, peaks]))
    sums = [
        f"{sum(median(one.seconds) for one in results[name].values() if one.seconds):.1f}" for name in names
    ]
    means = [f"**{geometric_mean(ratios[name]):.2f}**" for name in others]
    lines.append(_row(["all", *sums, *means, ""]))
    lines += ["", "SparkSQL's settings: " + ", ".join(f"`{k}={v}`" for k, v in SETTINGS.items()) + "."]
    lines += _breakdowns(results)
    return "\n".join(lines) + "\n"


def _breakdowns(results: Mapping[str, Mapping[int, Timed]]) -> list[str]:
    lines: list[str] = []
    for name, by_query in results.items():
        told = {number: one.breakdown for number, one in by_query.items() if one.breakdown}
        if told:
            heads = list(next(iter(told.values())))
            lines += ["", f"## Where the time of {name} went", "", _row(["query", *heads])]
            lines.append(_row(["---"] * (1 + len(heads))))
            lines += [
                _row([str(number), *(str(facts.get(head, "")) for head in heads)])
                for number, facts in told.items()
            ]
    return lines


def _ratio(first: Timed, other: Timed) -> float | None:
    return median(first.seconds) / median(other.seconds) if first.seconds and other.seconds else None


def _seconds(one: Timed) -> str:
    if not one.seconds:
        return f"failed: {one.error}"
    wrong = " DIFFERS" if one.difference else ""
    return f"{median(one.seconds):.2f} ({one.seconds[0]:.2f}){wrong}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
