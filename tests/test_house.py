"""The house rules find what they are there for; `make check` applies them to the project itself."""

from __future__ import annotations

import pytest
from tools.check_house import ROOT, anchors, check_links

PAGE = "# A page: its `name`\n\n```\n# no heading\n[no](link.md)\n```\n\n## Two words\n"


@pytest.mark.parametrize(
    "link",
    ["#two-words", "README.md", "docs/style.md#names", "https://example.org/x#y", "docs/decisions"],
)
def test_a_link_that_leads_somewhere(link: str) -> None:
    assert list(check_links(ROOT / "x.md", f"{PAGE}See [this\none]({link}).")) == []


@pytest.mark.parametrize(
    ("link", "what"),
    [
        ("#no-heading", "heading"),
        ("#three-words", "heading"),
        ("docs/nothing.md", "file"),
        ("docs/style.md#nothing", "heading"),
    ],
)
def test_a_link_that_leads_nowhere(link: str, what: str) -> None:
    (problem,) = check_links(ROOT / "x.md", f"{PAGE}See [this]({link}).")
    assert problem == f"x.md: links to {link}, and there is no such {what}"


def test_headings_as_they_are_linked_to() -> None:
    assert anchors(PAGE) == {"a-page-its-name", "two-words"}
