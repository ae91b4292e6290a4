"""The house rules find what they are there for; `make check` applies them to the project itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.check_house import PLAIN, ROOT, anchors, check_glossary, check_links, public_classes

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


def in_room(*names: str) -> tuple[dict[str, list[Path]], dict[str, str]]:
    """The plain classes and some others, each defined once, all in one room."""
    everything = (*names, *PLAIN)
    return {name: [Path("x.py")] for name in everything}, dict.fromkeys(everything, "node")


def test_every_public_class_of_the_rooms_is_in_the_glossary() -> None:
    page = "| class | meaning |\n|---|---|\n| `Actor`, `Spool` | a generator; outputs |\n"
    assert list(check_glossary(*in_room("Actor", "Spool"), page)) == []
    (missing,) = check_glossary(*in_room("Actor", "Spool", "Tenure"), page)
    assert "says nothing of Tenure (node)" in missing
    (stale,) = check_glossary(*in_room("Actor"), page)
    assert "Spool is no public class" in stale


def test_a_plain_word_needs_no_entry_and_gets_none() -> None:
    (twice,) = check_glossary(*in_room(), "| `Head` | the driver |\n")
    assert "explains Head" in twice


def test_a_class_of_the_rooms_shares_its_name_with_no_other() -> None:
    classes, rooms = in_room("Actor")
    classes["Actor"].append(Path("y.py"))
    (shared,) = check_glossary(classes, rooms, "| `Actor` | a generator |\n")
    assert "the name of several classes: x.py, y.py" in shared


def test_public_classes_are_those_at_the_top_without_an_underscore() -> None:
    assert public_classes("class A:\n    class B: ...\nclass _C: ...\ndef d(): ...\n") == ("A",)
