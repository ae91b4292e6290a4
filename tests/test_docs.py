"""Pages that are made from code say what the code says."""

from __future__ import annotations

import pytest
from tools.write_docs import DOCS, PAGES

from wallaby.config import PREFIX, SETTINGS, read_settings, shown_default


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_makes(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run make docs"


def test_a_default_as_it_is_shown_is_read_as_the_default() -> None:
    shown = {PREFIX + setting.key: shown_default(setting) for setting in SETTINGS}
    assert read_settings(shown, {}) == read_settings({}, {})
