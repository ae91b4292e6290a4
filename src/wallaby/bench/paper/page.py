"""A figure as a page: the drawing, ours beside the paper's numbers, and the bars as a table; and back from its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wallaby.bench.bars_svg import draw_queries
from wallaby.bench.figures import machine, table, where
from wallaby.bench.paper.figures import Figure
from wallaby.bench.paper.published import PUBLISHED, SAID

#: What is said of how a figure was measured.
ABOUT: Final = ("data", "cores", "memory", "workers", "rounds", "store")


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
    return "\n".join(
        [f"# ({letter}) {figure.title}", "", where(**about), "", *_told(letter, figure, drawing)]
    )


def to_section(letter: str, figure: Figure, drawing: str, about: Mapping[str, object]) -> str:
    """The same as a part of a page on all figures."""
    said = ", ".join(f"{name} {value}" for name, value in about.items())
    return "\n".join([f"### ({letter}) {figure.title}", "", f"{said}.", "", *_told(letter, figure, drawing)])


def of_json(found: Mapping[str, Any]) -> tuple[Figure, dict[str, object]]:
    """A figure as `to_json` has written it, and on what it was measured."""
    series = {name: {int(at): value for at, value in bars.items()} for name, bars in found["series"].items()}
    about = {name: found[name] for name in ABOUT}
    return Figure(found["title"], found["axis"], series, found["ours"], {}, found["table"]), about


def _told(letter: str, figure: Figure, drawing: str) -> list[str]:
    lines = [f"![{figure.axis}]({drawing})", ""]
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
    return [*lines, f"{figure.axis.capitalize()}:", "", *table(["", *map(str, places)], bars), ""]
