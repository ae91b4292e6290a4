"""The browser that the tests of what people see share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.ui.chromium import PROGRAM, Chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if PROGRAM is None:
        pytest.skip("there is no Chromium on PATH")
    made = Chromium(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()
