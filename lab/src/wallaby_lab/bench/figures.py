"""Compute means, spreads and intervals, and format Markdown tables."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

import psutil

from wallaby.observe.units import size

#: Student's t, two-sided 95 %, for 1 to 30 degrees of freedom; above that the normal distribution's is near enough.
_T95: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL95: Final = 1.960


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def ratio_interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The geometric mean of paired ratios and its 95 % interval, by Student's t on their logarithms."""
    logs = [math.log(ratio) for ratio in ratios]
    if len(logs) < 2:
        return geometric_mean(ratios), math.nan, math.nan
    t = _T95[len(logs) - 2] if len(logs) - 1 <= len(_T95) else _NORMAL95
    middle, half = mean(logs), t * stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def machine() -> dict[str, Any]:
    """A description of this machine."""
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


def where(**about: object) -> str:
    """The first line of a report: the machine and the options."""
    asked = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in about.items())
    return f"{on_machine(machine())}. {asked}."


def on_machine(host: Mapping[str, Any]) -> str:
    """A machine in words."""
    return f"{host['cpu']}, {host['cores']} cores, {host['memory']}, Linux {host['kernel']}"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a Markdown table, the first column to the left, the others to the right."""
    lines = [_row(heads), _row(["---", *["---:"] * (len(heads) - 1)])]
    return [*lines, *(_row(cells) for cells in rows)]


def seconds(value: float) -> str:
    """Seconds with a sensible number of digits."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def at_scale(data: str) -> str:
    """The name of a folder of data, such as sf10, for readers."""
    scale = data.removeprefix("sf")
    return f"at scale {scale}" if scale != data and scale.replace(".", "", 1).isdecimal() else data
