"""Pages that are made from code say what the code says."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tools.write_docs import DOCS, PAGES
from tools.write_reference import record_lines
from wallaby.config.registry import PREFIX, SETTINGS, shown_default
from wallaby.config.settings import read_settings


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_makes(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run make pages"


def test_a_record_is_shown_with_its_public_fields_and_what_they_mean() -> None:
    @dataclass
    class Explained:
        """A record."""

        #: How many there are.
        count: int
        _hidden: int = 0

    assert "| `count` | `int` | How many there are. |" in record_lines(Explained)
    assert not any("_hidden" in line for line in record_lines(Explained))


def test_a_public_field_without_a_comment_of_its_own_is_refused() -> None:
    @dataclass
    class HalfExplained:
        """A record."""

        #: These two.
        first: int
        second: int

    with pytest.raises(ValueError, match=r"HalfExplained\.second has no comment"):
        record_lines(HalfExplained)


def test_a_default_as_it_is_shown_is_read_as_the_default() -> None:
    shown = {PREFIX + setting.key: shown_default(setting) for setting in SETTINGS}
    assert read_settings(shown, {}) == read_settings({}, {})


def test_every_decision_is_listed_under_its_title() -> None:
    listed = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    for note in sorted((DOCS / "decisions").glob("0*.md")):
        number, title = note.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").split(". ", 1)
        assert note.name.startswith(f"{int(number):04d}-")
        assert f"| {number} | [{title}]({note.name}) |" in listed
