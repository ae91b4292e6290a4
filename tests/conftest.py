"""One locked-down DuckDB for the tests that need no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.trees import SETTINGS

from wallaby.statements.connection import DuckDbSession, close_thread_session


@pytest.fixture(scope="session")
def session() -> Iterator[DuckDbSession]:
    made = DuckDbSession(SETTINGS)
    yield made
    made.close()


@pytest.fixture(autouse=True, scope="module")
def _no_session_left_behind() -> Iterator[None]:
    yield
    close_thread_session()
