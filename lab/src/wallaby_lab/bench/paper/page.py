"""A figure as a page: the drawing, ours beside the paper's numbers, and the bars as a table; and back from its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wallaby_lab.bench.figures import on_machine, table
from wallaby_lab.bench.paper.published import PUBLISHED, SAID
from wallaby_lab.bench.paper.setup import CHECKPOINT_SECONDS, Figure
from wallaby_lab.bench.plots import Drawing, draw_queries

#: What is known of how a figure was measured, by its name in the JSON, with how it is said.
ABOUT: Final = {
    "data": "data {}",
    "cores": "cores {}",
    "memory": "memory {}",
    "workers": "workers {}",
    "rounds": "rounds {}",
    "store": "store {}",
    "checkpoint_seconds": "checkpoints every {:g} s",
    "broadcast": "joins broadcast up to {} bytes",
    "commit": "commit {}",
    "date": "{}",
}


def drawn(letter: str, figure: Figure) -> Drawing:
    """The bars."""
    return draw_queries(figure.series, f"({letter}) {figure.title}: {figure.axis}")


def to_json(figure: Figure, about: Mapping[str, object]) -> dict[str, Any]:
    """Encode everything that was measured as JSON."""
    return {
        **about,
        "title": figure.title,
        "axis": figure.axis,
        "series": figure.series,
        "ours": figure.ours,
        "table": figure.table,
        "said": figure.said,
        "equal": figure.equal,
        "compared": figure.compared,
        **figure.raw,
    }


def to_page(letter: str, figure: Figure, drawing: str, about: Mapping[str, Any]) -> str:
    """The same, to be read."""
    return "\n".join([f"# {_heading(letter, figure, about)}", "", *_told(letter, figure, drawing, about)])


def to_section(letter: str, figure: Figure, drawing: str, about: Mapping[str, Any]) -> str:
    """The same as a part of a page on all figures."""
    return "\n".join([f"### {_heading(letter, figure, about)}", "", *_told(letter, figure, drawing, about)])


def of_json(found: Mapping[str, Any]) -> tuple[Figure, dict[str, Any]]:
    """A figure as `to_json` has written it, and on what it was measured."""
    series = {name: {int(at): value for at, value in bars.items()} for name, bars in found["series"].items()}
    about = {name: found[name] for name in ("machine", *ABOUT) if name in found}
    figure = Figure(
        *(found["title"], found["axis"], series, found["ours"], {}, str(found["workers"]), found["table"]),
        *(found.get("said", ""), found.get("equal", 0), found.get("compared", 0)),
    )
    return figure, about


def variant(about: Mapping[str, Any]) -> dict[str, object]:
    """How a figure differs from the usual one of its kind."""
    usual = {"broadcast": None, "checkpoint_seconds": CHECKPOINT_SECONDS}
    return {name: about[name] for name, value in usual.items() if about.get(name, value) != value}


def _heading(letter: str, figure: Figure, about: Mapping[str, Any]) -> str:
    unusual = [ABOUT[name].format(value) for name, value in variant(about).items()]
    return ", ".join([f"({letter}) {figure.title}", *unusual])


def _circumstances(about: Mapping[str, Any]) -> str:
    said = [told.format(about[name]) for name, told in ABOUT.items() if about.get(name) not in (None, "")]
    return f"{on_machine(about['machine'])}; {', '.join(said)}."


def _told(letter: str, figure: Figure, drawing: str, about: Mapping[str, Any]) -> list[str]:
    lines = [_circumstances(about), "", f"![{figure.axis}]({drawing})", ""]
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
    if figure.said:
        lines += [figure.said, ""]
    if figure.compared:
        wrong = "" if figure.equal == figure.compared else " **The others are wrong.**"
        lines += [
            f"Answers equal to that of the first undisturbed run: {figure.equal} of {figure.compared}.{wrong}",
            "",
        ]
    places = sorted({at for each in figure.series.values() for at in each})
    bars = [
        [name, *(f"{each[at]:.2f}" if at in each else "" for at in places)]
        for name, each in figure.series.items()
    ]
    return [*lines, f"{figure.axis.capitalize()}:", "", *table(["", *map(str, places)], bars), ""]
