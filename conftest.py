"""What all tests share: Spark's settings for short lives (tests/spark_conf), also in the processes that tests start."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: The folders whose tests share one Spark session (tests/spark_sessions.py).
SHARING = (HERE / "tests" / "engine", HERE / "tests" / "reading")

os.environ.setdefault("SPARK_CONF_DIR", str(HERE / "tests" / "spark_conf"))


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of garbage collections. With thousands of tests, each would take 0.2 s more."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let Python free the tests, too, when it ends: libraries complain about what is left."""
    gc.unfreeze()


def stop_shared_spark() -> None:
    """Stop the shared session, if a test has started it: without an import that takes a second."""
    if "tests.spark_sessions" in sys.modules:
        sys.modules["tests.spark_sessions"].stop_shared_spark()


@pytest.fixture(autouse=True, scope="module")
def _only_some_folders_find_the_shared_spark(request: pytest.FixtureRequest) -> None:
    if not any(folder in request.path.parents for folder in SHARING):
        stop_shared_spark()


@pytest.fixture(autouse=True, scope="session")
def _no_spark_is_left_behind() -> Iterator[None]:
    yield
    stop_shared_spark()
