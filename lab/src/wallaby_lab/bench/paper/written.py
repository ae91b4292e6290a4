"""Write figures to files: a page, the drawing as SVG and PNG, the raw figures, and a section of the evaluation page."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from wallaby.errors import InvalidArgumentError
from wallaby_lab.bench.paper import predicted
from wallaby_lab.bench.paper.disturbed import case_study, policies, recovery
from wallaby_lab.bench.paper.measure import Say
from wallaby_lab.bench.paper.page import drawn, of_json, to_json, to_page, to_section, variant
from wallaby_lab.bench.paper.setup import Figure, Setup
from wallaby_lab.bench.paper.undisturbed import (
    against_spark,
    dependencies,
    more_workers,
    overheads,
    pipelined,
)
from wallaby_lab.bench.plots import Drawing

#: All figures by their letters, and the table of policies.
FIGURES: Final[Mapping[str, Callable[[Setup], Figure]]] = {
    "a": against_spark,
    "b": pipelined,
    "c": dependencies,
    "d": overheads,
    "e": recovery,
    "f": case_study,
    "g": more_workers,
    "policies": policies,
}
#: From this heading on, the evaluation page is generated from figures.
HEADING: Final = "## What has been measured"
#: The file of `wallaby predict` among the figures, if there is one.
PREDICTED: Final = "predict.json"
_DRAWING: Final = re.compile(r"^!\[.*\]\(([^)]+)\)$", re.MULTILINE)
#: The exceptions of a file that is empty, truncated or of another kind.
_UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError, IndexError)


def write_figure(directory: Path, letter: str, figure: Figure, about: Mapping[str, Any]) -> str:
    """Write all files of one figure; returns its page."""
    unusual = [f"-{name.removesuffix('_seconds')}-{value}" for name, value in variant(about).items()]
    name = f"paper-{letter}{''.join(unusual)}"
    page = to_page(letter, figure, f"{name}.svg", about)
    _write_drawing(directory / f"{name}.svg", drawn(letter, figure))
    raw = json.dumps(to_json(figure, about), indent=1) + "\n"
    (directory / f"{name}.json").write_text(raw, encoding="utf-8")
    (directory / f"{name}.md").write_text(page, encoding="utf-8")
    return page


def above(page: Path, directory: Path | None = None) -> str:
    """The part of a page before the figures, if its figures are those of a directory, or any.

    Raises:
        InvalidArgumentError: the page has no place for figures, or shows those of another directory.
    """
    before, heading, below = page.read_text(encoding="utf-8").partition(f"{HEADING}\n")
    if not heading:
        raise InvalidArgumentError(f"{page} has no heading {HEADING!r}.", fix="Give docs/evaluation.md.")
    shown = {(page.parent / drawing).parent.resolve() for drawing in _DRAWING.findall(below)}
    if directory is not None and (others := sorted(shown - {directory.resolve()})):
        raise InvalidArgumentError(
            f"{page} shows the figures of {os.path.relpath(others[0])}, not of {directory}.",
            fix=f"Give another --page, --out {os.path.relpath(others[0])}, or no --page: every figure has its own.",
        )
    return before + heading


def rewrite(page: Path, directory: Path, say: Say = lambda _: None) -> None:
    """Put all figures of a directory into a page, replacing everything below the heading.

    A figure that cannot be read is reported and skipped: figures take hours, and one must not spoil the others.
    """
    before = above(page, directory)
    sections = [
        section
        for letter in FIGURES
        for path in (directory / f"paper-{letter}.json", *sorted(directory.glob(f"paper-{letter}-*.json")))
        if path.exists() and (section := _section(letter, path, page, say)) is not None
    ]
    if (predictions := directory / PREDICTED).exists():
        sections += filter(None, [_predicted(predictions, page, say)])
    page.write_text(f"{before}\n" + "\n".join(sections).rstrip() + "\n", encoding="utf-8")


def redrawn(path: Path) -> Drawing:
    """The drawing of the figure, or of the predictions, in a file of raw figures."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if path.name == PREDICTED:
        return predicted.drawn(found)
    letter = path.name.removeprefix("paper-").removesuffix(".json").partition("-")[0]
    return drawn(letter, of_json(found)[0])


def _section(letter: str, path: Path, page: Path, say: Say) -> str | None:
    try:
        figure, about = of_json(json.loads(path.read_text(encoding="utf-8")))
    except _UNREADABLE as error:
        say(f"{path} is left out, since it cannot be read: {error!r}")
        return None
    image = path.parent / f"{path.name.removesuffix('.json')}.svg"
    return to_section(letter, figure, os.path.relpath(image, page.parent), about)


def _predicted(path: Path, page: Path, say: Say) -> str | None:
    image = path.with_suffix(".svg")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        shown = predicted.drawn(found)
        section = predicted.to_section(found, os.path.relpath(image, page.parent))
    except _UNREADABLE as error:
        say(f"{path} is left out, since it cannot be read: {error!r}")
        return None
    _write_drawing(image, shown)
    return section


def _write_drawing(image: Path, drawing: Drawing) -> None:
    """Write a drawing as SVG, and as PNG beside it."""
    image.write_text(drawing.svg(), encoding="utf-8")
    # The name of a variant has a point: `with_suffix` would take it for a suffix.
    image.with_name(f"{image.name.removesuffix('.svg')}.png").write_bytes(drawing.png())
