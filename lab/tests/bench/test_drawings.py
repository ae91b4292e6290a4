"""The drawings in docs/ show the raw figures that are committed with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.write_drawings import of_figures, of_pages

DRAWINGS = of_pages() | of_figures()


def shown(svg: str) -> tuple[list[str], list[str]]:
    """The bars and the texts of a drawing. Coordinates may differ in their last digits from machine to machine."""
    return re.findall(r'id="(bar-[^"]+)"', svg), re.findall(r"<text[^>]*>([^<]*)<", svg)


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.name)
def test_a_drawing_shows_what_its_report_says(path: Path) -> None:
    bars, texts = shown(path.read_text(encoding="utf-8"))
    assert (bars, texts) == shown(DRAWINGS[path].svg()), "run make pages"
    assert bars
    assert texts
