"""A figure as a page: the drawing, ours beside the paper's numbers, and the bars as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wallaby.bench.bars_svg import draw_queries
from wallaby.bench.figures import machine, table, where
from wallaby.bench.paper.figures import Figure
from wallaby.bench.paper.published import PUBLISHED, SAID


def drawn(letter: str, figure: Figure) -> str:
    """The bars, as SVG."""
    return draw_queries(figure.series, f"({letter}) {figure.title}: {figure.axis}")


def to_json(figure: Figure, about: Mapping[str, object]) -> dict[str, Any]:
    """Everything that was measured."""
    return {
        "machine": machine(),
        **about,
        "title": figure.title,
        "axis": figure.axis,
        "series": figure.series,
        "ours": figure.ours,
        "table": figure.table,
        **figure.raw,
    }


def to_page(letter: str, figure: Figure, drawing: str, about: Mapping[str, object]) -> str:
    """The same, to be read."""
    lines = [f"# ({letter}) {figure.title}", "", where(**about), "", f"![{figure.axis}]({drawing})", ""]
    rows: list[list[str]] = []
    for what, values in PUBLISHED[letter]:
        shown = [f"{value:g}" if value is not None else "" for value in values]
        rows.append([f"paper: {what}", *shown, ""])
    rows += [[f"here: {what}", "", "", "", f"**{value:.2f}**"] for what, value in figure.ours.items()]
    if rows:
        lines += [*table(["", "4 workers", "16", "32", "here"], rows), ""]
    lines += [f"The paper: {SAID[letter]}", ""]
    if figure.table:
        lines += [*table(figure.table[0], figure.table[1:]), ""]
    places = sorted({at for each in figure.series.values() for at in each})
    bars = [
        [name, *(f"{each[at]:.2f}" if at in each else "" for at in places)]
        for name, each in figure.series.items()
    ]
    return "\n".join([*lines, f"{figure.axis.capitalize()}:", "", *table(["", *map(str, places)], bars), ""])
