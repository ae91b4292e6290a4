"""Bars of ratios as SVG and PNG, drawn by matplotlib. The same figures always give the same files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter, NullLocator

WIDTH_INCHES: Final = 10.0
HEIGHT_INCHES: Final = 3.6
BAR_INCHES: Final = 0.26
LEGEND_ROW_INCHES: Final = 0.2
#: How many characters fit beside each other, and how many the coloured field of an entry takes.
LEGEND_CHARACTERS: Final = 140
LEGEND_FIELD_CHARACTERS: Final = 6
PNG_DOTS_PER_INCH: Final = 200
_COLOURS: Final = (
    *("#3b82c4", "#3f9d5a", "#e08a1e", "#8e5bc0", "#cc3b3b", "#5f6b7a", "#b0893a", "#2aa198"),
    *("#d16ba5", "#1d2530"),
)
_TEXT, _DIM, _LINE = "#1d2530", "#5f6b7a", "#d5dbe2"
_STYLE: Final[dict[str, Any]] = {
    "svg.hashsalt": "wallaby",  # ids that do not change from run to run
    "svg.fonttype": "none",  # text stays text
    "font.size": 9,
    "text.color": _TEXT,
    "axes.edgecolor": _LINE,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "xtick.color": _DIM,
    "ytick.color": _DIM,
}
_TICKS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished drawing, which can be written in several formats."""

    figure: Figure
    title: str

    def svg(self) -> str:
        """The drawing as the text of an SVG file, without the date and the program that made it."""
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        return self._written("svg", {**nothing, "Title": self.title}).decode()

    def png(self) -> bytes:
        """The drawing as the bytes of a PNG file, for where SVG cannot be shown."""
        return self._written("png", {"Software": None}, dpi=PNG_DOTS_PER_INCH)

    def _written(self, kind: str, metadata: dict[str, str | None], dpi: float = 72) -> bytes:
        file = BytesIO()
        with style.context(_STYLE):
            self.figure.savefig(file, format=kind, metadata=metadata, dpi=dpi)
        return file.getvalue()


def draw_queries(ratios: Mapping[str, Mapping[int, float]], title: str) -> Drawing:
    """A group of bars for each query, one for each series, on a logarithmic scale; they begin at 1."""
    queries = sorted({number for by_query in ratios.values() for number in by_query})
    values = [value for by_query in ratios.values() for value in by_query.values()]
    with style.context(_STYLE):
        columns = _legend_columns(list(ratios))
        rows = -(-len(ratios) // columns)
        figure, axes = _empty(title, HEIGHT_INCHES + LEGEND_ROW_INCHES * max(rows - 1, 0))
        if values:
            _scale(axes, _ticks(values))
        width = 0.8 / max(len(ratios), 1)
        for which, (name, by_query) in enumerate(ratios.items()):
            shift = (which - (len(ratios) - 1) / 2) * width
            places = [queries.index(number) + shift for number in by_query]
            heights = [value - 1 for value in by_query.values()]
            bars = axes.bar(places, heights, width, 1, label=name, **_filled(which))
            for number, bar in zip(by_query, bars, strict=True):
                bar.set_gid(f"bar-{which}-{number}")
        axes.set_xticks(range(len(queries)), [str(number) for number in queries])
        axes.set_xlim(-0.5, max(len(queries), 1) - 0.5)
        if values:
            figure.legend(loc="outside lower left", ncols=columns, frameon=False)
    return Drawing(figure, title)


def draw_means(means: Mapping[str, float], title: str) -> Drawing:
    """A bar for each series, from left to right, with its value beside it."""
    shown = {name: value for name, value in means.items() if value > 0 and math.isfinite(value)}
    with style.context(_STYLE):
        figure, axes = _empty(title, 0.6 + BAR_INCHES * len(shown))
        for at, (name, value) in enumerate(shown.items()):
            (bar,) = axes.barh([name], [value], 0.7, **_filled(at))
            bar.set_gid(f"bar-{at}")
            axes.annotate(
                f"{value:.2f}×", (value, at), (6, 0), textcoords="offset points", va="center", color=_TEXT
            )
        axes.invert_yaxis()
        axes.set_xlim(0, max([*shown.values(), 1.0]) * 1.1)
        axes.xaxis.set_visible(False)
    return Drawing(figure, title)


def _empty(title: str, height_inches: float) -> tuple[Figure, Axes]:
    figure = Figure((WIDTH_INCHES, height_inches), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return figure, axes


def _filled(at: int) -> dict[str, Any]:
    """The colour of a series. A bar of no height still shows its edge."""
    colour = _COLOURS[at % len(_COLOURS)]
    return {"color": colour, "edgecolor": colour, "linewidth": 0.5, "zorder": 2}


def _scale(axes: Axes, ticks: Sequence[float]) -> None:
    axes.set_yscale("log")
    axes.set_ylim(ticks[0], ticks[-1])
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FixedFormatter([f"{tick:g}×" for tick in ticks]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", color=_LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.axhline(1, color=_TEXT, linewidth=0.8, zorder=1)


def _legend_columns(names: Sequence[str]) -> int:
    """How many entries of a legend fit into a row."""
    longest = max(map(len, names), default=0)
    return max(1, min(len(names), LEGEND_CHARACTERS // (longest + LEGEND_FIELD_CHARACTERS)))


def _ticks(values: Sequence[float]) -> list[float]:
    """Round numbers around the values and 1, two at least."""
    least, most = min([*values, 1.0]), max([*values, 1.0])
    below = [tick for tick in _TICKS if tick <= least] or [_TICKS[0]]
    above = [tick for tick in _TICKS if tick >= most] or [_TICKS[-1]]
    low, high = below[-1], above[0]
    if low == high:
        high = next(tick for tick in _TICKS if tick > low)
    return [tick for tick in _TICKS if low <= tick <= high]
