"""Figures as files: a page, the drawing as SVG and PNG, and the raw figures; and a part of a page about all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wallaby.bench.paper import predicted
from wallaby.bench.paper.figures import FIGURES, Figure
from wallaby.bench.paper.page import drawn, of_json, to_json, to_page, to_section
from wallaby.bench.png import to_png
from wallaby.errors import InvalidArgumentError

#: From here to its end, the page on the evaluation is made from figures.
HEADING: Final = "## What has been measured"
#: What `wallaby predict` has saved, if it has, among the figures.
PREDICTED: Final = "predict.json"


def write_figure(directory: Path, letter: str, figure: Figure, about: Mapping[str, object]) -> str:
    """Write all files of one figure; its page."""
    stem, drawing = directory / f"paper-{letter}", drawn(letter, figure)
    page = to_page(letter, figure, f"{stem.name}.svg", about)
    stem.with_suffix(".svg").write_text(drawing, encoding="utf-8")
    stem.with_suffix(".png").write_bytes(to_png(drawing))
    stem.with_suffix(".json").write_text(
        json.dumps(to_json(figure, about), indent=1) + "\n", encoding="utf-8"
    )
    stem.with_suffix(".md").write_text(page, encoding="utf-8")
    return page


def above(page: Path) -> str:
    """What stands in a page before the figures."""
    before, heading, _ = page.read_text(encoding="utf-8").partition(f"{HEADING}\n")
    if not heading:
        raise InvalidArgumentError(f"{page} has no heading {HEADING!r}.", fix="Give docs/evaluation.md.")
    return before + heading


def rewrite(page: Path, directory: Path) -> None:
    """Put all figures of a directory into a page, in place of what stood below the heading."""
    before = above(page)
    sections = []
    for letter in FIGURES:
        stem = directory / f"paper-{letter}"
        if stem.with_suffix(".json").exists():
            figure, about = of_json(json.loads(stem.with_suffix(".json").read_text(encoding="utf-8")))
            drawing = os.path.relpath(stem.with_suffix(".svg"), page.parent)
            sections.append(to_section(letter, figure, drawing, about))
    if (predictions := directory / PREDICTED).exists():
        found = json.loads(predictions.read_text(encoding="utf-8"))
        image, shown = predictions.with_suffix(".svg"), predicted.drawn(found)
        image.write_text(shown, encoding="utf-8")
        image.with_suffix(".png").write_bytes(to_png(shown))
        sections.append(predicted.to_section(found, os.path.relpath(image, page.parent)))
    page.write_text(f"{before}\n" + "\n".join(sections).rstrip() + "\n", encoding="utf-8")
