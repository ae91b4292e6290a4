"""Bars as SVG: how many times as fast as the first contender, by query, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH: Final = 1000
LEFT: Final = 60
TOP: Final = 40
PLOT_HEIGHT: Final = 260
ROW: Final = 26
_COLOURS: Final = (
    *("#3b82c4", "#3f9d5a", "#e08a1e", "#8e5bc0", "#cc3b3b", "#5f6b7a", "#b0893a", "#2aa198"),
    *("#d16ba5", "#1d2530"),
)
_STYLE: Final = (
    "<style>text{font:12px system-ui,sans-serif;fill:#1d2530}.dim{fill:#5f6b7a;font-size:11px}"
    ".line{stroke:#d5dbe2}.one{stroke:#1d2530}.paper{fill:#fff}</style>"
)
_TICKS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def draw_queries(ratios: Mapping[str, Mapping[int, float]], title: str) -> str:
    """A group of bars for each query, one for each contender."""
    queries = sorted({number for by_query in ratios.values() for number in by_query})
    values = [value for by_query in ratios.values() for value in by_query.values()]
    if not values:
        return _svg(WIDTH, TOP, title, [])
    ticks = _ticks(values)
    low, high = math.log(ticks[0]), math.log(ticks[-1])

    def y(value: float) -> float:
        return TOP + PLOT_HEIGHT * (1 - (math.log(value) - low) / (high - low))

    parts = []
    for tick in ticks:
        style = "one" if tick == 1 else "line"
        parts.append(
            f'<line class="{style}" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        )
        parts.append(
            f'<text class="dim" text-anchor="end" x="{LEFT - 8}" y="{y(tick) + 4:.1f}">{tick:g}×</text>'
        )
    group = (WIDTH - 10 - LEFT) / len(queries)
    bar = group * 0.8 / len(ratios)
    for at, number in enumerate(queries):
        x = LEFT + at * group
        middle, below = x + group / 2, TOP + PLOT_HEIGHT + 16
        parts.append(f'<text class="dim" text-anchor="middle" x="{middle:.1f}" y="{below}">{number}</text>')
        for which, (name, by_query) in enumerate(ratios.items()):
            if number in by_query:
                value = by_query[number]
                top, bottom = sorted((y(value), y(1)))
                parts.append(
                    f'<rect fill="{_colour(which)}" x="{x + group * 0.1 + which * bar:.1f}" y="{top:.1f}" '
                    f'width="{bar:.1f}" height="{max(bottom - top, 0.8):.1f}">'
                    f"<title>{escape(name)}, query {number}: {value:.2f}×</title></rect>"
                )
    parts += _legend(list(ratios), TOP + PLOT_HEIGHT + 40)
    return _svg(WIDTH, TOP + PLOT_HEIGHT + 60, title, parts)


def draw_means(means: Mapping[str, float], title: str) -> str:
    """A bar for each contender, from left to right."""
    shown = {name: value for name, value in means.items() if value > 0 and math.isfinite(value)}
    left, most = 140, max([*shown.values(), 1.0])
    parts = []
    for at, (name, value) in enumerate(shown.items()):
        y, width = TOP + at * ROW, (WIDTH - left - 80) * value / most
        parts.append(f'<text text-anchor="end" x="{left - 8}" y="{y + 16}">{escape(name)}</text>')
        parts.append(
            f'<rect fill="{_colour(at)}" x="{left}" y="{y + 3}" width="{width:.1f}" height="{ROW - 8}"/>'
        )
        parts.append(f'<text x="{left + width + 8:.1f}" y="{y + 16}">{value:.2f}×</text>')
    return _svg(WIDTH, TOP + ROW * len(shown) + 12, title, parts)


def _ticks(values: Sequence[float]) -> list[float]:
    """Round numbers around the values and 1, two at least."""
    least, most = min([*values, 1.0]), max([*values, 1.0])
    below = [tick for tick in _TICKS if tick <= least] or [_TICKS[0]]
    above = [tick for tick in _TICKS if tick >= most] or [_TICKS[-1]]
    low, high = below[-1], above[0]
    if low == high:
        high = next(tick for tick in _TICKS if tick > low)
    return [tick for tick in _TICKS if low <= tick <= high]


def _legend(names: Sequence[str], y: int) -> list[str]:
    parts = []
    step = min(150, (WIDTH - LEFT) // max(len(names), 1))
    for at, name in enumerate(names):
        x = LEFT + at * step
        parts.append(f'<rect fill="{_colour(at)}" x="{x}" y="{y - 10}" width="12" height="12"/>')
        parts.append(f'<text x="{x + 18}" y="{y}">{escape(name)}</text>')
    return parts


def _colour(at: int) -> str:
    return _COLOURS[at % len(_COLOURS)]


def _svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<text x="{LEFT}" y="20" font-weight="600">{escape(title)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="{escape(title)}">{_STYLE}'
        f'<rect class="paper" width="{width}" height="{height}"/>{head}{"".join(parts)}</svg>\n'
    )
