"""The documentation site: what it makes of pages, and that every page has its place in it. `make docs` builds it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tools.site_pages import (
    ROOT,
    ROOT_PAGES,
    as_page,
    for_site,
    indented,
    linked_sources,
    site_link,
    with_drawings,
)

CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
DRAWINGS = sorted((ROOT / "docs" / "drawings").glob("*.svg"))
COLOURS = (ROOT / "docs" / "site.css").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("index.md", "docs/using.md#limits", "using.md#limits"),
        ("index.md", "ARCHITECTURE.md", "architecture.md"),
        ("using.md", "configuration.md", "configuration.md"),
        ("guides/clusters.md", "../../SECURITY.md", "../security.md"),
        ("concepts/paper.md", "../../src/wallaby/engine.py", "../source/src/wallaby/engine.py.md"),
        ("architecture.md", "docs/decisions", "decisions/README.md"),
        ("using.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("using.md", "#limits", "#limits"),
    ],
)
def test_a_link_leads_to_the_same_page_in_the_site(page: str, link: str, expected: str) -> None:
    assert site_link(page, link) == expected


def test_links_in_code_stay_as_they_are() -> None:
    page = "[a](docs/using.md)\n```text\n[a](docs/using.md)\n```\n"
    assert for_site(page, "index.md") == "[a](using.md)\n```text\n[a](docs/using.md)\n```\n"


def test_a_linked_source_file_becomes_a_page() -> None:
    page = "See [the code](../src/wallaby/version.py), [a page](using.md) and [another](../README.md)."
    assert list(linked_sources(page, "stability.md")) == ["src/wallaby/version.py"]
    assert "__version__ =" in as_page("src/wallaby/version.py")


def test_a_notebook_becomes_a_page_of_its_cells() -> None:
    page = as_page("examples/first_queries.ipynb")
    assert "# Wallaby in a notebook" in page
    assert "``````python\n%%wsql totals\n" in page
    assert "cell_type" not in page


def test_nested_lists_are_indented_by_four() -> None:
    page = "- a\n  - b\n    c\n\n  d\n\n1. e\n\n   | f |\n\n  no list\n"
    assert indented(page) == "- a\n    - b\n        c\n\n    d\n\n1. e\n\n    | f |\n\n    no list\n"
    assert indented("text\n    code\n") == "text\n    code\n"


def test_a_flowchart_becomes_a_list() -> None:
    page = '```mermaid\nflowchart TD\n    a["a: first"] --> b["b: second"]\n    b -.-> a\n```\n'
    assert for_site(page, "using.md") == "- **a**: first → b\n- **b**: second → a (in another process)\n"


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_a_drawing_is_inlined_with_the_colours_of_the_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    ET.fromstring(text)
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    assert used <= set(re.findall(r"(--[\w-]+):", COLOURS)), "site.css names every colour of a drawing"
    page = with_drawings(f'<p><img alt="What it shows" src="../drawings/{path.name}" /></p>')
    assert 'aria-label="What it shows"' in page
    assert "prefers-color-scheme" not in page


def test_every_page_has_a_place_in_the_site() -> None:
    listed = set(re.findall(r": ([\w/.-]+\.md)$", CONFIGURATION, re.MULTILINE))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    hidden = {page for page in pages if re.match(r"decisions/0|paper-sf\d+/", page)}
    assert listed - set(ROOT_PAGES.values()) == pages - hidden
